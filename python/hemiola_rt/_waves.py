"""Which tiles of a kernel wait for which transfers of a plan, and which transfers wait for which tiles: src/compile/fusion_waves.cc,
which `tests/fused` hold to the same waves."""

import collections
import itertools

from ._expressions import evaluate
from ._tasks import PlanError, operand_pieces

Wave = collections.namedtuple("Wave", "box needs part arrives wanted")  # box: (begin, end) by axis
_Claim = collections.namedtuple("_Claim", "box point takes begin end")
_NEVER = 1 << 62


class Waves:
    """`waves`, `turns` and `parts` by rank; `part_waits`: by (rank, stream, transfer) the (rank, part) that it waits for."""

    def __init__(self, plan, kernel, extents):
        self.plan, self.kernel = plan, kernel
        compute = kernel.compute_of(plan)
        sizes = {axis["name"]: axis["extent"] for axis in compute["axes"]}
        self.axes = [(name, kernel.axes.get(name)) for name in [*extents, *kernel.derived]]
        self.whole = tuple((0, extents[name] if name in extents else sizes.get(axis, 1)) for name, axis in self.axes)
        self.loop = kernel.loop and (kernel.loop[0], sizes[kernel.loop[0]])
        self._transfers = {(rank, stream): list(self._unroll(items["items"], ()))
                           for rank, code in enumerate(plan.code_of) for stream, items in enumerate(code["streams"])}
        self._start = self._timeline()
        self._claims = [[] for _ in range(plan.ranks)]
        for (rank, stream), transfers in self._transfers.items():
            for position, (item, counters) in enumerate(transfers):
                self._claim(rank, (rank, stream, position), item, counters)
        self._choose_loop()
        self.waves, self.turns, self.parts, self.part_waits = [], [], [], collections.defaultdict(list)
        for rank in range(plan.ranks):
            self._find_waves(rank)
            self.turns.append(self._find_turns(rank))
        self._check()

    def _unroll(self, items, counters):
        for item in items:
            if "loop" in item:
                for turn in range(item["loop"]):
                    yield from self._unroll(item["items"], (*counters, turn))
            else:
                yield item, counters

    def _before(self, point):
        """Transfers that a transfer waits for."""
        rank, stream, position = point
        if position > 0:
            yield rank, stream, position - 1
        item, counters = self._transfers[rank, stream][position]
        for dependency in item.get("after", []):
            if "transfer" in dependency:
                yield (evaluate(dependency.get("rank", "rank"), rank, counters), dependency.get("stream", 0),
                       evaluate(dependency["transfer"], rank, counters))

    def _timeline(self):
        """By transfer the step at which it starts, if each takes one."""
        start, visiting, before = {}, set(), self._before
        for (rank, stream), transfers in self._transfers.items():
            for position in range(len(transfers)):
                waiting = [(rank, stream, position)]
                while waiting:
                    point = waiting[-1]
                    open_ones = [other for other in before(point) if other not in start]
                    if point in start or not open_ones:
                        start.setdefault(point, max((start[other] + 1 for other in before(point)), default=0))
                        visiting.discard(point)
                        waiting.pop()
                    elif point in visiting:
                        raise PlanError("has transfers that wait for each other")
                    else:
                        visiting.add(point)
                        waiting.extend(open_ones)
        return start

    def _claim(self, rank, point, item, counters):
        plan = self.plan
        owner = evaluate(item["peer"], rank, counters) if item["op"] == "push" else rank
        target = item["destination"]
        self._add(owner, target["tensor"], plan.boxes(target, rank, counters), point, False)
        for dependency in item.get("after", []):
            if "transfer" in dependency:
                continue
            of = evaluate(dependency.get("rank", "rank"), rank, counters)
            if "computed" in dependency:
                region = dependency["computed"]
                self._add(of, region["tensor"], plan.boxes(region, rank, counters), point, True)
            else:
                self._claims[of].append(_Claim(self.whole, point, True, 0, _NEVER))

    def _add(self, owner, tensor, boxes, point, takes):
        compute = self.plan.code_of[owner]["computes"][0]
        for operand in compute["operands"]:
            if operand["tensor"] != tensor or (operand["use"] != "read") != takes:
                continue
            pieces = operand_pieces(self.plan, compute, operand, owner)
            for box in boxes:
                made, begin, end = list(self.whole), 0, _NEVER
                for place, ((axis, first, _), low, count) in enumerate(zip(pieces, box.begin, box.extent)):
                    if (tensor, place) in self.kernel.gathered:
                        continue
                    if axis is not None and self.loop and axis == self.loop[0]:
                        begin, end = max(0, low - first), min(self.loop[1], low + count - first)
                    for number, (_, along) in enumerate(self.axes):
                        if axis is not None and along == axis:
                            made[number] = max(made[number][0], low - first), min(made[number][1], low + count - first)
                if all(low < high for low, high in made):
                    self._claims[owner].append(_Claim(tuple(made), point, takes, begin, end))

    def _along_loop(self, claim):
        return (not claim.takes and self.loop is not None and (claim.begin > 0 or claim.end < self.loop[1]) and claim.box == self.whole)

    def _choose_loop(self):
        if self.loop is None:
            return
        claims = [claim for of_rank in self._claims for claim in of_rank if not claim.takes]
        mixed = any((claim.begin > 0 or claim.end < self.loop[1]) and claim.box != self.whole for claim in claims)
        if mixed or not any(map(self._along_loop, claims)):
            raise PlanError("nothing arrives along the kernel's loop, for which it was compiled: compile it for this plan")

    def _distance(self, own, other):
        return (other - own) % self.plan.ranks

    def _nearest(self, rank, needs):
        return min((self._distance(rank, need[0]) for need in needs), default=0)

    def _needs(self, points):
        """Of each stream the last transfer, and the step at which all are there."""
        last, arrives = {}, 0
        for rank, stream, position in points:
            last[rank, stream] = max(last.get((rank, stream), -1), position)
            arrives = max(arrives, self._start[rank, stream, position] + 1)
        return tuple((*stream, position) for stream, position in sorted(last.items())), arrives

    def _find_waves(self, rank):
        claims = [claim for claim in self._claims[rank] if not self._along_loop(claim)]
        cuts = []
        for number, edges in enumerate(self.whole):
            # What arrives along the loop is of all tiles.
            cuts.append(sorted({*edges, *(edge for claim in claims for edge in claim.box[number])}))
        waves, part_of = [], {}
        for box in itertools.product(*(list(zip(edges, edges[1:])) for edges in cuts)):
            meets = [claim for claim in claims if all(a < d and c < b for (a, b), (c, d) in zip(claim.box, box))]
            needs, arrives = self._needs([claim.point for claim in meets if not claim.takes])
            takers = tuple(sorted({claim.point for claim in meets if claim.takes}))
            part = part_of.setdefault(takers, len(part_of)) if takers else -1
            waves.append(Wave(box, needs, part, arrives, min((self._start[taker] for taker in takers), default=_NEVER)))
        waves = self._joined(waves)
        waves.sort(key=lambda wave: (wave.arrives, wave.wanted, self._nearest(rank, wave.needs)))
        parts = [None] * len(part_of)
        for takers, part in sorted(part_of.items()):
            for taker in takers:
                self.part_waits[taker].append((rank, part))
            parts[part] = sorted({taker[0] for taker in takers}, key=lambda other: self._distance(rank, other))
        self.waves.append(waves)
        self.parts.append(parts)

    def _joined(self, waves):
        """Neighbours that wait for the same and are waited for by the same, as one."""
        for axis in reversed(range(len(self.axes))):
            joined, by_end = [], {}
            for wave in waves:
                others = wave.box[:axis] + wave.box[axis + 1:]
                at = by_end.get((others, wave.box[axis][0]))
                if at is not None and (joined[at].needs, joined[at].part) == (wave.needs, wave.part):
                    box = joined[at].box
                    joined[at] = joined[at]._replace(box=(*box[:axis], (box[axis][0], wave.box[axis][1]), *box[axis + 1:]))
                else:
                    at = len(joined)
                    joined.append(wave)
                by_end[others, wave.box[axis][1]] = at
            waves = joined
        return waves

    def _find_turns(self, rank):
        """(begin, end, needs) of the loop, in the order in which they come."""
        if self.loop is None:
            return []
        claims = [claim for claim in self._claims[rank] if self._along_loop(claim)]
        edges = sorted({0, self.loop[1], *(edge for claim in claims for edge in (claim.begin, claim.end))})
        turns = []
        for begin, end in zip(edges, edges[1:]):
            needs, arrives = self._needs([claim.point for claim in claims if claim.end > begin and claim.begin < end])
            if turns and turns[-1][2] == needs:
                turns[-1] = (turns[-1][0], end, *turns[-1][2:])
            else:
                turns.append((begin, end, needs, arrives))
        if self.kernel.loop[2]:
            turns.sort(key=lambda turn: (turn[3], self._nearest(rank, turn[2])))
        return [turn[:3] for turn in turns]

    def _check(self):
        """That the kernel's text can do what the waves ask for, that it comes to an end however few of its programs run at a time, and that
        axes which others determine are not cut."""
        behind_tiles = set()
        for point in sorted(self._start, key=self._start.get):
            if point in self.part_waits or any(other in behind_tiles for other in self._before(point)):
                behind_tiles.add(point)
        needs = [need for of_rank in (*self.waves, *self.turns) for wave in of_rank for need in (wave.needs if isinstance(wave, Wave) else wave[2])]
        if any(need in behind_tiles for need in needs):
            raise PlanError("has tiles that wait for transfers which wait for tiles: the compiler proves whether these come to an end, so compile "
                            "it for this plan")
        waits = any(wave.needs for of_rank in self.waves for wave in of_rank)
        if waits and not self.kernel.waits or any(self.parts) and not self.kernel.signals:
            raise PlanError("has tiles that wait, or are waited for, which the kernel was not compiled for: compile it for this plan")
        for number, (name, _) in enumerate(self.axes):
            if name in self.kernel.derived and any(wave.box[number] != self.whole[number] for of_rank in self.waves for wave in of_rank):
                raise PlanError(f"cuts axis {name}, which the kernel's others determine")

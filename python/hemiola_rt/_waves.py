"""Which tiles of a kernel wait for which transfers of a plan, and which transfers wait for which tiles: src/compile/fuse/waves.cc,
which `tests/fused` hold to the same waves."""

import collections
import itertools

from ._expressions import evaluate
from ._tasks import PlanError, operand_pieces

Wave = collections.namedtuple("Wave", "box needs part arrives wanted launch place")  # box: (begin, end) by axis
_Claim = collections.namedtuple("_Claim", "box point takes begin end")
_NEVER = 1 << 62


class Waves:
    """`waves`, `turns` and `parts` by rank; `part_waits`: by (rank, stream, transfer) the (rank, part, grid) that it waits for.

    grid: which of a GridPlan's; first_part: by rank the number of parts of the grids before. keeps_loop: another one
    waits in the loop, so that all of it is a piece here where nothing arrives along it.
    """

    def __init__(self, plan, kernel, extents, grid=0, first_part=None, keeps_loop=False):
        self.plan, self.kernel, self.grid = plan, kernel, grid
        self.first_part = first_part or [0] * plan.ranks
        self._launches = getattr(plan, "launches", None) and plan.launches[grid]
        compute = kernel.compute_of(plan, grid)
        sizes = {axis["name"]: axis["extent"] for axis in compute["axes"]}
        self.axes = [(name, kernel.axes.get(name)) for name in [*extents, *kernel.derived]]
        self.whole = tuple((0, extents[name] if name in extents else sizes.get(axis, 1)) for name, axis in self.axes)
        self.loop = kernel.loop and (kernel.loop[0], sizes[kernel.loop[0]])
        self.transfers = {(rank, stream): list(plan.unrolled(items["items"]))
                          for rank, code in enumerate(plan.code_of) for stream, items in enumerate(code["streams"])}
        self._start = self._timeline()
        self._claims, self._boxes = [[] for _ in range(plan.ranks)], [[] for _ in range(plan.ranks)]
        for (rank, stream), transfers in self.transfers.items():
            for position, (item, counters) in enumerate(transfers):
                self._claim(rank, (rank, stream, position), item, counters)
        if self._launches:
            self._claim_for_launches([axis["name"] for axis in compute["axes"]])
        self._keeps_loop = keeps_loop
        self._choose_loop()
        self.waves, self.turns, self.parts, self.part_waits = [], [], [], collections.defaultdict(list)
        for rank in range(plan.ranks):
            self._find_waves(rank)
            self.turns.append(self._find_turns(rank))
        self._check()

    def before(self, point):
        """Transfers that a transfer waits for."""
        rank, stream, position = point
        if position > 0:
            yield rank, stream, position - 1
        item, counters = self.transfers[rank, stream][position]
        for dependency in item.get("after", []):
            if "transfer" in dependency:
                yield (evaluate(dependency.get("rank", "rank"), rank, counters), dependency.get("stream", 0),
                       evaluate(dependency["transfer"], rank, counters))

    def _timeline(self):
        """By transfer the step at which it starts, if each takes one."""
        start, visiting, before = {}, set(), self.before
        for (rank, stream), transfers in self.transfers.items():
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
        owners = [evaluate(item["peer"], rank, counters) if item["op"] == "push" else rank]
        if item["op"] == "push" and "group" in item:
            owners = plan.root["groups"][item["group"]]
        target = item["destination"]
        for owner in owners:
            self._add(owner, target["tensor"], plan.boxes(target, rank, counters), point, False)
        for dependency in item.get("after", []):
            if "transfer" in dependency:
                continue
            if self._launches and "computed" not in dependency:
                continue  # among those that the plan says are taken
            of = evaluate(dependency.get("rank", "rank"), rank, counters)
            if "computed" in dependency:
                region = dependency["computed"]
                self._add(of, region["tensor"], plan.boxes(region, rank, counters), point, True)
            else:
                self._claims[of].append(_Claim(self.whole, point, True, 0, _NEVER))

    def _waits_by_tiles(self, rank):
        return not self._launches or self._launches[rank][0].by_tiles

    def _claim_for_launches(self, names):
        """Tiles of a launch wait for what the launch waits for, and a transfer that comes after one is told when all of it is stored."""
        for rank, launches in enumerate(self._launches):
            for number, launch in enumerate(launches):
                for rect in launch.boxes:
                    of_compute = dict(zip(names, rect))
                    box = tuple(of_compute.get(axis, edges) for (_, axis), edges in zip(self.axes, self.whole))
                    self._boxes[rank].append((box, number, len(self._boxes[rank])))
                    begin, end = of_compute[self.loop[0]] if self.loop else (0, _NEVER)  # a launch may be part of a sum
                    self._claims[rank].extend(_Claim(box, need, False, begin, end) for need in launch.needs)
        for point, taken in sorted(self.plan.taken.items()):
            for rank, grid, launch in taken:
                if grid == self.grid:
                    self._claims[rank].extend(_Claim(box, point, True, 0, _NEVER) for box, number, _ in self._boxes[rank] if number == launch)

    def _add(self, owner, tensor, boxes, point, takes):
        if not self._waits_by_tiles(owner):
            return
        compute = self.plan.code_of[owner]["computes"][self.grid]
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
        if not self._keeps_loop and (mixed or not any(map(self._along_loop, claims))):
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
            cuts.append(sorted({*edges, *(edge for claim in claims for edge in claim.box[number]),
                                *(edge for box, *_ in self._boxes[rank] for edge in box[number])}))
        waves, part_of = [], {}
        for box in itertools.product(*(list(zip(edges, edges[1:])) for edges in cuts)):
            meets = [claim for claim in claims if _meet(claim.box, box)]
            launch, place = max(((number, place) for other, number, place in self._boxes[rank] if _meet(other, box)), default=(0, 0))
            needs, arrives = self._needs([claim.point for claim in meets if not claim.takes])
            takers = tuple(sorted({claim.point for claim in meets if claim.takes}))
            part = part_of.setdefault(takers, self.first_part[rank] + len(part_of)) if takers else -1
            waves.append(Wave(box, needs, part, arrives, min((self._start[taker] for taker in takers), default=_NEVER), launch, place))
        waves = self._joined(waves)
        waves.sort(key=lambda wave: (wave.place, wave.arrives, wave.wanted, self._nearest(rank, wave.needs)))
        parts = [None] * len(part_of)
        for takers, part in sorted(part_of.items()):
            for taker in takers:
                self.part_waits[taker].append((rank, part, self.grid))
            parts[part - self.first_part[rank]] = sorted({taker[0] for taker in takers}, key=lambda other: self._distance(rank, other))
        self.waves.append(waves)
        self.parts.append(parts)

    def _joined(self, waves):
        """Neighbours that wait for the same and are waited for by the same, as one."""
        for axis in reversed(range(len(self.axes))):
            joined, by_end = [], {}
            for wave in waves:
                others = wave.box[:axis] + wave.box[axis + 1:]
                at = by_end.get((others, wave.box[axis][0]))
                if at is not None and (joined[at].needs, joined[at].part, joined[at].launch) == (wave.needs, wave.part, wave.launch):
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
        """That the kernel's text can do what the waves ask for, and that axes which others determine are not cut."""
        waits = any(wave.needs for of_rank in self.waves for wave in of_rank)
        if waits and not self.kernel.waits or any(self.parts) and not self.kernel.signals:
            raise PlanError("has tiles that wait, or are waited for, which the kernel was not compiled for: compile it for this plan")
        for number, (name, _) in enumerate(self.axes):
            if name in self.kernel.derived and any(wave.box[number] != self.whole[number] for of_rank in self.waves for wave in of_rank):
                raise PlanError(f"cuts axis {name}, which the kernel's others determine")


def _meet(box, other):
    return all(a < d and c < b for (a, b), (c, d) in zip(box, other))

"""What each rank of a plan file does, with numbers in it, and the order in which the host gives it: src/compile's fuse/tasks.h and
torch_order.h, which `tests/torch` hold to the same calls."""

import collections
import json

from ._expressions import evaluate

Box = collections.namedtuple("Box", "begin extent")
Copy = collections.namedtuple("Copy", "item counters after parts", defaults=((),))  # parts: (rank, part, grid) of kernels that it waits for
Launch = collections.namedtuple("Launch", "compute after inside", defaults=((),))  # inside: tasks that its tiles wait for
Issue = collections.namedtuple("Issue", "point task waits records signals")


class PlanError(ValueError):
    """A plan that PyTorch has no calls for without a kernel, or that is damaged."""


class Plan:
    """A plan file: tensors by name, and the code of each rank."""

    def __init__(self, text):
        try:
            self.root = json.loads(text)
        except ValueError as error:
            raise PlanError(f"is no plan: {error}") from None
        if not isinstance(self.root, dict) or "hemiola_plan" not in self.root:
            raise PlanError("is no plan: it has no 'hemiola_plan'")
        self.ranks = 1
        for axis in self.root["mesh"]:
            self.ranks *= axis["size"]
        self.tensors = {tensor["name"]: tensor for tensor in self.root["tensors"]}
        self.code_of = [None] * self.ranks
        for code in self.root["codes"]:
            for rank in self._ranks(code["ranks"]):
                self.code_of[rank] = code

    def _ranks(self, text):
        if text == "all":
            return range(self.ranks)
        ranks = []
        for part in text.split(","):
            first, _, last = part.partition("-")
            ranks.extend(range(int(first), int(last or first) + 1))
        return ranks

    def boxes(self, region, rank, counters=()):
        """Boxes with numbers."""
        made = []
        for box in region.get("boxes", [region]):
            begin = [evaluate(b, rank, counters) for b in box["begin"]]
            made.append(Box(begin, box.get("extent", [1] * len(begin))))
        return made

    def unrolled(self, items, counters=()):
        """(item, counters of its loops) of every transfer, in order."""
        for item in items:
            if "loop" in item:
                for turn in range(item["loop"]):
                    yield from self.unrolled(item["items"], (*counters, turn))
            else:
                yield item, counters

    def residents(self, rank):
        """(tensor, box) of what a rank holds at the start."""
        given = self.code_of[rank].get("resident")
        if given is None:
            return [(name, Box([0] * len(tensor["shape"]), tensor["shape"]))
                    for name, tensor in self.tensors.items() if tensor["role"] == "input"]
        return [(region["tensor"], box) for region in given for box in self.boxes(region, rank)]


def operand_pieces(plan, compute, operand, rank):
    """(compute axis or None, begin, extent) by axis of the operand's tensor; an operand that wraps may reach beyond the end."""
    axes = {axis["name"]: axis for axis in compute["axes"]}
    shape = plan.tensors[operand["tensor"]]["shape"]
    pieces = []
    for i, name in enumerate(operand["axes"]):
        if name == "*":
            pieces.append((None, 0, shape[i]))
            continue
        begin = evaluate(operand["begin"][i], rank) if "begin" in operand else 0
        pieces.append((name, begin % shape[i] if operand.get("wraps") else begin, axes[name]["extent"]))
    return pieces


class Tasks:
    """`actors[rank]`: by actor its tasks; an actor is a stream of transfers, or (behind them) of launches.

    waves: those of a kernel (_waves.py) by grid, if the plan's computes are its grids.
    """

    def __init__(self, plan, waves=None):
        self.plan, self.waves = plan, waves
        self.actors, self.copies, self.launches, self.places = [], [], [], []
        for rank in range(plan.ranks):
            self._read(rank)
        for rank in range(plan.ranks):
            self.actors[rank] = [[task._replace(after=self._points(task, rank)) for task in actor] for actor in self.actors[rank]]

    def _read(self, rank):
        code = self.plan.code_of[rank]
        actors = []
        for stream in code["streams"]:
            actors.append([])
            self._unroll(stream["items"], (), actors[-1])
        self.copies.append(len(actors))
        if self.waves is not None:
            self._add_kernels(rank, actors)
            return
        computes, named, places, order = code.get("computes", []), {}, {}, []
        for number, compute in enumerate(computes):
            if compute.get("waits", "tiles") == "tiles":
                raise PlanError(f"compute '{compute['name']}' waits for its data inside the kernel, which needs a kernel")
            stream = compute.get("stream") or number
            if stream not in named:
                named[stream] = len(actors)
                actors.append([])
            places[number] = (rank, named[stream], len(actors[named[stream]]))
            actors[named[stream]].append(Launch(number, None))
        self._sort(computes, actors, places, order)
        self.actors.append(actors)
        self.launches.append(order)
        self.places.append(places)

    def _add_kernels(self, rank, actors):
        """A launch for each grid. In front of it it waits for the one before, and for what needs room."""
        for stream, actor in enumerate(actors):
            actor[:] = [copy._replace(parts=tuple(part for waves in self.waves for part in waves.part_waits.get((rank, stream, position), ())))
                        for position, copy in enumerate(actor)]
        launches = []
        for grid, waves in enumerate(self.waves):
            inside = {need for wave in waves.waves[rank] for need in wave.needs} | {need for turn in waves.turns[rank] for need in turn[2]}
            launches.append(Launch(grid, tuple(waves.in_front[rank]), tuple(sorted(inside))))
        self.places.append({grid: (rank, len(actors), grid) for grid in range(len(launches))})
        actors.append(launches)
        self.launches.append(list(range(len(launches))))
        self.actors.append(actors)

    def _sort(self, computes, actors, places, order):
        done = set()

        def visit(number):
            if number in done:
                return
            done.add(number)
            _, actor, position = places[number]
            before = {self._number(computes, d["compute"]) for d in computes[number].get("after", []) if "compute" in d}
            if position > 0:
                before.add(actors[actor][position - 1].compute)
            for other in sorted(before):
                visit(other)
            order.append(number)

        for number in range(len(computes)):
            visit(number)

    @staticmethod
    def _number(computes, compute):
        if isinstance(compute, str) and any(other["name"] == compute for other in computes):
            return [other["name"] for other in computes].index(compute)
        return evaluate(compute, 0)

    def _unroll(self, items, counters, actor):
        for item in items:
            if "loop" in item:
                for turn in range(item["loop"]):
                    self._unroll(item["items"], (*counters, turn), actor)
            else:
                if "group" in item and item["op"] != "collective" and item.get("reduce", "sum") != "sum":
                    raise PlanError(f"a {item['reduce']} by the switch has no counterpart here")
                actor.append(Copy(item, counters, None))

    def _points(self, task, rank):
        is_copy = isinstance(task, Copy)
        counters = task.counters if is_copy else ()
        given = task.item if is_copy else self.plan.code_of[rank]["computes"][task.compute]
        points = set(task.after or ())
        for dependency in given.get("after", []):
            on = evaluate(dependency.get("rank", "rank"), rank, counters)
            computes = self.plan.code_of[on].get("computes", [])
            if self.waves is not None and "transfer" not in dependency:
                continue  # a part of the kernel
            if "computed" in dependency:
                points.update(self._makers(dependency["computed"], rank, counters, on))
            elif "compute" in dependency:
                compute = dependency["compute"]
                known = isinstance(compute, str) and any(other["name"] == compute for other in computes)
                points.add(self.places[on][self._number(computes, compute) if known else evaluate(compute, rank, counters)])
            else:
                points.add((on, dependency.get("stream", 0), evaluate(dependency["transfer"], rank, counters)))
        # From the own rank backwards, so that ranks that do the same list it alike.
        return sorted(points, key=lambda point: ((rank - point[0]) % self.plan.ranks, point))

    def _makers(self, region, rank, counters, on):
        for number, compute in enumerate(self.plan.code_of[on].get("computes", [])):
            for operand in compute["operands"]:
                if operand["use"] == "read" or operand["tensor"] != region["tensor"]:
                    continue
                pieces = operand_pieces(self.plan, compute, operand, on)
                shape = self.plan.tensors[region["tensor"]]["shape"]
                if any(all(_meet(begin, extent, first, count, size) for (_, begin, extent), first, count, size
                           in zip(pieces, box.begin, box.extent, shape)) for box in self.plan.boxes(region, rank, counters)):
                    yield self.places[on][number]

    def task(self, point):
        rank, actor, position = point
        return self.actors[rank][actor][position]

    def everything(self):
        for rank, actors in enumerate(self.actors):
            for actor, tasks in enumerate(actors):
                for position in range(len(tasks)):
                    yield rank, actor, position


def _meet(begin, extent, first, count, size):
    """Whether [begin, begin + extent), around the end of an axis, meets [first, first + count)."""
    return any(begin < first + count + turn and first + turn < begin + extent for turn in (0, size))


class Order:
    """`of[rank]`: Issues in the order of the host."""

    def __init__(self, tasks):
        self.tasks = tasks
        self._needs, self._wanted = {}, {}
        self._find_phases()
        order = [self._host_order(rank) for rank in range(len(tasks.actors))]
        waits = [self._waits(rank, points) for rank, points in enumerate(order)]
        heard = collections.defaultdict(set)
        for rank, (of_rank, _) in enumerate(waits):
            for of_task in of_rank:
                for kind, on in of_task:
                    if kind == "signal":
                        heard[on].add(rank)
            for launch in (tasks.task(point) for point in order[rank] if isinstance(tasks.task(point), Launch)):
                for on in launch.inside:
                    heard[on].add(rank)
        ranks = len(tasks.actors)
        self.of = [[Issue(point, tasks.task(point), wait, point in events,
                          sorted(heard[point], key=lambda to, own=point[0]: (to - own) % ranks))
                    for point, wait in zip(points, of_rank)] for points, (of_rank, events) in zip(order, waits)]

    def _before(self, point):
        rank, actor, position = point
        return [*self.tasks.task(point).after, *([(rank, actor, position - 1)] if position > 0 else [])]

    def _find_phases(self):
        tasks = self.tasks
        launches = {place: tasks.launches[rank].index(number) for rank, places in enumerate(tasks.places)
                    for number, place in places.items()}
        later, left = collections.defaultdict(list), {}
        for point in tasks.everything():
            before = self._before(point)
            left[point] = len(before)
            for earlier in before:
                later[earlier].append(point)
        ready = [point for point, count in left.items() if count == 0]
        for point in ready:
            for other in later[point]:
                left[other] -= 1
                if left[other] == 0:
                    ready.append(other)
        if len(ready) < len(left):
            raise PlanError("has transfers and launches that wait for each other")
        for point in ready:
            after_part = max((grid for _, _, grid in getattr(tasks.task(point), "parts", ())), default=-1)
            self._needs[point] = launches.get(point, max((self._needs[e] for e in self._before(point)), default=after_part))
            if point not in launches:
                self._needs[point] = max(self._needs[point], after_part)
        for point in reversed(ready):
            if point in launches:
                self._wanted[point] = launches[point]
            for earlier in self._before(point):
                if earlier not in launches and point in self._wanted:
                    self._wanted[earlier] = min(self._wanted.get(earlier, self._wanted[point]), self._wanted[point])
        self._launches = launches

    def _phase(self, point):
        if point in self._launches:
            return 3 * self._needs[point] + 1
        if self._needs[point] >= 0:
            return 3 * self._needs[point] + 2
        return 3 * self._wanted[point] if point in self._wanted else -1

    def _host_order(self, rank):
        given, order = collections.Counter(), []

        def give(point):
            _, actor, position = point
            while given[actor] <= position:
                here = (rank, actor, given[actor])
                for earlier in self.tasks.task(here).after:
                    if earlier[0] == rank and earlier[1] != actor:
                        give(earlier)
                order.append(here)
                given[actor] += 1

        own = [(rank, actor, position) for actor, tasks in enumerate(self.tasks.actors[rank]) for position in range(len(tasks))]
        for point in sorted(own, key=lambda p: (self._phase(p), p)):
            give(point)
        return order

    def _waits(self, rank, points):
        known, last, events, waits, known_parts = {}, {}, set(), [], set()
        for point in points:
            of_task = []
            for on in self.tasks.task(point).after:
                key = (point[1], on[0], on[1])
                if (on[0] == rank and on[1] == point[1]) or known.get(key, -1) >= on[2]:
                    continue
                known[key] = on[2]
                if of_task and of_task[-1][1][:2] == on[:2]:
                    of_task.pop()
                kind = "signal" if on[0] != rank else "stream" if last.get(on[1]) == on[2] else "event"
                of_task.append((kind, on))
            for part in getattr(self.tasks.task(point), "parts", ()):
                if (point[1], part) not in known_parts:
                    known_parts.add((point[1], part))
                    of_task.append(("part", part[:2]))
            events.update(on for kind, on in of_task if kind == "event")
            last[point[1]] = point[2]
            waits.append(of_task)
        return waits, events

"""Which computes of a plan are waves of one grid: src/compile/fuse/grids.h, which `tests/fused` hold to the same grids."""

import collections
import math

from ._expressions import evaluate
from ._tasks import Box, Plan, PlanError, operand_pieces

Launch = collections.namedtuple("Launch", "name boxes needs by_tiles")  # boxes: ((begin, end) by axis of the grid's compute, ...)
_Placed = collections.namedtuple("_Placed", "compute number boxes moved")


def is_one_kernel(plan):
    """Whether every rank has one compute, which waits tile by tile."""
    return all(len(code.get("computes", [])) == 1 and not _is_launch(code["computes"][0]) for code in plan.code_of)


def _is_launch(compute):
    return bool(compute.get("stream")) or bool(compute.get("after")) or compute.get("waits", "tiles") == "launch"


class GridPlan(Plan):
    """A plan with one compute for each grid in the code of every rank. `launches` by grid and rank, `taken`: by (rank, stream, transfer) the
    (rank, grid, launch) that it comes after. PlanError: computes that no grids can be made of."""

    def __init__(self, plan):
        self.root, self.ranks, self._plan = plan.root, plan.ranks, plan
        self.tensors, self.code_of = plan.tensors, plan.code_of
        self._by_rank, self._before = [], []
        for rank in range(self.ranks):
            self._divide(rank)
        self._find_folds()
        self.launches = [[] for _ in self._by_rank[0]]
        codes = []
        for rank in range(self.ranks):
            codes.append({**plan.code_of[rank], "computes": [self._unite(rank, grid) for grid in range(len(self._by_rank[0]))]})
        self.taken = {}
        for rank in range(self.ranks):
            self._find_taken(rank)
        self.code_of = codes
        self.tensors = {name: self._folded_tensor(tensor) for name, tensor in plan.tensors.items()}
        for code in codes:
            if [[axis["extent"] for axis in one["axes"]] for one in code["computes"]] != [
                    [axis["extent"] for axis in one["axes"]] for one in codes[0]["computes"]]:
                raise PlanError("its ranks run different computes")

    def boxes(self, region, rank, counters=()):
        """Boxes with numbers, of folded tensors."""
        boxes = self._plan.boxes(region, rank, counters)
        axis = self._folds.get(region["tensor"])
        if axis is None:
            return boxes
        length = self._plan.tensors[region["tensor"]]["shape"][axis + 1]
        made = []
        for begin, extent in boxes:
            def box(first, count, begin=begin, extent=extent):
                return Box([*begin[:axis], first, *begin[axis + 2:]], [*extent[:axis], count, *extent[axis + 2:]])
            if begin[axis + 1] == 0 and extent[axis + 1] == length:
                made.append(box(begin[axis] * length, extent[axis] * length))
            else:
                made.extend(box(block * length + begin[axis + 1], extent[axis + 1]) for block in range(begin[axis], begin[axis] + extent[axis]))
        return made

    def _folded_tensor(self, tensor):
        axis, shape = self._folds.get(tensor["name"]), list(tensor["shape"])
        if axis is not None:
            shape[axis:axis + 2] = [shape[axis] * shape[axis + 1]]
        return {**tensor, "shape": shape}

    def _divide(self, rank):
        """The computes of a rank in the order of their launches, as many to a grid as can be."""
        computes = self.code_of[rank].get("computes", [])
        if not computes:
            raise PlanError("computes nothing that a kernel could be fused into")
        earlier = [[] for _ in computes]
        last = {}
        for number, compute in enumerate(computes):
            if not _is_launch(compute):
                continue
            stream = compute.get("stream") or number
            if stream in last:
                earlier[number].append(last[stream])
            last[stream] = number
            earlier[number] += [self._number(computes, one["compute"], rank) for one in compute.get("after", []) if "compute" in one]
        before, order = {}, []

        def visit(number):
            if number in before:
                return
            before[number] = {number}
            for other in sorted(set(earlier[number])):
                visit(other)
                before[number] |= before[other]
            order.append(number)

        for number, compute in enumerate(computes):
            if not _is_launch(compute):
                before[number] = {number}
                order.insert(0, number)
        for number in range(len(computes)):
            visit(number)
        grids = []
        for number in order:
            one = self._placed(computes[number], number, rank)
            if not grids or not self._joins(grids[-1], one):
                grids.append([])
            grids[-1].append(one)
        for grid in grids:
            _require_begun(grid)
        if self._by_rank and len(grids) != len(self._by_rank[0]):
            raise PlanError("its ranks run different computes")
        self._by_rank.append(grids)
        self._before.append(before)

    @staticmethod
    def _number(computes, compute, rank, counters=()):
        names = [one["name"] for one in computes]
        return names.index(compute) if isinstance(compute, str) and compute in names else evaluate(compute, rank, counters)

    def _placed(self, compute, number, rank):
        """Where tiles lie along the axes, by the tensor that the compute makes, and how far its operands lie from there."""
        pieces = [operand_pieces(self, compute, operand, rank) for operand in compute["operands"]]
        made = [operand["use"] != "read" for operand in compute["operands"]]
        first = {}
        for is_made in (True, False):
            for of_operand, makes in zip(pieces, made):
                for axis, begin, _ in of_operand:
                    if axis is not None and makes == is_made:
                        first.setdefault(axis, begin)
        extents = {axis["name"]: axis["extent"] for axis in compute["axes"]}
        boxes = [{name: (first.get(name, 0), first.get(name, 0) + extent) for name, extent in extents.items()}]
        moved = [[0 if axis is None else begin - first[axis] for axis, begin, _ in of_operand] for of_operand in pieces]
        for name in extents:
            lengths = {self.tensors[operand["tensor"]]["shape"][place] for operand, of_operand in zip(compute["operands"], pieces)
                       for place, (axis, _, _) in enumerate(of_operand) if axis == name and operand.get("wraps")}
            if lengths:
                length, wrapped = lengths.pop(), []
                for box in boxes:
                    begin, end = box[name]
                    wrapped.append({**box, name: (begin, min(end, length))})
                    if end > length:
                        wrapped.append({**box, name: (0, end - length)})
                boxes = wrapped
        return _Placed(compute, number, boxes, moved)

    @staticmethod
    def _joins(grid, one):
        first = grid[0]
        a, b = first.compute, one.compute
        if "tiles" in (a.get("waits", "tiles"), b.get("waits", "tiles")) or a["kernel"] != b["kernel"]:
            return False
        if [(axis["name"], axis.get("reduced", False)) for axis in a["axes"]] != [(axis["name"], axis.get("reduced", False)) for axis in b["axes"]]:
            return False
        if [(x["tensor"], x["use"] == "read", x["axes"]) for x in a["operands"]] != [(x["tensor"], x["use"] == "read", x["axes"]) for x in b["operands"]]:
            return False
        if first.moved != one.moved:
            return False
        if any(_meet(rect, box) for other in grid for rect in other.boxes for box in one.boxes):
            return False
        kept = [axis["name"] for axis in a["axes"] if not axis.get("reduced")]  # one that begins with nothing has elements of its own
        return _adds(b) or not any(all(_meet({name: rect[name]}, {name: box[name]}) for name in kept)
                                   for other in grid for rect in other.boxes for box in one.boxes)

    def _find_folds(self):
        """Blocks of ranks and the rows of a block are one axis of a kernel: by tensor the first of the two."""
        self._folds, self._fold_of, operands = {}, [], set()
        for grid in range(len(self._by_rank[0])):
            fold = self._fold(grid)
            self._fold_of.append(fold)
            for operand in self._by_rank[0][grid][0].compute["operands"]:
                operands.add(operand["tensor"])
                if fold is not None and fold[0] in operand["axes"]:
                    self._folds[operand["tensor"]] = operand["axes"].index(fold[0])
        alike = {}
        for name, tensor in self.tensors.items():
            for other, axis in self._folds.items():
                shape, like = tensor["shape"], self.tensors[other]["shape"]
                if name not in operands and len(shape) == len(like) and shape[axis:axis + 2] == like[axis:axis + 2]:
                    alike.setdefault(name, axis)
        self._folds.update(alike)

    def _fold(self, grid):
        one = self._by_rank[0][grid][0].compute
        if one.get("waits", "tiles") == "tiles":
            return None
        for p in (axis["name"] for axis in one["axes"]):
            behind = set()
            for operand in one["operands"]:
                for place, axis in enumerate(operand["axes"]):
                    if axis == p:
                        last = place + 1 == len(operand["axes"])
                        behind.add((None, 0) if last else (operand["axes"][place + 1], self.tensors[operand["tensor"]]["shape"][place + 1]))
            if len(behind) != 1 or None in next(iter(behind)) or "*" in next(iter(behind)):
                continue
            q, rows = behind.pop()
            if all(self._folds_together(placed, p, q) for of_rank in self._by_rank for placed in of_rank[grid]):
                return p, q, rows
        return None

    @staticmethod
    def _folds_together(placed, p, q):
        if any(axis["name"] == p and axis.get("tile", 1) != 1 for axis in placed.compute["axes"]):
            return False
        for operand, moved in zip(placed.compute["operands"], placed.moved):
            for place, axis in enumerate(operand["axes"]):
                if axis in (p, q) and moved[place] != 0:
                    return False
                if axis == q and (place == 0 or operand["axes"][place - 1] != p):
                    return False
        return True

    def _unite(self, rank, grid):
        """The computes of a grid as one."""
        parts, fold = self._by_rank[rank][grid], self._fold_of[grid]
        names = [axis["name"] for axis in parts[0].compute["axes"]]
        rects = [rect for one in parts for rect in one.boxes]
        whole = {name: (min(rect[name][0] for rect in rects), max(rect[name][1] for rect in rects)) for name in names}
        if sum(math.prod(end - begin for begin, end in rect.values()) for rect in rects) != math.prod(end - begin for begin, end in whole.values()):
            raise PlanError(f"computes of rank {rank} leave out part of the box of tiles that a grid would take")
        begins = [[0 if axis == "*" else place + whole[axis][0] for axis, place in zip(operand["axes"], moved)]
                  for operand, moved in zip(parts[0].compute["operands"], parts[0].moved)]
        extents = {name: end - begin for name, (begin, end) in whole.items()}
        if fold is not None:
            p, q, rows = fold
            if extents[p] > 1 and extents[q] != rows:
                raise PlanError("blocks of a compute do not lie behind each other")
        launches = []
        for one in parts:
            boxes = [{name: (begin - whole[name][0], end - whole[name][0]) for name, (begin, end) in rect.items()} for rect in one.boxes]
            if fold is not None:
                boxes = [folded for box in boxes for folded in _folded(box, p, q, extents[q])]
            kept = [name for name in names if fold is None or name != fold[0]]
            launches.append(Launch(one.compute["name"], tuple(tuple(box[name] for name in kept) for box in boxes), self._needs(rank, parts, one),
                                   one.compute.get("waits", "tiles") == "tiles"))
        self.launches[grid].append(launches)
        operands = []
        for operand, begin in zip(parts[0].compute["operands"], begins):
            axes = list(operand["axes"])
            if fold is not None and p in axes:
                place = axes.index(p)
                begin[place:place + 2] = [begin[place] * rows + begin[place + 1]]
                del axes[place]
            operands.append({"tensor": operand["tensor"], "use": "accumulate" if operand["use"] == "add" else operand["use"], "axes": axes, "begin": begin})
        if fold is not None:
            extents[q] *= extents.pop(p)
        axes = [{**axis, "extent": extents[axis["name"]]} for axis in parts[0].compute["axes"] if axis["name"] in extents]
        return {"name": parts[0].compute["name"], "kernel": parts[0].compute["kernel"], "axes": axes, "operands": operands}

    def _needs(self, rank, grid, one):
        """What a launch waits for: what it names, and those of its grid that it comes after."""
        last = {}
        for other in grid:
            if other.number not in self._before[rank][one.number]:
                continue
            for dependency in other.compute.get("after", []):
                if "transfer" in dependency:
                    stream = evaluate(dependency.get("rank", "rank"), rank), dependency.get("stream", 0)
                    last[stream] = max(last.get(stream, -1), evaluate(dependency["transfer"], rank))
        return tuple((*stream, position) for stream, position in sorted(last.items()))

    def _find_taken(self, rank):
        for number, stream in enumerate(self._plan.code_of[rank]["streams"]):
            known = set()
            for position, (item, counters) in enumerate(self.unrolled(stream["items"])):
                taken = set()
                for dependency in item.get("after", []):
                    if "transfer" not in dependency:
                        taken |= self._taken_by(dependency, rank, counters)
                new = sorted(taken - known)
                known |= taken
                if new:
                    self.taken[rank, number, position] = new

    def _taken_by(self, dependency, rank, counters):
        of = evaluate(dependency.get("rank", "rank"), rank, counters)
        computes, grids = self._plan.code_of[of]["computes"], self._by_rank[of]
        wanted = self._number(computes, dependency["compute"], rank, counters) if "compute" in dependency else None
        taken = set()
        for grid, parts in enumerate(grids):
            for one in parts:
                if one.number != wanted if wanted is not None else not self._makes(dependency["computed"], rank, counters, one, of):
                    continue
                taken |= {(of, grid, i) for i, other in enumerate(parts) if other.number in self._before[of][one.number]}
        return taken

    def _makes(self, region, rank, counters, one, of):
        if one.compute.get("waits", "tiles") == "tiles":
            return False
        for operand in one.compute["operands"]:
            if operand["use"] == "read" or operand["tensor"] != region["tensor"]:
                continue
            pieces = operand_pieces(self._plan, one.compute, operand, of)
            shape = self._plan.tensors[region["tensor"]]["shape"]
            for box in self._plan.boxes(region, rank, counters):
                if all(any(begin < first + count + turn and first + turn < begin + extent for turn in (0, size))
                       for (_, begin, extent), first, count, size in zip(pieces, box.begin, box.extent, shape)):
                    return True
        return False


def _adds(compute):
    return any(operand["use"] == "add" for operand in compute["operands"])


def _require_begun(grid):
    """That whoever adds in a grid adds to what it has made itself, all of a sum."""
    reduced = [axis["name"] for axis in grid[0].compute["axes"] if axis.get("reduced")]
    boxes = [(one.compute, box) for one in grid for box in one.boxes]
    depth = math.prod(max(box[name][1] for _, box in boxes) - min(box[name][0] for _, box in boxes) for name in reduced)
    made = sum(math.prod(end - begin for begin, end in box.values()) for _, box in boxes)
    begun = sum(depth * math.prod(end - begin for name, (begin, end) in box.items() if name not in reduced) for compute, box in boxes if not _adds(compute))
    for one in grid:
        if begun != made and _adds(one.compute):
            raise PlanError(f"compute '{one.compute['name']}' adds to what is there already, and tiles of a grid store their sums")


def _meet(one, other):
    return all(one[name][0] < end and begin < one[name][1] for name, (begin, end) in other.items())


def _folded(box, p, q, length):
    """Blocks of `length` rows each as rows."""
    blocks = range(*box[p])
    begin, end = box[q]
    if (begin, end) == (0, length):
        return [{**box, q: (blocks.start * length, blocks.stop * length)}]
    return [{**box, q: (block * length + begin, block * length + end)} for block in blocks]

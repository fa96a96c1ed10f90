"""Plan files as schedules: what `hemiola compile --plan` writes as text, given call by call."""

import types

import torch

from . import _products
from ._expressions import evaluate
from ._grids import GridPlan, is_one_kernel
from ._progress import wait_in_front
from ._reference import reference_of
from ._tasks import Copy, Order, Plan, PlanError, Tasks, operand_pieces
from ._waves import Waves

_TYPES = {"float": torch.float32, "half": torch.float16, "bfloat16": torch.bfloat16, "double": torch.float64, "float16": torch.float16,
          "float32": torch.float32, "float64": torch.float64, "int8": torch.int8, "uint8": torch.uint8, "int32": torch.int32,
          "int64": torch.int64}
for _name, _type in (("fp8_e4m3", "float8_e4m3fn"), ("fp8_e5m2", "float8_e5m2")):
    if hasattr(torch, _type):
        _TYPES[_name] = getattr(torch, _type)


def load_plan(plan, kernel=None):
    """A schedule of a plan: a path, or the JSON text itself. Another shape is another plan (`hemiola plan make`), and no compiler is asked.

    kernel: an emitted file with a kernel, as a module; its kernel then computes what this plan computes. The plan may have other sizes,
    chunks and order than the one that it was compiled with, and as many ranks as it likes.
    The plan has to be right: `hemiola check` proves it. PlanError: what PyTorch has no calls for without a kernel, what the kernel does not
    fit, or a damaged plan.
    """
    text = plan
    if not plan.lstrip().startswith("{"):
        with open(plan, encoding="utf-8") as file:
            text = file.read()
    return PlanSchedule(Plan(text)) if kernel is None else KernelSchedule(Plan(text), kernel)


def _view(tensor, begin, extent, kept=None):
    """A box of a tensor, where axes of one element are indexed and so gone, but for those that are kept."""
    index = []
    for i, (first, count) in enumerate(zip(begin, extent)):
        index.append(first if count == 1 and not (kept and kept[i]) else slice(first, first + count))
    return tensor[tuple(index)]


class PlanSchedule:
    """What an emitted file has: RANKS, setup(rt), inputs(rt, t), run(rt, t, **given), reference(rank, held)."""

    _movers = {}  # of streams that copy: who moves data

    def __init__(self, plan, waves=None):
        self._plan = plan
        self.RANKS = plan.ranks
        for tensor in plan.tensors.values():
            if tensor.get("dtype", "chunk") == "chunk":
                raise PlanError("is a plan of chunks; 'hemiola plan make NAME --shape ... --dtype ...' puts it on a tensor")
            if tensor["dtype"] not in _TYPES:
                raise PlanError(f"tensor '{tensor['name']}' is of {tensor['dtype']}, which this PyTorch lacks")
            if "strides" in tensor:
                raise PlanError(f"tensor '{tensor['name']}' has strides")
        tasks = Tasks(plan, waves)
        self._copies, self._order = tasks.copies, Order(tasks).of
        self._launches = [len(actors) - copies for actors, copies in zip(tasks.actors, tasks.copies)]
        self._steps = {"arrived": 0, "made": 0}
        for order in self._order:
            for issue in order:
                if issue.signals:
                    kind = self._kind(issue.point)[0]
                    self._steps[kind] = max(self._steps[kind], issue.point[2] + 1)
        self._shared = self._reached_by_peers()
        self.reference = reference_of(plan)

    def _kind(self, point):
        """Of which signals, and the stream among them."""
        copies = self._copies[point[0]]
        return ("arrived", point[1]) if point[1] < copies else ("made", point[1] - copies)

    def _reached_by_peers(self):
        shared = set()
        for order in self._order:
            for issue in order:
                if isinstance(issue.task, Copy):
                    item = issue.task.item
                    if item["op"] in ("pull", "collective"):
                        shared.add(item["source"]["tensor"])
                    if item["op"] == "push":
                        shared.add(item["destination"]["tensor"])
                        if "operand" in item:
                            shared.add(item["operand"]["tensor"])
        return shared

    def setup(self, rt):
        """What a rank holds, and its streams. Once, on all ranks."""
        t = types.SimpleNamespace(tensors={}, at={}, groups=[], arrived=None, made=None)
        for name, tensor in self._plan.tensors.items():
            allocate = rt.symmetric if name in self._shared else rt.local
            t.tensors[name] = self._allocated(allocate, name, tensor["shape"], _TYPES[tensor["dtype"]])
        for name in self._plan.tensors:
            if name in self._shared:
                t.at[name] = [rt.peer(t.tensors[name], rank) for rank in range(self.RANKS)]
        copies, launches = max(self._copies), max(self._launches)
        t.copies = rt.streams(copies, **self._movers)
        t.compute = rt.streams(launches, main_first=True)
        if self._steps["arrived"]:
            t.arrived = rt.signals((self.RANKS, copies), self._steps["arrived"])
        if self._steps["made"]:
            t.made = rt.signals((self.RANKS, launches), self._steps["made"])
        self._add_parts(rt, t)
        t.groups = [rt.group(group) for group in self._plan.root.get("groups", [])]
        return t

    def _allocated(self, allocate, name, shape, dtype):
        return allocate(name, shape, dtype)

    def _add_parts(self, rt, t):
        """Signals of a kernel."""

    def inputs(self, rt, t):
        """By name, what the caller has to fill before a call."""
        held = self._plan.residents(rt.rank)
        names = [name for name, _ in held]
        return {name if names.count(name) == 1 else f"{name} at {','.join(map(str, box.begin))}":
                _view(t.tensors[name], box.begin, box.extent, [extent == 1 for extent in t.tensors[name].shape]) for name, box in held}

    def run(self, rt, t, **given):
        """One call. `given`: inputs by name, copied to their places; what is not given is there. Returns the outputs."""
        events = {}
        given = self._of_caller(t, given)
        rt.place(self.inputs(rt, t), given)
        rt.begin()
        for issue in self._order[rt.rank]:
            stream = self._stream(t, issue.point)
            for kind, on in issue.waits:
                if kind == "signal":
                    stream.wait_signal(self._signal(t, on), step=on[2])
                elif kind == "part":
                    stream.wait_signal(t.done[on], step=0)
                else:
                    stream.wait(self._stream(t, on) if kind == "stream" else events[on])
            if isinstance(issue.task, Copy):
                self._move(rt, t, stream, issue.task)
            else:
                self._multiply(rt, t, stream, issue.task)
            if issue.records:
                events[issue.point] = stream.record()
            for to in issue.signals:
                stream.signal(self._signal(t, issue.point), to=to, step=issue.point[2])
        rt.end()
        return {name: t.tensors[name] for name, tensor in self._plan.tensors.items() if tensor["role"] == "output"}

    def _of_caller(self, t, given):
        """What is given but for what a kernel takes."""
        return given

    def _stream(self, t, point):
        copies = self._copies[point[0]]
        return t.copies[point[1]] if point[1] < copies else t.compute[point[1] - copies]

    def _signal(self, t, point):
        kind, stream = self._kind(point)
        return getattr(t, kind)[point[0], stream]

    def _move(self, rt, t, stream, task):
        item, counters = task.item, task.counters

        def views(region, owner):
            tensor = t.tensors[region["tensor"]] if owner is None else t.at[region["tensor"]][owner]
            return [_view(tensor, box.begin, box.extent) for box in self._plan.boxes(region, rt.rank, counters)]

        if item["op"] == "collective":
            source, target = views(item["source"], None), views(item["destination"], None)
            if len(source) != 1 or len(target) != 1:
                raise PlanError("a library's collective takes one box")
            stream.collective(item["collective"], target[0], source[0], t.groups[item["group"]], item.get("reduce", "sum"))
            return
        if "group" in item:
            for source, target in zip(views(item["source"], None), views(item["destination"], None)):
                (stream.to_all if item["op"] == "push" else stream.sum_of_all)(target, source, t.groups[item["group"]])
            return
        peer = evaluate(item["peer"], rt.rank, counters) if "peer" in item else None
        sources = views(item["source"], peer if item["op"] == "pull" else None)
        targets = views(item["destination"], peer if item["op"] == "push" else None)
        operands = views(item["operand"], peer if item["op"] == "push" else None) if "operand" in item else targets
        if [s.numel() for s in sources] != [s.numel() for s in targets]:
            raise PlanError("regions have boxes of other sizes, which is no one copy each")
        for source, target, operand in zip(sources, targets, operands):
            if "reduce" not in item:
                stream.copy(target, source)
            elif operand is target:
                stream.accumulate(target, source, operator=item["reduce"])
            else:
                stream.reduce(target, source, operand, operator=item["reduce"])

    def _multiply(self, rt, t, stream, task):
        plan, compute = self._plan, self._plan.code_of[rt.rank]["computes"][task.compute]
        if compute["kernel"] != "gemm":
            raise PlanError(f"compute '{compute['name']}' runs kernel '{compute['kernel']}', which PyTorch has no call for")
        result = next(operand for operand in compute["operands"] if operand["use"] != "read")
        left, right = [operand for operand in compute["operands"] if operand["use"] == "read"]
        rows, columns, depth = _parts(compute, left, right, result)
        views, around = [], None
        for operand, kept in ((left, rows + depth), (right, depth + columns), (result, rows + columns)):
            pieces = operand_pieces(plan, compute, operand, rt.rank)
            views.append((t.tensors[operand["tensor"]], pieces, kept))
            if operand.get("wraps") and len(rows) == 2 and operand is not right:
                around = (pieces[0][1], pieces[0][2], plan.tensors[operand["tensor"]]["shape"][0])
        call = stream.addmm if result["use"] == "add" else stream.mm
        for block in _products.around(*around) if around else [None]:
            made = []
            for number, (tensor, pieces, kept) in enumerate(views):
                begin, extent = [p[1] for p in pieces], [p[2] for p in pieces]
                if block is not None and number != 1:
                    begin[0], extent[0] = block
                made.append(_view(tensor, begin, extent, [p[0] in kept for p in pieces]))
            call(made[0], made[1], out=made[2])


class KernelSchedule(PlanSchedule):
    """The same with a fused kernel in the place of products: CONFIGS are its file's, and setup(rt, config) takes one."""

    def __init__(self, plan, module):
        if not is_one_kernel(plan):
            plan = GridPlan(plan)
        if getattr(module, "CARRIES", False):
            raise PlanError("the kernel's own programs move the data, in an order that was made for its plan: compile it for this one")
        if getattr(module, "STORES", False):
            raise PlanError("the kernel stores tiles of its plan into peers' memory: compile it for this one")
        grids = [(module.KERNEL, module.AXES, module.VALUES, {}), *getattr(module, "MORE", [])]
        needed = len(plan.code_of[0]["computes"])
        if needed != len(grids):
            raise PlanError(f"needs {needed} launches of a kernel, and this file has {len(grids)}: compile it for this plan")
        self._extras = module.EXTRAS
        self._movers = getattr(module, "MOVERS", {})
        self._grids, first_part = [], [0] * plan.ranks
        for grid, (kernel, axes, values, sizes) in enumerate(grids):
            extents = kernel.extents(plan, axes, grid)
            waves = Waves(plan, kernel, extents, grid, list(first_part), keeps_loop=len(grids) > 1)
            self._grids.append((kernel, extents, kernel.values(plan, values, grid), kernel.values(plan, sizes, grid), waves))
            first_part = [first + len(parts) for first, parts in zip(first_part, waves.parts)]
        self._parts = max(first_part)
        self.VALUES = self._grids[0][2]
        self.CONFIGS = [module.KERNEL.values(plan, config) for config in module.CONFIGS]
        is_causal = any(compute["name"] == "causal attention" for compute in plan.code_of[0]["computes"])
        if is_causal and any("causal" in name.lower() and not value for config in self.CONFIGS for name, value in config.items()):
            raise PlanError("its attention is causal, and the kernel of this file looks at keys behind a query")
        all_waves = [waves for *_, waves in self._grids]
        wait_in_front(plan, all_waves)
        super().__init__(plan, all_waves)
        self.reference = reference_of(plan, getattr(module, "epilogue", None))

    def _allocated(self, allocate, name, shape, dtype):
        turned = name in [kernel.tensors[operand] for kernel, *_ in self._grids for operand in kernel.turned]
        room = next((kernel.rooms[name] for kernel, *_ in self._grids if name in kernel.rooms), shape)
        if turned or tuple(room) == tuple(shape):
            return allocate(name, shape[::-1], dtype).t() if turned else allocate(name, shape, dtype)
        return allocate(name, room, dtype)[tuple(slice(extent) for extent in shape)]

    def setup(self, rt, config=None):
        """What a rank holds, and its streams. Once, on all ranks. ValueError: tiles of the configuration straddle chunks."""
        t = super().setup(rt)
        t.works = [self._work(rt, t, *grid, config or self.CONFIGS[0]) for grid in self._grids]
        t.work = t.works[0]
        t.own = [{operand: rt.local(kernel.extras[operand][0], shape, self._made_type(number)) for operand, shape in kernel.extra_shapes(self._plan, number).items()}
                 for number, (kernel, *_) in enumerate(self._grids)]
        return t

    def _made_type(self, grid):
        operand = next(one for one in self._plan.code_of[0]["computes"][grid]["operands"] if one["use"] != "read")
        return _TYPES[self._plan.tensors[operand["tensor"]]["dtype"]]

    def inputs(self, rt, t):
        """By name, what the caller has to fill before a call."""
        made = super().inputs(rt, t)
        for (kernel, *_), own in zip(self._grids, t.own):
            for operand, (name, _, is_read, once) in kernel.extras.items():
                if is_read and (rt.rank == 0 or not once):
                    made[name] = own[operand]
        return made

    def _work(self, rt, t, kernel, extents, values, sizes, waves, config):
        work = kernel.work(rt, extents, values, {**config, **sizes})
        if kernel.loop:
            work.loop(waves.loop[1], block=kernel.loop[1])
        for wave in waves.waves[rt.rank]:
            box = {name: (begin, end - begin) for (name, _), (begin, end), whole in zip(waves.axes, wave.box, waves.whole)
                   if (begin, end) != whole}
            work.wave(box, self._after(t, wave.needs), wave.part)
        for begin, end, needs in waves.turns[rt.rank]:
            work.turns(begin, end - begin, self._after(t, needs))
        for number, to in enumerate(waves.parts[rt.rank]):
            work.part(waves.first_part[rt.rank] + number, to)
        return work.ready(t.done)

    def _add_parts(self, rt, t):
        t.done = rt.signals((self.RANKS, self._parts), steps=1) if self._parts else None

    def _after(self, t, needs):
        return [(self._signal(t, need), need[2]) for need in needs]

    def _of_caller(self, t, given):
        t.extras = {name: given[name] for name in self._extras}
        return {name: value for name, value in given.items() if name not in self._extras}

    def _multiply(self, rt, t, stream, task):
        kernel = self._grids[task.compute][0]
        compute, views = self._plan.code_of[rt.rank]["computes"][task.compute], {}
        for operand in compute["operands"]:  # the part of a tensor that a launch is of: mostly all of it
            pieces = operand_pieces(self._plan, compute, operand, rt.rank)
            views[operand["tensor"]] = _view(t.tensors[operand["tensor"]], [p[1] for p in pieces], [p[2] for p in pieces], [True] * len(pieces))
        for operand in kernel.added:
            stream.zero(views[kernel.tensors[operand]])
        for operand, (*_, once) in kernel.extras.items():
            if once and rt.rank > 0:
                stream.zero(t.own[task.compute][operand])
        stream.launch(t.works[task.compute], **{operand: views[name] for operand, name in kernel.tensors.items()}, **t.own[task.compute], **t.extras)


def _parts(compute, left, right, result):
    """Names of the axes that are rows, columns and depth; of each but the rows, of which there may be two, one axis."""
    parts = {"rows": [], "columns": [], "depth": []}
    extents = {axis["name"]: axis["extent"] for axis in compute["axes"]}
    for name in extents:
        in_left, in_right, in_result = (name in operand["axes"] for operand in (left, right, result))
        if in_left and in_right and not in_result:
            parts["depth"].append(name)
        elif in_left and in_result and not in_right:
            parts["rows"].append(name)
        elif in_right and in_result and not in_left:
            parts["columns"].append(name)
        elif extents[name] > 1:
            raise PlanError(f"compute '{compute['name']}' has an axis '{name}' that is no row, column or depth of a product")
    for kind, names in parts.items():
        for name in list(names):
            if len(names) > 1 and extents[name] == 1:
                names.remove(name)
        if not 1 <= len(names) <= (2 if kind == "rows" else 1):
            raise PlanError(f"compute '{compute['name']}' is no product of two matrices")
    return parts["rows"], parts["columns"], parts["depth"]

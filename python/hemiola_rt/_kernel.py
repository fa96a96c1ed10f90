"""A fused kernel and how it is paired with plans, which an emitted file says once; so that it takes plans of other shapes."""

import math

from ._tasks import PlanError
from ._work import Work


class Kernel:
    """function, coordinates, tiles (TileAxis by name), workers, tile: see Work.

    tensors: the plan's tensor by operand; turned: operands that lie transposed in memory; added: operands that the kernel adds to, and which
    begin as zeros. axes: by name of a tile axis the compute's, None where it has none or where the axis splits the sum; derived: axes that
    the others determine. means: by parameter what it is of a plan: ("extent", axis of the compute), ("shape", tensor, axis),
    ("stride", tensor, axis), ("turned", tensor, axis), ("span", tensor, 0), or None: it was solved for one plan. fixed: by (tensor, axis) the
    extents that the kernel's blocks were made for. rooms: by tensor that lies in longer rows the shape of these. loop: the compute's axis along which chunks arrive while the kernel runs, elements of a
    turn, and whether turns come in the order of arrival. gathered: (tensor, axis) along which tiles read more than their own elements.
    descriptors: by operand that is a descriptor which the host makes, its block as a function of the parameters. waits, signals: what its text can do. stores: the operand whose
    tiles may go straight into a peer's memory. extras: by operand that no plan has its name in the file, by axis the compute's (or elements),
    whether it is read, and whether it is added to a summand: then rank 0 has it, and the others zeros.
    """

    def __init__(self, function, coordinates, tiles, *, workers=None, tile=None, tensors, turned=(), added=(), axes, derived=(), means, fixed, rooms=None,
                 loop=None, gathered=(), descriptors=None, waits=False, signals=False, stores=None, extras=None):
        self.function, self.coordinates, self.tiles, self.workers, self.tile = function, coordinates, tiles, workers, tile
        self.tensors, self.turned, self.added, self.axes, self.derived = tensors, turned, added, axes, derived
        self.means, self.fixed, self.loop, self.waits, self.signals = means, fixed, loop, waits, signals
        self.stores, self.extras, self.rooms = stores, extras or {}, rooms or {}
        self.gathered, self.descriptors = frozenset(gathered), descriptors or {}

    def work(self, rt, extents, values, config):
        """What one rank's kernel is told: extents are the elements along the axes of tiles."""
        return Work(rt, self, extents, values, config)

    def compute_of(self, plan, grid=0):
        """The compute of a plan (of grids, or of one compute) that this kernel runs. PlanError: it is of another kind."""
        first = None
        for code in plan.code_of:
            compute = code["computes"][grid]
            first = first or compute
            if [axis["name"] for axis in compute["axes"]] != [axis["name"] for axis in first["axes"]]:
                raise PlanError("its ranks run different computes")
        missing = [name for name in self.tensors.values() if name not in plan.tensors]
        missing += [axis for axis in self.axes.values() if axis is not None and axis not in [one["name"] for one in first["axes"]]]
        if missing:
            raise PlanError(f"has no '{missing[0]}', which this kernel was paired with")
        for (name, axis), extent in self.fixed.items():
            if plan.tensors[name]["shape"][axis] != extent:
                raise PlanError(f"axis {axis} of '{name}' has {plan.tensors[name]['shape'][axis]} elements, and the kernel's blocks are made "
                                f"for {extent}: compile it for this plan")
        return first

    def extents(self, plan, extents, grid=0):
        """Elements along the axes of tiles; `extents`: those that no axis of the compute says."""
        sizes = {axis["name"]: axis["extent"] for axis in self.compute_of(plan, grid)["axes"]}
        return {name: extent if self.axes.get(name) is None else sizes[self.axes[name]] for name, extent in extents.items()}

    def extra_shapes(self, plan, grid=0):
        """By operand that no plan has: its shape for this plan."""
        sizes = {axis["name"]: axis["extent"] for axis in self.compute_of(plan, grid)["axes"]}
        return {operand: tuple(sizes.get(axis, axis) for axis in axes) for operand, (_, axes, _, _) in self.extras.items()}

    def values(self, plan, values, grid=0):
        """The parameters of a plan; `values`: those of the one that was compiled. PlanError: one does not follow from the plan."""
        compute = self.compute_of(plan, grid)
        sizes = {axis["name"]: axis["extent"] for axis in compute["axes"]}
        along = {(operand["tensor"], place): sizes[axis] for operand in compute["operands"] for place, axis in enumerate(operand["axes"]) if axis != "*"}
        found = dict(values)
        for name in found:
            if name not in self.means:
                continue
            if self.means[name] is None:
                raise PlanError(f"the kernel's '{name}' was solved for the plan that it was compiled with: compile it for this one")
            kind, of, *axis = self.means[name]
            shape = plan.tensors[of]["shape"] if kind != "extent" else None
            found[name] = (sizes[of] if kind == "extent" else along.get((of, axis[0]), shape[axis[0]]) if kind == "shape" else math.prod(shape) if kind == "span"
                           else math.prod(shape[axis[0] + 1:]) if kind == "stride" else (1, shape[0])[axis[0]])
        return found

"""PlanBuilder: plans, written line by line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional, Union

from ._arguments import Settings, pairs
from ._computes import Compute, Operand, axes_json, launch_json
from ._errors import BadInput, moved
from ._expression import Number, expression, rank
from ._places import Place, caller
from ._regions import AnyRegion, Region, Tensor, region_of
from ._streams import After, Computed, Stream, dependencies
from ._plan import Plan


class Code:
    """What some ranks run."""

    def __init__(self, ranks: Optional[list[int]]):
        self._ranks = ranks
        self._streams: list[Stream] = []
        self._computes: list[Compute] = []
        self._resident: Optional[list[Region]] = None
        self._expected: list[dict[str, Any]] = []

    def stream(self, name: str = "", channel: str = "") -> Stream:
        """A new stream. ``channel``: a link class ("nvlink") or "nic" that it has to use."""
        self._streams.append(Stream(name, len(self._streams), channel))
        return self._streams[-1]

    def compute(
        self,
        kernel: str,
        axes: Mapping[str, Union[int, tuple[int, int]]],
        operands: Iterable[Operand],
        *,
        name: str = "",
        reduced: Iterable[str] = (),
        flop_per_point: int = 2,
        order: Optional[Sequence[str]] = None,
        by_arrival: bool = True,
        stream: str = "",
        after: After = (),
        waits: Optional[str] = None,
    ) -> Compute:
        """A kernel beside the streams, tile by tile; a tile starts when what it reads is complete.

        ``kernel``: "gemm", "attention" or another name (time by roofline). ``axes``: of the tile space, each with
        its extent, or extent and tile. ``reduced``: axes along which tiles add up. ``operands``: see :meth:`read`,
        :meth:`write`, :meth:`accumulate`, :meth:`add`. ``flop_per_point``: a tile's work is this times the product
        of its extents. ``order``: axes from the slowest to the fastest. ``by_arrival``: tiles go by the arrival of
        what they read.

        ``stream``: makes it a launch, a kernel of its own; those of one stream run one after the other. Then
        ``after`` is what has to be complete before it starts, and ``waits`` where it waits for what it reads:
        "tiles" (inside) or "launch" (in front of it, for what ``after`` names alone).
        """
        body: dict[str, Any] = {"name": name or kernel, "kernel": kernel, "axes": axes_json(dict(axes), reduced)}
        body["operands"] = [operand.json() for operand in operands]
        body["flop_per_point"] = flop_per_point
        if order is not None:
            body["order"] = list(order)
        body["by_arrival"] = by_arrival
        body.update(launch_json(stream, waits))
        self._computes.append(Compute(body, dependencies(after), len(self._computes), caller()))
        return self._computes[-1]

    @staticmethod
    def read(tensor: Tensor, *axes: str, begin: Sequence[Number] = ()) -> Operand:
        """Every tile reads its box: axis by axis of the tensor, the compute axis that it follows ("*": all of it)."""
        return Operand(tensor, "read", axes, tuple(begin))

    @staticmethod
    def write(tensor: Tensor, *axes: str, begin: Sequence[Number] = ()) -> Operand:
        """Every tile writes its box once."""
        return Operand(tensor, "write", axes, tuple(begin))

    @staticmethod
    def accumulate(tensor: Tensor, *axes: str, begin: Sequence[Number] = ()) -> Operand:
        """Tiles along reduced axes add up in it."""
        return Operand(tensor, "accumulate", axes, tuple(begin))

    @staticmethod
    def add(tensor: Tensor, *axes: str, begin: Sequence[Number] = ()) -> Operand:
        """The same, added to what an earlier launch, a transfer or the caller left."""
        return Operand(tensor, "add", axes, tuple(begin))

    @staticmethod
    def computed(region: AnyRegion, on: Number = rank) -> Computed:
        """For ``after``: all tiles of a rank that write any of the region are done."""
        return Computed(region_of(region), expression(on))

    def resident(self, *regions: AnyRegion) -> None:
        """What is there at the start; by default all of every input."""
        self._resident = (self._resident or []) + [region_of(region) for region in regions]

    def expect(
        self, region: AnyRegion, value: str = "gathered", *, of: Optional[AnyRegion] = None,
        holder: Optional[Number] = None,
    ) -> None:  # fmt: skip
        """Of custom plans: what the rank holds at the end. "gathered": the value that some rank (or ``holder``)
        held or computed; "reduced": the reduction over all that did. ``of``: whose values are meant."""
        text: dict[str, Any] = {"region": region_of(region).json(), "value": value}
        if of is not None:
            text["of"] = region_of(of).json()
        if holder is not None:
            text["rank"] = expression(holder).json()
        self._expected.append(text)

    def _json(self, pointer: str, ranks: str, places: dict[str, Place]) -> dict[str, Any]:
        text: dict[str, Any] = {"ranks": ranks}
        if self._resident is not None:
            text["resident"] = [region.json() for region in self._resident]
        if self._computes:
            text["computes"] = [compute.json() for compute in self._computes]
            places.update({f"{pointer}/computes/{one.number}": one.place for one in self._computes})
        text["streams"] = [
            stream.json(f"{pointer}/streams/{n}", places) for n, stream in enumerate(self._streams)
        ]
        if self._expected:
            text["expected"] = self._expected
        return text


class PlanBuilder(Code):
    """Writes a plan, line by line. What it has itself all ranks run, those apart that get a :meth:`code` of
    their own. Errors name the line of the script that wrote what is wrong.

    ``collective``: what the plan does, in nccl-tests' layout ("all-gather"), or "custom" (see :meth:`expect`).
    ``chunks_per_size``: how many chunks are what nccl-tests calls size; left out, it follows from the tensors.
    ``mesh``: axes of the ranks as names and sizes, the last one fastest. ``in_place_safe``: stays right when input
    and output share memory. ``lowering``: parameters of its lowering where nothing else is said.
    """

    def __init__(
        self,
        collective: str = "custom",
        ranks: int = 8,
        *,
        name: str = "",
        chunks_per_size: Optional[int] = None,
        root: int = 0,
        mesh: Optional[Mapping[str, int]] = None,
        in_place_safe: bool = False,
        lowering: Optional[Settings] = None,
    ):
        super().__init__(None)
        self.ranks = ranks
        axes = mesh if mesh is not None else {"rank": ranks}
        self._head: dict[str, Any] = {"hemiola_plan": 1, "name": name or collective, "collective": collective}
        self._head["mesh"] = [{"axis": axis, "size": size} for axis, size in axes.items()]
        if root:
            self._head["root"] = root
        if chunks_per_size is not None:
            self._head["chunks_per_size"] = chunks_per_size
        if in_place_safe:
            self._head["in_place_safe"] = True
        if lowering:
            self._head["lowering"] = [{"parameter": key, "value": value} for key, value in pairs(lowering)]
        self._tensors: list[tuple[Tensor, Place]] = []
        self._groups: list[list[int]] = []
        self._codes: list[tuple[Code, Place]] = []

    def tensor(
        self, name: str, role: str, shape: Union[int, Sequence[int]], dtype: Optional[str] = None,
        strides: Optional[Sequence[int]] = None,
    ) -> Tensor:  # fmt: skip
        """One that every rank has. ``role``: "input", "output", "scratch" or "transit". Without a ``dtype`` an element
        is a chunk, and how large is said when the plan runs; a plan is of one kind throughout."""
        extents = (shape,) if isinstance(shape, int) else tuple(shape)
        tensor = Tensor(name, role, extents, dtype, None if strides is None else tuple(strides))
        self._tensors.append((tensor, caller()))
        return tensor

    def group(self, ranks: Iterable[int]) -> int:
        """Ranks that multicast and collectives name by this number."""
        self._groups.append(list(ranks))
        return len(self._groups) - 1

    def code(self, ranks: Iterable[int]) -> Code:
        """What these ranks run, in place of the rest's."""
        self._codes.append((Code(list(ranks)), caller()))
        return self._codes[-1][0]

    def to_json(self) -> str:
        """The file form, as it was written: not checked yet."""
        return json.dumps(self._text({}))

    def build(self) -> Plan:
        """The plan. :class:`BadInput` with the line of the script that wrote what is wrong."""
        places: dict[str, Place] = {}
        text = json.dumps(self._text(places))
        try:
            return Plan.from_json(text, f"plan '{self._head['name']}'")
        except BadInput as error:
            raise moved(error, places) from None

    def _text(self, places: dict[str, Place]) -> dict[str, Any]:
        text = dict(self._head)
        text["tensors"] = [tensor.json() for tensor, _ in self._tensors]
        places.update({f"/tensors/{n}": place for n, (_, place) in enumerate(self._tensors)})
        if self._groups:
            text["groups"] = self._groups
        text["codes"] = []
        taken = {number for code, _ in self._codes for number in code._ranks or []}
        rest = [number for number in range(self.ranks) if number not in taken]
        codes: list[tuple[Code, Optional[Place]]] = list(self._codes)
        if rest:
            codes.insert(0, (self, None))
        for code, place in codes:
            pointer = f"/codes/{len(text['codes'])}"
            if place is not None:
                places[pointer] = place
            numbers = rest if code is self else code._ranks or []
            ranks = "all" if code is self and not taken else ",".join(map(str, numbers))
            text["codes"].append(code._json(pointer, ranks, places))
        return text

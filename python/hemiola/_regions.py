"""Tensors and their regions, as a PlanBuilder has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Union

from ._expression import Number, expression

Index = Union[Number, slice]
Box = list[tuple[Any, int]]  #: by axis: where it begins (an Expression), and its extent


@dataclass(frozen=True)
class Region:
    """Boxes of a tensor that do not overlap. ``a | b`` is both, ``a`` first."""

    tensor: "Tensor"
    boxes: tuple[tuple[tuple[Any, int], ...], ...]

    def __or__(self, other: "Region") -> "Region":
        if other.tensor is not self.tensor:
            raise ValueError(f"regions of '{self.tensor.name}' and '{other.tensor.name}' are not one")
        return Region(self.tensor, self.boxes + other.boxes)

    def json(self) -> dict[str, Any]:
        boxes = [
            {"begin": [begin.json() for begin, _ in box], "extent": [extent for _, extent in box]}
            for box in self.boxes
        ]
        if len(boxes) == 1:
            return {"tensor": self.tensor.name, **boxes[0]}
        return {"tensor": self.tensor.name, "boxes": boxes}


@dataclass(frozen=True, eq=False)
class Tensor:
    """One that every rank has. ``tensor[3]`` is an element (a chunk), ``tensor[rank * 4 : rank * 4 + 4]`` four
    of them, ``tensor[:]`` all; of several axes ``tensor[0:64, rank]``."""

    name: str
    role: str
    shape: tuple[int, ...]
    dtype: Optional[str]
    strides: Optional[tuple[int, ...]]

    def __getitem__(self, index: Union[Index, tuple[Index, ...]]) -> Region:
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) > len(self.shape):
            raise IndexError(f"'{self.name}' has {len(self.shape)} axes, not {len(indices)}")
        whole = (slice(None),) * (len(self.shape) - len(indices))
        ranges = [_range(one, extent) for one, extent in zip(indices + whole, self.shape)]
        return Region(self, (tuple(ranges),))

    def json(self) -> dict[str, Any]:
        text: dict[str, Any] = {"name": self.name, "role": self.role, "shape": list(self.shape)}
        if self.dtype is not None:
            text["dtype"] = self.dtype
        if self.strides is not None:
            text["strides"] = list(self.strides)
        return text


def _range(index: Index, extent: int) -> tuple[Any, int]:
    if not isinstance(index, slice):
        return expression(index), 1
    if index.step is not None:
        raise IndexError("regions have no steps")
    begin = expression(0 if index.start is None else index.start)
    end = expression(extent if index.stop is None else index.stop)
    count = end.minus(begin)
    if count < 1:
        raise IndexError(f"'{begin}:{end}' is empty")
    return begin, count


AnyRegion = Union[Region, Tensor]


def region_of(value: AnyRegion) -> Region:
    """A tensor is all of it."""
    return value[:] if isinstance(value, Tensor) else value

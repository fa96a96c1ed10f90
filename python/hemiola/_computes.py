"""Computes, as a PlanBuilder has them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Optional, Union

from ._expression import Expression, Number, expression
from ._places import Place
from ._regions import Tensor
from ._streams import Dependency


@dataclass(frozen=True)
class Operand:
    """Which box of a tensor a tile of a compute touches (PlanBuilder.read, write, accumulate, add)."""

    tensor: Tensor
    use: str
    axes: tuple[str, ...]
    begin: tuple[Number, ...]

    def json(self) -> dict[str, Any]:
        text: dict[str, Any] = {"tensor": self.tensor.name, "use": self.use, "axes": list(self.axes)}
        if self.begin:
            text["begin"] = [expression(value).json() for value in self.begin]
        return text


@dataclass(frozen=True)
class LaunchDone:
    """A compute that is a launch of its own is done."""

    number: int
    rank: Expression

    def json(self, loops: list[Any]) -> dict[str, Any]:
        return {"rank": self.rank.json(), "compute": self.number}


@dataclass(frozen=True, eq=False)
class Compute:
    """A kernel. Where it has a stream, ``compute.on(rank)`` is what others name in ``after``."""

    body: dict[str, Any]
    after: list[Dependency]
    number: int  #: among the computes of its code
    place: Place

    def on(self, rank: Number) -> LaunchDone:
        """It, as ``rank`` runs it."""
        return LaunchDone(self.number, expression(rank))

    def json(self) -> dict[str, Any]:
        after = [dependency.json([]) for dependency in self.after]
        return {**self.body, **({"after": after} if after else {})}


def axes_json(axes: dict[str, Union[int, tuple[int, int]]], reduced: Iterable[str]) -> list[dict[str, Any]]:
    """Extents, or extents and tiles, by name."""
    sums = set(reduced)
    unknown = sums - set(axes)
    if unknown:
        raise ValueError(f"'{unknown.pop()}' is none of the axes {', '.join(axes)}")
    found = []
    for name, extent in axes.items():
        full, tile = extent if isinstance(extent, tuple) else (extent, extent)
        found.append({"name": name, "extent": full, "tile": tile, **({"reduced": True} if name in sums else {})})
    return found


def launch_json(stream: str, waits: Optional[str]) -> dict[str, Any]:
    return {**({"stream": stream} if stream else {}), **({"waits": waits} if waits is not None else {})}

"""Streams of transfers, as a PlanBuilder has them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Optional, Protocol, Union

from ._expression import Expression, Number, counter, expression
from ._places import Place, caller
from ._regions import AnyRegion, Region, region_of


@dataclass(eq=False)
class Loop:
    count: int
    depth: int
    items: list[Union["Loop", "Transfer"]] = field(default_factory=list)

    def length(self) -> int:
        """Transfers of one iteration."""
        return sum(length(item) for item in self.items)


@dataclass(eq=False)
class Transfer:
    """One movement of data. ``transfer.on(peer)`` is what others name in ``after``."""

    stream: "Stream"
    body: dict[str, Any]
    after: list["Dependency"]
    loops: list[Loop]  #: that it stands in, the outermost first
    place: Place

    def on(self, rank: Number, i: Optional[Number] = None, j: Optional[Number] = None) -> "Completion":
        """This transfer as ``rank`` runs it. In a loop: of iteration ``i`` (and ``j`` of the inner one); by
        default the present one where the dependent stands in the same loop, else the last."""
        return Completion(self, expression(rank), (i, j))

    def wait(self, *after: "Dependency") -> "Transfer":
        """More that has to be complete before: where a step of a loop waits for the step before it."""
        self.after.extend(after)
        return self

    def number(self, iterations: list[Expression]) -> Expression:
        """Among the transfers of its stream, loops unrolled."""
        total = Expression()
        items: list[Union[Loop, Transfer]] = self.stream._root.items
        for loop, iteration in zip(self.loops, iterations):
            total += _before(items, loop) + iteration * loop.length()
            items = loop.items
        return total + _before(items, self)


@dataclass(frozen=True)
class Completion:
    """A transfer of a rank is complete where it wrote."""

    transfer: Transfer
    rank: Expression
    iterations: tuple[Optional[Number], Optional[Number]]

    def json(self, loops: list[Loop]) -> dict[str, Any]:
        chosen = []
        for loop, given in zip(self.transfer.loops, self.iterations):
            if given is not None:
                chosen.append(expression(given))
            elif loop in loops:
                chosen.append(counter(loop.depth))
            else:
                chosen.append(Expression(loop.count - 1))
        number = self.transfer.number(chosen)
        return {"rank": self.rank.json(), "stream": self.transfer.stream._index, "transfer": number.json()}


@dataclass(frozen=True)
class Computed:
    """All tiles of a rank that write any of a region are done."""

    region: Region
    rank: Expression

    def json(self, loops: list[Loop]) -> dict[str, Any]:
        return {"rank": self.rank.json(), "computed": self.region.json()}


class Dependency(Protocol):
    """What has to be complete before: of a transfer, a compute, a region that is computed."""

    def json(self, loops: list[Loop]) -> dict[str, Any]: ...


After = Union[Dependency, Iterable[Dependency]]


def dependencies(after: After) -> list[Dependency]:
    """One or several."""
    return list(after) if isinstance(after, Iterable) else [after]


class Stream:
    """Transfers in their order; streams of a rank run concurrently."""

    def __init__(self, name: str, index: int, channel: str):
        self.name = name
        self.channel = channel
        self._index = index
        self._root = Loop(1, -1)
        self._open: list[Loop] = []

    def push(
        self, peer: Number, source: AnyRegion, destination: AnyRegion, *, reduce: Union[bool, str] = False,
        operand: Optional[AnyRegion] = None, after: After = (),
    ) -> Transfer:  # fmt: skip
        """Own ``source`` to ``destination`` on ``peer``. With ``reduce`` it is combined there with ``operand`` of the
        peer, by default with what the destination holds."""
        return self._move({"op": "push", "peer": peer}, source, destination, reduce, operand, after)

    def pull(
        self, peer: Number, source: AnyRegion, destination: AnyRegion, *, reduce: Union[bool, str] = False,
        operand: Optional[AnyRegion] = None, after: After = (),
    ) -> Transfer:  # fmt: skip
        """``source`` of ``peer`` to own ``destination``; ``reduce`` as in :meth:`push`, with own memory."""
        return self._move({"op": "pull", "peer": peer}, source, destination, reduce, operand, after)

    def copy(self, source: AnyRegion, destination: AnyRegion, *, after: After = ()) -> Transfer:
        """Own to own."""
        return self._move({"op": "copy"}, source, destination, False, None, after)

    def reduce(
        self, source: AnyRegion, into: AnyRegion, *, operand: Optional[AnyRegion] = None, op: str = "sum",
        after: After = (),
    ) -> Transfer:  # fmt: skip
        """Own ``source`` combined with ``operand`` (by default what ``into`` holds), into ``into``."""
        return self._move({"op": "copy"}, source, into, op, operand, after)

    def multicast(self, group: int, source: AnyRegion, destination: AnyRegion, *, after: After = ()) -> Transfer:
        """Own ``source`` to ``destination`` on every member of a group (PlanBuilder.group)."""
        return self._move({"op": "push", "group": group}, source, destination, False, None, after)

    def reduce_in_network(
        self, group: int, source: AnyRegion, destination: AnyRegion, *, op: str = "sum", after: After = ()
    ) -> Transfer:
        """``source`` of every member of a group, reduced on the way, to own ``destination``."""
        return self._move({"op": "pull", "group": group}, source, destination, op, None, after)

    def collective(
        self, name: str, group: int, source: AnyRegion, destination: AnyRegion, *, reduce: Union[bool, str] = False,
        after: After = (),
    ) -> Transfer:  # fmt: skip
        """A whole collective ("all-gather", ...) of a group, left to a library or the switch."""
        body = {"op": "collective", "collective": name, "group": group}
        return self._move(body, source, destination, reduce, None, after)

    @contextlib.contextmanager
    def loop(self, count: int) -> Iterator[Expression]:
        """What is added inside is repeated; gives the counter, from 0. Loops nest at most twice."""
        if len(self._open) == 2:
            raise ValueError("loops nest at most twice")
        inner = Loop(count, len(self._open))
        self._items().append(inner)
        self._open.append(inner)
        try:
            yield counter(inner.depth)
        finally:
            self._open.pop()

    def _items(self) -> list[Union[Loop, Transfer]]:
        return (self._open[-1] if self._open else self._root).items

    def _move(
        self, body: dict[str, Any], source: AnyRegion, destination: AnyRegion, reduce: Union[bool, str],
        operand: Optional[AnyRegion], after: After,
    ) -> Transfer:  # fmt: skip
        if "peer" in body:
            body["peer"] = expression(body["peer"]).json()
        body["source"] = region_of(source).json()
        body["destination"] = region_of(destination).json()
        if reduce:
            body["reduce"] = "sum" if reduce is True else reduce
        if operand is not None:
            if not reduce:
                raise ValueError("an operand is what something is reduced with: add reduce=True")
            body["operand"] = region_of(operand).json()
        transfer = Transfer(self, body, dependencies(after), list(self._open), caller())
        self._items().append(transfer)
        return transfer

    def json(self, pointer: str, places: dict[str, Place]) -> dict[str, Any]:
        text: dict[str, Any] = {"name": self.name}
        if self.channel:
            text["channel"] = self.channel
        text["items"] = _json(self._root.items, f"{pointer}/items", places)
        return text


def length(item: Union[Loop, Transfer]) -> int:
    return item.count * item.length() if isinstance(item, Loop) else 1


def _before(items: list[Union[Loop, Transfer]], item: Union[Loop, Transfer]) -> int:
    return sum(length(other) for other in items[: items.index(item)])


def _json(items: list[Union[Loop, Transfer]], pointer: str, places: dict[str, Place]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for item in items:
        here = f"{pointer}/{len(found)}"
        if isinstance(item, Transfer):
            places[here] = item.place
            after = [dependency.json(item.loops) for dependency in item.after]
            found.append({**item.body, **({"after": after} if after else {})})
        elif length(item) > 0:
            found.append({"loop": item.count, "items": _json(item.items, f"{here}/items", places)})
    return found

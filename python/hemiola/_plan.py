"""Plans and the templates that make them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from . import _core
from ._arguments import Settings, pairs
from ._shown import Shown, made

if TYPE_CHECKING:
    from ._machine import Machine


@dataclass(frozen=True)
class TemplateParameter:
    name: str
    default: str
    choices: list[str]  #: empty: an integer >= 0
    description: str


@dataclass(frozen=True)
class Template:
    """A built-in algorithm, of which :meth:`Plan.make` makes plans."""

    name: str
    collective: str
    description: str
    parameters: list[TemplateParameter]
    needs_machine: bool  #: derives its plan from the machine's links


class Plan(Shown):
    """A valid plan. Immutable."""

    def __init__(self, inner: _core.Plan):
        self._core = inner

    @classmethod
    def make(
        cls, name: str, ranks: Optional[int] = None, parameters: Optional[Settings] = None,
        machine: Optional["Machine"] = None,
    ) -> "Plan":  # fmt: skip
        """A plan of a template ("all-reduce/ring"; :meth:`templates` has them). With a machine, rings, trees and
        synthesised schedules follow its links. ``ranks``: by default the machine's, or 8."""
        inner = None if machine is None else machine._core
        count = ranks if ranks is not None else machine.ranks if machine is not None else 8
        return cls(_core.Plan.make(name, count, pairs(parameters), inner))

    @staticmethod
    def templates() -> dict[str, Template]:
        """All templates by name."""
        return {items["name"]: made(Template, items) for items in _core.Plan.templates()}

    @classmethod
    def load(cls, file: str) -> "Plan":
        """Reads a file. :class:`BadInput` with line, JSON pointer and a hint."""
        return cls(_core.Plan.load(str(file)))

    @classmethod
    def from_json(cls, text: str, file: str = "<text>") -> "Plan":
        """Reads text; ``file`` is how messages call it."""
        return cls(_core.Plan.from_json(text, file))

    def to_json(self) -> str:
        """Canonical: the same plan always gives the same text."""
        return self._core.to_json()

    def save(self, file: str) -> None:
        """Writes :meth:`to_json` to a file."""
        with open(file, "w", encoding="utf-8") as out:
            out.write(self.to_json())

    def shaped(self, shape: Sequence[int], dtype: str = "half", axis: int = 0) -> "Plan":
        """A plan of chunks put on a tensor: chunks are equal parts of ``shape`` along ``axis``."""
        return Plan(self._core.shaped(list(shape), dtype, axis))

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def collective(self) -> str:
        return self._core.collective

    @property
    def ranks(self) -> int:
        return self._core.ranks

    @property
    def of_elements(self) -> bool:
        """Its tensors have data types, and it has one size, its own."""
        return self._core.of_elements

    @property
    def transfers(self) -> int:
        """Over all ranks, loops unrolled."""
        return self._core.transfers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __reduce__(self) -> tuple[Any, ...]:
        return (Plan.from_json, (self.to_json(), self.name))

    def __repr__(self) -> str:
        return f"<Plan {self.name!r}: {self.collective} on {self.ranks} ranks, {self.transfers} transfers>"

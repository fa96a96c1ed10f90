"""What a sweep comes to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Optional

from . import _core
from ._errors import Error
from ._optional import pandas, pyplot
from ._results import Outcome
from ._shown import html_table


@dataclass(frozen=True)
class Row:
    """One point of a sweep: what was asked for, and what came of it."""

    machine: str
    settings: dict[str, str]
    program: str
    parameters: dict[str, str]
    size_bytes: Optional[int]  #: None: none was asked for
    outcome: Optional[Outcome] = field(repr=False)  #: None: it failed
    error: Optional[Error]  #: why

    @property
    def asked(self) -> dict[str, Any]:
        """What sets it apart, by column."""
        return {"machine": self.machine, **self.settings, "program": self.program, **self.parameters}

    def to_dict(self) -> dict[str, Any]:
        """A row of a table, all columns of the outcome or the error."""
        row = {**self.asked, "size_bytes": self.size_bytes}
        if self.outcome is not None:
            row.update({**self.outcome.to_dict(), "program": self.program, "ran": self.outcome.program})
        else:
            row["error"] = str(self.error)
        return row


_SHOWN = (
    ("size_bytes", "size (B)"), ("time_us", "time (us)"), ("algbw_GBps", "algbw (GB/s)"),
    ("busbw_GBps", "busbw (GB/s)"), ("bound_us", "bound (us)"), ("checked", "checked"),
)  # fmt: skip


class Table:
    """Rows of a sweep, in their order. A sequence of :class:`Row`; print it to see it."""

    def __init__(self, rows: list[Row]):
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, index: int) -> Row:
        return self.rows[index]

    @property
    def outcomes(self) -> list[Outcome]:
        """Those of the points that were run."""
        return [row.outcome for row in self.rows if row.outcome is not None]

    @property
    def failures(self) -> list[Row]:
        """The points that could not be run."""
        return [row for row in self.rows if row.outcome is None]

    def fastest(self) -> Outcome:
        """The outcome with the least time; the first of several."""
        return min(self.outcomes, key=lambda outcome: outcome.time_fs)

    def _columns(self) -> list[str]:
        """Of what was asked for: those in which rows differ."""
        names = dict.fromkeys(name for row in self.rows for name in row.asked)
        return [name for name in names if len({row.asked.get(name) for row in self.rows}) > 1]

    def to_dicts(self) -> list[dict[str, Any]]:
        return [row.to_dict() for row in self.rows]

    def to_json(self, command: str = "", volatile: bool = True) -> str:
        """The outcomes in the form of ``hemiola run --json``."""
        return _core.to_json([outcome._live() for outcome in self.outcomes], command, volatile)

    def to_pandas(self) -> Any:
        """A DataFrame with a row for each point: what was asked for, times in us and fs, rates in GB/s, or the error."""
        return pandas().DataFrame(self.to_dicts())

    def plot(self, y: str = "busbw_GBps", axes: Any = None) -> Any:
        """``y`` over the size, a line for each combination of all else. Returns the axes."""
        axes = axes if axes is not None else pyplot().subplots()[1]
        lines: dict[str, list[tuple[int, float]]] = {}
        for row in self.rows:
            if row.outcome is None:
                continue
            label = " ".join(str(row.asked.get(name, "")) for name in self._columns())
            point = (row.outcome.size_bytes, row.outcome.to_dict()[y])
            lines.setdefault(label or row.program, []).append(point)
        for label, points in lines.items():
            axes.plot(*zip(*points), marker="o", label=label)
        axes.set(xscale="log", xlabel="size (B)", ylabel=y)
        axes.set_xscale("log", base=2)
        axes.legend(fontsize="small")
        return axes

    def _cells(self) -> list[list[str]]:
        """By line, the head first; columns of what was asked for stand in front."""
        names = self._columns()
        head = names + [title for _, title in _SHOWN]
        return [head, *([str(row.asked.get(name, "")) for name in names] + _figures(row) for row in self.rows)]

    def _repr_html_(self) -> str:
        head, *rows = self._cells()
        return html_table(head, rows, len(self._columns()))

    def __str__(self) -> str:
        lines = self._cells()
        widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
        left = set(range(len(self._columns())))
        texts = [
            "  ".join(cell.ljust(width) if i in left else cell.rjust(width) for i, (cell, width) in enumerate(zip(line, widths)))
            for line in lines
        ]
        return "\n".join(text.rstrip() for text in texts)

    def __repr__(self) -> str:
        return f"<Table of {len(self)} points, {len(self.failures)} failed>\n{self}"


def _figures(row: Row) -> list[str]:
    if row.outcome is None:
        message = row.error.diagnostics[0].message if row.error and row.error.diagnostics else str(row.error)
        return [str(row.size_bytes), *[""] * (len(_SHOWN) - 2), message]
    values = row.outcome.to_dict()
    return [f"{values[name]:.3f}" if isinstance(values[name], float) else str(values[name]) for name, _ in _SHOWN]

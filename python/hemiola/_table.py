"""What a sweep comes to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Optional

from . import _core
from ._colours import lines
from ._errors import Error
from ._optional import pandas
from ._results import Outcome, outcomes_json
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
        return outcomes_json(self.outcomes, command, volatile)

    def report(self, command: str = "") -> str:
        """A page for a browser, as ``hemiola run --report`` writes it."""
        return _core.page([outcome._live() for outcome in self.outcomes], command)

    def to_pandas(self) -> Any:
        """A DataFrame with a row for each point: what was asked for, times in us and fs, rates in GB/s, or the error."""
        return pandas().DataFrame(self.to_dicts())

    def plot(self, y: str = "busbw_GBps", axes: Any = None) -> Any:
        """``y`` over the size, a line for each combination of all else. Returns the axes."""
        series: dict[str, list[tuple[float, float]]] = {}
        for row in self.rows:
            if row.outcome is not None:
                series.setdefault(self._series(row), []).append((row.outcome.size_bytes, row.outcome.to_dict()[y]))
        return lines(axes, series, "size (B)", y, True)

    def _series(self, row: Row) -> str:
        """"all-reduce/ring channels=8": what sets it apart from other lines."""
        names = self._columns()
        words = [row.asked.get(name, "") if name in ("machine", "program") else f"{name}={row.asked.get(name, '')}" for name in names]
        return " ".join(str(word) for word in words) or row.program

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

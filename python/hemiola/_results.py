"""What comes out: plain classes. Times are integers of femtoseconds (``_fs``); bytes are integers."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Optional

from . import _core
from ._colours import stacked_bars, verdict_bars
from ._optional import pandas
from ._shown import Kept, Shown, Timed, json_text, made


@dataclass(frozen=True)
class Diagnostic(Shown):
    """A warning, a note, or one thing that is wrong."""

    message: str
    severity: str = "error"  #: "error", "warning" or "note"
    file: str = ""  #: as it was named; "" where it is in none
    line: int = 0  #: from 1; 0: not known
    column: int = 0  #: from 1; 0: not known
    pointer: str = ""  #: JSON pointer ("/codes/0/streams/0") or XML path
    hint: str = ""  #: what to do about it

    def __str__(self) -> str:
        place = self.file
        if self.file and self.line:
            place += f":{self.line}" + (f":{self.column}" if self.column else "")
        text = f"{place}: " if place else ""
        text += f"{self.severity}: {self.message}"
        if self.pointer:
            text += f" (at {self.pointer})"
        return text + (f"\n  hint: {self.hint}" if self.hint else "")


@dataclass(frozen=True)
class ProofStep(Shown):
    """One step of a counterexample."""

    rank: int
    part: str  #: what ``number`` counts: "workgroup"; of plans "stream" or "compute"
    number: int  #: -1: of the whole rank
    operation: str  #: "op 3 (wait)", "transfer 3 (push)"
    where: str  #: its place in the file
    text: str  #: what it does or misses

    def __str__(self) -> str:
        words = [f"rank {self.rank}"]
        if self.number >= 0:
            words.append(f"{self.part} {self.number}")
        if self.operation:
            words.append(self.operation)
        if self.where:
            words.append(f"at {self.where}")
        return f"{', '.join(words)}: {self.text}"


@dataclass(frozen=True)
class Proof(Shown):
    """What was found of a plan, or of a program at a size (docs/verify.md)."""

    program: str
    of_plan: bool  #: of a plan, for all sizes; else of the program at ``size_bytes``
    size_bytes: int
    verdict: str  #: "proven", "partial", "wrong" or "deadlock"
    summary: str  #: one line
    proven: list[str]
    reasons: list[str]  #: why partial
    counterexample: list[ProofStep]  #: in order
    warnings: list[Diagnostic]
    calls: int  #: calls in a row that were looked at
    #: of a program that is not wrong: it holds for all legal sizes from here ...
    min_bytes: Optional[int] = None
    max_bytes: Optional[int] = None  #: ... to here; None: for all larger ones, too
    multiple_bytes: Optional[int] = None  #: of these only multiples of it; None: all legal ones
    looked_at_bytes: list[int] = field(default_factory=list)  #: other sizes at which it was proven
    executor: str = ""  #: of a program: whose rules were followed: "msccl", ...
    text: str = field(default="", repr=False, compare=False)

    @property
    def ok(self) -> bool:
        """Nothing wrong was found."""
        return self.verdict in ("proven", "partial")

    @property
    def holds_for(self) -> tuple[int, Optional[int]]:
        """The least and the largest size, in bytes; None: no size is too large. Of a wrong program the size at which it was looked at."""
        if self.of_plan:
            return 1, None
        return (self.size_bytes, self.size_bytes) if self.min_bytes is None else (self.min_bytes, self.max_bytes)

    def __str__(self) -> str:
        if self.text:
            return self.text.rstrip("\n")
        steps = [f"  {number}. {step}" for number, step in enumerate(self.counterexample, 1)]
        return "\n".join([f"{self.verdict}: {self.summary}"] + steps)


@dataclass(frozen=True)
class Check(Kept):
    """All that :func:`hemiola.check` found. True where nothing is wrong."""

    proofs: list[Proof]  #: of a plan: the plan's, then, with a machine, that of its program
    _core: Any = field(default=None, repr=False, compare=False)

    @property
    def verdict(self) -> str:
        """The worst of them."""
        order = ("proven", "partial", "wrong", "deadlock")
        return max((proof.verdict for proof in self.proofs), key=order.index)

    @property
    def counterexample(self) -> list[ProofStep]:
        """Of the first proof with the worst verdict; empty where nothing is wrong."""
        return next(proof for proof in self.proofs if proof.verdict == self.verdict).counterexample

    @property
    def warnings(self) -> list[Diagnostic]:
        return [warning for proof in self.proofs for warning in proof.warnings]

    def __bool__(self) -> bool:
        return all(proof.ok for proof in self.proofs)

    def __str__(self) -> str:
        return "\n".join(f"{proof.program}: {proof}" for proof in self.proofs)

    def report(self, command: str = "") -> str:
        """A page for a browser, as ``hemiola check --report`` writes it."""
        return self._live().page(command)

    def plot(self, axes: Any = None) -> Any:
        """For which sizes each proof holds, in the colour of its verdict. Returns the axes."""
        return verdict_bars(axes, [(proof.program, proof.verdict, *proof.holds_for) for proof in self.proofs])


@dataclass(frozen=True)
class LinkUse(Shown):
    """What one direction of one physical link carried."""

    source: str  #: node, by InfraGraph id: "dgx_h100.0.xpu.3"
    destination: str
    lane: int  #: among parallel links
    link_class: str
    payload_bytes: int
    wire_bytes: int  #: with headers
    busy_fs: int
    max_queue: int  #: requests


@dataclass(frozen=True)
class Cause(Shown):
    """A launch that was under way meanwhile."""

    launch: str
    overlap_fs: int
    share_fs: int  #: of what the other one takes longer than alone


@dataclass(frozen=True)
class LaunchUse(Shown):
    """Of a job: one launch, on all of its ranks."""

    name: str  #: in the job
    program: str  #: what it runs
    ranks: list[int]
    size_bytes: int
    begin_fs: int  #: its first rank's, when its stream came to it
    end_fs: int  #: its latest rank's, when its stream could release the next one
    latest_rank: int
    attribution: dict[str, int] = field(repr=False)  #: what its end hung on; sums to end - begin
    alone_fs: int  #: what it takes where it runs alone; 0: nobody has looked
    alone_attribution: dict[str, int] = field(repr=False)
    slowed_by: list[Cause]  #: why it takes longer than alone, the largest share first

    @property
    def time_us(self) -> float:
        return (self.end_fs - self.begin_fs) / 1e9


@dataclass(frozen=True, eq=False)
class Outcome(Timed, Kept):
    """A program on a machine at a size: its proof, its time, and where the time goes.

    Times are integers of femtoseconds; rates are in 10^9 bytes per second. The names are those of
    ``hemiola run --json`` (docs/results.md).
    """

    machine: str
    settings: dict[str, str]  #: what was changed of the machine
    program: str  #: what ran: of several built-ins the fastest
    parameters: dict[str, str]
    collective: str
    ranks: int
    dtype: str
    op: str
    engine: str
    launch: str
    size_bytes: int  #: what nccl-tests calls size
    count: int  #: elements
    time_fs: int
    algbw_GBps: float
    busbw_GBps: float
    bandwidth_bound_fs: int  #: no time can be below: wire bytes over the busiest link or cut
    latency_bound_fs: int  #: ... the unloaded path of dependencies
    bottleneck: str  #: that link or cut
    ideal_fs: int  #: the collective's, on the ranks' injection bandwidth; 0: none
    checked: str  #: "full", "partial" or "skipped"
    line_hops: int  #: visits of a request to a shared resource that the run represents
    visited_hops: int  #: ... that were executed
    simulated_ranks: int  #: the others behave as one of these does
    sampled_share: float  #: of the bytes, simulated line by line; 1 but for the engine "sampled"
    sampled_windows: int  #: that were measured; 0: nothing was left out
    sampled_error: float  #: the time is said to be within this share of that of the line engine
    wall_s: float  #: of the simulation, seconds on this host
    peak_rss_bytes: int
    counters: dict[str, int] = field(repr=False)
    links: list[LinkUse] = field(repr=False)
    launches: list[LaunchUse] = field(repr=False)  #: of a job, in its order; else none
    attribution: list[dict[str, int]] = field(repr=False)  #: by rank: reason to fs; sums to the time
    rank_end_fs: list[int] = field(repr=False)
    proof: Optional[Proof] = field(repr=False)
    notices: list[Diagnostic] = field(repr=False)  #: warnings and notes beside the result
    _core: Any = field(default=None, repr=False, compare=False)
    _texts: dict[str, str] = field(default_factory=dict, repr=False, compare=False)  # of a pickle: what it prints and writes

    @staticmethod
    def _of(handle: _core.Outcome) -> "Outcome":
        return made(Outcome, {**handle.to_dict(), "_core": handle})

    @property
    def time_ns(self) -> float:
        return self.time_fs / 1e6

    @property
    def bound_fs(self) -> int:
        """No engine's time is below it."""
        return max(self.bandwidth_bound_fs, self.latency_bound_fs)

    @property
    def latest_rank(self) -> int:
        """The rank that ends last; the first of several."""
        return max(range(self.ranks), key=lambda rank: self.rank_end_fs[rank])

    def _kept(self) -> dict[str, str]:
        return {"text": str(self), "json": self.to_json(), "csv": self.to_csv()}

    def __str__(self) -> str:
        return self._texts["text"] if self._core is None else _core.table([self._core]) + self._core.attribution_text()

    def to_json(self, command: str = "", volatile: bool = True) -> str:
        """What ``hemiola run --json`` writes. ``volatile=False`` leaves out what differs from run to run."""
        return outcomes_json([self], command, volatile)

    def to_csv(self) -> str:
        """What ``hemiola run --csv`` writes."""
        return self._texts["csv"] if self._core is None else _core.to_csv([self._core])

    def report(self, command: str = "") -> str:
        """A page for a browser, as ``hemiola run --report`` writes it; simulates once more, for its timeline."""
        return _core.page([self._live()], command)

    def trace(self, lines: tuple[str, str] = ("0ns", "0ns")) -> bytes:
        """A timeline for https://ui.perfetto.dev; simulates once more. ``lines``: a window of time in which
        requests are shown, too."""
        from ._arguments import femtoseconds

        return bytes(self._live().trace(femtoseconds(lines[0]), femtoseconds(lines[1])))

    def to_dict(self) -> dict[str, Any]:
        """One row of a table: what it is, and its figures without lists."""
        lists = ("counters", "links", "launches", "attribution", "rank_end_fs", "proof", "notices", "_core", "_texts")
        row = {item.name: getattr(self, item.name) for item in dataclasses.fields(self) if item.name not in lists}
        settings, parameters = row.pop("settings"), row.pop("parameters")
        row.update({**settings, **parameters, "time_us": self.time_us, "bound_us": self.bound_fs / 1e9})
        return row

    def to_pandas(self, what: str = "attribution") -> Any:
        """A DataFrame: "attribution" (a row per rank, a column per reason, in ns), "links", "launches" or "counters"."""
        frame = pandas().DataFrame
        if what == "attribution":
            rows = [{reason: fs / 1e6 for reason, fs in rank.items()} for rank in self.attribution]
            return frame(rows).rename_axis("rank")
        if what == "links":
            return frame([dataclasses.asdict(link) for link in self.links])
        if what == "launches":
            return frame([dataclasses.asdict(launch) for launch in self.launches])
        if what == "counters":
            return frame(list(self.counters.items()), columns=["counter", "value"]).set_index("counter")
        raise ValueError(f"'{what}' is none of attribution, links, launches, counters")

    def plot(self, axes: Any = None) -> Any:
        """Where the time of each rank goes, as stacked bars in us, in the colours of the pages. Returns the axes."""
        bars = [{reason: fs / 1e9 for reason, fs in rank.items()} for rank in self.attribution]
        ranks = [f"rank {rank}" for rank in range(self.ranks)]
        return stacked_bars(axes, ranks, bars, "time (us)", f"{self.program} on {self.machine}, {_core.bytes_text(self.size_bytes)}")


_VOLATILE = ("visited_hops", "simulated_ranks", "wall_s", "peak_rss_bytes")


def outcomes_json(outcomes: list[Outcome], command: str, volatile: bool) -> str:
    """What ``hemiola run --json`` writes of them; of those that were pickled the same fields."""
    handles = [outcome._core for outcome in outcomes if outcome._core is not None]
    if len(handles) == len(outcomes):
        return _core.to_json(handles, command, volatile)
    return json_text([outcome._texts["json"] if outcome._core is None else outcome.to_json() for outcome in outcomes], command, () if volatile else _VOLATILE)

"""explore and explore_suite."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional, TypedDict, Union

from . import _core
from ._colours import stacked_bars
from ._arguments import known_arguments
from ._errors import bad_input
from ._machine import AnyMachine, Program, machine_of
from ._optional import pandas
from ._shown import Kept, Shown, Timed, made

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ExploreOptions(TypedDict, total=False):
    """Of :func:`hemiola.explore` and :func:`hemiola.explore_suite`."""

    launch: str
    warmup: int
    iterations: int
    degrees: Sequence[int]
    realizations: Sequence[str]
    places: Sequence[str]
    transfers: Sequence[str]
    fluid: int
    top: int
    exhaustive: bool
    losses: str
    threads: int


def _options(options: Mapping[str, Any]) -> dict[str, Any]:
    known_arguments(options, ExploreOptions.__annotations__)
    return {name: list(value) if isinstance(value, (tuple, list)) else value for name, value in options.items()}


@dataclass(frozen=True)
class Operator(Shown):
    """A product and its collective. Sizes are global: C[m, n] = A[m, k] B[k, n] over all ranks together."""

    kind: str  #: "ag-gemm", "gemm-rs", "gemm-ar", "a2a-gemm" or "gemm-a2a"
    m: int
    n: int
    k: int
    gather: str  #: ag-gemm: the operand that is gathered, "a" or "b"
    load: str  #: tokens for the experts of each rank: "even", "4/2/1/1", "zipf/1.2"
    dtype: str
    ranks: int


@dataclass(frozen=True)
class Serial(Timed, Shown):
    """The library's collective, then its product: what every speedup is against."""

    program: str  #: of the collective
    time_fs: int
    collective_fs: int  #: alone
    product_fs: int  #: alone
    confirmed_fs: Optional[int]  #: by the engine "sampled"; None: it was not asked


@dataclass(frozen=True)
class Schedule(Timed, Shown):
    """A way to overlap the operator that was simulated."""

    text: str  #: "1D hetero fused, 8 steps, in place, push by copy engines, ..."
    family: str  #: "1D hetero fused"
    degree: int  #: steps
    program: str  #: the built-in that it is, with ``parameters``
    parameters: dict[str, str]
    time_fs: int  #: ``confirmed_fs``, or else ``fluid_fs``
    fluid_fs: int
    confirmed_fs: Optional[int]  #: by the engine "sampled"; None: it was not asked
    speedup: float  #: over serial, by the same engine
    bound_fs: int  #: no simulation of it takes less
    estimate_fs: int  #: by a closed form
    buffers_bytes: int
    extra_traffic_bytes: int
    dil_product: Optional[float]  #: decomposition: pieces alone over the whole alone
    dil_communication: Optional[float]
    cil_product: Optional[float]  #: contention: overlapped over alone
    cil_communication: Optional[float]
    losses: dict[str, int] = field(repr=False)  #: fs beyond ideal by cause; empty: nobody has looked

    def to_program(self) -> Program:
        """For ``hemiola.run``."""
        return Program(self.program, self.parameters)

    def to_dict(self) -> dict[str, Any]:
        """A row of a table; losses are columns ``lost_..._fs``."""
        row: dict[str, Any] = dataclasses.asdict(self)
        parameters, losses = row.pop("parameters"), row.pop("losses")
        row.update({"time_us": self.time_us, "parameters": " ".join(f"{key}={value}" for key, value in parameters.items())})
        row.update({f"lost_{cause}_fs": fs for cause, fs in losses.items()})
        return row


@dataclass(frozen=True)
class Exploration(Kept):
    """What :func:`hemiola.explore` found. Print it to see it."""

    machine: str
    operator: Operator
    serial: Serial
    ideal_fs: int  #: no schedule takes less: all tiles over all compute units, the fewest bytes over the busiest link
    schedules: list[Schedule]  #: that were simulated, the fastest first
    space: int  #: schedules there are, serial among them
    _core: Any = field(default=None, repr=False, compare=False)

    @property
    def best(self) -> Union[Schedule, Serial]:
        """The fastest schedule, or :attr:`serial` where nothing is faster."""
        return self.schedules[0] if self.schedules and self.schedules[0].speedup > 1 else self.serial

    @property
    def speedup(self) -> float:
        """Of the best over serial; 1 where serial is the best."""
        return self.best.speedup if isinstance(self.best, Schedule) else 1.0

    @property
    def best_fs(self) -> int:
        """Its time, by "sampled" where that was asked."""
        return self.best.confirmed_fs or self.best.time_fs

    def to_dicts(self) -> list[dict[str, Any]]:
        return [schedule.to_dict() for schedule in self.schedules]

    def to_pandas(self) -> Any:
        """A DataFrame with a row for each schedule, the fastest first."""
        return pandas().DataFrame(self.to_dicts())

    def plot(self, top: int = 8, axes: Any = None) -> Any:
        """Serial, its parts beside each other, and the fastest schedules, in us. Returns the axes."""
        serial = {"collective": self.serial.collective_fs / 1e9, "compute": self.serial.product_fs / 1e9}
        rest = self.serial.time_us - sum(serial.values())  # of both in a row, beside each alone
        bars = [{**serial, "rest": max(0.0, rest)}, *({"overlapped": one.time_us} for one in self.schedules[:top])]
        names = ["serial", *(one.text for one in self.schedules[:top])]
        return stacked_bars(axes, names, bars, "time (us)", f"{self.operator.kind} on {self.operator.ranks} ranks of {self.machine}")

    def report(self, command: str = "") -> str:
        """A page for a browser, as ``hemiola explore --report`` writes it, without timelines."""
        return str(self._live().page(command))

    def __str__(self) -> str:
        op = self.operator
        lines = [f"{op.kind} {op.m} x {op.n} x {op.k} {op.dtype} on {op.ranks} ranks of {self.machine}"]
        lines.append(f"{(self.serial.confirmed_fs or self.serial.time_fs) / 1e9:12.3f} us  1.000  serial")
        lines += [f"{one.time_us:12.3f} us  {one.speedup:5.3f}  {one.text}" for one in self.schedules[:8]]
        return "\n".join(lines)


@dataclass(frozen=True)
class Scenario(Shown):
    """One of a suite: an operator, and what was found or why nothing was."""

    name: str
    model: str
    set: str  #: "fit", "unseen" or ""
    operator: Operator
    found: Optional[Exploration]
    error: str  #: "" where something was found

    def to_dict(self) -> dict[str, Any]:
        """A row of a table."""
        row = {"name": self.name, "model": self.model, "set": self.set, **dataclasses.asdict(self.operator), "error": self.error}
        if self.found is not None:
            best = self.found.best
            row.update({
                "serial_fs": self.found.serial.time_fs, "collective_fs": self.found.serial.collective_fs,
                "product_fs": self.found.serial.product_fs, "best_fs": self.found.best_fs, "speedup": self.found.speedup,
                "best": best.text if isinstance(best, Schedule) else "serial",
                "best_family": best.family if isinstance(best, Schedule) else "serial",
                "simulated": len(self.found.schedules) + 1, "space": self.found.space,
            })  # fmt: skip
        return row


class SuiteExploration(Shown):
    """What :func:`hemiola.explore_suite` found: a sequence of :class:`Scenario`, in the order of the suite."""

    def __init__(self, scenarios: list[Scenario]):
        self.scenarios = scenarios

    def __len__(self) -> int:
        return len(self.scenarios)

    def __iter__(self) -> Iterator[Scenario]:
        return iter(self.scenarios)

    def __getitem__(self, index: Union[int, str]) -> Scenario:
        """By number, or by name."""
        if isinstance(index, int):
            return self.scenarios[index]
        for scenario in self.scenarios:
            if scenario.name == index:
                return scenario
        raise KeyError(index)

    @property
    def explored(self) -> list[Scenario]:
        return [scenario for scenario in self.scenarios if scenario.found is not None]

    @property
    def refused(self) -> list[Scenario]:
        """Those that could not be explored: ``error`` says why."""
        return [scenario for scenario in self.scenarios if scenario.found is None]

    def to_dicts(self) -> list[dict[str, Any]]:
        return [scenario.to_dict() for scenario in self.scenarios]

    def to_pandas(self, what: str = "scenarios") -> Any:
        """A DataFrame: "scenarios", a row for each; "schedules", all that were simulated, with their scenario's
        name; "families", the speedup of the fastest schedule of each family, scenarios by families."""
        frame = pandas().DataFrame
        if what == "scenarios":
            return frame(self.to_dicts())
        rows = [{"scenario": one.name, **row} for one in self.explored for row in one.found.to_dicts()]  # type: ignore[union-attr]
        if what == "schedules":
            return frame(rows)
        if what == "families":
            names = [one.name for one in self.explored]
            return frame(rows).pivot_table(index="scenario", columns="family", values="speedup", aggfunc="max").reindex(names)
        raise ValueError(f"'{what}' is none of scenarios, schedules, families")

    def plot(self, axes: Any = None) -> Any:
        """The speedup of each scenario over serial. Returns the axes."""
        found = self.explored
        return stacked_bars(axes, [one.name for one in found], [{"speedup": one.found.speedup} for one in found if one.found], "over serial", "suite")

    def __str__(self) -> str:
        rows = [f"{one.name:24} " + (f"{one.found.speedup:5.3f}  {getattr(one.found.best, 'text', 'serial')}" if one.found else one.error) for one in self.scenarios]
        return "\n".join([repr(self), *rows])

    def __repr__(self) -> str:
        return f"<SuiteExploration of {len(self)} scenarios, {len(self.refused)} refused>"


def explore(
    operator: str,
    gemm: Optional[Sequence[int]] = None,
    machine: Optional[AnyMachine] = None,
    *,
    local: Optional[Sequence[int]] = None,
    gather: str = "a",
    load: str = "even",
    dtype: str = "bf16",
    **options: Unpack[ExploreOptions],
) -> Exploration:
    """Which schedule overlaps a product with its collective best, and whether it is worth it.

    ``operator``: "ag-gemm", "gemm-rs", "gemm-ar", "a2a-gemm" or "gemm-a2a". ``gemm``: (M, N, K) over all GPUs;
    or ``local``: those of one. ``gather="b"``: ag-gemm gathers B (weights) in place of A. ``load``: of experts, how many
    tokens those of each rank get, as weights: "even", "4/2/1/1", or "zipf/1.2".

    ``options``: ``launch`` ("stream" or "graph"), ``warmup``, ``iterations``, ``degrees`` (2, 4, 8, 16),
    ``realizations``, ``places``, ``transfers`` (what may move data, where, how; all by default), ``fluid`` (schedules that are
    simulated at most), ``top`` (so many of the fastest are confirmed by "sampled"), ``exhaustive``, ``losses``
    ("none", "best" or "all"), ``threads``.
    """
    if (gemm is None) == (local is None):
        raise bad_input("no sizes are given" if gemm is None else "sizes are given twice", "gemm=(M, N, K), or local=")
    if gather not in ("a", "b"):
        raise bad_input(f"'{gather}' is no operand", "gather is 'a' or 'b'")
    sizes = [int(size) for size in (gemm if gemm is not None else local) or ()]
    found = _core.explore(machine_of(machine)._core, operator, sizes, local is not None, gather == "b", load, dtype, _options(options))
    return made(Exploration, found)


def explore_suite(
    suite: str = "overlap",
    machine: Optional[AnyMachine] = None,
    *,
    database: Optional[str] = None,
    **options: Unpack[ExploreOptions],
) -> SuiteExploration:
    """Explores all scenarios of a suite: "overlap" (docs/scenarios.md), or a YAML file like it.

    A scenario of r ranks is explored on the first r GPUs of the machine; one that cannot be explored says why.
    ``database``: a file where results are kept, as of ``hemiola explore --suite --database``: a call that was ended
    goes on with it. ``options``: those of :func:`explore`; ``threads`` are scenarios at a time.
    """
    scenarios = _core.explore_suite(machine_of(machine)._core, str(suite), database or "", _options(options))
    return SuiteExploration([made(Scenario, items) for items in scenarios])

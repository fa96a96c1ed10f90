"""Workloads: whole iterations of training and inference."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional, TypedDict, Union

from . import _core
from ._colours import stacked_bars
from ._arguments import Duration, Size, femtoseconds, known_arguments, size_bytes
from ._machine import AnyMachine, Job, machine_of
from ._optional import pandas
from ._results import Diagnostic
from ._shown import Kept, Shown, Timed, json_text, made

if TYPE_CHECKING:
    from typing_extensions import Unpack


class IterationArguments(TypedDict, total=False):
    """Of a model's iteration: the options of ``hemiola workload make``, with its defaults."""

    phase: str  # "train", "prefill", "decode"
    tp: int
    pp: int
    dp: int
    cp: int
    ep: int
    zero: int
    shard: int
    sequence_parallel: bool
    micro_batch: int
    global_batch: int
    sequence: int
    context: int
    dtype: str
    recompute: str
    pipeline: str
    chunks: int
    attention: str
    context_parallel: str
    fused_softmax: bool
    uneven_stages: bool
    bucket: Size
    overlap: bool
    prefetch: int
    optimizer_bytes: int
    host_time: Duration


class TimingArguments(TypedDict, total=False):
    """Of :func:`hemiola.run_iteration`."""

    engine: str
    launch: str
    detail: Mapping[str, str]
    collectives: str
    compute: str
    calls: str
    scale_recorded: str
    scale_compute: float
    without: Union[str, Sequence[str]]
    contention: bool


def _iteration(arguments: Mapping[str, Any]) -> dict[str, Any]:
    known_arguments(arguments, IterationArguments.__annotations__)
    found = dict(arguments)
    if "bucket" in found:
        found["bucket_bytes"] = size_bytes(found.pop("bucket"))
    if "host_time" in found:
        found["host_time_fs"] = femtoseconds(found.pop("host_time"))
    return found


def _options(arguments: Mapping[str, Any]) -> dict[str, Any]:
    known_arguments(arguments, TimingArguments.__annotations__)
    found = dict(arguments)
    if "without" in found:
        found["without"] = [found["without"]] if isinstance(found["without"], str) else list(found["without"])
    return found


@dataclass(frozen=True)
class RankTime(Shown):
    """Where the time of ranks that do the same goes. The first six times sum to that of the iteration."""

    name: str  #: "stage 0"
    ranks: list[int]
    compute_fs: int
    exposed_fs: int  #: communication, and nothing is computed meanwhile
    copies_fs: int
    waiting_fs: int  #: a peer has not come
    host_fs: int
    idle_fs: int  #: bubbles
    hidden_fs: int  #: communication beside kernels
    slowed_fs: int  #: what kernels lost to communication beside them
    memory_bytes: dict[str, int]  #: of a model: what lies in each GPU's memory


@dataclass(frozen=True)
class Call(Shown):
    """Collectives, or messages, of one kind, size and group."""

    name: str  #: "all-reduce tp"
    group: int  #: ranks
    groups: int
    calls: int  #: of all groups
    size_bytes: int
    alone_fs: int


@dataclass(frozen=True)
class PathShare(Shown):
    """Nodes of one name on the critical path."""

    name: str
    nodes: int
    time_fs: int  #: of all of them

    @property
    def mean_us(self) -> float:
        return self.time_fs / 1e9 / self.nodes


@dataclass(frozen=True)
class Iteration(Timed, Kept):
    """What an iteration takes, and where its time goes. Print it to see the tables of the command line."""

    machine: str
    workload: str
    ranks: int
    time_fs: int
    recorded_fs: int  #: of a trace: from its first node to its last; 0: not known
    tokens_per_s_per_gpu: float  #: of a model
    mfu: float  #: of a model: its flop over what the matrix units could do, 0 to 1
    classes: list[RankTime]
    calls: list[Call]  #: the longest in all first
    path: list[PathShare]  #: the critical path, the most first
    simulations: int
    notices: list[Diagnostic]
    _core: Any = field(repr=False, compare=False)

    @property
    def time_ms(self) -> float:
        return self.time_fs / 1e12

    _texts: dict[str, str] = field(default_factory=dict, repr=False, compare=False)  # of a pickle: what it prints and writes

    def _kept(self) -> dict[str, str]:
        return {"text": str(self), "json": self.to_json(), "job": self._core.job()}

    def to_json(self, command: str = "") -> str:
        """What ``--json`` writes."""
        return json_text([self._texts["json"]], command) if self._core is None else self._core.json(command)

    def trace(self) -> bytes:
        """A timeline for ui.perfetto.dev, with the critical path."""
        return bytes(self._live().trace())

    def report(self, command: str = "") -> str:
        """A page for a browser, as ``--report`` writes it."""
        return str(self._live().page(command))

    def plot(self, axes: Any = None) -> Any:
        """Where the time of each class of ranks goes, as stacked bars in ms. Returns the axes."""
        parts = {"compute": "compute_fs", "collective": "exposed_fs", "copies": "copies_fs", "waiting": "waiting_fs", "host": "host_fs", "idle": "idle_fs"}
        bars = [{name: getattr(one, key) / 1e12 for name, key in parts.items()} for one in self.classes]
        return stacked_bars(axes, [one.name for one in self.classes], bars, "time (ms)", f"{self.workload} on {self.machine}")

    def to_job(self) -> Job:
        """The launches as a job, which ``hemiola.run`` simulates in one go. For small workloads."""
        return Job.from_text(self._texts["job"] if self._core is None else self._core.job(), f"<{self.workload}>")

    def to_pandas(self) -> Any:
        """A DataFrame with a row for each class of ranks."""
        return pandas().DataFrame([vars(one) for one in self.classes])

    def __str__(self) -> str:
        return self._texts["text"] if self._core is None else self._core.table()


class Workload(Shown):
    """Kernels, collectives and messages of every rank, with what waits for what. Immutable.

    ``Workload("llama-70b", tp=8, dp=2, global_batch=32)`` is one iteration of a model: a shipped one, a text of yours or a
    ``config.json`` of Hugging Face. Arguments are those of ``hemiola workload make``: :class:`IterationArguments`. :meth:`read` takes a trace.
    """

    def __init__(self, model: str, **iteration: Unpack[IterationArguments]):
        self._made: Callable[[], Workload] = functools.partial(Workload, model, **iteration)
        self._core = _core.Workload.make(str(model), _iteration(iteration))

    @classmethod
    def read(cls, path: str, *, lenient: bool = False, sizes: str = "", groups: str = "", replicate: int = 0) -> "Workload":
        """A Chakra, PyTorch or Kineto trace: a file, a folder, a prefix of ``PREFIX.<rank>.et`` or an archive.

        ``lenient`` leaves out what can be of a damaged one (each kind is a notice), ``sizes`` and ``groups`` are files with what the trace
        does not say, ``replicate`` says of how many ranks one trace is.
        """
        self = cls.__new__(cls)
        self._made = functools.partial(cls.read, path, lenient=lenient, sizes=sizes, groups=groups, replicate=replicate)
        self._core = _core.Workload.read(str(path), lenient, str(sizes), str(groups), replicate)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (self._made, ())  # made, or read, again

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def ranks(self) -> int:
        return self._core.ranks

    @property
    def nodes(self) -> int:
        """Of all ranks."""
        return self._core.nodes

    @property
    def notices(self) -> list[Diagnostic]:
        return [made(Diagnostic, one) for one in self._core.notices]

    def write_chakra(self, prefix: str) -> None:
        """Writes ``PREFIX.<rank>.et`` for each rank and ``PREFIX.json`` with the process groups."""
        self._core.write_chakra(str(prefix))

    def run(self, machine: Optional[AnyMachine] = None, **options: Unpack[TimingArguments]) -> Iteration:
        """:func:`hemiola.run_iteration` of this workload."""
        return run_iteration(self, machine, **options)

    def __repr__(self) -> str:
        return f"<Workload {self.name}: {self.ranks} ranks, {self.nodes} nodes>"


def run_iteration(workload: Workload, machine: Optional[AnyMachine] = None, **options: Unpack[TimingArguments]) -> Iteration:
    """What an iteration of a workload takes on a machine: the first GPUs of one that is named, or a Machine with as many ranks.

    ``options``: ``engine`` ("estimate", "fluid", "sampled", "line"), ``launch`` ("stream", "graph"), ``detail`` (engine by kind of
    call, ``{"all-reduce": "line"}``), ``collectives`` (a file: which programs they run), ``compute`` ("automatic", "recorded", "model", "roofline"),
    ``calls`` ("simulated", or "recorded": as a trace says; "automatic"), ``scale_recorded`` (times that were recorded on another GPU: "model", "bytes", "none"),
    ``scale_compute`` (the time of kernels times this), ``without`` (kinds of calls that take no time), ``contention``.
    """
    found_machine = machine_of(machine)
    if isinstance(machine, str) and found_machine.ranks > workload.ranks:
        found_machine = found_machine.with_ranks(workload.ranks)
    core = _core.run_iteration(found_machine._core, workload._core, _options(options))
    return made(Iteration, {**core.to_dict(), "_core": core})


@dataclass(frozen=True)
class Parallelism(Shown):
    """A way to divide a model among GPUs."""

    tp: int
    pp: int
    dp: int
    cp: int
    ep: int
    zero: int
    memory_bytes: int  #: of the GPU that needs most
    refused: str  #: why it was not run; "": it was
    time_fs: int
    tokens_per_s_per_gpu: float
    mfu: float

    @property
    def time_ms(self) -> float:
        return self.time_fs / 1e12


def search_parallelism(model: str, machine: Optional[AnyMachine] = None, *, memory: Optional[Size] = None, **arguments: Any) -> list[Parallelism]:
    """Every way to divide a model among the GPUs of a machine: those that fit into memory the fastest first, then the others with the reason.

    ``arguments`` are those of :class:`hemiola.Workload` (but for ``tp``, ``pp``, ``dp``, ``ep``; ``global_batch`` is needed) and the options of
    :func:`hemiola.run_iteration`. ``memory``: of a GPU, if not that of its device model.
    """
    options = {name: arguments.pop(name) for name in TimingArguments.__annotations__ if name in arguments}
    rows = _core.search_parallelism(machine_of(machine)._core, str(model), _iteration(arguments), _options(options), size_bytes(memory) if memory else 0)
    return [made(Parallelism, row) for row in rows]

"""Workloads: whole iterations of training and inference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from . import _core
from ._arguments import Size, femtoseconds, size_bytes
from ._errors import bad_input
from ._machine import AnyMachine, Job, machine_of
from ._optional import pandas
from ._results import Diagnostic
from ._shown import Shown

_ITERATION = (
    "phase", "tp", "pp", "dp", "cp", "ep", "zero", "shard", "sequence_parallel", "micro_batch", "global_batch", "sequence", "context", "dtype", "recompute",
    "pipeline", "chunks", "attention", "context_parallel", "fused_softmax", "uneven_stages", "bucket", "overlap", "prefetch", "optimizer_bytes", "host_time",
)  # fmt: skip
_OPTIONS = ("engine", "launch", "detail", "collectives", "compute", "calls", "scale_recorded", "scale_compute", "without", "contention")


def _known(arguments: Mapping[str, Any], names: tuple[str, ...]) -> None:
    for name in arguments:
        if name not in names:
            raise TypeError(f"there is no argument '{name}'; there are {', '.join(names)}")


def _iteration(arguments: Mapping[str, Any]) -> dict[str, Any]:
    _known(arguments, _ITERATION)
    found = dict(arguments)
    if "bucket" in found:
        found["bucket_bytes"] = size_bytes(found.pop("bucket"))
    if "host_time" in found:
        found["host_time_fs"] = femtoseconds(found.pop("host_time"))
    return found


def _options(arguments: Mapping[str, Any]) -> dict[str, Any]:
    _known(arguments, _OPTIONS)
    found = dict(arguments)
    if "without" in found:
        found["without"] = [found["without"]] if isinstance(found["without"], str) else list(found["without"])
    return found


@dataclass(frozen=True)
class RankTime:
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
class Call:
    """Collectives, or messages, of one kind, size and group."""

    name: str  #: "all-reduce tp"
    group: int  #: ranks
    groups: int
    calls: int  #: of all groups
    size_bytes: int
    alone_fs: int


@dataclass(frozen=True)
class PathShare:
    """Nodes of one name on the critical path."""

    name: str
    nodes: int
    time_fs: int  #: of all of them

    @property
    def mean_us(self) -> float:
        return self.time_fs / 1e9 / self.nodes


@dataclass(frozen=True)
class Iteration(Shown):
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
    def time_us(self) -> float:
        return self.time_fs / 1e9

    @property
    def time_ms(self) -> float:
        return self.time_fs / 1e12

    def to_json(self, command: str = "") -> str:
        """What ``--json`` writes."""
        return self._core.json(command)

    def trace(self) -> bytes:
        """A timeline for ui.perfetto.dev, with the critical path."""
        return self._core.trace()

    def report(self, command: str = "") -> str:
        """A page for a browser, as ``--report`` writes it."""
        return self._core.page(command)

    def to_job(self) -> Job:
        """The launches as a job, which ``hemiola.run`` simulates in one go. For small workloads."""
        return Job.from_text(self._core.job(), f"<{self.workload}>")

    def to_pandas(self) -> Any:
        """A DataFrame with a row for each class of ranks."""
        return pandas().DataFrame([vars(one) for one in self.classes])

    def __str__(self) -> str:
        return self._core.table()


class Workload:
    """Kernels, collectives and messages of every rank, with what waits for what. Immutable.

    ``Workload("llama-70b", tp=8, dp=2, global_batch=32)`` is one iteration of a model: a shipped one, a text of yours or a
    ``config.json`` of Hugging Face. Arguments are those of ``hemiola workload make``: ``phase`` ("train", "prefill", "decode"), ``tp``, ``pp``,
    ``dp``, ``cp``, ``ep``, ``zero``, ``shard``, ``sequence_parallel``, ``micro_batch``, ``global_batch``, ``sequence``, ``context``, ``dtype``,
    ``recompute``, ``pipeline``, ``chunks``, ``attention``, ``context_parallel``, ``fused_softmax``, ``uneven_stages``, ``bucket``, ``overlap``, ``prefetch``,
    ``optimizer_bytes``, ``host_time``. :meth:`read` takes a trace.
    """

    def __init__(self, model: str, **iteration: Any):
        self._core = _core.Workload.make(str(model), _iteration(iteration))

    @classmethod
    def read(cls, path: str, *, lenient: bool = False, sizes: str = "", groups: str = "", replicate: int = 0) -> "Workload":
        """A Chakra, PyTorch or Kineto trace: a file, a folder, a prefix of ``PREFIX.<rank>.et`` or an archive.

        ``lenient`` leaves out what can be of a damaged one (each kind is a notice), ``sizes`` and ``groups`` are files with what the trace
        does not say, ``replicate`` says of how many ranks one trace is.
        """
        self = cls.__new__(cls)
        self._core = _core.Workload.read(str(path), lenient, str(sizes), str(groups), replicate)
        return self

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
        return [Diagnostic(**one) for one in self._core.notices]

    def write_chakra(self, prefix: str) -> None:
        """Writes ``PREFIX.<rank>.et`` for each rank and ``PREFIX.json`` with the process groups."""
        self._core.write_chakra(str(prefix))

    def run(self, machine: Optional[AnyMachine] = None, **options: Any) -> Iteration:
        """:func:`hemiola.run_iteration` of this workload."""
        return run_iteration(self, machine, **options)

    def __repr__(self) -> str:
        return f"<Workload {self.name}: {self.ranks} ranks, {self.nodes} nodes>"


def run_iteration(workload: Workload, machine: Optional[AnyMachine] = None, **options: Any) -> Iteration:
    """What an iteration of a workload takes on a machine: the first GPUs of one that is named, or a Machine with as many ranks.

    ``options``: ``engine`` ("estimate", "fluid", "sampled", "line"), ``launch`` ("stream", "graph"), ``detail`` (engine by kind of
    call, ``{"all-reduce": "line"}``), ``collectives`` (a file: which programs they run), ``compute`` ("automatic", "recorded", "model", "roofline"),
    ``calls`` ("simulated", or "recorded": as a trace says; "automatic"), ``scale_recorded`` (times that were recorded on another GPU: "model", "bytes", "none"),
    ``scale_compute`` (the time of kernels times this), ``without`` (kinds of calls that take no time), ``contention``.
    """
    if machine is None:
        raise bad_input("no machine is given", "for example machine='dgx-h100'")
    found_machine = machine_of(machine)
    if isinstance(machine, str) and found_machine.ranks > workload.ranks:
        found_machine = found_machine.with_ranks(workload.ranks)
    core = _core.run_iteration(found_machine._core, workload._core, _options(options))
    found = core.to_dict()
    return Iteration(**{
        **found, "classes": [RankTime(**one) for one in found["classes"]], "calls": [Call(**one) for one in found["calls"]],
        "path": [PathShare(**one) for one in found["path"]], "notices": [Diagnostic(**one) for one in found["notices"]], "_core": core,
    })  # fmt: skip


@dataclass(frozen=True)
class Parallelism:
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
    if machine is None:
        raise bad_input("no machine is given", "for example machine='dgx-h100:8'")
    options = {name: arguments.pop(name) for name in _OPTIONS if name in arguments}
    rows = _core.search_parallelism(machine_of(machine)._core, str(model), _iteration(arguments), _options(options), size_bytes(memory) if memory else 0)
    return [Parallelism(**row) for row in rows]

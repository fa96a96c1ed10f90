"""explore_block."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional, Union

from . import _core
from ._colours import stacked_bars
from ._errors import bad_input
from ._explore import Runnable, _options
from ._machine import AnyMachine, machine_of
from ._optional import pandas
from ._shown import Shown, Timed, made

_SIZES = {
    "mlp": ("tokens", "hidden", "intermediate", "gated"),
    "attention": ("tokens", "hidden", "heads", "kv_heads", "head_dim", "sequences", "causal"),
}


@dataclass(frozen=True)
class Operators(Timed, Shown):
    """Operators one after the other, and what each takes alone."""

    time_fs: int
    confirmed_fs: Optional[int]  #: by the engine "sampled"; None: it was not asked
    parts: list[dict[str, Any]]  #: name, program, alone_fs
    job: str = field(repr=False)  #: the text of a job file that runs them


@dataclass(frozen=True)
class Chain(Runnable):
    """Steps that flow through the block without a barrier between operators."""

    text: str
    degree: int  #: steps
    hetero: bool  #: the own rows are pieces of their own, at the ends
    program: str  #: the built-in that it is, with ``parameters``
    parameters: dict[str, str]
    time_fs: int  #: ``confirmed_fs``, or else ``fluid_fs``
    fluid_fs: int
    confirmed_fs: Optional[int]
    speedup: float  #: over serial, by the same engine
    buffers_bytes: int
    extra_traffic_bytes: int
    dil_compute: Optional[float]  #: decomposition: pieces alone over the whole alone
    dil_communication: Optional[float]
    cil_compute: Optional[float]  #: contention: overlapped over alone
    losses: dict[str, int] = field(repr=False)  #: fs beyond ideal by cause; empty: nobody has looked


@dataclass(frozen=True)
class BlockExploration(Shown):
    """What :func:`hemiola.explore_block` found. Print it to see it."""

    machine: str
    ranks: int
    serial: Operators  #: the library's collectives and products
    apart: Operators  #: the best schedule of each operator, one behind the other
    compute_fs: int
    communication_fs: int
    ideal_fs: int  #: no chain takes less
    chains: list[Chain]  #: that were simulated, the fastest first
    space: int  #: chains there are

    @property
    def best(self) -> Union[Chain, Operators]:
        """The fastest chain, or :attr:`apart` or :attr:`serial` where none is faster."""
        others = min(self.serial, self.apart, key=lambda one: one.time_fs)
        if not self.chains:
            return others
        first = self.chains[0]
        limit = others.confirmed_fs if first.confirmed_fs is not None and others.confirmed_fs is not None else others.time_fs
        return first if first.time_fs < limit else others

    @property
    def speedup(self) -> float:
        """Of the best over serial."""
        best = self.best
        return best.speedup if isinstance(best, Chain) else self.serial.time_fs / best.time_fs

    def to_dicts(self) -> list[dict[str, Any]]:
        return [chain.to_dict() for chain in self.chains]

    def to_pandas(self) -> Any:
        """A DataFrame with a row for each chain, the fastest first."""
        return pandas().DataFrame(self.to_dicts())

    def plot(self, top: int = 8, axes: Any = None) -> Any:
        """Serial, each operator overlapped by itself, and the fastest chains, in us. Returns the axes."""
        times = {"serial": self.serial.time_us, "apart": self.apart.time_us, **{one.text: one.time_us for one in self.chains[:top]}}
        return stacked_bars(axes, list(times), [{"time": time} for time in times.values()], "time (us)", f"block on {self.ranks} ranks of {self.machine}")

    def __str__(self) -> str:
        lines = [f"block on {self.ranks} ranks of {self.machine}", f"{self.serial.time_us:12.3f} us  1.000  serial"]
        lines.append(f"{self.apart.time_us:12.3f} us  {self.serial.time_fs / self.apart.time_fs:5.3f}  apart")
        lines += [f"{one.time_us:12.3f} us  {one.speedup:5.3f}  {one.text}" for one in self.chains[:8]]
        return "\n".join(lines)


def explore_block(kind: str, machine: Optional[AnyMachine] = None, *, dtype: str = "bf16", **sizes_and_options: Any) -> BlockExploration:
    """How a block of a transformer flows best: all-gather, product, what is local, product, reduce-scatter.

    ``kind``: "mlp" with ``tokens``, ``hidden``, ``intermediate`` and optionally ``gated`` (SwiGLU, the default); or
    "attention" with ``tokens``, ``hidden``, ``heads`` and optionally ``kv_heads``, ``head_dim``, ``sequences``, ``causal``. Sizes
    are those over all GPUs. All else is ``options`` as of :func:`hemiola.explore`.
    """
    if kind not in _SIZES:
        raise bad_input(f"'{kind}' is not a block", "there are: mlp, attention")
    sizes = {name: sizes_and_options.pop(name) for name in _SIZES[kind] if name in sizes_and_options}
    found = _core.explore_block(machine_of(machine)._core, kind, sizes, dtype, _options(sizes_and_options))
    return made(BlockExploration, found)

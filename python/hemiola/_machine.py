"""Machines and programs."""

from __future__ import annotations

import functools
import html
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union

from . import _core
from ._arguments import Settings, pairs
from ._errors import bad_input
from ._results import Diagnostic
from ._shown import Shown, made
from ._plan import Plan


@dataclass(frozen=True)
class Parameter:
    """A value of a machine, and who says so."""

    name: str  #: as ``settings`` take it: "gpu.l2.size", "link.nvlink4.bandwidth"
    value: str  #: with its unit
    source: str  #: a document or measurement; "assumed"; "": the machine's own file


class Machine:
    """GPUs, NICs, switches and links, with all their parameters. Immutable.

    ``name``: a shipped machine ("dgx-h100", "dgx-h100:4", "mesh:4x4"; :meth:`built_ins` has them) or a file
    (InfraGraph YAML or JSON, NCCL topology XML). ``settings``: parameters to change, as
    ``{"gpu.l2.size": "25MiB"}``; a unit is always written out. ``ranks``: the GPUs that take part, in the
    order of their ranks, or how many of the first. ``gpu``: device model of GPUs whose file names none.
    """

    def __init__(
        self,
        name: str,
        settings: Optional[Settings] = None,
        ranks: Union[int, Iterable[int], None] = None,
        gpu: str = "",
    ):
        numbers = _ranks(ranks)  # once: they may be an iterator
        self._core = _core.Machine.load(str(name), gpu, pairs(settings), numbers)
        self._made: Callable[[], Machine] = functools.partial(Machine, name, dict(settings or {}), numbers or None, gpu)

    @staticmethod
    def built_ins() -> dict[str, str]:
        """The shipped machines, each with one line."""
        return dict(_core.Machine.built_ins())

    @staticmethod
    def device_models() -> list[str]:
        """The shipped device models, for ``gpu``."""
        return _core.Machine.device_models()

    @classmethod
    def _of(cls, inner: _core.Machine, made: Callable[[], "Machine"]) -> "Machine":
        self = cls.__new__(cls)
        self._core, self._made = inner, made
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (self._made, ())  # loaded, and changed, again

    def with_settings(self, settings: Settings) -> "Machine":
        """The same with some parameters changed."""
        return self._of(self._core.with_settings(pairs(settings)), functools.partial(self.with_settings, dict(settings)))

    def with_ranks(self, ranks: Union[int, Iterable[int]]) -> "Machine":
        """The same with these of its GPUs only, numbered from 0 in this order, or with so many of the first."""
        numbers = _ranks(ranks)  # once: they may be an iterator
        return self._of(self._core.with_ranks(numbers), functools.partial(self.with_ranks, numbers))

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def description(self) -> str:
        return self._core.description

    @property
    def settings(self) -> dict[str, str]:
        """What was changed since it was loaded."""
        return dict(self._core.settings)

    @property
    def ranks(self) -> int:
        """How many GPUs take part."""
        return self._core.ranks

    @property
    def warnings(self) -> list[Diagnostic]:
        """What was assumed or left out when it was read."""
        return [made(Diagnostic, warning) for warning in self._core.warnings]

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Of the first rank's GPU, all link classes, the first switch and the first NIC, by name."""
        return {item[0]: Parameter(*item) for item in self._core.parameters()}

    def to_infragraph(self) -> str:
        """As InfraGraph YAML, which reads back to the same machine."""
        return self._core.to_infragraph()

    def show(self) -> str:
        """What ``hemiola machine show`` prints."""
        return self._core.show()

    def report(self, command: str = "") -> str:
        """A page for a browser, as ``hemiola machine show --graph html`` writes it."""
        return self._core.page(command)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.show())}</pre>"

    def __repr__(self) -> str:
        settings = f", settings={self.settings!r}" if self.settings else ""
        return f"<Machine {self.name!r}: {self.ranks} GPUs{settings}>"


class Job(Shown):
    """Several operations on one machine, at once or one after the other (docs/jobs.md). Immutable.

    ``source``: a file, or what a file has as a dictionary: ``{"launches": [{"name": "gather", "run":
    "all-gather/direct", "size": "4MiB"}, ...]}``. What is wrong in it is found when it is run.
    """

    def __init__(self, source: Union[str, Mapping[str, object]]):
        if isinstance(source, Mapping):
            self._core = _core.Job.from_text(json.dumps(source))
        else:
            self._core = _core.Job.load(str(source))

    @classmethod
    def from_text(cls, text: str, file: str = "<job>") -> "Job":
        """What a file has, YAML or JSON. ``file`` is how messages call it."""
        self = cls.__new__(cls)
        self._core = _core.Job.from_text(text, file)
        return self

    @property
    def text(self) -> str:
        """What its file has."""
        return self._core.text

    def __reduce__(self) -> tuple[Any, ...]:
        return (Job.from_text, (self.text, self._core.file))

    def __repr__(self) -> str:
        return f"<Job {self._core.file!r}>"


class Program(Shown):
    """What is to be run: a built-in, a file, or a plan with the parameters of its lowering. Immutable.

    ``source``: a built-in ("all-reduce/ring", "auto/nccl"; :meth:`built_ins` has them), a collective
    ("all-reduce": the fastest of its built-ins is taken), a file (MSCCL++ execution plan, MSCCL XML, chunk
    plan, job), a :class:`Plan` or a :class:`Job`. ``parameters``: of a built-in or a plan, as ``{"channels": 8}`` (docs/plans.md).
    """

    def __init__(self, source: Union[str, Plan, Job], parameters: Optional[Settings] = None):
        self._made = (source, dict(parameters or {}))
        if isinstance(source, Plan):
            self._core = _core.Program.of_plan(source._core, pairs(parameters))
        elif isinstance(source, Job):
            self._core = _core.Program.of_job(source._core)
        else:
            self._core = _core.Program.load(str(source), pairs(parameters))

    @staticmethod
    def built_ins() -> dict[str, str]:
        """The built-in programs, each with one line."""
        return dict(_core.Program.built_ins())

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def parameters(self) -> dict[str, str]:
        return dict(self._core.parameters)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Program, self._made)

    def __repr__(self) -> str:
        parameters = f", parameters={self.parameters!r}" if self.parameters else ""
        return f"<Program {self.name!r}{parameters}>"


def _ranks(ranks: Union[int, Iterable[int], None]) -> list[int]:
    if ranks is None:
        return []
    return list(range(ranks)) if isinstance(ranks, int) else list(ranks)


AnyMachine = Union[str, Machine]
AnyProgram = Union[str, Program, Plan, Job]


def machine_of(machine: Optional[AnyMachine], settings: Optional[Mapping[str, object]] = None) -> Machine:
    if machine is None:
        raise bad_input("no machine is given", "for example machine='dgx-h100'")
    found = machine if isinstance(machine, Machine) else Machine(machine)
    return found.with_settings(settings) if settings else found


def program_of(program: AnyProgram, parameters: Optional[Mapping[str, object]] = None) -> Program:
    if not isinstance(program, Program):
        return Program(program, parameters)
    if parameters:
        raise TypeError("parameters are a Program's own: Program(name, parameters)")
    return program

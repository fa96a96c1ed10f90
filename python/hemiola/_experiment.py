"""run, check and sweep."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, TypedDict, Union, overload

from . import _core
from ._arguments import Duration, Ranks, Settings, Size, femtoseconds, known_arguments, size_bytes, sizes_bytes
from ._errors import Error
from ._machine import AnyMachine, AnyProgram, Job, Machine, Program, machine_of, program_of
from ._results import Check, Outcome, Proof
from ._shown import made
from ._table import Row, Table
from ._plan import Plan

if TYPE_CHECKING:
    from typing_extensions import Unpack


class RunOptions(TypedDict, total=False):
    """Of :func:`hemiola.run` and :func:`hemiola.sweep`."""

    dtype: str
    op: str
    engine: str
    launch: str
    warmup: int
    iterations: int
    one_host: bool
    fold: bool
    threads: int
    round_size: bool
    check: bool
    skew: Sequence[Duration]


def _options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of an experiment, as the extension module takes them."""
    known_arguments(options, RunOptions.__annotations__)
    found = dict(options)
    skew: Optional[Sequence[Duration]] = found.pop("skew", None)
    if skew is not None:
        found["skew_fs"] = [femtoseconds(time) for time in skew]
    return found


class Laboratory:
    """Runs experiments, and keeps for the next ones what they have in common: bound programs, proofs.

    Results do not depend on it. ``hemiola.run``, ``check`` and ``sweep`` use one that lives as long as the
    module. May be used from several threads.
    """

    def __init__(self) -> None:
        self._core = _core.Laboratory()

    def __reduce__(self) -> tuple[Any, ...]:
        return (Laboratory, ())  # what it keeps is found again

    @overload
    def run(
        self, machine: AnyMachine, program: AnyProgram, size: Optional[Size] = None, *, sizes: None = None,
        ranks: Optional[Ranks] = None, settings: Optional[Settings] = None, params: Optional[Settings] = None,
        parameters: Optional[Settings] = None, **options: Unpack[RunOptions],
    ) -> Outcome: ...  # fmt: skip
    @overload
    def run(
        self, machine: AnyMachine, program: AnyProgram, size: None = None, *, sizes: Union[Size, Iterable[Size]],
        ranks: Optional[Ranks] = None, settings: Optional[Settings] = None, params: Optional[Settings] = None,
        parameters: Optional[Settings] = None, **options: Unpack[RunOptions],
    ) -> Table: ...  # fmt: skip

    def run(
        self, machine: AnyMachine, program: AnyProgram, size: Optional[Size] = None, *,
        sizes: Union[Size, Iterable[Size], None] = None, ranks: Optional[Ranks] = None,
        settings: Optional[Settings] = None, params: Optional[Settings] = None, parameters: Optional[Settings] = None,
        **options: Unpack[RunOptions],
    ) -> Union[Outcome, Table]:  # fmt: skip
        """Proves a program right, then times it on a machine and says where the time goes.

        ``machine``: a name, a file or a :class:`Machine`; ``settings`` change parameters of it, ``ranks`` takes its
        first GPUs, or those of a list. ``program``: a name, a file, a :class:`Program` or a :class:`Plan`; ``params``
        (or ``parameters``) are a built-in's or the lowering's. ``size``: what nccl-tests calls size, in bytes or as
        text ("64MiB"); by default the legal one nearest above 1 MiB. ``sizes``: several, a range of Python or
        "1KiB:1GiB:x2"; the result is a :class:`Table`. ``engine``: "line" (cache line by cache line), "sampled",
        "reference" (the same as line, slower) or "fluid" (an estimate). ``launch``: "stream" or "graph".
        ``check=False`` skips the proof. With ``iterations`` the time is the period over so many repetitions after
        ``warmup``; else it is one cold run. ``skew``: later starts of rank 0, 1, ... ("0ns", "5us"). ``threads``: of
        the line engine. ``fold=False`` simulates every rank. ``round_size``: takes the next size that the program can.

        Raises :class:`BadInput`; :class:`WrongProgram` and :class:`Deadlock` with a counterexample. Ctrl-C ends
        it; other Python threads go on meanwhile.
        """
        chosen = machine if ranks is None else machine_of(machine).with_ranks(ranks)
        given = {**(parameters or {}), **(params or {})} or None
        if sizes is None:
            return Outcome._of(self._core.run(self._experiment(chosen, program, size, settings, given, options)))
        if size is not None:
            raise TypeError("size is one, sizes are several: one of them")
        table = self.sweep(chosen, program, sizes, settings=settings, parameters=given, **options)
        for row in table.failures:
            if row.error is not None:
                raise row.error
        return table

    def check(
        self,
        program: AnyProgram,
        machine: Optional[AnyMachine] = None,
        size: Optional[Size] = None,
        *,
        parameters: Optional[Settings] = None,
        ranks: int = 0,
        dtype: str = "float",
        op: str = "sum",
        calls: int = 0,
        promise: Union[str, "os.PathLike[str]"] = "",
    ) -> Check:
        """Is a program complete, free of races and of waits that cannot end?

        A wrong program is a result, not an error: the :class:`Check` is false and has the counterexample.
        Without a machine all workgroups are taken as resident, and a built-in has ``ranks`` ranks (8). A plan is
        proven for all sizes, and with a machine also the program that it is lowered to. ``calls``: how often it is
        called in a row; 0: again and again. ``promise``: a file that states what a custom program leaves
        (docs/verify.md, promises).
        """
        core = None if machine is None else machine_of(machine)._core
        count = 0 if size is None else size_bytes(size)
        proofs, handle = self._core.check(
            program_of(program, parameters)._core, core, ranks, count, dtype, op, calls, os.fspath(promise)
        )
        return Check([made(Proof, {**items, "text": text}) for items, text in proofs], handle)

    def sweep(
        self,
        machine: Union[AnyMachine, Iterable[AnyMachine]],
        program: Union[AnyProgram, Iterable[AnyProgram]],
        size: Union[Size, Iterable[Size], None] = None,
        *,
        settings: Optional[Mapping[str, object]] = None,
        parameters: Optional[Mapping[str, object]] = None,
        jobs: int = 1,
        **options: Unpack[RunOptions],
    ) -> Table:
        """Runs all combinations of machines, settings, programs, parameters and sizes.

        ``machine``, ``program`` and ``size`` are one or several; a range of sizes is "1KiB:1GiB:x2". A value of
        ``settings`` or ``parameters`` may be a list: ``{"gpu.l2.size": ["25MiB", "50MiB"]}``. ``jobs``: how many
        run at a time. ``options``: those of :func:`run`. Machines vary slowest, sizes fastest. A point that cannot
        be run is a row with its error; what is wrong with a name or a parameter of a machine is raised.
        """
        machines = [machine_of(one) for one in _several(machine)]
        machines = [machine_of(one, chosen) for one in machines for chosen in _combinations(settings)]
        programs = [
            program_of(one, chosen) for one in _several(program) for chosen in _combinations(parameters)
        ]
        sizes: list[Optional[int]] = [None] if size is None else list(sizes_bytes(size))
        points = list(itertools.product(machines, programs, sizes))
        experiments = [self._experiment(a, b, c, None, None, options) for a, b, c in points]
        outcomes = self._core.run_all(experiments, jobs)
        return Table([_row(*point, outcome) for point, outcome in zip(points, outcomes)])

    @staticmethod
    def _experiment(
        machine: AnyMachine,
        program: AnyProgram,
        size: Optional[Size],
        settings: Optional[Settings],
        parameters: Optional[Settings],
        options: Mapping[str, Any],
    ) -> _core.Experiment:
        return _core.Experiment(
            machine_of(machine, settings)._core,
            program_of(program, parameters)._core,
            0 if size is None else size_bytes(size),
            **_options(options),
        )


def _several(value: Any) -> list[Any]:
    """Machines or programs: one, or several."""
    return [value] if isinstance(value, (str, Machine, Program, Plan, Job)) else list(value)


def _combinations(settings: Optional[Mapping[str, object]]) -> list[dict[str, object]]:
    """``{"a": [1, 2], "b": 3}``: a=1 b=3, a=2 b=3; the first name varies slowest."""
    names = list(settings or {})
    values = [_values(settings[name]) for name in names] if settings else []
    return [dict(zip(names, chosen)) for chosen in itertools.product(*values)]


def _values(value: object) -> list[object]:
    return [value] if isinstance(value, (str, int, float)) else list(value)  # type: ignore[call-overload]


def _row(machine: Machine, program: Program, size: Optional[int], outcome: Any) -> Row:
    error: Optional[Error] = None
    found: Optional[Outcome] = None
    if isinstance(outcome, _core.Outcome):
        found = Outcome._of(outcome)
    else:
        try:
            outcome()
        except Error as failure:
            error = failure
    return Row(machine.name, machine.settings, program.name, program.parameters, size, found, error)


_shared = Laboratory()
run, check, sweep = _shared.run, _shared.check, _shared.sweep

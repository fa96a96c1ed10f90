"""Hemiola: communication inside and between GPUs, proven and then timed, cache line by cache line.

>>> import hemiola
>>> outcome = hemiola.run("dgx-h100", "all-reduce/ring", "1MiB")
>>> outcome.checked
'full'

``run`` proves and times a program, ``check`` proves it, ``sweep`` makes a table of many runs, ``explore`` finds how to
overlap a product with its collective, ``compile`` puts a plan into a Triton kernel, ``Workload`` is a whole iteration of training or inference.
``tune``, ``record``, ``replay``, ``diff`` and ``validate`` are the command line's, with its options. ``Machine``,
``Program`` and ``Plan`` are what they take; ``PlanBuilder`` writes plans. Sizes are bytes or text ("64MiB");
times that come out are integers of femtoseconds (``_fs``), with ``_us`` beside them.
"""

from ._core import __version__
from ._command import Answer, diff, record, replay, tune, validate
from ._compile import Compiled, compile
from ._errors import BadInput, Deadlock, Error, InternalError, WrongProgram
from ._experiment import Laboratory, check, run, sweep
from ._explore import Exploration, Operator, Scenario, Schedule, Serial, SuiteExploration, explore, explore_suite
from ._machine import Job, Machine, Parameter, Program
from ._results import Cause, Check, Diagnostic, LaunchUse, LinkUse, Outcome, Proof, ProofStep
from ._table import Row, Table
from ._workload import Call, Iteration, Parallelism, PathShare, RankTime, Workload, run_iteration, search_parallelism
from .plan import Plan, PlanBuilder, Template, TemplateParameter, rank

__all__ = [
    "Answer", "BadInput", "Call", "Cause", "Check", "Compiled", "Deadlock", "Diagnostic", "Error", "Exploration", "InternalError", "Iteration", "Job", "Laboratory", "LaunchUse", "LinkUse", "Machine",
    "Operator", "Outcome", "Parallelism", "Parameter", "PathShare", "Plan", "PlanBuilder", "Program", "Proof", "ProofStep", "RankTime", "Row", "Scenario", "Schedule",
    "Serial", "SuiteExploration", "Table", "Template", "TemplateParameter", "Workload", "WrongProgram", "__version__", "check", "compile", "diff", "explore",
    "explore_suite", "rank", "record", "replay", "run", "run_iteration", "search_parallelism", "sweep", "tune", "validate",
]  # fmt: skip

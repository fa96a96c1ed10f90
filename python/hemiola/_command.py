"""tune, record, replay, diff and validate: the verbs of the command line. Their options are its options, their results what it prints and writes."""

from __future__ import annotations

import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from . import _core
from ._arguments import Ranks, Settings, Size, pairs, sizes_bytes
from ._colours import lines, stacked_bars
from ._errors import bad_input, from_failure
from ._machine import AnyMachine, Machine
from ._optional import pandas
from ._plan import Plan
from ._results import Diagnostic, Outcome
from ._shown import Shown
from ._table import Table

Path = Union[str, "os.PathLike[str]"]

_SAID = re.compile(r"(?:(?P<file>[^\n]*?)(?::(?P<line>\d+))?(?::(?P<column>\d+))?: )?(?P<severity>error|warning|note): (?P<message>.*)")
_DONE = (0, 5, 6)  # a limit that was asked for is exceeded, not proven: results all the same


@dataclass(frozen=True)
class Answer(Shown):
    """What a verb of the command line found. Print it to see what the verb prints."""

    command: list[str]  #: its words, as they can be typed (files of objects that were given are gone)
    data: dict[str, Any] = field(repr=False)  #: what ``--json`` writes
    rows: list[dict[str, Any]] = field(repr=False)  #: what ``--csv`` writes, numbers as numbers
    text: str = field(repr=False)  #: what it prints
    notices: list[Diagnostic] = field(repr=False)
    exit_code: int = 0  #: 5: a limit that was asked for is exceeded; 6: not proven, or not judged
    page: str = field(default="", repr=False)

    def __getitem__(self, key: str) -> Any:
        """A part of ``data``."""
        return self.data[key]

    def __str__(self) -> str:
        return self.text.rstrip("\n")

    def to_json(self) -> str:
        """What ``--json`` writes."""
        return json.dumps(self.data, indent=1)

    def to_pandas(self) -> Any:
        """A DataFrame of ``rows``."""
        return pandas().DataFrame(self.rows)

    def plot(self, y: str = "", x: str = "", axes: Any = None) -> Any:
        """A column of ``rows`` over another one; by default the first time over the first size, or a bar per row. Returns the axes."""
        wanted = y or self._column(r"_(fs|ns|us)$")
        if wanted not in self._numbers():
            raise ValueError(f"'{wanted}' is no column of numbers; there are {', '.join(self._numbers()) or 'none'}")
        over = x or self._column(r"^size")
        if over:
            return lines(axes, {wanted: sorted((row[over], row[wanted]) for row in self.rows)}, over, wanted, over.startswith("size"))
        names = [" ".join(value for value in row.values() if isinstance(value, str)) for row in self.rows]
        return stacked_bars(axes, names, [{wanted: row[wanted]} for row in self.rows], wanted, self.command[0])

    def _numbers(self) -> list[str]:
        return [name for name in (self.rows[0] if self.rows else {}) if all(isinstance(row.get(name), (int, float)) for row in self.rows)]

    def _column(self, pattern: str) -> str:
        return next((name for name in self._numbers() if re.search(pattern, name)), "")

    def report(self) -> str:
        """A page for a browser, as ``--report`` writes it. ValueError: this build has no pages, or :func:`record` gave it."""
        if not self.page:
            raise ValueError("this build has no pages" if not _core.has_pages() else f"'{self.command[0]}' wrote no page")
        return self.page


def _environment() -> dict[str, str]:
    """In which this package is the one that is imported."""
    here = str(pathlib.Path(__file__).resolve().parent.parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))}


def _value(value: object) -> str:
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    return ",".join(map(_value, value)) if isinstance(value, Iterable) else pairs({"": value})[0][1]


def _words(options: Mapping[str, object]) -> list[str]:
    """``{"budget": 20, "param": {"m": [1024, 4096]}, "isolate": True}`` as on the command line."""
    words = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            words.append(flag)
        elif isinstance(value, Mapping):
            words += [word for key, one in value.items() for word in (flag, f"{key}={_value(one)}")]
        elif value is not None and value is not False:
            words += [flag, _value(value)]
    return words


def _diagnostics(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for line in text.splitlines():
        said = _SAID.fullmatch(line)
        if said:
            place = {key: int(said[key] or 0) for key in ("line", "column")}
            found.append({"message": said["message"], "severity": said["severity"], "file": said["file"] or "", **place})
        elif found and line.startswith("  hint: "):
            found[-1]["hint"] = line[len("  hint: ") :]
    return found


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


class _Call:
    """One call: a folder for what objects are written to, and what comes out."""

    def __init__(self, folder: str):
        self._folder = pathlib.Path(folder)
        self._files = 0

    def file(self, given: Any) -> str:
        """A file with what is given: that of a path itself."""
        if isinstance(given, (str, os.PathLike)) and not (isinstance(given, str) and given.lstrip().startswith("{")):
            return os.fspath(given)
        self._files += 1
        is_machine = isinstance(given, Machine)
        path = self._folder / f"given_{self._files}.{'yaml' if is_machine else 'json'}"
        path.write_text(given if isinstance(given, str) else given.to_infragraph() if is_machine else given.to_json(), encoding="utf-8")
        return str(path)

    def machine(self, machine: Optional[AnyMachine], settings: Optional[Settings], ranks: Optional[Ranks]) -> dict[str, object]:
        return {
            "machine": None if machine is None else self.file(machine) if isinstance(machine, Machine) else machine,
            "set": dict(settings or {}), "ranks": ranks,
        }  # fmt: skip

    def run(self, verb: str, inputs: Sequence[str], options: Mapping[str, object], page: bool = True) -> Answer:
        writes = ("json", "csv", "report") if page and _core.has_pages() else ("json", "csv")
        outputs = {name: str(self._folder / f"made.{name}") for name in writes}
        words = [verb, *inputs, *_words(options)]
        done = subprocess.run([sys.executable, "-m", "hemiola", *words, *_words(outputs)], env=_environment(), capture_output=True, text=True, check=False)
        text, errors = (one.replace(f"{self._folder}/", "") for one in (done.stdout, done.stderr))
        said = _diagnostics(errors)
        if done.returncode not in _DONE:
            raise from_failure(done.returncode, [one for one in said if one["severity"] == "error"] or [{"message": errors.strip()}], None)
        made = {name: pathlib.Path(path).read_text(encoding="utf-8") if os.path.exists(path) else "" for name, path in outputs.items()}
        rows = [{key: _number(text) for key, text in row.items()} for row in csv.DictReader(line for line in made.get("csv", "").splitlines() if not line.startswith("#"))]
        return Answer([word.replace(f"{self._folder}/", "") for word in words], json.loads(made["json"] or "{}"), rows, text, [Diagnostic(**one) for one in said], done.returncode, made.get("report", ""))


def tune(
    kernel: Path, plan: str, machine: AnyMachine, *, params: Mapping[str, object], ranks: Optional[Ranks] = None,
    settings: Optional[Settings] = None, **options: object,
) -> Answer:  # fmt: skip
    """Which chunks, tiles and movers make a fused kernel fast: ``hemiola tune`` (docs/tune.md).

    ``kernel``: a file; ``plan``: a template, "ag-gemm/swizzle". ``params``: its sizes, each one or several, and what is tried of it.
    ``options`` are those of the command: ``budget=20``, ``method="random"``, ``output="tuned.py"``, ``constexpr={"BLOCK_K": 64}``.

    >>> hemiola.tune("gemm.py", "ag-gemm/swizzle", "dgx-h100", ranks=4, params={"m": [1024, 4096], "n": 2048, "k": 1024})
    """
    with tempfile.TemporaryDirectory(prefix="hemiola-") as folder:
        call = _Call(folder)
        return call.run("tune", [os.fspath(kernel)], {"plan": plan, "param": params, **call.machine(machine, settings, ranks), **options})


def record(
    machine: AnyMachine, program: Union[str, Plan], size: Size, file: Path, *,
    params: Optional[Settings] = None, ranks: Optional[Ranks] = None, settings: Optional[Settings] = None, **options: object,
) -> Answer:  # fmt: skip
    """Runs a program, and writes what arrived at a GPU when, for :func:`replay`: ``hemiola run --record FILE``. ``options``: ``record_rank=0``."""
    with tempfile.TemporaryDirectory(prefix="hemiola-") as folder:
        call = _Call(folder)
        asked = {"size": size, "param": dict(params or {}), "record": os.fspath(file)}
        return call.run("run", [call.file(program)], {**asked, **call.machine(machine, settings, ranks), **options}, page=False)


def replay(
    profile: Union[Path, Sequence[Path]], machine: AnyMachine, program: Union[str, Plan, None] = None, size: Optional[Size] = None, *,
    params: Optional[Settings] = None, ranks: Optional[Ranks] = None, settings: Optional[Mapping[str, object]] = None, **options: object,
) -> Answer:  # fmt: skip
    """What one GPU sees when others write to it on a timetable: ``hemiola replay`` (docs/replay.md).

    ``profile``: a recording (``hemiola run --record``), a profile or traces. ``settings`` with several values make a table:
    ``{"gpu.sync.wait": ["spin", "backoff", "monitor"]}``. ``options``: ``delay={"3": "5us"}``, ``isolate=True``, ``answers="live"``.
    """
    with tempfile.TemporaryDirectory(prefix="hemiola-") as folder:
        call = _Call(folder)
        profiles = [profile] if isinstance(profile, (str, os.PathLike)) else list(profile)
        asked = {"program": None if program is None else call.file(program), "size": size, "param": dict(params or {})}
        return call.run("replay", [os.fspath(one) for one in profiles], {**asked, **call.machine(machine, settings, ranks), **options})


def diff(before: Union[Path, Outcome, Table], after: Union[Path, Outcome, Table], **options: object) -> Answer:
    """Where the time between two results went: ``hemiola diff`` (docs/diff.md).

    Each is a file that ``run --json`` wrote, an :class:`Outcome` or a :class:`Table`. ``options``: ``top=5``, ``all=True``, ``fail_above="2%"``
    (``exit_code`` is 5 where a result takes longer).
    """
    with tempfile.TemporaryDirectory(prefix="hemiola-") as folder:
        call = _Call(folder)
        return call.run("diff", [call.file(before), call.file(after)], options)


def validate(
    table: Optional[Path] = None, machine: Optional[AnyMachine] = None, program: Union[str, Plan, None] = None, *,
    sizes: Union[Size, Iterable[Size], None] = None, params: Optional[Settings] = None, ranks: Optional[Ranks] = None,
    settings: Optional[Settings] = None, **options: object,
) -> Answer:  # fmt: skip
    """Simulated times beside measured ones: ``hemiola validate`` (docs/fidelity.md).

    ``table``: a CSV with ``size_bytes`` and ``time_us``, or the output of nccl-tests; None: the shipped suite, of which ``only="h100-vllm"``
    takes a part. ``options``: ``where={"num_gpus": 4}``, ``launch="graph"``, ``calibrate="two_gpus.csv"``.
    """
    if table is not None and not os.path.exists(table):
        raise bad_input("no such file", file=os.fspath(table))
    with tempfile.TemporaryDirectory(prefix="hemiola-") as folder:
        call = _Call(folder)
        asked = {"program": None if program is None else call.file(program), "size": None if sizes is None else sizes_bytes(sizes), "param": dict(params or {})}
        return call.run("validate", [] if table is None else [os.fspath(table)], {**asked, **call.machine(machine, settings, ranks), **options})

"""Exceptions: what goes wrong, with file, place and hint."""

from __future__ import annotations

import dataclasses
from typing import Any, Optional

from ._results import Diagnostic, Proof
from ._shown import made


class Error(Exception):
    """Whatever goes wrong in Hemiola.

    ``diagnostics``: a list of :class:`Diagnostic`, in the order in which they were found.
    ``exit_code``: what the command line would return.
    """

    exit_code = 1

    def __init__(self, diagnostics: list[Diagnostic], exit_code: Optional[int] = None):
        super().__init__("\n".join(str(diagnostic) for diagnostic in diagnostics))
        self.diagnostics = diagnostics
        if exit_code is not None:
            self.exit_code = exit_code

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.diagnostics, self.exit_code))

    @property
    def file(self) -> str:
        """Of the first error; '' where it is in none."""
        return self.diagnostics[0].file if self.diagnostics else ""

    @property
    def line(self) -> int:
        """Of the first error, from 1; 0 where it is not known."""
        return self.diagnostics[0].line if self.diagnostics else 0


class BadInput(Error):
    """An argument or a file that is wrong: a name, a parameter, a size, a unit (exit code 2)."""

    exit_code = 2


class WrongProgram(Error):
    """The program is wrong and was not simulated (exit code 3). ``proof`` has the counterexample."""

    exit_code = 3

    def __init__(self, diagnostics: list[Diagnostic], exit_code: Optional[int] = None, proof: Optional[Proof] = None):
        super().__init__(diagnostics, exit_code)
        self.proof = proof

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.diagnostics, self.exit_code, self.proof))

    def __str__(self) -> str:
        text = super().__str__()
        return text if self.proof is None else f"{text}\n{self.proof}"


class Deadlock(WrongProgram):
    """A wait that cannot end, found by a proof or, where ``proof`` is None, by a simulation (exit code 4)."""

    exit_code = 4


class InternalError(Error):
    """A mistake of Hemiola's own (exit code 1): please report it."""


_CLASSES: dict[int, type[Error]] = {2: BadInput, 3: WrongProgram, 4: Deadlock}


def _diagnostic(item: dict[str, Any]) -> Diagnostic:
    found = Diagnostic(**item)
    # What was said in no file: an argument.
    return dataclasses.replace(found, file="") if found.file == "<option>" else found


def from_failure(exit_code: int, diagnostics: list[dict[str, Any]], proof: Optional[dict[str, Any]]) -> Error:
    """The exception of what the extension module throws."""
    items = [_diagnostic(item) for item in diagnostics]
    kind = _CLASSES.get(exit_code, InternalError)
    if proof is not None and issubclass(kind, WrongProgram):
        return kind(items, exit_code, made(Proof, proof))
    return kind(items, exit_code)


def bad_input(message: str, hint: str = "", file: str = "", line: int = 0) -> BadInput:
    """One error of an argument."""
    return BadInput([Diagnostic(message=message, hint=hint, file=file, line=line)])


def moved(error: Error, places: dict[str, tuple[str, int]]) -> Error:
    """The same, where pointers into JSON that a script made are lines of the script."""
    items = []
    for item in error.diagnostics:
        pointer = item.pointer
        while pointer and pointer not in places:
            pointer = pointer.rpartition("/")[0]
        if pointer:
            file, line = places[pointer]
            item = dataclasses.replace(item, file=file, line=line, column=0)
        items.append(item)
    return type(error)(items, error.exit_code)

"""How results look in a notebook."""

from __future__ import annotations

import dataclasses
import functools
import html
import json
import typing
from collections.abc import Callable
from typing import Any, TypeVar

Plain = TypeVar("Plain")


@functools.cache
def _conversions(kind: Any) -> dict[str, Callable[[Any], Any]]:
    """Of the fields of a plain class that are not as the library gives them."""
    found: dict[str, Callable[[Any], Any]] = {}
    for name, hint in typing.get_type_hints(kind).items():
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        inner = arguments[0] if arguments else hint
        if origin is dict:
            found[name] = dict
        elif dataclasses.is_dataclass(inner) and origin is list:
            found[name] = lambda items, inner=inner: [made(inner, item) for item in items]
        elif dataclasses.is_dataclass(inner):
            found[name] = lambda item, inner=inner: None if item is None else made(inner, item)
    return found


def made(kind: Callable[..., Plain], items: dict[str, Any]) -> Plain:
    """A plain class from the library's dictionary, and those that stand in its fields."""
    changed = {name: convert(items[name]) for name, convert in _conversions(kind).items() if name in items}
    return kind(**{**items, **changed})


class Timed:
    """What takes a time."""

    time_fs: int

    @property
    def time_us(self) -> float:
        return self.time_fs / 1e9


class Shown:
    """In a notebook it is what ``print`` shows."""

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class Kept(Shown):
    """A result with a handle in the library's memory (``_core``). A pickle has what it prints and writes in its place."""

    _core: Any = None
    _texts: dict[str, str] = {}  # by what is asked for: "text", "json", ...

    def _kept(self) -> dict[str, str]:
        """What a pickle takes along beside plain fields."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_core": None, "_texts": self._kept() if self._core is not None else self._texts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _live(self) -> Any:
        if self._core is None:
            raise TypeError("this result came out of a file or another process, which have no page and no timeline: run it again")
        return self._core


def json_text(kept: list[str], command: str, without: tuple[str, ...] = ()) -> str:
    """What ``--json`` wrote of several, as one, of another command, and results without some of their fields."""
    roots = [json.loads(text) for text in kept]
    root = {**roots[-1], "command": command} if command else roots[-1]
    if "results" in root:
        results = [result for one in roots for result in one["results"]]
        root["results"] = [{name: value for name, value in result.items() if name not in without} for result in results]
    return json.dumps(root, indent=1) + "\n"


def html_table(head: list[str], rows: list[list[str]], left: int) -> str:
    """Columns behind the first ``left`` are numbers."""

    def line(cells: list[str], tag: str) -> str:
        styles = ["left" if i < left else "right" for i in range(len(cells))]
        return "<tr>" + "".join(f'<{tag} style="text-align:{style}">{html.escape(cell)}</{tag}>' for cell, style in zip(cells, styles)) + "</tr>"

    return f"<table><thead>{line(head, 'th')}</thead><tbody>{''.join(line(row, 'td') for row in rows)}</tbody></table>"

"""Sizes, times and settings, as people write them."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import SupportsIndex, Union

from . import _core
from ._errors import bad_input

Size = Union[int, str, SupportsIndex]  #: bytes (NumPy's integers too), or text with a unit: "64MiB"
Duration = str  #: text with a unit: "5us"
Settings = Mapping[str, object]
Ranks = Union[int, Iterable[int]]  #: the first so many GPUs, or these


def size_bytes(size: Size) -> int:
    """``"64MiB"`` in bytes; a number is bytes already."""
    if isinstance(size, bool) or not isinstance(size, (str, SupportsIndex)):
        raise TypeError(f"a size is bytes or text such as '64MiB', not {size!r}")
    text = str(size if isinstance(size, str) else operator.index(size)).strip()
    text = f"{text}B" if text.isdigit() else text
    count = _core.parse_bytes(text)
    if count is None or count <= 0:
        raise bad_input(f"'{size}' is not a size", "a size is 4096 or '64MiB'")
    return count


def sizes_bytes(sizes: Union[Size, Iterable[Size]]) -> list[int]:
    """A size, several, or a range ``"1KiB:1GiB:x2"`` (each twice the one before)."""
    if isinstance(sizes, SupportsIndex):
        return [size_bytes(sizes)]
    if not isinstance(sizes, str):
        return [size_bytes(size) for size in sizes]
    parts = str(sizes).split(":")
    if len(parts) == 1:
        return [size_bytes(size) for size in str(sizes).split(",")]
    factor = parts[2].removeprefix("x") if len(parts) == 3 else ""
    if not factor.isdigit() or int(factor) < 2:
        raise bad_input(f"'{sizes}' is not a range of sizes", "a range is '1KiB:1GiB:x2'")
    first, last = size_bytes(parts[0]), size_bytes(parts[1])
    found = []
    while first <= last:
        found.append(first)
        first *= int(factor)
    if not found:
        raise bad_input(f"'{sizes}' has no size in it")
    return found


def femtoseconds(time: Duration) -> int:
    """``"5us"`` in femtoseconds. A number without a unit is refused: it could be any of them."""
    found = _core.parse_time(time) if isinstance(time, str) else None
    if found is None:
        raise bad_input(f"{time!r} is not a time", "a time has a unit: '500ns', '5us'")
    return found


def pairs(settings: Union[Settings, None]) -> list[tuple[str, str]]:
    """Names and values as text: True is "true", 8 is "8"."""
    if settings is None:
        return []
    return [(str(name), _text(value)) for name, value in settings.items()]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

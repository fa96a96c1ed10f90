"""Packages that are used where they are there."""

from __future__ import annotations

import importlib
from typing import Any


def _need(name: str, what: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(f"{what} needs {package}, which is not installed: pip install {package}") from error


def pandas() -> Any:
    return _need("pandas", "to_pandas()")


def pyplot() -> Any:
    return _need("matplotlib.pyplot", "plot()")

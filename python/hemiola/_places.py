"""Which line of a script it was."""

from __future__ import annotations

import os
import sys

Place = tuple[str, int]  #: file and line

_OWN = os.path.dirname(os.path.abspath(__file__))


def caller() -> Place:
    """The innermost line outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_OWN):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno

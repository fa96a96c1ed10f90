"""`python -m hemiola`: the command line."""

import sys

from . import _core

sys.exit(_core.command_line(["hemiola", *sys.argv[1:]]))

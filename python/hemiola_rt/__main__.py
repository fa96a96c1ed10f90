"""python -m hemiola_rt FILE: a schedule on processes of this machine (see _check.py)."""

import sys

from ._check import run_processes

sys.exit(run_processes(sys.argv[1:]))

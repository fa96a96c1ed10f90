"""python -m hemiola_rt FILE: a schedule on processes of this machine (see _check.py); python -m hemiola_rt doctor: what this machine has."""

import sys

if sys.argv[1:] == ["doctor"]:
    from . import _doctor
    sys.exit(_doctor.run())

from ._check import run  # noqa: E402

sys.exit(run(sys.argv[1:]))

"""What schedules that `hemiola compile --plan` wrote run on. Needs PyTorch and nothing else.

    rt = hemiola_rt.connect()              # a rank of the world that torchrun started: GPUs
    t = overlap.setup(rt)                  # overlap.py: what the compiler wrote
    c = overlap.run(rt, t, a=mine, b=weights)["c"]

    schedule = hemiola_rt.load_plan("plan.json")      # the same of a plan file, for another shape say, without a compiler
    t = schedule.setup(rt)
    schedule.run(rt, t, a=mine, b=weights)
    schedule = hemiola_rt.load_plan("plan.json", kernel=fused)   # the same with the kernel of fused.py, which the compiler wrote

`python -m hemiola_rt overlap.py` runs a schedule on processes of this machine and compares it with its reference. The interface is in
`_runtime.py`; back ends are `_symmetric.py` (GPUs), `_shared.py` (processes) and `_interleaved.py` (tests: one process, any order).
"""

import os
import tempfile

from ._check import Mismatch, check, load_file, main
from ._interleaved import InterleavedWorld
from ._kernel import Kernel
from ._plan import load_plan
from ._products import around
from ._runtime import Runtime, Signal, Signals, Stream
from ._shared import SharedRuntime
from ._symmetric import SymmetricRuntime
from ._work import TileAxis, Work, has_bulk_stores

__all__ = ["InterleavedWorld", "Kernel", "Mismatch", "Runtime", "SharedRuntime", "Signal", "Signals", "Stream", "SymmetricRuntime", "TileAxis",
           "Work", "around", "check", "connect", "has_bulk_stores", "load_file", "load_plan",
           "main"]


def connect():
    """This process's rank of the world that torchrun started: a GPU each; without any, processes that share memory, for a try.

    RuntimeError: torchrun did not start this process, or PyTorch sees GPUs and is older than 2.8.
    """
    import torch
    missing = [name for name in ("RANK", "WORLD_SIZE", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise RuntimeError(f"{', '.join(missing)} not set: start this with torchrun, or try it with 'python -m hemiola_rt FILE'")
    if torch.cuda.is_available():
        return SymmetricRuntime()
    torch.set_num_threads(1)
    # All ranks of a node have the same parent.
    folder = os.path.join("/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir(),
                          f"hemiola-{os.getppid()}-{os.environ['MASTER_PORT']}")
    os.makedirs(folder, exist_ok=True)
    return SharedRuntime(folder, int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), owns_folder=True)

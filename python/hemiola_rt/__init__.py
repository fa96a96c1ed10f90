"""What schedules that `hemiola compile --plan` wrote run on. Needs PyTorch and nothing else.

    rt = hemiola_rt.connect()              # a rank of the world that torchrun started: GPUs
    t = overlap.setup(rt)                  # overlap.py: what the compiler wrote
    c = overlap.run(rt, t, a=mine, b=weights)["c"]

`python -m hemiola_rt overlap.py` runs a schedule on processes of this machine and compares it with its reference. The interface is in
`_runtime.py`; back ends are `_symmetric.py` (GPUs), `_shared.py` (processes) and `_virtual.py` (all ranks on one GPU).
"""

import importlib
import os
import sys
import tempfile

# Looked up when they are asked for, so that `python -m hemiola_rt doctor` runs where there is no PyTorch.
_MODULE_OF = {"Mismatch": "_check", "check": "_check", "load_file": "_check", "main": "_check", "Kernel": "_work", "around": "_products",
              "Runtime": "_runtime", "Signal": "_runtime", "Signals": "_runtime", "Stream": "_runtime", "SharedRuntime": "_shared",
              "SymmetricRuntime": "_symmetric", "TileAxis": "_work", "Work": "_work", "has_bulk_stores": "_work"}

__all__ = [*_MODULE_OF, "connect"]


def __getattr__(name):
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'hemiola_rt' has no attribute '{name}'")
    return getattr(importlib.import_module(f".{_MODULE_OF[name]}", __name__), name)


def connect():
    """This process's rank of the world that torchrun started: a GPU each; without any, processes that share memory, for a try.

    RuntimeError: torchrun did not start this process, or PyTorch sees GPUs and is older than 2.8.
    """
    import torch

    from . import _doctor
    from ._shared import SharedRuntime
    from ._symmetric import SymmetricRuntime
    missing = [name for name in ("RANK", "WORLD_SIZE", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise RuntimeError(f"{', '.join(missing)} not set: start this with torchrun, or try it with 'python -m hemiola_rt FILE'")
    if torch.cuda.is_available():
        _doctor.require_links(torch)
        rt = SymmetricRuntime()
        if rt.rank == 0:
            print(_doctor.summary(torch, rt.ranks), file=sys.stderr, flush=True)
        return rt
    torch.set_num_threads(1)
    # All ranks of a node have the same parent.
    folder = os.path.join("/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir(),
                          f"hemiola-{os.getppid()}-{os.environ['MASTER_PORT']}")
    os.makedirs(folder, exist_ok=True)
    return SharedRuntime(folder, int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), owns_folder=True)

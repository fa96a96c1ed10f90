"""What of a schedule's needs this machine has: `python -m hemiola_rt doctor`, and what a rank on GPUs says and refuses when it starts."""

import collections
import ctypes
import os
import sys

Finding = collections.namedtuple("Finding", "name is_there text hint")  # is_there: None where a schedule does without

LEAST_TORCH, LEAST_TRITON, NEWEST_TRITON = (2, 8), (3, 3), (3, 9)


def version_of(text):
    """(2, 8) of "2.8.0+cu128"."""
    parts = []
    for part in text.split("+")[0].split(".")[:2]:
        digits = "".join(c for c in part if c.isdigit())
        parts.append(int(digits or 0))
    return tuple(parts)


def unreached(torch, gpus):
    """Pairs of GPUs of which the first does not reach the memory of the second."""
    return [(one, other) for one in range(gpus) for other in range(gpus)
            if one != other and not torch.cuda.can_device_access_peer(one, other)]


def has_multicast(torch):
    """Whether the switch between the GPUs multicasts and adds up, as PyTorch says."""
    try:
        from torch._C._autograd import DeviceType
        from torch._C._distributed_c10d import _SymmetricMemory
        return bool(_SymmetricMemory.has_multicast_support(DeviceType.CUDA, 0))
    except (ImportError, AttributeError, RuntimeError):
        return False


def _triton():
    try:
        import triton
    except ImportError:
        return Finding("Triton", False, "is not installed", "pip install triton, which kernels need; plans without a kernel do without")
    version = version_of(triton.__version__)
    if version < LEAST_TRITON:
        return Finding("Triton", False, triton.__version__, f"{LEAST_TRITON[0]}.{LEAST_TRITON[1]} or newer")
    known = version <= NEWEST_TRITON
    return Finding("Triton", True, triton.__version__, "" if known else f"newer than {NEWEST_TRITON[0]}.{NEWEST_TRITON[1]}, the last one that was tried")


def _driver(is_rocm):
    name = "libamdhip64.so" if is_rocm else "libcuda.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError:
        return Finding("stream waits", False, f"{name} is not found", "the GPU's driver brings it")
    call = "hipStreamWaitValue32" if is_rocm else "cuStreamWaitValue32_v2"
    if not hasattr(library, call):
        return Finding("stream waits", False, f"{name} has no {call}", "a newer driver")
    return Finding("stream waits", True, f"{call} of {name}", "")


def _gpus(torch):
    gpus = torch.cuda.device_count()
    kinds = collections.Counter(torch.cuda.get_device_name(number) for number in range(gpus))
    yield Finding("GPUs", True, ", ".join(f"{count} x {name}" for name, count in kinds.items()), "")
    is_rocm = torch.version.hip is not None
    try:
        import torch.distributed._symmetric_memory  # noqa: F401
        is_new = is_rocm or version_of(torch.__version__) >= LEAST_TORCH
    except ImportError:
        is_new = False
    yield Finding("symmetric memory", is_new, "of PyTorch" if is_new else f"PyTorch {torch.__version__} is too old",
                  "" if is_new else f"PyTorch {LEAST_TORCH[0]}.{LEAST_TORCH[1]} or newer")
    apart = unreached(torch, gpus)
    if gpus == 1:
        yield Finding("links", None, "one GPU only", "'python -m hemiola_rt FILE --virtual' runs all ranks on it")
    else:
        yield Finding("links", not apart, "all GPUs reach each other's memory" if not apart else f"GPU {apart[0][0]} does not reach the memory of GPU {apart[0][1]}",
                      "" if not apart else "GPUs of one node with NVLink, xGMI or peer access by PCIe; CUDA_VISIBLE_DEVICES chooses them")
        yield Finding("multicast", has_multicast(torch) or None, "by the switch" if has_multicast(torch) else "not here",
                      "" if has_multicast(torch) else "plans of the switch (gemm-ar/nvls) need it, others do not")
    yield _driver(is_rocm)


def findings():
    """Findings about this machine, in the order in which they matter."""
    try:
        import torch
    except ImportError:
        yield Finding("PyTorch", False, "is not installed", "pip install torch: 1.13 or newer on CPUs, 2.8 or newer on GPUs")
        return
    yield Finding("PyTorch", True, torch.__version__ + (f", CUDA {torch.version.cuda}" if torch.version.cuda else ", ROCm" if torch.version.hip else ", for CPUs"), "")
    yield _triton()
    if torch.cuda.is_available():
        yield from _gpus(torch)
    else:
        yield Finding("GPUs", None, "PyTorch sees none", "schedules run on processes of this machine, kernels in Triton's interpreter (TRITON_INTERPRET=1)")
    folder = "/dev/shm"
    yield Finding("shared memory", os.path.isdir(folder) and os.access(folder, os.W_OK) or None,
                  folder if os.path.isdir(folder) else "no /dev/shm: processes share files of the temporary folder", "")


def summary(torch, ranks):
    """One line of what ranks on GPUs run on."""
    links = "one GPU" if torch.cuda.device_count() < 2 else "multicast by the switch" if has_multicast(torch) else "no multicast"
    triton = _triton()
    platform = f"ROCm {torch.version.hip}" if torch.version.hip else f"CUDA {torch.version.cuda}"
    return f"hemiola_rt: {ranks} ranks on {torch.cuda.get_device_name()}, symmetric memory, {links}; PyTorch {torch.__version__}, {platform}, Triton {triton.text}"


def require_links(torch):
    """RuntimeError: GPUs that this node's ranks would use do not reach each other."""
    apart = unreached(torch, min(torch.cuda.device_count(), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))))
    if apart:
        raise RuntimeError(f"GPU {apart[0][0]} does not reach the memory of GPU {apart[0][1]}, which symmetric memory needs: "
                           "'python -m hemiola_rt doctor' says what this machine has")


def run(out=sys.stdout):
    """Prints the findings; the exit code: 0, or 1 where nothing can run."""
    missing = False
    for one in findings():
        word = {True: "ok", False: "MISSING", None: "-"}[one.is_there]
        print(f"{word:8} {one.name}: {one.text}{'; ' + one.hint if one.hint else ''}", file=out)
        missing = missing or one.is_there is False
    return int(missing)

"""The values are read by atomics, which pass the caches."""
import triton
import triton.language as tl


@triton.jit
def look_back(x, values, flags, out, epoch, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    total = tl.load(x + pid * BLOCK + at)
    tl.store(values + pid * BLOCK + at, total)
    tl.debug_barrier()
    tl.atomic_xchg(flags + pid, epoch, sem="release", scope="gpu")
    for before in range(0, pid):
        while tl.atomic_add(flags + before, 0, sem="acquire", scope="gpu") < epoch:
            pass
        tl.debug_barrier()
        total += tl.atomic_add(values + before * BLOCK + at, 0.0, sem="relaxed", scope="gpu")
    tl.store(out + pid * BLOCK + at, total)

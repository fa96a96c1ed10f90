"""A lock is set by one thread when others have not stored yet."""
import triton
import triton.language as tl


@triton.jit
def stream_k(a, partials, locks, out, epoch, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(a + pid * BLOCK + at)
    if pid != 0:
        tl.store(partials + pid * BLOCK + at, value)
        tl.atomic_xchg(locks + pid, epoch, sem="release", scope="gpu")  # wrong: no barrier
    else:
        for other in range(1, tl.num_programs(0)):
            while tl.atomic_add(locks + other, 0, sem="acquire", scope="gpu") < epoch:
                pass
            value += tl.load(partials + other * BLOCK + at)
        tl.store(out + at, value)

"""Each program zeroes its own lock first: an owner may see the 1 of the launch before."""
import triton
import triton.language as tl


@triton.jit
def stream_k(a, partials, locks, out, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    tl.atomic_xchg(locks + pid, 0, sem="release", scope="gpu")  # wrong: others may look before
    value = tl.load(a + pid * BLOCK + at)
    if pid > 0:
        tl.store(partials + pid * BLOCK + at, value)
        tl.debug_barrier()
        tl.atomic_xchg(locks + pid, 1, sem="release", scope="gpu")
    else:
        for other in range(1, tl.num_programs(0)):
            while tl.atomic_cas(locks + other, 1, 1, sem="acquire", scope="gpu") != 1:
                pass
            tl.debug_barrier()
            value += tl.load(partials + other * BLOCK + at)
        tl.store(out + at, value)

"""Even calls take the short way and odd ones the long one; both count finished programs in one word."""
import triton
import triton.language as tl


@triton.jit
def either(x, part, count, total, flag, y, call, n, B: tl.constexpr):
    pid = tl.program_id(0)
    o = tl.arange(0, B)
    tl.store(part + pid * B + o, tl.load(x + pid * B + o))
    tl.debug_barrier()
    seen = tl.atomic_add(count, 1, sem="acq_rel", scope="gpu")
    if seen == n - 1:
        if call % 2 == 0:
            tl.atomic_xchg(count, 0, sem="relaxed", scope="gpu")
        tl.atomic_xchg(flag, call + 1, sem="release", scope="gpu")
    while tl.atomic_add(flag, 0, sem="acquire", scope="gpu") < call + 1:  # wrong: the count was left as it was
        pass
    tl.debug_barrier()
    tl.store(y + pid * B + o, tl.load(part + ((pid + 1) % n) * B + o))


# call counts launches from 0, n = number of programs, all of which are resident

"""A tile's flag is awaited by two consumers (programs 2k and 2k+1); the first of them sets it back."""
import triton
import triton.language as tl


@triton.jit
def fan_out(x, mid, y, flag, acks, B: tl.constexpr):
    pid = tl.program_id(0)
    half = tl.num_programs(0) // 2
    o = tl.arange(0, B)
    if pid == 0:
        tl.store(mid + o, tl.load(x + o) + 1)
        tl.debug_barrier()
        tl.atomic_xchg(flag, 1, sem="release", scope="gpu")
    else:
        while tl.atomic_add(flag, 0, sem="acquire", scope="gpu") == 0:
            pass
        tl.debug_barrier()
        tl.store(y + pid * B + o, tl.load(mid + o))
        tl.debug_barrier()
        if pid == 1:
            tl.atomic_xchg(flag, 0, sem="release", scope="gpu")  # wrong: others have not seen it

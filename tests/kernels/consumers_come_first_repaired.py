"""One launch makes and uses tiles. The grid has more programs than fit on the GPU at a time."""
import triton
import triton.language as tl


@triton.jit
def make_and_use(x, mid, done, y, epoch, N: tl.constexpr, B: tl.constexpr):
    pid = tl.program_id(0)
    half = tl.num_programs(0) // 2
    o = tl.arange(0, B)
    if pid < half:
        t = pid
        tl.store(mid + t * B + o, tl.load(x + t * B + o) + 1)
        tl.debug_barrier()
        tl.atomic_xchg(done + t, epoch, sem="release", scope="gpu")
    else:
        t = pid - half
        while tl.atomic_add(done + t, 0, sem="acquire", scope="gpu") != epoch:
            pass
        tl.debug_barrier()
        tl.store(y + t * B + o, tl.load(mid + t * B + o))

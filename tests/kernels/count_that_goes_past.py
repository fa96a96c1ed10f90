"""Two stages in one kernel with a barrier of the whole grid by a counter that grows."""
import triton
import triton.language as tl


@triton.jit
def sync(cnt, target):
    tl.debug_barrier()
    tl.atomic_add(cnt, 1, sem="acq_rel", scope="gpu")
    while tl.atomic_add(cnt, 0, sem="acquire", scope="gpu") != target:  # wrong: the count may have gone past it
        pass
    tl.debug_barrier()


@triton.jit
def two_stages(x, mid, y, cnt, seq, n, B: tl.constexpr):
    pid = tl.program_id(0)
    g = tl.num_programs(0)
    o = pid * B + tl.arange(0, B)
    base = (seq - 1) * 2 * g
    tl.store(mid + o, tl.load(x + o) * 2)
    sync(cnt, base + g)
    other = (pid + 1) % g
    tl.store(y + o, tl.load(mid + other * B + tl.arange(0, B)))
    sync(cnt, base + 2 * g)

"""The last program of a grid barrier sets the word back for the next use: others may not have seen it."""
import triton
import triton.language as tl


@triton.jit
def grid_barrier(counter, go, x, y, epoch, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    tl.store(x + pid * BLOCK + at, 1.0)
    tl.debug_barrier()
    before = tl.atomic_add(counter, 1, sem="acq_rel", scope="gpu")
    if before == tl.num_programs(0) - 1:
        tl.atomic_xchg(go, 1, sem="release", scope="gpu")
    while tl.atomic_add(go, 0, sem="acquire", scope="gpu") != 1:
        pass
    tl.debug_barrier()
    tl.store(y + pid * BLOCK + at, tl.load(x + (tl.num_programs(0) - 1 - pid) * BLOCK + at))
    if before == tl.num_programs(0) - 1:
        tl.atomic_xchg(counter, 0, sem="relaxed", scope="gpu")
        tl.debug_barrier()
        tl.atomic_xchg(go, 0, sem="release", scope="gpu")  # wrong: others may not have seen it

"""It polls by an acquiring atomic."""
import triton
import triton.language as tl


@triton.jit
def meet(counter, x, y, epoch, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    count = tl.num_programs(0)
    tl.store(x + pid * BLOCK + at, 1.0)
    tl.debug_barrier()
    tl.atomic_add(counter, 1, sem="release", scope="gpu")
    while tl.atomic_add(counter, 0, sem="acquire", scope="gpu") < epoch * count:
        pass
    tl.debug_barrier()
    tl.store(y + pid * BLOCK + at, tl.load(x + (count - 1 - pid) * BLOCK + at))
    tl.debug_barrier()
    tl.atomic_add(counter + 1, 1, sem="release", scope="gpu")
    while tl.atomic_add(counter + 1, 0, sem="acquire", scope="gpu") < epoch * count:
        pass

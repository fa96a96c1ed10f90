"""Each lane tells one rank, and there are 2 lanes whatever the number of ranks."""
import triton
import triton.language as tl


@triton.jit
def meet_by_lanes(pads, x, y, rank, world, epoch, BLOCK: tl.constexpr):
    lanes = tl.arange(0, 2)
    far = tl.load(pads + lanes, mask=lanes < world).to(tl.pointer_type(tl.int32))
    tl.store(x + tl.arange(0, BLOCK), 1.0)
    tl.debug_barrier()
    tl.atomic_xchg(far + rank, epoch, mask=lanes < world, sem="release", scope="sys")  # wrong: not all are told
    near = tl.load(pads + rank).to(tl.pointer_type(tl.int32))
    for peer in range(world):
        while tl.atomic_add(near + peer, 0, sem="acquire", scope="sys") < epoch:
            pass
    tl.debug_barrier()
    tl.store(y + tl.arange(0, BLOCK), tl.load(x + tl.arange(0, BLOCK)))

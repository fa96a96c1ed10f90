"""Signals by lanes with a mask, waits in a loop."""
import triton
import triton.language as tl


@triton.jit
def sum_all(bufs, sig, dst, rank, world: tl.constexpr, epoch, B: tl.constexpr):
    o = tl.arange(0, B)
    lanes = tl.arange(0, 16)
    tl.debug_barrier()
    theirs = tl.load(sig + lanes, mask=lanes < world).to(tl.pointer_type(tl.int32))
    tl.atomic_xchg(theirs + rank, 2 * epoch - 1, mask=lanes < world, sem="release", scope="sys")
    own = tl.load(sig + rank).to(tl.pointer_type(tl.int32))
    for i in range(world):
        while tl.atomic_add(own + i, 0, sem="acquire", scope="sys") < 2 * epoch - 1:
            pass
    tl.debug_barrier()
    s = tl.zeros((B,), tl.float32)
    for i in range(world):
        s += tl.load(tl.load(bufs + i).to(tl.pointer_type(tl.float32)) + o)
    tl.store(dst + o, s)
    tl.debug_barrier()
    tl.atomic_xchg(theirs + rank, 2 * epoch, mask=lanes < world, sem="release", scope="sys")
    for i in range(world):
        while tl.atomic_add(own + i, 0, sem="acquire", scope="sys") < 2 * epoch:
            pass

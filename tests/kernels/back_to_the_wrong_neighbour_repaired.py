"""Ring reduce: each rank gets the partial sum from its left neighbour and hands it to the right one."""
import triton
import triton.language as tl


@triton.jit
def ring_reduce(x, inbox, arrived, free_, far_inbox, far_arrived, back_free, out, rank, world: tl.constexpr, era, B: tl.constexpr):
    o = tl.arange(0, B)
    right = (rank + 1) % world
    left = (rank - 1 + world) % world
    acc = tl.load(x + rank * B + o)
    for s in range(world - 1):
        seqno = (era - 1) * (world - 1) + s + 1
        while tl.atomic_add(free_, 0, sem="acquire", scope="sys") < seqno - 1:
            pass
        tl.debug_barrier()
        dst = tl.load(far_inbox + right).to(tl.pointer_type(tl.float32))
        tl.store(dst + o, acc)
        tl.debug_barrier()
        fa = tl.load(far_arrived + right).to(tl.pointer_type(tl.int32))
        tl.atomic_xchg(fa, seqno, sem="release", scope="sys")
        while tl.atomic_add(arrived, 0, sem="acquire", scope="sys") < seqno:
            pass
        tl.debug_barrier()
        acc = tl.load(inbox + o) + tl.load(x + ((rank + world - s - 1) % world) * B + o)
        tl.debug_barrier()
        bf = tl.load(back_free + left).to(tl.pointer_type(tl.int32))
        tl.atomic_xchg(bf, seqno, sem="release", scope="sys")
    tl.store(out + o, acc)

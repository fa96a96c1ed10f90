"""Rank 0 streams blocks to rank 1 through two slots; acks come back as counts."""
import triton
import triton.language as tl


@triton.jit
def stream(src, slots_of, ready_of, acks_of, dst, rank, base, BLOCKS: tl.constexpr, B: tl.constexpr):
    o = tl.arange(0, B)
    peer = 1 - rank
    if rank == 0:
        far = tl.load(slots_of + peer).to(tl.pointer_type(tl.float32))
        far_ready = tl.load(ready_of + peer).to(tl.pointer_type(tl.int32))
        acks = tl.load(acks_of + rank).to(tl.pointer_type(tl.int32))
        for k in range(BLOCKS):
            while tl.atomic_add(acks, 0, sem="acquire", scope="sys") < base + k - 2:
                pass
            tl.debug_barrier()
            tl.store(far + (k % 2) * B + o, tl.load(src + k * B + o))  # wrong: the slot may not have been read
            tl.debug_barrier()
            tl.atomic_xchg(far_ready, base + k + 1, sem="release", scope="sys")
    else:
        box = tl.load(slots_of + rank).to(tl.pointer_type(tl.float32))
        ready = tl.load(ready_of + rank).to(tl.pointer_type(tl.int32))
        far_acks = tl.load(acks_of + peer).to(tl.pointer_type(tl.int32))
        for k in range(BLOCKS):
            while tl.atomic_add(ready, 0, sem="acquire", scope="sys") < base + k + 1:
                pass
            tl.debug_barrier()
            tl.store(dst + k * B + o, tl.load(box + (k % 2) * B + o))
            tl.debug_barrier()
            tl.atomic_xchg(far_acks, base + k + 1, sem="release", scope="sys")


def go(sym, src, dst, calls):
    for call in range(calls):
        stream[(1,)](src, sym.slots, sym.ready, sym.acks, dst, sym.rank, call * 8, BLOCKS=8, B=1024)

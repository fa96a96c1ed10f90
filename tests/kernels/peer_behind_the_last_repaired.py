"""Shift to the next rank: the number of the peer and the words of a table of ranks."""
import triton
import triton.language as tl


@triton.jit
def shift(x, boxes, words, y, rank, world: tl.constexpr, seq, B: tl.constexpr):
    p = tl.program_id(0)
    n = tl.num_programs(0)
    o = p * B + tl.arange(0, B)
    to = (rank + 1) % world
    b = tl.load(boxes + to).to(tl.pointer_type(tl.float32))
    w = tl.load(words + to).to(tl.pointer_type(tl.int32))
    tl.store(b + (seq % world) * n * B + o, tl.load(x + o))
    tl.debug_barrier()
    tl.atomic_xchg(w + p, seq, sem="release", scope="sys")
    mw = tl.load(words + rank).to(tl.pointer_type(tl.int32))
    while tl.atomic_add(mw + p, 0, sem="acquire", scope="sys") < seq:
        pass
    tl.debug_barrier()
    mb = tl.load(boxes + rank).to(tl.pointer_type(tl.float32))
    tl.store(y + o, tl.load(mb + (seq % world) * n * B + o))

"""Arrivals as bits of one word: each rank sets its bit at the peers."""
import triton
import triton.language as tl


@triton.jit
def bits(x, slab, mask_word, slabs, words, y, me, n: tl.constexpr, B: tl.constexpr):
    o = tl.arange(0, B)
    for i in range(n):
        s = tl.load(slabs + i).to(tl.pointer_type(tl.float32))
        tl.store(s + me * B + o, tl.load(x + i * B + o))
        tl.debug_barrier()
        w = tl.load(words + i).to(tl.pointer_type(tl.int32))
        tl.atomic_xchg(w, 1 << me, sem="release", scope="sys")  # wrong: other ranks set bits there
    while tl.atomic_or(mask_word, 0, sem="acquire", scope="sys") != (1 << n) - 1:
        pass
    tl.debug_barrier()
    acc = tl.zeros((B,), tl.float32)
    for i in range(n):
        acc += tl.load(slab + i * B + o)
    tl.store(y + o, acc)


def call(x, slab, word, slabs, words, y, me, n, group):
    word.zero_()
    group.barrier()
    bits[(1,)](x, slab, word, slabs, words, y, me, n, B=64)
    group.barrier()

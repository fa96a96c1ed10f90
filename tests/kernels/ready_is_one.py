"""All-reduce that is called every step; `ready` is the constant 1 and nobody sets it back between calls."""
import triton
import triton.language as tl


@triton.jit
def one_shot(x, inbox, ready, inbox_of, ready_of, out, rank, world: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    mine = tl.load(x + at)
    for peer in range(world):
        there = tl.load(inbox_of + peer).to(tl.pointer_type(tl.float32))
        tl.store(there + (rank) * 64 + at, mine)
        tl.debug_barrier()
        word = tl.load(ready_of + peer).to(tl.pointer_type(tl.int32))
        tl.atomic_xchg(word + rank * 64 + pid, 1, sem="release", scope="sys")
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for peer in range(world):
        while tl.atomic_add(ready + peer * 64 + pid, 0, sem="acquire", scope="sys") != 1:  # wrong: the 1 of the call before
            pass
        tl.debug_barrier()
        total += tl.load(inbox + (peer) * 64 + at)
    tl.store(out + at, total)

"""All-reduce that is called every step; words carry the number of the call, and two inboxes take turns."""
import triton
import triton.language as tl


@triton.jit
def one_shot(x, inbox, ready, inbox_of, ready_of, out, rank, world: tl.constexpr, epoch, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    mine = tl.load(x + at)
    for peer in range(world):
        there = tl.load(inbox_of + peer).to(tl.pointer_type(tl.float32))
        tl.store(there + ((epoch % 2) * world + rank) * 64 + at, mine)
        tl.debug_barrier()
        word = tl.load(ready_of + peer).to(tl.pointer_type(tl.int32))
        tl.atomic_xchg(word + rank * 64 + pid, epoch, sem="release", scope="sys")
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for peer in range(world):
        while tl.atomic_add(ready + peer * 64 + pid, 0, sem="acquire", scope="sys") < epoch:
            pass
        tl.debug_barrier()
        total += tl.load(inbox + ((epoch % 2) * world + peer) * 64 + at)
    tl.store(out + at, total)

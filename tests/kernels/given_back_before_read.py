"""The consumer sets the flag back before it has read the tile."""
import triton
import triton.language as tl


@triton.jit
def stream(x, box, flag, peer_box, peer_flag, y, STEPS: tl.constexpr, B: tl.constexpr):
    o = tl.arange(0, B)
    for i in range(4):
        while tl.atomic_cas(peer_flag, 0, 0, sem="acquire", scope="sys") != 0:
            pass
        tl.debug_barrier()
        tl.store(peer_box + o, tl.load(x + i * B + o))
        tl.debug_barrier()
        tl.atomic_xchg(peer_flag, 1, sem="release", scope="sys")
        while tl.atomic_cas(flag, 1, 1, sem="acquire", scope="sys") != 1:
            pass
        tl.debug_barrier()
        tl.atomic_xchg(flag, 0, sem="release", scope="sys")  # wrong: it was not read yet
        v = tl.load(box + o)
        tl.store(y + i * B + o, v)

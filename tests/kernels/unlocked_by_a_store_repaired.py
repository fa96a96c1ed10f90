"""Split-K: partial sums are added under a tile's spin lock."""
import triton
import triton.language as tl


@triton.jit
def locked_add(part, tile, locks, N_TILES: tl.constexpr, B: tl.constexpr):
    k = tl.program_id(0)
    o = tl.arange(0, B)
    t = k % N_TILES
    v = tl.load(part + k * B + o)
    while tl.atomic_cas(locks + t, 0, 1, sem="acquire", scope="gpu") == 1:
        pass
    tl.debug_barrier()
    tl.store(tile + t * B + o, tl.load(tile + t * B + o) + v)
    tl.debug_barrier()
    tl.atomic_xchg(locks + t, 0, sem="release", scope="gpu")

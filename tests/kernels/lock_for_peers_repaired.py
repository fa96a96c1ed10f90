"""A lock that peers poll is set at system scope."""
import triton
import triton.language as tl


@triton.jit
def gemm_all_reduce(a, b, partial, locks, out, partial_ptrs, locks_ptrs, rank, world: tl.constexpr, M, N, K,
                    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tile = tl.program_id(0)
    across = tl.cdiv(N, BN)
    rm = (tile // across) * BM + tl.arange(0, BM)
    rn = (tile % across) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        rk = k * BK + tl.arange(0, BK)
        acc += tl.dot(tl.load(a + rm[:, None] * K + rk[None, :]), tl.load(b + rk[:, None] * N + rn[None, :]))
    place = rm[:, None] * N + rn[None, :]
    tl.store(partial + place, acc)
    tl.debug_barrier()
    tl.atomic_xchg(locks + tile, 1, sem="release", scope="sys")
    for step in range(1, world):
        peer = (rank + step) % world
        theirs = tl.load(locks_ptrs + peer).to(tl.pointer_type(tl.int32))
        while tl.atomic_add(theirs + tile, 0, sem="acquire", scope="sys") != 1:
            pass
        tl.debug_barrier()
        data = tl.load(partial_ptrs + peer).to(tl.pointer_type(tl.float32))
        acc += tl.load(data + place)
    tl.store(out + place, acc)

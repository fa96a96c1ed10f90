"""A peer stores a tile here with plain stores; the GEMM reads it by TMA."""
import triton
import triton.language as tl


@triton.jit
def ag_gemm(x, gathered, ready, peer_gathered, peer_ready, w, out, K, N, call, rank, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    rows = pid * BM + tl.arange(0, BM)
    cols = tl.arange(0, BK)
    half = (call % 2) * tl.num_programs(0) * BM
    tl.store(peer_gathered + (half + rows)[:, None] * BK + cols[None, :], tl.load(x + rows[:, None] * BK + cols[None, :]))
    tl.debug_barrier()
    tl.atomic_xchg(peer_ready + pid, call, sem="release", scope="sys")
    while tl.atomic_add(ready + pid, 0, sem="acquire", scope="sys") < call:
        pass
    tl.debug_barrier()
    tl.inline_asm_elementwise("fence.proxy.async; mov.u32 $0, 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
    d = tl.make_tensor_descriptor(gathered, shape=[2 * K, BK], strides=[BK, 1], block_shape=[BM, BK])
    tile = d.load([half + pid * BM, 0])
    b = tl.load(w + cols[:, None] * BN + tl.arange(0, BN)[None, :])
    tl.store(out + rows[:, None] * BN + tl.arange(0, BN)[None, :], tl.dot(tile, b))

"""The products of the experts of a mixture: C[g] = A[g] B[g] for all problems g in one launch. Sizes and addresses stand in tables, as
tokens are routed at run time; a fixed number of programs deals out the tiles of one problem after the other."""

import triton
import triton.language as tl


@triton.jit
def moe_grouped_gemm(
    a_table,
    b_table,
    c_table,
    sizes_ptr,
    problems,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    NUM_SMS: tl.constexpr,
):
    tile_id = tl.program_id(0)
    tiles_before = 0
    for g in range(problems):
        rows = tl.load(sizes_ptr + g)
        tiles_n = tl.cdiv(N, BLOCK_N)
        tiles = tl.cdiv(rows, BLOCK_M) * tiles_n
        while tile_id >= tiles_before and tile_id < tiles_before + tiles:
            a_ptr = tl.load(a_table + g).to(tl.pointer_type(tl.float16))
            b_ptr = tl.load(b_table + g).to(tl.pointer_type(tl.float16))
            c_ptr = tl.load(c_table + g).to(tl.pointer_type(tl.float16))
            in_problem = tile_id - tiles_before
            pid_m = in_problem // tiles_n
            pid_n = in_problem % tiles_n
            offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
            offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
            offs_k = tl.arange(0, BLOCK_K)
            acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for k in range(0, tl.cdiv(K, BLOCK_K)):
                ks = k * BLOCK_K + offs_k
                a = tl.load(a_ptr + offs_m[:, None] * K + ks[None, :], mask=(offs_m[:, None] < rows) & (ks[None, :] < K), other=0.0)
                b = tl.load(b_ptr + ks[:, None] * N + offs_n[None, :], mask=(ks[:, None] < K) & (offs_n[None, :] < N), other=0.0)
                acc = tl.dot(a, b, acc)
            inside = (offs_m[:, None] < rows) & (offs_n[None, :] < N)
            tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(tl.float16), mask=inside)
            tile_id += NUM_SMS
        tiles_before = tiles_before + tiles


def grouped_matmul(a_table, b_table, c_table, sizes, N, K, sms=132):
    moe_grouped_gemm[(sms,)](
        a_table, b_table, c_table, sizes, sizes.numel(), N, K, BLOCK_M=64, BLOCK_N=128, BLOCK_K=64, NUM_SMS=sms
    )

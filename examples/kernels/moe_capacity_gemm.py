"""C[E, M, N] = A[E, M, K] B[E, K, N]: the products of the experts of a mixture whose tokens have a capacity, as in GShard and Switch
Transformer. Every expert has as many rows, so which tiles there are is known before the launch; programs take tile after tile."""

import torch
import triton
import triton.language as tl


@triton.jit
def moe_capacity_gemm(
    a_ptr,
    b_ptr,
    c_ptr,
    E,
    M,
    N,
    K,
    stride_ae,
    stride_am,
    stride_ak,
    stride_be,
    stride_bk,
    stride_bn,
    stride_ce,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    NUM_SMS: tl.constexpr,
):
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    for tile_id in tl.range(tl.program_id(0), E * tiles_m * tiles_n, NUM_SMS):
        expert = tile_id // (tiles_m * tiles_n)
        pid_m = tile_id // tiles_n % tiles_m
        pid_n = tile_id % tiles_n
        offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
        offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for ki in range(0, tl.cdiv(K, BLOCK_K)):
            k = ki * BLOCK_K + offs_k
            a_ptrs = a_ptr + expert * stride_ae + offs_m[:, None] * stride_am + k[None, :] * stride_ak
            b_ptrs = b_ptr + expert * stride_be + k[:, None] * stride_bk + offs_n[None, :] * stride_bn
            # `expert < E` always holds: it says how long the axis of experts is.
            a = tl.load(a_ptrs, mask=tl.where(expert < E, (offs_m[:, None] < M) & (k[None, :] < K), False), other=0.0)
            b = tl.load(b_ptrs, mask=(k[:, None] < K) & (offs_n[None, :] < N), other=0.0)
            acc = tl.dot(a, b, acc)
        c_ptrs = c_ptr + expert * stride_ce + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
        tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def expert_products(a, b):
    (E, M, K), N = a.shape, b.shape[2]
    c = torch.empty((E, M, N), device=a.device, dtype=a.dtype)
    sms = torch.cuda.get_device_properties(a.device).multi_processor_count
    grid = (min(sms, E * triton.cdiv(M, 128) * triton.cdiv(N, 128)),)
    moe_capacity_gemm[grid](
        a, b, c, E, M, N, K, *a.stride(), *b.stride(), *c.stride(), BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, NUM_SMS=grid[0]
    )
    return c

"""C[M, N] = A[M, K] B[K, N]: as many programs as there are multiprocessors, each of which takes tile after tile."""

import torch
import triton
import triton.language as tl


@triton.jit
def compute_pid(tile_id, in_group, tiles_m, GROUP_M: tl.constexpr):
    group = tile_id // in_group
    first_m = group * GROUP_M
    rows = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + (tile_id % rows)
    pid_n = (tile_id % in_group) // rows
    return pid_m, pid_n


@triton.jit
def gemm_persistent(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    NUM_SMS: tl.constexpr,
):
    start_pid = tl.program_id(axis=0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    steps_k = tl.cdiv(K, BLOCK_K)
    num_tiles = tiles_m * tiles_n
    in_group = GROUP_M * tiles_n
    offs_k = tl.arange(0, BLOCK_K)
    for tile_id in tl.range(start_pid, num_tiles, NUM_SMS, flatten=True):
        pid_m, pid_n = compute_pid(tile_id, in_group, tiles_m, GROUP_M)
        offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
        offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
        safe_m = tl.where(offs_m < M, offs_m, 0)
        safe_n = tl.where(offs_n < N, offs_n, 0)
        safe_m = tl.max_contiguous(tl.multiple_of(safe_m, BLOCK_M), BLOCK_M)
        safe_n = tl.max_contiguous(tl.multiple_of(safe_n, BLOCK_N), BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for ki in range(steps_k):
            k = ki * BLOCK_K + offs_k
            a = tl.load(a_ptr + (safe_m[:, None] * stride_am + k[None, :] * stride_ak), mask=k[None, :] < K, other=0.0)
            b = tl.load(b_ptr + (k[:, None] * stride_bk + safe_n[None, :] * stride_bn), mask=k[:, None] < K, other=0.0)
            acc = tl.dot(a, b, acc)
        c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
        tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    sms = torch.cuda.get_device_properties(a.device).multi_processor_count
    grid = (min(sms, triton.cdiv(M, 128) * triton.cdiv(N, 128)),)
    gemm_persistent[grid](
        a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(), BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP_M=8, NUM_SMS=grid[0]
    )
    return c

"""Attention forward whose programs have a part of the keys each (split-KV), tensors [heads, length, head size]: one program for a block of
queries of one head and SPLIT keys. Programs of the same queries merge what they have into O one after the other: the one that has taken
the turn of these rows weighs what lies there against its own. O, PEAK, WEIGHT and TURN begin as zeros; a weight of 0 means nothing yet."""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_split_kv(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    peak_ptr,
    weight_ptr,
    turn_ptr,
    scale,
    stride_qh,
    stride_qm,
    stride_kh,
    stride_kn,
    stride_vh,
    stride_vn,
    stride_oh,
    stride_om,
    stride_th,
    Q_LEN,
    KV_LEN,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    SPLIT: tl.constexpr,
):
    pid_m = tl.program_id(0)
    pid_kv = tl.program_id(1)
    h = tl.program_id(2)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    in_q = offs_m < Q_LEN
    q = tl.load(q_ptr + h * stride_qh + offs_m[:, None] * stride_qm + offs_d[None, :], mask=in_q[:, None], other=0.0)
    m_i = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    l_i = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    for start_n in range(0, SPLIT, BLOCK_N):
        keys = pid_kv * SPLIT + start_n + offs_n
        k = tl.load(k_ptr + h * stride_kh + keys[None, :] * stride_kn + offs_d[:, None], mask=keys[None, :] < KV_LEN, other=0.0)
        s = tl.where(keys[None, :] < KV_LEN, tl.dot(q, k) * scale, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        p = tl.exp(s - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + h * stride_vh + keys[:, None] * stride_vn + offs_d[None, :], mask=keys[:, None] < KV_LEN, other=0.0)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        m_i = m_new
    o_ptrs = o_ptr + h * stride_oh + offs_m[:, None] * stride_om + offs_d[None, :]
    peak_ptrs = peak_ptr + h * stride_th + offs_m
    weight_ptrs = weight_ptr + h * stride_th + offs_m
    turn = turn_ptr + h * stride_th + pid_m
    while tl.atomic_cas(turn, 0, 1, sem="acquire", scope="gpu") != 0:
        pass
    tl.debug_barrier()
    l_there = tl.load(weight_ptrs, mask=in_q, other=0.0)
    m_there = tl.where(l_there > 0, tl.load(peak_ptrs, mask=in_q, other=0.0), float("-inf"))
    o_there = tl.load(o_ptrs, mask=in_q[:, None], other=0.0).to(tl.float32)
    m_new = tl.maximum(m_there, m_i)
    there = l_there * tl.exp(m_there - m_new)
    here = tl.exp(m_i - m_new)
    l_new = there + l_i * here
    o = (o_there * there[:, None] + acc * here[:, None]) / l_new[:, None]
    tl.store(o_ptrs, o.to(o_ptr.dtype.element_ty), mask=in_q[:, None])
    tl.store(peak_ptrs, m_new, mask=in_q)
    tl.store(weight_ptrs, l_new, mask=in_q)
    tl.debug_barrier()
    tl.atomic_xchg(turn, 0, sem="release", scope="gpu")


def forward(q, k, v, split=1024):
    heads, q_len, head_dim = q.shape
    o = torch.zeros_like(q)
    peak, weight = (torch.zeros((heads, q_len), device=q.device, dtype=torch.float32) for _ in range(2))
    turn = torch.zeros((heads, q_len), device=q.device, dtype=torch.int32)
    grid = (triton.cdiv(q_len, 128), triton.cdiv(k.shape[1], split), heads)
    strides = [s for t in (q, k, v, o) for s in t.stride()[:2]]
    attention_split_kv[grid](
        q, k, v, o, peak, weight, turn, head_dim**-0.5, *strides, peak.stride(0), q_len, k.shape[1],
        HEAD_DIM=head_dim, BLOCK_M=128, BLOCK_N=64, SPLIT=split
    )
    return o

"""Attention forward in which several heads of queries share one of keys and values (grouped-query attention) and programs have a part of
the keys each (split-KV), tensors [groups, heads of a group, length, head size] and [groups, length, head size]: one program for a block of
queries of one head and SPLIT keys. Programs of the same queries merge what they have into O one after the other, as in
attention_split_kv.py. CAUSAL: keys behind a query are not seen; a program that sees none adds nothing."""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_gqa_split_kv(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    peak_ptr,
    weight_ptr,
    turn_ptr,
    scale,
    stride_qg,
    stride_qh,
    stride_qm,
    stride_kg,
    stride_kn,
    stride_vg,
    stride_vn,
    stride_og,
    stride_oh,
    stride_om,
    stride_tg,
    stride_th,
    GROUP_HEADS,
    Q_LEN,
    KV_LEN,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    SPLIT: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    pid_m = tl.program_id(0)
    pid_kv = tl.program_id(1)
    pid_gh = tl.program_id(2)
    g = pid_gh // GROUP_HEADS
    h = pid_gh % GROUP_HEADS
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    in_q = offs_m < Q_LEN
    q = tl.load(q_ptr + g * stride_qg + h * stride_qh + offs_m[:, None] * stride_qm + offs_d[None, :], mask=in_q[:, None], other=0.0)
    m_i = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    l_i = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    for start_n in range(0, SPLIT, BLOCK_N):
        keys = pid_kv * SPLIT + start_n + offs_n
        k = tl.load(k_ptr + g * stride_kg + keys[None, :] * stride_kn + offs_d[:, None], mask=keys[None, :] < KV_LEN, other=0.0)
        seen = keys[None, :] < KV_LEN
        if CAUSAL:
            seen = seen & (offs_m[:, None] >= keys[None, :])
        s = tl.where(seen, tl.dot(q, k) * scale, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        top = tl.where(m_new > float("-inf"), m_new, 0.0)  # of a row that sees no key yet
        p = tl.exp(s - top[:, None])
        alpha = tl.exp(m_i - top)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + g * stride_vg + keys[:, None] * stride_vn + offs_d[None, :], mask=keys[:, None] < KV_LEN, other=0.0)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        m_i = m_new
    o_ptrs = o_ptr + g * stride_og + h * stride_oh + offs_m[:, None] * stride_om + offs_d[None, :]
    peak_ptrs = peak_ptr + g * stride_tg + h * stride_th + offs_m
    weight_ptrs = weight_ptr + g * stride_tg + h * stride_th + offs_m
    turn = turn_ptr + g * stride_tg + h * stride_th + pid_m
    while tl.atomic_cas(turn, 0, 1, sem="acquire", scope="gpu") != 0:
        pass
    tl.debug_barrier()
    l_there = tl.load(weight_ptrs, mask=in_q, other=0.0)
    m_there = tl.where(l_there > 0, tl.load(peak_ptrs, mask=in_q, other=0.0), float("-inf"))
    o_there = tl.load(o_ptrs, mask=in_q[:, None], other=0.0).to(tl.float32)
    m_new = tl.maximum(m_there, m_i)
    top = tl.where(m_new > float("-inf"), m_new, 0.0)
    there = l_there * tl.exp(m_there - top)
    here = tl.exp(m_i - top)
    l_new = there + l_i * here
    whole = tl.where(l_new > 0, l_new, 1.0)
    o = (o_there * there[:, None] + acc * here[:, None]) / whole[:, None]
    tl.store(o_ptrs, o.to(o_ptr.dtype.element_ty), mask=in_q[:, None])
    tl.store(peak_ptrs, top, mask=in_q)
    tl.store(weight_ptrs, l_new, mask=in_q)
    tl.debug_barrier()
    tl.atomic_xchg(turn, 0, sem="release", scope="gpu")


def forward(q, k, v, split=1024, causal=True):
    groups, heads, q_len, head_dim = q.shape
    o = torch.zeros_like(q)
    peak, weight = (torch.zeros((groups, heads, q_len), device=q.device, dtype=torch.float32) for _ in range(2))
    turn = torch.zeros((groups, heads, q_len), device=q.device, dtype=torch.int32)
    grid = (triton.cdiv(q_len, 128), triton.cdiv(k.shape[1], split), groups * heads)
    strides = [*q.stride()[:3], *k.stride()[:2], *v.stride()[:2], *o.stride()[:3], *peak.stride()[:2]]
    attention_gqa_split_kv[grid](
        q, k, v, o, peak, weight, turn, head_dim**-0.5, *strides, heads, q_len, k.shape[1],
        HEAD_DIM=head_dim, BLOCK_M=128, BLOCK_N=64, SPLIT=split, CAUSAL=causal
    )
    return o

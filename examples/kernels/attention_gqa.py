"""Attention forward in which several heads of queries share one of keys and values (grouped-query attention), tensors
[groups, heads of a group, length, head size] and [groups, length, head size]: one program for a block of queries of one head, a loop over
blocks of keys and values, softmax as it goes. CAUSAL: keys behind the last query of the block are not looked at."""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_gqa(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
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
    GROUP_HEADS,
    Q_LEN,
    KV_LEN,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    pid_m = tl.program_id(0)
    pid_gh = tl.program_id(1)
    g = pid_gh // GROUP_HEADS
    h = pid_gh % GROUP_HEADS
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    q_ptrs = q_ptr + g * stride_qg + h * stride_qh + offs_m[:, None] * stride_qm + offs_d[None, :]
    k_ptrs = k_ptr + g * stride_kg + offs_n[None, :] * stride_kn + offs_d[:, None]
    v_ptrs = v_ptr + g * stride_vg + offs_n[:, None] * stride_vn + offs_d[None, :]
    q = tl.load(q_ptrs, mask=offs_m[:, None] < Q_LEN, other=0.0)
    m_i = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    l_i = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    if CAUSAL:
        end = tl.minimum((pid_m + 1) * BLOCK_M, KV_LEN)
    else:
        end = KV_LEN
    for start_n in range(0, end, BLOCK_N):
        keys = start_n + offs_n
        k = tl.load(k_ptrs + start_n * stride_kn, mask=keys[None, :] < KV_LEN, other=0.0)
        s = tl.dot(q, k) * scale
        seen = keys[None, :] < KV_LEN
        if CAUSAL:
            seen = seen & (offs_m[:, None] >= keys[None, :])
        s = tl.where(seen, s, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        p = tl.exp(s - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(v_ptrs + start_n * stride_vn, mask=keys[:, None] < KV_LEN, other=0.0)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        m_i = m_new
    acc = acc / l_i[:, None]
    o_ptrs = o_ptr + g * stride_og + h * stride_oh + offs_m[:, None] * stride_om + offs_d[None, :]
    tl.store(o_ptrs, acc.to(o_ptr.dtype.element_ty), mask=offs_m[:, None] < Q_LEN)


def forward(q, k, v, causal=True):
    groups, heads, q_len, head_dim = q.shape
    o = torch.empty_like(q)
    grid = (triton.cdiv(q_len, 128), groups * heads)
    strides = [*q.stride()[:3], *k.stride()[:2], *v.stride()[:2], *o.stride()[:3]]
    attention_gqa[grid](
        q, k, v, o, head_dim**-0.5, *strides, heads, q_len, k.shape[1], HEAD_DIM=head_dim, BLOCK_M=128, BLOCK_N=64, CAUSAL=causal
    )
    return o

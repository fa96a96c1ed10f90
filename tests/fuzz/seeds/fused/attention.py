"""A fused file."""

import sys
import types

import torch
import triton
import triton.language as tl

import hemiola_rt

RANKS = 2
PLAN = "1d7179cee9080dd4"
WIDE = torch.float32  # of the reference


@triton.jit
def hm_wait(needs, begin, end, signals, call):
    """Waits for needs [begin, end), each a slot of `signals`, its steps per call and the step of this call."""
    for i in range(begin, end):
        need = needs + 3 * i
        value = call * tl.load(need + 1) + tl.load(need + 2)
        signal = signals + tl.load(need)
        # Copies that come before the signal are seen after it: acquire, and sys since they are not this GPU's.
        while tl.atomic_add(signal, 0, sem="acquire", scope="sys") - value < 0:
            pass
    tl.debug_barrier()  # all threads are behind the one that looked


@triton.jit(do_not_specialize=["hm_call"])  # hemiola
def attention(
    hm_rows,  # hemiola: by place in the order: tile, first and last need, part
    hm_call,  # hemiola: number of the call
    hm_turns,  # hemiola: by piece: first and last turn, first and last need
    hm_pieces,  # hemiola: how many arrive along the loop
    hm_needs,  # hemiola: signals that tiles wait for
    hm_signals,  # hemiola: this rank's signals
    hm_grid_0,  # hemiola: programs along axis 0 of the kernel's own grid
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    scale,
    stride_qz,
    stride_qh,
    stride_qm,
    stride_kz,
    stride_kh,
    stride_kn,
    stride_vz,
    stride_vh,
    stride_vn,
    stride_oz,
    stride_oh,
    stride_om,
    HEADS,
    Q_LEN,
    KV_LEN,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    hm_row = hm_rows + 4 * tl.program_id(0)  # hemiola: its place in the order of arrival
    hm_tile = tl.load(hm_row)  # hemiola: the program of the kernel's own grid there
    pid_m = (hm_tile % hm_grid_0)  # hemiola: was tl.program_id(0)
    pid_zh = (hm_tile // hm_grid_0)  # hemiola: was tl.program_id(1)
    z = pid_zh // HEADS
    h = pid_zh % HEADS
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    q_ptrs = q_ptr + z * stride_qz + h * stride_qh + offs_m[:, None] * stride_qm + offs_d[None, :]
    k_ptrs = k_ptr + z * stride_kz + h * stride_kh + offs_n[None, :] * stride_kn + offs_d[:, None]
    v_ptrs = v_ptr + z * stride_vz + h * stride_vh + offs_n[:, None] * stride_vn + offs_d[None, :]
    q = tl.load(q_ptrs, mask=offs_m[:, None] < Q_LEN, other=0.0)
    m_i = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    l_i = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    if CAUSAL:
        end = tl.minimum((pid_m + 1) * BLOCK_M, KV_LEN)
    else:
        end = KV_LEN
    for hm_piece in range(0, hm_pieces):  # hemiola: as they arrive
      hm_chunk = hm_turns + 4 * hm_piece  # hemiola
      hm_first = tl.load(hm_chunk) * BLOCK_N  # hemiola
      hm_last = tl.minimum(tl.load(hm_chunk + 1) * BLOCK_N, end)  # hemiola
      if hm_first < hm_last:  # hemiola
       hm_wait(hm_needs, tl.load(hm_chunk + 2), tl.load(hm_chunk + 3), hm_signals, hm_call)  # hemiola
      for start_n in range(hm_first, hm_last, BLOCK_N):  # hemiola: was 0, end
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
    o_ptrs = o_ptr + z * stride_oz + h * stride_oh + offs_m[:, None] * stride_om + offs_d[None, :]
    tl.store(o_ptrs, acc.to(o_ptr.dtype.element_ty), mask=offs_m[:, None] < Q_LEN)


def coordinates(tl, HEADS, **others):
    """By axis, the tile that each of the kernel's own programs takes: what its text says, for all of them at once."""
    min, max = tl.minimum, tl.maximum
    return {
        "Q_LEN": tl.program_id(0),
        "z": tl.program_id(1) // HEADS,
        "h": tl.program_id(1) % HEADS,
    }


AXES = {"Q_LEN": 64, "z": 1, "h": 2}  # elements along the axes of tiles
VALUES = {"scale": 0.25, "stride_qz": 2048, "stride_qh": 1024, "stride_qm": 16, "stride_kz": 4096, "stride_kh": 2048, "stride_kn": 16, "stride_vz": 4096, "stride_vh": 2048, "stride_vn": 16, "stride_oz": 2048, "stride_oh": 1024, "stride_om": 16, "HEADS": 2, "Q_LEN": 64, "KV_LEN": 128}
CONFIGS = [
    {"BLOCK_M": 16, "BLOCK_N": 16, "CAUSAL": False, "HEAD_DIM": 16},
]  # any of them: setup(rt, CONFIGS[1])
KERNEL = hemiola_rt.Kernel(
    attention, coordinates, {
        "Q_LEN": hemiola_rt.TileAxis(block=lambda BLOCK_M, **_: BLOCK_M, size="Q_LEN", grid=0),
        "z": hemiola_rt.TileAxis(block=lambda **_: 1, size=None, grid=1),
        "h": hemiola_rt.TileAxis(block=lambda **_: 1, size=None, grid=1),
    })
EXTRAS = []  # tensors of the kernel that the plan does not have


def setup(rt, config=CONFIGS[0]):
    """What a rank holds, and its streams. Once, on all ranks."""
    t = types.SimpleNamespace()
    t.q = rt.local("q", (2, 64, 16), torch.half)
    t.k = rt.symmetric("k", (2, 128, 16), torch.half)
    t.v = rt.symmetric("v", (2, 128, 16), torch.half)
    t.o = rt.local("o", (2, 64, 16), torch.half)
    t.k_at = [rt.peer(t.k, r) for r in range(RANKS)]
    t.v_at = [rt.peer(t.v, r) for r in range(RANKS)]
    t.copies = rt.streams(1)  # exchange
    t.compute = rt.streams(1, main_first=True)
    t.arrived = rt.signals((RANKS, 1), steps=2)
    rank = rt.rank
    t.work = KERNEL.work(rt, AXES, VALUES, config)
    t.work.loop(128, block=lambda BLOCK_N, **_: BLOCK_N)
    t.work.wave({})
    t.work.turns(rank * 64, 64)
    t.work.turns((rank + 1) % 2 * 64, 64, after=[(t.arrived[rank, 0], 1)])
    t.work.ready()
    return t


def inputs(rt, t):
    """By name, what the caller has to fill before a call."""
    rank = rt.rank
    return {"q": t.q, "k": t.k[:, 64 * rank:64 * (rank + 1)], "v": t.v[:, 64 * rank:64 * (rank + 1)]}


def run(rt, t, **given):
    """One call. `given`: inputs by name, copied to their places; what is not given is there. Returns the outputs."""
    rank = rt.rank
    copies, compute = t.copies, t.compute
    rt.place(inputs(rt, t), given)
    rt.begin()
    copies[0].copy(
        t.k[:, 64 * ((rank + 1) % 2):64 * ((rank + 1) % 2 + 1)],
        t.k_at[(rank + 1) % 2][:, 64 * ((rank + 1) % 2):64 * ((rank + 1) % 2 + 1)])
    copies[0].copy(
        t.v[:, 64 * ((rank + 1) % 2):64 * ((rank + 1) % 2 + 1)],
        t.v_at[(rank + 1) % 2][:, 64 * ((rank + 1) % 2):64 * ((rank + 1) % 2 + 1)])
    copies[0].signal(t.arrived[rank, 0], to=rank, step=1)
    compute[0].launch(t.work, q_ptr=t.q, k_ptr=t.k, v_ptr=t.v, o_ptr=t.o)
    rt.end()
    return {"o": t.o}


def reference(rank, held):
    """What `rank` has to hold at the end, in one piece; held[r] is what rank r was given."""
    k, v = (torch.cat([of[name] for of in held], 1).to(WIDE) for name in ("k", "v"))
    weights = torch.softmax(held[rank]["q"].to(WIDE) @ k.transpose(1, 2) * VALUES["scale"], -1)
    return {"o": weights @ v}


if __name__ == "__main__":
    hemiola_rt.main(sys.modules[__name__])

"""A fused file."""

import sys
import types

import torch
import triton
import triton.language as tl

import hemiola_rt

RANKS = 2
PLAN = "7ffad71677611688"
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
def gemm(
    hm_rows,  # hemiola: by place in the order: tile, first and last need, part
    hm_call,  # hemiola: number of the call
    hm_needs,  # hemiola: signals that tiles wait for
    hm_signals,  # hemiola: this rank's signals
    hm_grid_0,  # hemiola: programs along axis 0 of the kernel's own grid
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
):
    hm_row = hm_rows + 4 * tl.program_id(0)  # hemiola: its place in the order of arrival
    hm_tile = tl.load(hm_row)  # hemiola: the program of the kernel's own grid there
    pid_m = (hm_tile % hm_grid_0)  # hemiola: was tl.program_id(0)
    pid_n = (hm_tile // hm_grid_0)  # hemiola: was tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    hm_wait(hm_needs, tl.load(hm_row + 1), tl.load(hm_row + 2), hm_signals, hm_call)  # hemiola: until its chunks are there
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        in_k = offs_k < K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=(offs_m[:, None] < M) & in_k[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=in_k[:, None] & (offs_n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def coordinates(tl, **others):
    """By axis, the tile that each of the kernel's own programs takes: what its text says, for all of them at once."""
    min, max = tl.minimum, tl.maximum
    return {
        "M": tl.program_id(0),
        "N": tl.program_id(1),
    }


AXES = {"M": 64, "N": 16}  # elements along the axes of tiles
VALUES = {"M": 64, "N": 16, "K": 32, "stride_am": 32, "stride_ak": 1, "stride_bk": 16, "stride_bn": 1, "stride_cm": 16, "stride_cn": 1}
CONFIGS = [
    {"BLOCK_K": 16, "BLOCK_M": 16, "BLOCK_N": 16},
]  # any of them: setup(rt, CONFIGS[1])
KERNEL = hemiola_rt.Kernel(
    gemm, coordinates, {
        "M": hemiola_rt.TileAxis(block=lambda BLOCK_M, **_: BLOCK_M, size="M", grid=0),
        "N": hemiola_rt.TileAxis(block=lambda BLOCK_N, **_: BLOCK_N, size="N", grid=1),
    })
EXTRAS = []  # tensors of the kernel that the plan does not have


def setup(rt, config=CONFIGS[0]):
    """What a rank holds, and its streams. Once, on all ranks."""
    t = types.SimpleNamespace()
    t.a = rt.symmetric("a", (64, 32), torch.half)
    t.b = rt.local("b", (32, 16), torch.half)
    t.c = rt.local("c", (64, 16), torch.half)
    t.a_at = [rt.peer(t.a, r) for r in range(RANKS)]
    t.copies = rt.streams(1)  # exchange
    t.compute = rt.streams(1, main_first=True)
    t.arrived = rt.signals((RANKS, 1), steps=1)
    rank = rt.rank
    t.work = KERNEL.work(rt, AXES, VALUES, config)
    t.work.wave({"M": (rank * 32, 32)})
    t.work.wave({"M": ((rank + 1) % 2 * 32, 32)}, after=[(t.arrived[rank, 0], 0)])
    t.work.ready()
    return t


def inputs(rt, t):
    """By name, what the caller has to fill before a call."""
    rank = rt.rank
    return {"a": t.a[32 * rank:32 * (rank + 1)], "b": t.b}


def run(rt, t, **given):
    """One call. `given`: inputs by name, copied to their places; what is not given is there. Returns the outputs."""
    rank = rt.rank
    copies, compute = t.copies, t.compute
    rt.place(inputs(rt, t), given)
    rt.begin()
    copies[0].copy(
        t.a[32 * ((rank + 1) % 2):32 * ((rank + 1) % 2 + 1)],
        t.a_at[(rank + 1) % 2][32 * ((rank + 1) % 2):32 * ((rank + 1) % 2 + 1)])
    copies[0].signal(t.arrived[rank, 0], to=rank, step=0)
    compute[0].launch(t.work, a_ptr=t.a, b_ptr=t.b, c_ptr=t.c)
    rt.end()
    return {"c": t.c}


def reference(rank, held):
    """What `rank` has to hold at the end, in one piece; held[r] is what rank r was given."""
    a = torch.cat([of["a"] for of in held])  # gathered
    return {"c": a.to(WIDE) @ held[rank]["b"].to(WIDE)}


if __name__ == "__main__":
    hemiola_rt.main(sys.modules[__name__])

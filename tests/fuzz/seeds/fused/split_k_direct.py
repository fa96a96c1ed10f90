"""A fused file."""

import sys
import types

import torch
import triton
import triton.language as tl

import hemiola_rt

RANKS = 2
PLAN = "e1c6dae73acea105"
WIDE = torch.float32  # of the reference


@triton.jit
def hm_done(part, parts, tells, counters, peers, round, call):
    """Counts a tile of a part; the last one tells the ranks that wait for it. parts: tiles, begin and end in `tells` of each."""
    if part >= 0:
        tl.debug_barrier()  # the stores of all threads are before the count
        row = parts + 3 * part
        # acq_rel: the last tile takes over what the others have released.
        before = tl.atomic_add(counters + part, 1, sem="acq_rel", scope="gpu")
        if before == tl.load(row) * (round + 1) - 1:
            for i in range(tl.load(row + 1), tl.load(row + 2)):
                tell = tells + 2 * i
                signal = tl.load(peers + tl.load(tell)).to(tl.pointer_type(tl.int32)) + tl.load(tell + 1)
                tl.atomic_xchg(signal, call + 1, sem="release", scope="sys")


@triton.jit(do_not_specialize=["hm_call", "hm_round"])  # hemiola
def gemm_split_k(
    hm_rows,  # hemiola: by place in the order: tile, first and last need, part
    hm_call,  # hemiola: number of the call
    hm_parts,  # hemiola: tiles that are told of together
    hm_tells,  # hemiola: ranks and signals to tell
    hm_counters,  # hemiola: tiles done in all launches, by part
    hm_round,  # hemiola: number of this launch of the kernel
    hm_peers,  # hemiola: addresses of the signals of all ranks
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
    SPLIT_K: tl.constexpr,
):
    hm_row = hm_rows + 4 * tl.program_id(0)  # hemiola: its place in the order of arrival
    hm_tile = tl.load(hm_row)  # hemiola: the program of the kernel's own grid there
    pid = (hm_tile % hm_grid_0)  # hemiola: was tl.program_id(0)
    pid_k = (hm_tile // hm_grid_0)  # hemiola: was tl.program_id(1)
    tiles_n = tl.cdiv(N, BLOCK_N)
    pid_m = pid // tiles_n
    pid_n = pid % tiles_n
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = pid_k * BLOCK_K + tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K * SPLIT_K)):
        in_k = offs_k + k * BLOCK_K * SPLIT_K < K
        a = tl.load(a_ptrs, mask=(offs_m[:, None] < M) & in_k[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=in_k[:, None] & (offs_n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * SPLIT_K * stride_ak
        b_ptrs += BLOCK_K * SPLIT_K * stride_bk
    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.atomic_add(c_ptrs, acc, mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))
    hm_done(tl.load(hm_row + 3), hm_parts, hm_tells, hm_counters, hm_peers, hm_round, hm_call)  # hemiola: the tile is stored


def coordinates(tl, BLOCK_N, N, **others):
    """By axis, the tile that each of the kernel's own programs takes: what its text says, for all of them at once."""
    min, max = tl.minimum, tl.maximum
    return {
        "M": tl.program_id(0) // tl.cdiv(N, BLOCK_N),
        "N": tl.program_id(0) % tl.cdiv(N, BLOCK_N),
        "K": tl.program_id(1),
    }


AXES = {"M": 64, "N": 32, "K": 2}  # elements along the axes of tiles
VALUES = {"M": 64, "N": 32, "K": 16, "stride_am": 16, "stride_ak": 1, "stride_bk": 32, "stride_bn": 1, "stride_cm": 32, "stride_cn": 1}
CONFIGS = [
    {"BLOCK_K": 16, "BLOCK_M": 16, "BLOCK_N": 16, "SPLIT_K": 2},
]  # any of them: setup(rt, CONFIGS[1])
KERNEL = hemiola_rt.Kernel(
    gemm_split_k, coordinates, {
        "M": hemiola_rt.TileAxis(block=lambda BLOCK_M, **_: BLOCK_M, size="M", grid=0),
        "N": hemiola_rt.TileAxis(block=lambda BLOCK_N, **_: BLOCK_N, size="N", grid=0),
        "K": hemiola_rt.TileAxis(block=1, size=None, grid=1),
    })
EXTRAS = []  # tensors of the kernel that the plan does not have


def setup(rt, config=CONFIGS[0]):
    """What a rank holds, and its streams. Once, on all ranks."""
    t = types.SimpleNamespace()
    t.a = rt.local("a", (64, 16), torch.half)
    t.b = rt.local("b", (16, 32), torch.half)
    t.partial = rt.symmetric("partial", (64, 32), torch.half)
    t.c = rt.local("c", (32, 32), torch.half)
    t.partial_at = [rt.peer(t.partial, r) for r in range(RANKS)]
    t.copies = rt.streams(1)  # reduce
    t.compute = rt.streams(1, main_first=True)
    t.done = rt.signals((RANKS, 2), steps=1)
    t.groups = [rt.group((0, 1))]
    rank = rt.rank
    t.work = KERNEL.work(rt, AXES, VALUES, config)
    t.work.wave({"M": ((rank + 1) % 2 * 32, 32)}, part=(rank + 1) % 2)
    t.work.wave({"M": (rank * 32, 32)}, part=rank)
    t.work.part(0, to=[0])
    t.work.part(1, to=[1])
    t.work.ready(t.done)
    return t


def inputs(rt, t):
    """By name, what the caller has to fill before a call."""
    return {"a": t.a, "b": t.b}


def run(rt, t, **given):
    """One call. `given`: inputs by name, copied to their places; what is not given is there. Returns the outputs."""
    rank = rt.rank
    copies, compute = t.copies, t.compute
    rt.place(inputs(rt, t), given)
    rt.begin()
    compute[0].zero(t.partial)
    compute[0].launch(t.work, a_ptr=t.a, b_ptr=t.b, c_ptr=t.partial)
    copies[0].wait_signal(t.done[(rank + 1) % 2, rank], step=0)
    copies[0].copy(t.c, t.partial_at[(rank + 1) % 2][32 * rank:32 * (rank + 1)])
    copies[0].wait_signal(t.done[rank, rank], step=0)
    copies[0].accumulate(t.c, t.partial[32 * rank:32 * (rank + 1)])
    rt.end()
    return {"c": t.c}


def reference(rank, held):
    """What `rank` has to hold at the end, in one piece; held[r] is what rank r was given."""
    return {"c": sum(of["a"].chunk(RANKS)[rank].to(WIDE) @ of["b"].to(WIDE) for of in held)}


if __name__ == "__main__":
    hemiola_rt.main(sys.modules[__name__])

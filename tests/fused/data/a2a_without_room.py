"""a2a-gemm/direct on 4 ranks, fused into the kernel gemm_persistent of examples/kernels/gemm_persistent.py: copies between peers on streams, which the kernel waits for and signals, tile by tile.

Written by Hemiola 0.1.0 from p.json (plan 1b91fcda2ab18d94):

    hemiola compile examples/kernels/gemm_persistent.py --plan p.json -o f.py

    torchrun --nproc-per-node 4 FILE  # GPUs of a node: checks itself, prints its times
    python -m hemiola_rt FILE       # processes of this machine, without GPUs: checks it

Of each rank:

    x  [256, 16] half, input
    b  [64, 128] half, input
    a  [64, 64] half, scratch, peers reach it
    c  [64, 128] half, output

Lines of the kernel that were added or changed end with '# hemiola'; the others are as they were.

A wait below is one that the plan states. hemiola_rt says what its words mean.
"""

import sys
import types

import torch
import triton
import triton.language as tl

import hemiola_rt

RANKS = 4
PLAN = "1b91fcda2ab18d94"
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


@triton.jit
def compute_pid(tile_id, in_group, tiles_m, GROUP_M: tl.constexpr):
    group = tile_id // in_group
    first_m = group * GROUP_M
    rows = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + (tile_id % rows)
    pid_n = (tile_id % in_group) // rows
    return pid_m, pid_n


@triton.jit(do_not_specialize=["hm_call"])  # hemiola
def gemm_persistent(
    hm_rows,  # hemiola: by place in the order: tile, first and last need, part
    hm_call,  # hemiola: number of the call
    hm_needs,  # hemiola: signals that tiles wait for
    hm_signals,  # hemiola: this rank's signals
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
    hm_known = -1  # hemiola: needs that this program has waited for
    for tile_id in tl.range(start_pid, num_tiles, NUM_SMS, flatten=False):  # hemiola: was True
        hm_row = hm_rows + 4 * tile_id  # hemiola: the turn's place in the order of arrival
        hm_tile = tl.load(hm_row)  # hemiola: the kernel's own tile there
        pid_m, pid_n = compute_pid(hm_tile, in_group, tiles_m, GROUP_M)  # hemiola: was tile_id
        offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
        offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
        safe_m = tl.where(offs_m < M, offs_m, 0)
        safe_n = tl.where(offs_n < N, offs_n, 0)
        safe_m = tl.max_contiguous(tl.multiple_of(safe_m, BLOCK_M), BLOCK_M)
        safe_n = tl.max_contiguous(tl.multiple_of(safe_n, BLOCK_N), BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        hm_need = tl.load(hm_row + 1)  # hemiola
        if hm_need != hm_known:  # hemiola: once per wave
            hm_wait(hm_needs, hm_need, tl.load(hm_row + 2), hm_signals, hm_call)  # hemiola: until its chunks are there
        hm_known = hm_need  # hemiola
        for ki in range(steps_k):
            k = ki * BLOCK_K + offs_k
            a = tl.load(a_ptr + (safe_m[:, None] * stride_am + k[None, :] * stride_ak), mask=k[None, :] < K, other=0.0)
            b = tl.load(b_ptr + (k[:, None] * stride_bk + safe_n[None, :] * stride_bn), mask=k[:, None] < K, other=0.0)
            acc = tl.dot(a, b, acc)
        c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
        tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def coordinates(tl, BLOCK_M, BLOCK_N, GROUP_M, M, N, tile_id, **others):
    """By axis, the tile that each of the kernel's own programs takes: what its text says, for all of them at once."""
    min, max = tl.minimum, tl.maximum
    return {
        "M": GROUP_M * (tile_id // (GROUP_M * tl.cdiv(N, BLOCK_N))) + tile_id % min(-GROUP_M * (tile_id // (GROUP_M * tl.cdiv(N, BLOCK_N))) + tl.cdiv(M, BLOCK_M), GROUP_M),
        "N": (tile_id % (GROUP_M * tl.cdiv(N, BLOCK_N))) // min(-GROUP_M * (tile_id // (GROUP_M * tl.cdiv(N, BLOCK_N))) + tl.cdiv(M, BLOCK_M), GROUP_M),
    }


AXES = {"M": 64, "N": 128}  # elements along the axes of tiles
VALUES = {"M": 64, "N": 128, "K": 64, "stride_am": 64, "stride_ak": 1, "stride_bk": 128, "stride_bn": 1, "stride_cm": 128, "stride_cn": 1}
CONFIGS = [
    {"BLOCK_K": 64, "BLOCK_M": 32, "BLOCK_N": 128, "GROUP_M": 8},
]  # any of them: setup(rt, CONFIGS[1])
KERNEL = hemiola_rt.Kernel(
    gemm_persistent, coordinates, {
        "M": hemiola_rt.TileAxis(block=lambda BLOCK_M, **_: BLOCK_M, size="M", grid=0),
        "N": hemiola_rt.TileAxis(block=lambda BLOCK_N, **_: BLOCK_N, size="N", grid=0),
    }, workers="NUM_SMS", tile="tile_id")
EXTRAS = []  # tensors of the kernel that a caller gives with each call


def setup(rt, config=CONFIGS[0]):
    """What a rank holds, and its streams. Once, on all ranks."""
    t = types.SimpleNamespace()
    t.x = rt.local("x", (256, 16), torch.half)
    t.b = rt.local("b", (64, 128), torch.half)
    t.a = rt.symmetric("a", (64, 64), torch.half)
    t.c = rt.local("c", (64, 128), torch.half)
    t.a_at = [rt.peer(t.a, r) for r in range(RANKS)]
    t.copies = rt.streams(1)  # exchange
    t.compute = rt.streams(1, main_first=True)
    t.arrived = rt.signals((RANKS, 1), steps=8)
    rank = rt.rank
    t.work = KERNEL.work(rt, AXES, VALUES, config)
    t.work.wave(
        {"M": (0, 32)},
        after=[(t.arrived[0, 0], rank), (t.arrived[1, 0], (rank - 1) % 4), (t.arrived[2, 0], (rank + 2) % 4), (t.arrived[3, 0], (rank + 1) % 4)])
    t.work.wave(
        {"M": (32, 32)},
        after=[(t.arrived[0, 0], rank + 4), (t.arrived[1, 0], (rank - 1) % 4 + 4), (t.arrived[2, 0], (rank + 2) % 4 + 4), (t.arrived[3, 0], (rank + 1) % 4 + 4)])
    t.work.ready()
    return t


def inputs(rt, t):
    """By name, what the caller has to fill before a call."""
    return {"x": t.x, "b": t.b}


def run(rt, t, **given):
    """One call. `given`: inputs by name, copied to their places; what is not given is there. Returns the outputs."""
    rank = rt.rank
    copies, compute = t.copies, t.compute
    rt.place(inputs(rt, t), given)
    rt.begin()
    for step in range(2):
        copies[0].copy(
            t.a[32 * step:32 * (step + 1), 16 * rank:16 * (rank + 1)],
            t.x[32 * (rank * 2 + step):32 * (rank * 2 + step + 1)])
        for d in range(3):
            peer = (rank + d + 1) % 4
            copies[0].signal(t.arrived[rank, 0], to=(rank + d) % 4, step=4 * step + d)
            copies[0].copy(
                t.a_at[peer][32 * step:32 * (step + 1), 16 * rank:16 * (rank + 1)],
                t.x[32 * (peer * 2 + step):32 * (peer * 2 + step + 1)])
        copies[0].signal(t.arrived[rank, 0], to=(rank - 1) % 4, step=4 * step + 3)
    compute[0].launch(t.work, a_ptr=t.a, b_ptr=t.b, c_ptr=t.c)
    rt.end()
    return {"c": t.c}


def reference(rank, held):
    """What `rank` has to hold at the end, in one piece; held[r] is what rank r was given."""
    # Of all ranks the rows for this one, beside each other.
    a = torch.cat([of["x"].chunk(RANKS)[rank] for of in held], 1)
    return {"c": a.to(WIDE) @ held[rank]["b"].to(WIDE)}


if __name__ == "__main__":
    hemiola_rt.main(sys.modules[__name__])

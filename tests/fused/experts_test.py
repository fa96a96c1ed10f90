"""Experts with tokens of their own numbers: a kernel that looks the expert of a block of rows up in a table, and a plan whose chunks are as
many rows as a rank has for another one. What is uneven is the plan's; the table is the caller's."""

import json
import os
import tempfile
import unittest

import kinds
import support
import torch
from hemiola_rt import _check
from interleaved import InterleavedWorld

KERNEL = '''
import triton
import triton.language as tl


@triton.jit
def moe_blocks(a_ptr, b_ptr, c_ptr, expert_of_block, M, N, K, stride_am, stride_ak, stride_be, stride_bk, stride_bn, stride_cm, stride_cn,
               BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    expert = tl.load(expert_of_block + pid_m)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for ki in range(0, tl.cdiv(K, BLOCK_K)):
        k = ki * BLOCK_K + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + offs_m[:, None] * stride_am + k[None, :] * stride_ak, mask=(offs_m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + expert * stride_be + k[:, None] * stride_bk + offs_n[None, :] * stride_bn,
                    mask=(k[:, None] < K) & (offs_n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn, acc.to(c_ptr.dtype.element_ty),
             mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))
'''
TOKENS = ((32, 16), (16, 32))  # of a rank for another one
EXPERTS, ROWS, DEPTH, COLUMNS = 2, 48, 32, 32
TABLE = (1, 0, 1)  # the expert of a block of 16 rows


def tensor(name, role, *shape):
    return {"name": name, "role": role, "shape": list(shape), "dtype": "half"}


def box(name, first, rows):
    return {"tensor": name, "begin": [first, 0], "extent": [rows, DEPTH]}


def whole(name, *shape):
    return {"tensor": name, "begin": [0] * len(shape), "extent": list(shape)}


def code(rank):
    items = []
    for other in range(2):
        first, landed = sum(TOKENS[rank][:other]), sum(TOKENS[before][other] for before in range(rank))
        item = {"op": "copy" if other == rank else "push", "source": box("x", first, TOKENS[rank][other]),
                "destination": box("a", landed, TOKENS[rank][other])}
        items.append(item if other == rank else {**item, "peer": other})
    axes = [{"name": "m", "extent": ROWS, "tile": 16}, {"name": "n", "extent": COLUMNS, "tile": 16}, {"name": "k", "extent": DEPTH, "tile": 16, "reduced": True}]
    operands = [{"tensor": "a", "use": "read", "axes": ["m", "k"]}, {"tensor": "b", "use": "read", "axes": ["*", "k", "n"]},
                {"tensor": "c", "use": "accumulate", "axes": ["m", "n"]}]
    return {"ranks": str(rank), "resident": [whole("x", ROWS, DEPTH), whole("b", EXPERTS, DEPTH, COLUMNS)],
            "computes": [{"name": "experts", "kernel": "gemm", "axes": axes, "operands": operands}], "streams": [{"name": "tokens", "items": items}],
            "expected": [{"region": whole("c", ROWS, COLUMNS), "value": "gathered"}]}


def plan():
    return {"hemiola_plan": 1, "name": "uneven-experts", "collective": "custom", "mesh": [{"axis": "rank", "size": 2}],
            "tensors": [tensor("x", "input", ROWS, DEPTH), tensor("b", "input", EXPERTS, DEPTH, COLUMNS), tensor("a", "scratch", ROWS, DEPTH),
                        tensor("c", "output", ROWS, COLUMNS)],
            "codes": [code(0), code(1)]}


def reference(rank, held):
    first = [sum(TOKENS[source][:rank]) for source in range(2)]
    rows = torch.cat([held[source]["x"][first[source]:first[source] + TOKENS[source][rank]] for source in range(2)]).float()
    weights = held[rank]["b"].float()
    return {"c": torch.cat([block @ weights[expert] for block, expert in zip(rows.split(16), TABLE)])}


class Experts(unittest.TestCase):
    def test_with_uneven_tokens(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = {name: os.path.join(folder, name) for name in ("kernel.py", "plan.json", "fused.py")}
            with open(paths["kernel.py"], "w", encoding="utf-8") as file:
                file.write(KERNEL)
            with open(paths["plan.json"], "w", encoding="utf-8") as file:
                json.dump(plan(), file)
            blocks = [word for name in "MNK" for word in ("--constexpr", f"BLOCK_{name}=16")]
            kinds.hemiola("compile", paths["kernel.py"], "--plan", paths["plan.json"], *blocks, "--allow-partial", "-o", paths["fused.py"])
            text = kinds.read(paths["fused.py"])
        self.assertEqual(text.count("t.work.wave({"), 2)  # one for each source of tokens
        schedule = support.module_of(text)
        run, table = schedule.run, torch.tensor(TABLE, dtype=torch.int32)
        schedule.run = lambda rt, t: run(rt, t, expert_of_block=table)
        schedule.reference = reference
        for order in support.orders_of(schedule, ranks=(0,), seeds=1):
            world = InterleavedWorld(schedule.RANKS)
            states = [schedule.setup(rt) for rt in world.members]
            _check.check_world(world, schedule, states, lambda world=world, order=order: world.execute(order(world)), 2, True, 0)


if __name__ == "__main__":
    unittest.main()

"""hemiola.compile() of live kernels: what it returns is called on the ranks, in Triton's interpreter."""

import csv
import importlib.util
import json
import linecache
import os
import tempfile
import unittest

import torch
import triton
import triton.language as tl

import hemiola
import hemiola_rt
import kinds
import bench_test  # of tests/torch, where kinds looks
import support
from interleaved import InterleavedWorld, in_turn

CONFIG = {"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16}
TYPED = '''
@triton.jit
def offsets(pid, BLOCK: tl.constexpr):
    return pid * BLOCK + tl.arange(0, BLOCK)


@triton.jit
def typed(a_ptr, b_ptr, c_ptr, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    offs_m, offs_n = offsets(tl.program_id(0), BLOCK_M), offsets(tl.program_id(1), BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        offs_k = k + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + offs_m[:, None] * K + offs_k[None, :])
        b = tl.load(b_ptr + offs_k[:, None] * N + offs_n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(tl.float16))
'''


def shipped(name):
    """A kernel of examples/kernels, imported."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(kinds.KERNELS, f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def typed_in():
    """A kernel as a notebook has it: its text is known to linecache, and in no file."""
    linecache.cache["<cell 1>"] = (len(TYPED), None, TYPED.splitlines(keepends=True), "<cell 1>")
    names = {"triton": triton, "tl": tl}
    exec(compile(TYPED, "<cell 1>", "exec"), names)
    return names["typed"]


def plan_of(ranks=2):
    return hemiola.Plan.make("ag-gemm/swizzle", ranks, {"m": 32 * ranks, "n": 32 * ranks, "k": 32, "dtype": "float16"})


class Live(unittest.TestCase):
    def call(self, compiled):
        """Two calls on all ranks, with inputs given by name."""
        world = InterleavedWorld(compiled.ranks)
        for call in range(2):
            torch.manual_seed(call)
            held, results = [], []
            for rt in world.members:
                views = compiled.module.inputs(rt, compiled.setup(rt))
                held.append({name: torch.randn(view.shape).to(view.dtype) for name, view in views.items()})
            for rt, given in zip(world.members, held):
                results.append(compiled(rt, **given))
            world.execute(in_turn)
            for rank, result in enumerate(results):
                for name, value in compiled.module.reference(rank, held).items():
                    error = (result[name].double() - value.double()).abs().max() / value.abs().max()
                    self.assertLess(error.item(), hemiola_rt._check.TOLERANCE[result[name].dtype])

    def test_a_kernel_of_a_file(self):
        compiled = hemiola.compile(shipped("gemm_persistent"), plan_of(), constants={"GROUP_M": 2}, configs=[CONFIG])
        self.assertEqual(compiled.kernel, "gemm_persistent")
        self.call(compiled)

    def test_a_kernel_that_is_in_no_file(self):
        compiled = hemiola.compile(typed_in(), plan_of(), configs=[CONFIG])
        self.assertIn("def offsets(pid, BLOCK: tl.constexpr):", compiled.text)
        self.call(compiled)

    def test_another_configuration_of_the_same_file(self):
        compiled = hemiola.compile(shipped("gemm"), plan_of(), configs=[CONFIG, {**CONFIG, "BLOCK_M": 32}])
        self.assertEqual([config["BLOCK_M"] for config in compiled.configs], [16, 32])
        support.run_in_order(compiled.module, lambda world: in_turn)

    def test_plan_files_run_by_themselves(self):
        with tempfile.TemporaryDirectory() as folder:
            support.run_equal(self, [kinds.make_plan(folder, "ag-gemm/sequence", "degree=2")], "--poison")
            wrong = os.path.join(folder, "wrong.json")
            with open(wrong, "w", encoding="utf-8") as file:
                file.write('{"hemiola_plan": 1}')
            self.assertIn(f"{wrong}: error: ", support.run_processes(wrong, code=2))

    def test_a_bench_of_kernels_checks_and_times_them(self):
        with tempfile.TemporaryDirectory() as folder:
            configs, bench = os.path.join(folder, "configs.json"), os.path.join(folder, "bench")
            with open(configs, "w", encoding="utf-8") as file:
                json.dump([CONFIG], file)
            sizes = [word for size in ("m=32", "n=32", "k=32") for word in ("--param", size)]
            kinds.hemiola("tune", os.path.join(kinds.KERNELS, "gemm.py"), "--plan", "ag-gemm/swizzle", "--machine", "dgx-h100", "--ranks", "2",
                          *sizes, "--configs", configs, "--budget", "4", "--bench", bench)
            self.assertIn("wrote", bench_test.start(os.path.join(bench, "bench.py"), ranks=2))
            with open(os.path.join(bench, "times.csv"), newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            with open(os.path.join(bench, "schedules.json"), encoding="utf-8") as file:
                asked = json.load(file)["schedules"]
            self.assertEqual([row["schedule"] for row in rows], [one["text"] for one in asked])
            self.assertTrue(all(float(row["time_us"]) > 0 for row in rows))


if __name__ == "__main__":
    unittest.main()

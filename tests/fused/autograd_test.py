"""examples/autograd: a layer of two fused files beside the same layer in one process, its gradients too."""

import multiprocessing
import os
import sys
import tempfile
import unittest

import kinds
import torch
from hemiola_rt import SharedRuntime, load_file

sys.path.append(os.path.join(kinds.KERNELS, "..", "autograd"))
import column_parallel  # noqa: E402

ROWS, DEPTH, COLUMNS, RANKS = 64, 32, 32, 2


def values(number, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(number))


def member(rank, folder, files, results, by_operator):
    torch.set_num_threads(1)
    rt = SharedRuntime(folder, rank, RANKS)
    layer = column_parallel.ColumnParallel(rt, *map(load_file, files))
    call = torch.compile(column_parallel.operator(layer), backend="eager", fullgraph=True) if by_operator else layer
    found = []
    for turn in range(2):
        x = values(turn, ROWS, DEPTH).chunk(RANKS)[rank].clone().requires_grad_()
        w = values(10 + turn, DEPTH, COLUMNS * RANKS).chunk(RANKS, 1)[rank].contiguous().requires_grad_()
        y = call(x, w)
        (y.float() * values(20 + turn, ROWS, COLUMNS * RANKS).chunk(RANKS, 1)[rank].float()).sum().backward()
        found.append((y.detach(), x.grad, w.grad))
    torch.save(found, os.path.join(results, str(rank)))
    layer.close()
    rt.close()


class Autograd(unittest.TestCase):
    def compare(self, by_operator):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as results:
            files = []
            for number, (template, sizes) in enumerate((("ag-gemm/swizzle", (ROWS, COLUMNS * RANKS, DEPTH)), ("gemm-rs/direct", (ROWS, DEPTH, COLUMNS * RANKS)))):
                plan = kinds.make_plan(results, template, dtype="float32", sizes=tuple(f"{name}={size}" for name, size in zip("mnk", sizes)))
                files.append(kinds.fused(os.path.join(results), "gemm_persistent", kinds.PRODUCTS["gemm_persistent"], plan))
                os.rename(files[-1], os.path.join(results, f"file{number}.py"))
                files[-1] = os.path.join(results, f"file{number}.py")
            members = [multiprocessing.get_context("fork").Process(target=member, args=(rank, folder, files, results, by_operator)) for rank in range(RANKS)]
            for one in members:
                one.start()
            for one in members:
                one.join()
            self.assertEqual([one.exitcode for one in members], [0] * RANKS)
            found = [torch.load(os.path.join(results, str(rank))) for rank in range(RANKS)]
        for turn in range(2):
            x, w = values(turn, ROWS, DEPTH).float().requires_grad_(), values(10 + turn, DEPTH, COLUMNS * RANKS).float().requires_grad_()
            y = x @ w
            (y * values(20 + turn, ROWS, COLUMNS * RANKS).float()).sum().backward()
            for name, parts, whole, axis in (("y", 0, y.detach(), 1), ("x", 1, x.grad, 0), ("w", 2, w.grad, 1)):
                made = torch.cat([found[rank][turn][parts].float() for rank in range(RANKS)], axis)
                with self.subTest(turn=turn, of=name):
                    self.assertLess((made - whole).abs().max().item(), 1e-4 * whole.abs().max().item())

    def test_of_a_pair_of_files_is_that_of_the_layer(self):
        self.compare(by_operator=False)

    def test_is_an_operator_that_torch_keeps(self):
        if not hasattr(torch.library, "custom_op"):
            self.skipTest(f"SKIPPED: PyTorch {torch.__version__} has no torch.library.custom_op (2.4)")
        self.compare(by_operator=True)


if __name__ == "__main__":
    unittest.main()

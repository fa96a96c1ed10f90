"""Kernels with plans in them, executed by Triton's interpreter and compared with their references.

As processes over shared mappings (`python -m hemiola_rt`), with NaN in everything that has not arrived, movements in another order, one of
them late, two calls without a reset; and as ranks of one process in the orders that find missing waits, in which kernels are interrupted
whenever they look at a signal.
"""

import pathlib
import tempfile
import unittest

import kinds
import strangers
import support


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.files = {}
        for kernel, constants, template in kinds.kinds():
            plan = kinds.make_plan(cls.folder.name, template)
            cls.files[kernel, template] = kinds.fused(cls.folder.name, kernel, constants, plan)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @staticmethod
    def some(orders):
        """A usual run tries every third one, a long one (HEMIOLA_LONG_TESTS) all."""
        return orders if kinds.tries_all() else orders[1::3]

    def of_ranks(self, ranks):
        return [file for (_, template), file in self.files.items() if kinds.ranks_of(template) == ranks]

    def test_as_processes_with_movements_late_and_in_another_order(self):
        support.run_equal(self, self.of_ranks(2), "--poison", "--permute", "1", "--delay", "1,0,0,0.1")

    def test_as_processes_with_two_levels_of_rings(self):
        support.run_equal(self, self.of_ranks(4), "--poison", "--permute", "2")

    def test_in_orders_that_find_missing_waits(self):
        for kind, file in self.files.items():
            schedule = support.module_of(kinds.read(file))
            for order in self.some(support.orders_of(schedule, ranks=(0,), seeds=1)):
                with self.subTest(kind=kind):
                    support.run_in_order(schedule, order)

    def test_queries_in_rows_as_long_as_those_of_keys(self):
        for strides, template in ((True, "ring-attention/ring"), (False, "ring-attention/swizzle")):
            source = pathlib.Path(self.folder.name, f"one_length_{strides}.py")
            source.write_text(strangers.of_one_length(strides))
            plan = kinds.make_plan(self.folder.name, template)
            file = kinds.fused(self.folder.name, source.stem, (*kinds.ATTENTION["attention"], "HEADS=2"), plan, source=source)
            self.assertIn("[:, :64]  # in rows", kinds.read(file))
            schedule = support.module_of(kinds.read(file))
            for order in self.some(support.orders_of(schedule, ranks=(1,), seeds=1)):
                with self.subTest(strides=strides, template=template):
                    support.run_in_order(schedule, order)

    def test_of_more_parts_and_other_types(self):
        for dtype in ("float32", "bfloat16"):
            for kernel, template in (("gemm_persistent", "ag-gemm/swizzle"), ("gemm", "gemm-rs/direct"), ("gemm_grouped", "gemm-ar/partitioned")):
                plan = kinds.make_plan(self.folder.name, template, "split=2", dtype=dtype)
                file = kinds.fused(self.folder.name, kernel, kinds.PRODUCTS[kernel], plan, name=f"{kernel}_{dtype}.py")
                schedule = support.module_of(kinds.read(file))
                for order in self.some(support.orders_of(schedule, ranks=(1,), seeds=1)):
                    with self.subTest(kernel=kernel, dtype=dtype):
                        support.run_in_order(schedule, order)


if __name__ == "__main__":
    unittest.main()

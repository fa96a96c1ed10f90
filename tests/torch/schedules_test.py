"""Schedules that the command line compiled, executed and compared with their references.

As processes over shared mappings (`python -m hemiola_rt`) with NaN in everything that has not arrived, movements in another order, one
of them late, two calls without a reset; and as ranks of one process in the orders that find missing waits.
"""

import unittest

import plans
import support
from interleaved import at_random

GATHER, OTHER = list(plans.gather_kinds()), list(plans.other_kinds())


class Schedules(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = plans.temporary_folder()
        cls.plans = {}
        for name, template, parameters in [*GATHER, *OTHER]:
            cls.plans[name] = plans.make_plan(cls.folder.name, name.replace(" ", "-"), template, *parameters)
        for template in plans.COLLECTIVES:
            cls.plans[template] = plans.make_collective(cls.folder.name, template.replace("/", "-"), template)
        cls.files = {name: plans.compiled(plan) for name, plan in cls.plans.items()}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_of_ag_gemm_run_as_processes_and_equal_the_reference(self):
        files = [self.files[name] for name, _, _ in GATHER]
        self.assertEqual(len(files), 18)
        support.run_equal(self, files, "--poison", "--calls", "2", "--permute", "1", "--delay", "1,0,1,0.05")

    def test_of_the_other_operators_run_as_processes_and_equal_the_reference(self):
        support.run_equal(self, [self.files[name] for name, _, _ in OTHER], "--poison", "--calls", "2")

    def test_of_the_other_operators_take_a_late_chunk(self):
        names = [name for name, _, _ in OTHER if "2D hetero unfused" in name or "shards" in name]
        support.run_equal(self, [self.files[name] for name in names], "--poison", "--permute", "2", "--delay", "2,0,0,0.05")

    def test_of_collectives_run_as_processes_and_equal_the_reference(self):
        support.run_equal(self, [self.files[name] for name in plans.COLLECTIVES], "--poison", "--permute", "3")

    def test_are_right_in_orders_that_find_missing_waits(self):
        for name, file in self.files.items():
            with self.subTest(name):
                schedule = support.module_of(plans.read(file), file)
                orders = support.orders_of(schedule, ranks=(0,), seeds=1)
                # The mutants are found by these orders, so that all of them are tried on all that has mutants.
                for order in orders if plans.tries_all() or name in plans.MUTATED else (orders[3], orders[-1]):
                    support.run_in_order(schedule, order)

    def test_multiply_half_and_bfloat16_within_their_tolerance(self):
        for dtype in ("float16", "bfloat16"):
            for template, parameters in (("ag-gemm/sequence", ("axis=k",)), ("gemm-rs/sequence", ())):
                plan = plans.make_plan(self.folder.name, f"{dtype}-{template.replace('/', '-')}", template, *parameters, dtype=dtype)
                support.run_in_order(support.module_of(plans.read(plans.compiled(plan))), lambda world: at_random(1))

    def test_multiply_bfloat16_with_sums_in_float(self):
        sizes = ["m=32", "n=32", "k=2048", "tile_m=8", "tile_n=8", "tile_k=16"]
        plan = plans.make_plan(self.folder.name, "deep", "ag-gemm/shards", dtype="bfloat16", sizes=sizes)
        self.assertLess(support.run_in_order(support.module_of(plans.read(plans.compiled(plan))), lambda world: at_random(1)), 5e-3)

    def test_take_sizes_that_differ_by_axis(self):
        sizes = ["m=256", "n=32", "k=96", "tile_m=16", "tile_n=16", "tile_k=16"]
        file = plans.compiled(plans.make_plan(self.folder.name, "larger", "ag-gemm/sequence", "steps=hetero", sizes=sizes))
        self.assertLess(support.run_in_order(support.module_of(plans.read(file)), lambda world: at_random(2)), 1e-5)
        support.run_equal(self, [file], "--poison")


if __name__ == "__main__":
    unittest.main()

"""Kernels with plans in them on virtual ranks: all ranks in one process, each kernel one grid for all of them. On a GPU where PyTorch sees
one, and then with every movement late, so that kernels really wait; else in Triton's interpreter. `tests/fused/run` says which."""

import os
import tempfile
import unittest

import kinds
import strangers
import support
from hemiola_rt import _check
from hemiola_rt._virtual import VirtualWorld

ON_GPU = os.environ.get("TRITON_INTERPRET") != "1"


class VirtualRanks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def files(self):
        """A usual run in the interpreter tries every third one, on a GPU and in a long run all."""
        pairs = list(kinds.kinds())
        for kernel, constants, template in pairs if ON_GPU or kinds.tries_all() else pairs[::3]:
            yield kinds.fused(self.folder.name, kernel, constants, kinds.make_plan(self.folder.name, template))

    def test_equal_the_reference(self):
        support.run_equal(self, list(self.files()), "--virtual", "--poison", *(("--late", "0.0005") if ON_GPU else ()))

    def test_of_four_ranks_and_calls_in_a_row(self):
        plan = kinds.make_plan(self.folder.name, "gemm-rs/direct", ranks=4, dtype="float32", sizes=("m=64", "n=32", "k=64"))
        support.run_equal(self, [kinds.fused(self.folder.name, "gemm", (), plan)], "--virtual", "--poison", "--calls", "3")

    def test_of_a_kernel_that_takes_descriptors_of_the_host(self):
        file = strangers.job_of(self.folder.name, strangers.HOST_MADE, "scaled")["fused"]
        schedule = support.module_of(kinds.read(file))
        schedule.reference = lambda rank, held: {"b_desc": 2 * held[1 - rank]["sent"]}
        world = VirtualWorld(schedule.RANKS)
        states = [schedule.setup(rt) for rt in world.members]
        self.assertEqual(_check.check_world(world, schedule, states, world.execute, calls=2, poison=True), 0)

    def test_ranks_that_launch_different_grids_are_refused(self):
        plan = kinds.make_plan(self.folder.name, "ag-gemm/swizzle")
        schedule = support.module_of(kinds.read(kinds.fused(self.folder.name, "gemm", (), plan)))
        world = VirtualWorld(schedule.RANKS)
        states = [schedule.setup(rt) for rt in world.members]
        for rt, t in zip(world.members, states):
            t.work.values["stride_am"] += rt.rank
            schedule.run(rt, t)
        with self.assertRaisesRegex(ValueError, "ranks launch kernel gemm with different 'stride_am'; a grid has one"):
            world.execute()

    def test_options_without_an_effect_are_refused(self):
        for words, said in ((("--late", "1"), "--late has no effect without --virtual"),
                            (("--virtual", "--permute", "0"), "--permute has no effect with --virtual")):
            self.assertIn(said, support.run_processes("none.py", *words, code=2))


if __name__ == "__main__":
    unittest.main()

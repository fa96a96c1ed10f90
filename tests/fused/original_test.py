"""The comparison of fused kernels with their originals finds what is wrong, and says what it cannot run."""

import pathlib
import tempfile
import unittest

import kinds
import original
import strangers


class Originals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        original._interpreter.prepare()
        original.Fence.build()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def compared(self, text, kernel):
        return original.compare(strangers.job_of(self.folder.name, text, kernel))

    def shipped(self, kernel):
        return strangers.job_of(self.folder.name, pathlib.Path(kinds.KERNELS, f"{kernel}.py").read_text(), kernel)

    def changed(self, job, old, new):
        text = pathlib.Path(job["fused"]).read_text()
        self.assertIn(old, text)
        pathlib.Path(job["fused"]).write_text(text.replace(old, new))
        return job

    def test_shipped_kernels_are_equal(self):
        for kernel in ("gemm_persistent", "gemm_tma"):
            with self.subTest(kernel=kernel):
                self.assertEqual(original.compare(self.shipped(kernel))["outcome"], "equal")

    def test_a_wait_that_is_missing_is_seen(self):
        job = self.changed(self.shipped("gemm"), "    hm_wait(hm_needs", "    None and hm_wait(hm_needs")
        self.assertEqual(original.compare(job)["outcome"], "differs")

    def test_a_tile_that_is_taken_twice_is_seen(self):
        job = self.changed(self.shipped("gemm"), "hm_tile = tl.load(hm_row)", "hm_tile = tl.load(hm_rows)")
        self.assertEqual(original.compare(job)["outcome"], "differs")

    def test_what_strangers_do_is_equal(self):
        for text, kernel in ((strangers.HOST_MADE, "scaled"), (strangers.CONSTANT, "scaled"), (strangers.SQUARE, "squared"), (strangers.HALVES, "gated")):
            with self.subTest(kernel=text):
                self.assertEqual(self.compared(text, kernel)["outcome"], "equal")

    def test_what_cannot_be_run_says_why(self):
        self.assertEqual(self.compared(strangers.OUTSIDE, "scaled"), {"outcome": "not run", "why": "it loads where none of its tensors is"})

    def test_a_result_that_depends_on_the_order_of_programs_is_no_result(self):
        job = self.shipped("gemm")
        source = pathlib.Path(job["folder"], "overlapping.py")
        source.write_text(pathlib.Path(job["source"]).read_text().replace("* stride_cm", "* (stride_cm // 2)"))
        self.assertEqual(original.compare({**job, "source": str(source)}),
                         {"outcome": "not run", "why": "its programs write over each other: their order decides"})


if __name__ == "__main__":
    unittest.main()

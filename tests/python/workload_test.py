"""Workloads give what the command line gives."""

import json
import os
import tempfile
import unittest

import hemiola
from support import command_json

MODEL = """
name: small
activation: gelu
norm: layer
layers: 2
hidden: 256
heads: 4
vocabulary: 1024
sequence: 128
source: a test
"""
ARGUMENTS = ("--tp", "2", "--dp", "2", "--global-batch", "8", "--machine", "dgx-h100")


class Workloads(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.model = os.path.join(cls.folder.name, "small.yaml")
        with open(cls.model, "w", encoding="utf-8") as file:
            file.write(MODEL)
        cls.workload = hemiola.Workload(cls.model, tp=2, dp=2, global_batch=8)
        cls.found = cls.workload.run("dgx-h100")

    def test_an_iteration_is_that_of_the_command_line(self):
        theirs = command_json("workload", "make", self.model, *ARGUMENTS)["results"][0]
        self.assertEqual(self.found.time_fs, theirs["time_fs"])
        self.assertEqual(self.found.mfu, theirs["mfu"])
        self.assertEqual([one.name for one in self.found.calls], [one["name"] for one in theirs["launches"]])
        self.assertEqual([one.alone_fs for one in self.found.calls], [one["alone_fs"] for one in theirs["launches"]])
        self.assertEqual(self.found.classes[0].hidden_fs, theirs["classes"][0]["hidden_fs"])
        self.assertEqual(json.loads(self.found.to_json())["results"][0], theirs)
        path = sum(step["end_fs"] - step["begin_fs"] for step in theirs["critical_path"])
        self.assertEqual(sum(one.time_fs for one in self.found.path), path)

    def test_reasons_sum_to_the_time(self):
        for one in self.found.classes:
            parts = one.compute_fs + one.exposed_fs + one.copies_fs + one.waiting_fs + one.host_fs + one.idle_fs
            self.assertEqual(parts, self.found.time_fs)
            self.assertGreater(sum(one.memory_bytes.values()), 0)

    def test_what_ifs(self):
        for options in ({"without": "all-reduce"}, {"scale_compute": 0.5}, {"engine": "estimate"}):
            self.assertNotEqual(self.workload.run("dgx-h100", **options).time_fs, self.found.time_fs, options)
        slow = hemiola.Machine("dgx-h100", settings={"link.nvlink4.latency": "5us"}, ranks=4)
        self.assertGreater(hemiola.run_iteration(self.workload, slow).time_fs, self.found.time_fs)

    def test_a_trace_that_was_written_is_the_workload(self):
        prefix = os.path.join(self.folder.name, "t")
        self.workload.write_chakra(prefix)
        again = hemiola.Workload.read(prefix)
        self.assertEqual((again.ranks, again.nodes), (self.workload.ranks, self.workload.nodes))
        self.assertEqual(again.run("dgx-h100").time_fs, self.found.time_fs)

    def test_it_is_printed_traced_and_a_job(self):
        self.assertIn("all-reduce tp", str(self.found))
        self.assertGreater(len(self.found.trace()), 1000)
        small = hemiola.Workload(self.model, tp=2, phase="decode", context=16).run("dgx-h100")
        job = small.to_job()
        linked = hemiola.run(hemiola.Machine("dgx-h100", ranks=2), job, engine="fluid", check=False)
        self.assertGreater(linked.time_fs, 0)

    def test_a_search_ranks_what_fits(self):
        rows = hemiola.search_parallelism(self.model, hemiola.Machine("dgx-h100", ranks=4), global_batch=8, engine="estimate")
        ran = [row for row in rows if not row.refused]
        self.assertGreaterEqual(len(ran), 3)
        self.assertEqual(ran, sorted(ran, key=lambda row: -row.tokens_per_s_per_gpu))

    def test_what_cannot_be_says_so(self):
        with self.assertRaisesRegex(hemiola.BadInput, "4 heads cannot be divided by 3"):
            hemiola.Workload(self.model, tp=3)
        with self.assertRaisesRegex(hemiola.BadInput, "'gossip' is nothing to leave out"):
            self.workload.run("dgx-h100", without=["gossip"])
        with self.assertRaisesRegex(hemiola.BadInput, "no machine is given"):
            self.workload.run()
        with self.assertRaisesRegex(hemiola.BadInput, "'exact' is not one of its values"):
            self.workload.run("dgx-h100", engine="exact")
        with self.assertRaisesRegex(TypeError, "there is no argument 'tensor'"):
            hemiola.Workload(self.model, tensor=2)
        with self.assertRaises(hemiola.BadInput):
            hemiola.Workload.read(self.model)


if __name__ == "__main__":
    unittest.main()

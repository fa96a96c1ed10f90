"""Compute units beside a kernel whose programs wait: on processes that count them (--sm-slots). data/a2a_without_room.py is what was written when
tiles waited for their rank's own copies."""

import os
import subprocess
import sys
import tempfile
import unittest

import kinds
from plans import compiled

WITHOUT_ROOM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "a2a_without_room.py")


def executed(file, *more):
    return subprocess.run([sys.executable, "-m", "hemiola_rt", file, *more], capture_output=True, text=True)


class Room(unittest.TestCase):
    def test_a_kernel_over_all_units_waits_for_ever_for_a_local_copy(self):
        done = executed(WITHOUT_ROOM, "--sm-slots", "2", "--delay", "0,0,0,0.5", "--patience", "8")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("compute units, which kernels hold", done.stderr)
        self.assertEqual(executed(WITHOUT_ROOM, "--sm-slots", "8").returncode, 0)

    def test_what_is_written_ends_with_one_unit(self):
        with tempfile.TemporaryDirectory() as folder:
            for kernel, template in (("gemm_persistent", "a2a-gemm/direct"), ("gemm", "a2a-gemm/direct"), ("moe_capacity_gemm", "moe/direct:"),
                                     ("attention", "ulysses-attention/direct:"), ("gemm_persistent", "gemm-a2a-gemm/direct:"), ("gemm", "gemm-rs/direct")):
                with self.subTest(kernel=kernel, plan=template):
                    file = kinds.fused(folder, kernel, kinds.CONSTANTS[kernel], kinds.make_plan(folder, template))
                    done = executed(file, "--sm-slots", "1", "--poison", "--patience", "30")
                    self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_number_of_units_is_one_or_more(self):
        self.assertEqual(executed(WITHOUT_ROOM, "--sm-slots", "0").returncode, 2)
        self.assertIn("no effect with --virtual", executed(WITHOUT_ROOM, "--sm-slots", "2", "--virtual").stderr)


class Bench(unittest.TestCase):
    def test_times_several_files_in_one_run(self):
        with tempfile.TemporaryDirectory() as folder:
            file = kinds.fused(folder, "gemm", (), kinds.make_plan(folder, "ag-gemm/swizzle"))
            serial = compiled(kinds.make_plan(folder, "ag-gemm/serial"))
            members = [subprocess.Popen([sys.executable, "-m", "hemiola_rt", "--bench", file, serial], stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_PORT": str(40000 + os.getpid() % 20000)}) for rank in range(2)]
            said = [member.communicate()[0] for member in members]
        self.assertEqual([member.returncode for member in members], [0, 0])
        self.assertEqual(said[0].count("largest error"), 4)
        self.assertIn("kernels alone", said[0])
        self.assertEqual(said[1], "")

    def test_is_for_torchrun(self):
        done = executed(WITHOUT_ROOM, "--bench")
        self.assertEqual(done.returncode, 2)
        self.assertIn("torchrun", done.stderr)


if __name__ == "__main__":
    unittest.main()

"""What `explore --bench` writes and `compile` emits, started as torchrun starts it: one process a rank, RANK and WORLD_SIZE set."""

import csv
import os
import subprocess
import sys
import unittest

import plans


def start(file, ranks=plans.RANKS, code=0):
    """What the ranks print, the first one first."""
    path = os.environ["PYTHONPATH"] if "hemiola_rt" not in os.listdir(os.path.dirname(file)) else ""
    world = {**os.environ, "WORLD_SIZE": str(ranks), "MASTER_PORT": str(20000 + os.getpid() % 10000), "PYTHONPATH": path}
    members = [subprocess.Popen([sys.executable, file], env={**world, "RANK": str(rank), "LOCAL_RANK": str(rank)}, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True) for rank in range(ranks)]
    said = [member.communicate(timeout=800)[0] for member in members]
    assert all(member.returncode == code for member in members), "\n".join(said)
    return "\n".join(said)


class Started(unittest.TestCase):
    def test_benches_check_and_time_schedules_of_all_operators(self):
        with plans.temporary_folder() as folder:
            for operator in ("ag-gemm", "gemm-ar") if plans.tries_all() else ("gemm-ar",):
                with self.subTest(operator):
                    bench = os.path.join(folder, operator)
                    explore = ("explore", operator, "--gemm", "128,128,128", "--machine", "mi300x-8", "--ranks", str(plans.RANKS),
                               "--degrees", "2", "--losses", "none", "--top", "2", "--quiet", "--fluid", "12")
                    plans.hemiola(*explore, "--bench", bench)
                    said = start(os.path.join(bench, "bench.py"))
                    self.assertIn("us  serial", said)
                    with open(os.path.join(bench, "times.csv"), encoding="utf-8") as file:
                        rows = list(csv.DictReader(file))
                    self.assertEqual([row["what"] for row in rows[:3]][0::2], ["product", "schedule"])
                    self.assertEqual(len(rows), 5)
                    self.assertTrue(all(float(row["time_us"]) > 0 for row in rows))

    def test_compiled_files_check_themselves_and_print_their_times(self):
        with plans.temporary_folder() as folder:
            file = plans.compiled(plans.make_plan(folder, "overlap", "ag-gemm/sequence"), "--runtime")
            self.assertIn("equal to the reference", start(file))
            self.assertIn("3 ranks are running; the plan is for 4", start(file, ranks=3, code=1))


if __name__ == "__main__":
    unittest.main()

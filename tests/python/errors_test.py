"""An exception for each kind of error, with file and place; Ctrl-C; other threads."""

import os
import pickle
import signal
import tempfile
import threading
import time
import unittest

import hemiola
from hemiola import PlanBuilder, rank
from support import example


class Kinds(unittest.TestCase):
    def test_bad_input_has_file_line_and_hint(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            file.write('{"hemiola_plan": 1,\n "mesh": [{"axis": "rank", "size": 2}],\n "tensors": [],\n "code": []}\n')
            file.flush()
            with self.assertRaises(hemiola.BadInput) as caught:
                hemiola.Plan.load(file.name)
        error = caught.exception
        self.assertEqual(error.file, file.name)
        self.assertEqual(error.exit_code, 2)
        self.assertGreater(error.line, 0)
        self.assertIn("code", error.diagnostics[0].message)
        self.assertIn(file.name, str(error))

    def test_a_name_that_is_not_there_gets_a_suggestion(self):
        with self.assertRaisesRegex(hemiola.BadInput, "dgx-h100"):
            hemiola.Machine("dgx-h10")
        with self.assertRaisesRegex(hemiola.BadInput, "all-reduce/ring"):
            hemiola.run("ring:4", "all-reduce/rings", "4KiB")
        with self.assertRaisesRegex(hemiola.BadInput, "l2.size"):
            hemiola.Machine("dgx-h100", settings={"gpu.l2.sizes": "25MiB"})
        with self.assertRaises(hemiola.BadInput) as caught:
            hemiola.Machine("dgx-h10")
        self.assertEqual(caught.exception.file, "")

    def test_bad_values(self):
        for arguments in ({"size": "64"}, {"size": "4KiBs"}, {"engine": "lines"}, {"dtype": "floaty"}, {"launch": "x"}):
            keywords = {"size": "4KiB", **arguments}
            if arguments == {"size": "64"}:
                keywords["size"] = "64 elephants"
            with self.assertRaises(hemiola.BadInput, msg=str(arguments)):
                hemiola.run("ring:4", "all-gather/direct", **keywords)
        with self.assertRaises(TypeError):
            hemiola.sweep("ring:4", "all-gather/direct", "4KiB", engin="line")

    def test_a_size_that_is_not_legal_names_the_next_one(self):
        with self.assertRaises(hemiola.BadInput) as caught:
            hemiola.run("ring:4", "all-gather/direct", 100)
        self.assertTrue(caught.exception.diagnostics[0].hint)
        self.assertEqual(hemiola.run("ring:4", "all-gather/direct", 100, round_size=True).size_bytes % 64, 0)

    def test_a_wrong_program(self):
        with self.assertRaises(hemiola.WrongProgram) as caught:
            hemiola.run("dgx-h100", example("faulty_wrong_sum"))
        error = caught.exception
        self.assertNotIsInstance(error, hemiola.Deadlock)
        self.assertEqual(error.exit_code, 3)
        self.assertEqual(error.proof.verdict, "wrong")
        self.assertTrue(error.proof.counterexample)
        self.assertIn("1. rank", str(error))
        self.assertEqual(pickle.loads(pickle.dumps(error)).proof, error.proof)

    def test_a_deadlock_of_the_proof_and_of_the_simulation(self):
        with self.assertRaises(hemiola.Deadlock) as caught:
            hemiola.run("dgx-h100", example("faulty_missing_signal"))
        self.assertEqual(caught.exception.exit_code, 4)
        self.assertEqual(caught.exception.proof.verdict, "deadlock")
        with self.assertRaises(hemiola.Deadlock) as caught:
            hemiola.run("dgx-h100", example("faulty_missing_signal"), check=False)
        self.assertIsNone(caught.exception.proof)

    def test_an_internal_error(self):
        error = hemiola._errors.from_failure(1, [{"message": "a time below the bound"}], None)
        self.assertIsInstance(error, hemiola.InternalError)
        self.assertIsInstance(error, hemiola.Error)
        self.assertEqual(error.exit_code, 1)

    def test_a_plan_names_the_line_that_wrote_it(self):
        plan = PlanBuilder("all-gather", ranks=4, chunks_per_size=4)
        part, whole = plan.tensor("input", "input", 1), plan.tensor("output", "output", 4)
        stream = plan.stream()
        stream.copy(part[0], whole[rank])
        stream.push((rank + 1) % 4, part[0], whole[rank + 1])  # there is no chunk 4
        with self.assertRaises(hemiola.BadInput) as caught:
            plan.build()
        self.assertEqual(os.path.basename(caught.exception.file), "errors_test.py")
        with open(__file__, encoding="utf-8") as own:
            self.assertIn("there is no chunk 4", own.readlines()[caught.exception.line - 1])


class LongRuns(unittest.TestCase):
    """All-reduce of a gigabyte by the reference engine takes minutes."""

    def long_run(self):
        hemiola.run("dgx-h100", "all-reduce/ring", "1GiB", engine="reference", check=False)

    def test_ctrl_c_ends_one(self):
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        begin = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            self.long_run()
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(hemiola.run("ring:4", "all-gather/direct", "4KiB").checked, "full")  # all is well after it

    def test_ctrl_c_ends_a_sweep(self):
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            hemiola.sweep("dgx-h100", "all-reduce/ring", ["1GiB", "2GiB"], engine="reference", check=False, jobs=2)

    def test_other_threads_go_on(self):
        ticks = []
        ended = threading.Event()

        def tick():
            while not ended.is_set():
                ticks.append(time.monotonic())
                time.sleep(0.001)

        ticking = threading.Thread(target=tick)
        ticking.start()
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            self.long_run()
        ended.set()
        ticking.join()
        self.assertGreater(len(ticks), 20)

    def test_runs_in_several_threads_give_the_same(self):
        found = []
        runs = [
            threading.Thread(target=lambda: found.append(hemiola.run("ring:4", "all-reduce/ring", "64KiB").time_fs))
            for _ in range(4)
        ]
        for one in runs:
            one.start()
        for one in runs:
            one.join()
        self.assertEqual(len(found), 4)
        self.assertEqual(len(set(found)), 1)

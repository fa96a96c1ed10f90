"""tune, record, replay, diff and validate are the command line's; results in pickles, colours, pages."""

import json
import os
import pickle
import re
import tempfile
import unittest

import hemiola
from hemiola import _colours, _core
from support import SOURCE, command, command_json


class Verbs(unittest.TestCase):
    def test_replay_of_what_was_recorded(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "rank0.csv")
            recorded = hemiola.record("ring:4", "all-reduce/ring", "64KiB", file)
            with self.assertRaisesRegex(ValueError, "no page"):
                recorded.report()
            waits = hemiola.replay(file, "ring:4", "all-reduce/ring", "64KiB", settings={"gpu.sync.wait": ["spin", "monitor"]})
            theirs = command_json("replay", file, "-m", "ring:4", "--program", "all-reduce/ring", "--size", "64KiB", "--set", "gpu.sync.wait=spin,monitor")
        self.assertEqual(len(waits.rows), 2)
        self.assertEqual(waits["results"][0]["time_fs"], theirs["results"][0]["time_fs"])
        self.assertIn("spin", waits._repr_html_())

    def test_replay_takes_a_machine_that_was_changed(self):
        machine = hemiola.Machine("ring:4", settings={"link.*.latency": "2us"})
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "rank0.csv")
            hemiola.record(machine, "all-reduce/ring", "64KiB", file)
            answer = hemiola.replay(file, machine, "all-reduce/ring", "64KiB")
        self.assertGreater(answer["results"][0]["time_fs"], hemiola.run("ring:4", "all-reduce/ring", "64KiB", check=False).time_fs)

    def test_diff_of_outcomes_tables_and_files(self):
        one, other = (hemiola.run("ring:4", "all-reduce/ring", "64KiB", settings={"link.*.latency": latency}, check=False) for latency in ("1us", "500ns"))
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "a.json")
            with open(file, "w", encoding="utf-8") as out:
                out.write(one.to_json())
            moved = hemiola.diff(file, other)
        self.assertEqual(moved.rows[0]["size_bytes"], 65536)
        limit = hemiola.diff(*sorted((one, other), key=lambda outcome: outcome.time_fs), fail_above="1%")
        self.assertEqual(limit.exit_code, 5)

    def test_validate_and_tune(self):
        with tempfile.TemporaryDirectory() as folder:
            table = os.path.join(folder, "times.csv")
            with open(table, "w", encoding="utf-8") as out:
                out.write("size_bytes,time_us\n65536,30\n131072,40\n")
            errors = hemiola.validate(table, "ring:4", "all-reduce/ring", sizes=["64KiB"])
        self.assertEqual([row["size_bytes"] for row in errors.rows], [65536])
        kernel = os.path.join(SOURCE, "examples", "kernels", "gemm_persistent.py")
        tuned = hemiola.tune(kernel, "ag-gemm/swizzle", "dgx-h100", ranks=4, params={"m": 512, "n": 512, "k": 256}, budget=2, method="random")
        self.assertTrue(tuned.rows)
        self.assertEqual(bool(tuned.page), _core.has_pages())

    def test_errors_are_those_of_the_command(self):
        with self.assertRaises(hemiola.BadInput) as found:
            hemiola.diff("no_such_file.json", "b.json")
        self.assertEqual(found.exception.file, "no_such_file.json")
        with self.assertRaisesRegex(hemiola.BadInput, "budgte"):
            hemiola.tune("gemm.py", "ag-gemm/swizzle", "dgx-h100", params={"m": 512}, budgte=2)
        with self.assertRaisesRegex(hemiola.BadInput, "no such file"):
            hemiola.validate("no_such_table.csv")


class Kept(unittest.TestCase):
    def test_pickles_print_and_write_what_they_did(self):
        outcome = hemiola.run("ring:4", "all-reduce/ring", "64KiB", check=False)
        step = hemiola.Workload("llama-8b", tp=2, dp=2, global_batch=2).run("dgx-h100")
        for one in (outcome, step):
            again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(one))))
            self.assertEqual(str(again), str(one))
            self.assertEqual(hemiola._shown.json_text([again.to_json()], ""), hemiola._shown.json_text([one.to_json()], ""))
            self.assertIn('"command": "again"', again.to_json("again"))
            with self.assertRaisesRegex(TypeError, "another process"):
                again.report()
        again = pickle.loads(pickle.dumps(outcome))
        self.assertEqual(again.to_csv(), outcome.to_csv())
        self.assertNotIn("wall_s", again.to_json(volatile=False))
        self.assertEqual(pickle.loads(pickle.dumps(step)).to_job().text, step.to_job().text)

    def test_what_is_given_can_be_pickled(self):
        machine = hemiola.Machine("dgx-h100", {"gpu.l2.size": "25MiB"}).with_ranks([0, 2]).with_settings({"link.*.latency": "1us"})
        again = pickle.loads(pickle.dumps(machine))
        self.assertEqual((again.ranks, again.settings), (2, machine.settings))
        program = pickle.loads(pickle.dumps(hemiola.Program("all-reduce/ring", {"channels": 2})))
        self.assertEqual(program.parameters, {"channels": "2"})
        self.assertEqual(pickle.loads(pickle.dumps(hemiola.Workload("llama-8b", tp=2))).ranks, 2)
        table = hemiola.sweep("ring:4", "all-reduce/ring", ["64KiB", "128KiB"], check=False)
        self.assertEqual(len(json.loads(pickle.loads(pickle.dumps(table)).to_json())["results"]), 2)


class Looks(unittest.TestCase):
    def test_colours_are_those_of_the_pages(self):
        with open(os.path.join(SOURCE, "web", "src", "theme.js"), encoding="utf-8") as text:
            theme = text.read()
        known = re.search(r"const known = \{(.*?)\};", theme, re.S)[1]
        self.assertEqual({name.strip("'"): colour for name, colour in re.findall(r"('[a-z ]+'|\w+): '(#\w+)'", known)}, _colours.KNOWN)
        self.assertEqual(re.findall(r"'(#\w+)'", re.search(r"const palette = \[(.*?)\];", theme, re.S)[1]), _colours.PALETTE)

    def test_reasons_differ_in_colour(self):
        outcome = hemiola.run("dgx-h100", "all-reduce/ring", "1MiB", check=False)
        reasons = [name for name in outcome.attribution[0] if any(rank[name] for rank in outcome.attribution)]
        self.assertGreater(len(reasons), 10)
        self.assertEqual(len({_colours.colours_of(reasons)[name] for name in reasons}), len(reasons))

    @unittest.skipUnless(_core.has_pages(), "this build has no pages")
    def test_every_answer_has_a_page(self):
        check = hemiola.check("all-reduce", ranks=4, size="64KiB")
        self.assertGreater(len(check.proofs), 2)
        self.assertIn("Verdicts", check.report("again"))
        with self.assertRaisesRegex(TypeError, "another process"):
            pickle.loads(pickle.dumps(check)).report()
        outcome = hemiola.run("ring:4", "all-reduce/ring", "64KiB", check=False)
        self.assertIn("Where the time goes", hemiola.diff(outcome, outcome).report())

    @unittest.skipUnless(_core.has_pages(), "this build has no pages")
    def test_pages(self):
        table = hemiola.run("ring:4", "all-reduce/ring", sizes=["64KiB", "128KiB"], check=False)
        found = hemiola.explore("ag-gemm", gemm=(512, 1024, 512), machine="mi300x-8", degrees=[2])
        for page in (table.report(), table[0].outcome.report(), found.report(), hemiola.Machine("ring:4").report()):
            self.assertIn("<script", page)

    def test_everything_shows_itself(self):
        plan = hemiola.Plan.make("all-gather/ring", 4)
        for one in (plan, hemiola.Program(plan), hemiola.Machine("ring:4"), hemiola.Workload("llama-8b"), hemiola.check(plan)):
            self.assertIn("<pre>", one._repr_html_())

    def test_the_command_is_that_of_the_package(self):
        self.assertIn(hemiola.__version__, command("version"))


if __name__ == "__main__":
    unittest.main()

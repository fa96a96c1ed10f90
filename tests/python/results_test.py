"""run, check and sweep give what the command line gives."""

import builtins
import json
import os
import pickle
import tempfile
import unittest
from unittest import mock

import hemiola
from support import SOURCE, command, command_json, example, steady


class Run(unittest.TestCase):
    def test_a_run_is_that_of_the_command_line(self):
        theirs = command_json("run", "all-reduce/ring", "-m", "dgx-h100", "--size", "1MiB", "--param", "channels=4")
        outcome = hemiola.run("dgx-h100", "all-reduce/ring", "1MiB", parameters={"channels": 4})
        mine = json.loads(outcome.to_json())
        self.assertEqual(steady(mine["results"][0]), steady(theirs["results"][0]))
        for key in ("machine", "program", "engine", "schema"):
            self.assertEqual(mine[key], theirs[key])
        self.assertEqual(outcome.time_fs, theirs["results"][0]["time_fs"])
        self.assertEqual(outcome.attribution, [rank["fs"] for rank in theirs["results"][0]["attribution"]])
        self.assertEqual(outcome.counters, theirs["results"][0]["counters"])

    def test_a_run_as_in_a_notebook(self):
        machine = hemiola.Machine("dgx-h100", ranks=4)
        one = hemiola.run("dgx-h100", "all-reduce/ring", "1MiB", ranks=4, params={"channels": 4}, check=False)
        self.assertEqual(one.time_fs, hemiola.run(machine, "all-reduce/ring", "1MiB", parameters={"channels": 4}, check=False).time_fs)
        table = hemiola.run("dgx-h100", "all-reduce/ring", sizes=range(1 << 16, 1 << 18, 1 << 16), ranks=[0, 1], check=False)
        self.assertEqual([row.size_bytes for row in table], [1 << 16, 2 << 16, 3 << 16])
        self.assertEqual(table._repr_html_().count("<tr>"), 4)
        self.assertIn("all-reduce/ring", one._repr_html_())
        self.assertIn("<pre>", machine._repr_html_())
        with self.assertRaisesRegex(hemiola.BadInput, "cannot take a size"):
            hemiola.run("dgx-h100", "all-reduce/ring", sizes=["1MiB", 1000])
        with self.assertRaisesRegex(TypeError, "one of them"):
            hemiola.run("dgx-h100", "all-reduce/ring", "1MiB", sizes=["1MiB"])

    def test_sizes_are_any_whole_numbers_and_times_have_units(self):
        class Whole:  # as NumPy's
            def __index__(self):
                return 1 << 20

        self.assertEqual(hemiola.run("ring:4", "all-reduce/ring", Whole(), check=False).size_bytes, 1 << 20)
        for skew in ([0, 5], ["0ns", 5.0]):
            with self.assertRaisesRegex(hemiola.BadInput, "is not a time.*\n.*has a unit"):
                hemiola.run("ring:4", "all-reduce/ring", "1MiB", skew=skew)

    def test_settings_options_and_files(self):
        theirs = command_json(
            "run", example("allreduce_two_shot_8g"), "-m", "dgx-h100", "--size", "64KiB", "--set", "gpu.l2.size=25MiB",
            "--launch", "graph", "--engine", "reference", "--skew", "0ns,5us", "--dtype", "half",
        )  # fmt: skip
        outcome = hemiola.run(
            "dgx-h100", example("allreduce_two_shot_8g"), 65536, settings={"gpu.l2.size": "25MiB"}, launch="graph",
            engine="reference", skew=["0ns", "5us"], dtype="half",
        )  # fmt: skip
        self.assertEqual(steady(json.loads(outcome.to_json())["results"][0]), steady(theirs["results"][0]))
        self.assertEqual(outcome.settings, {"gpu.l2.size": "25MiB"})

    def test_the_fastest_of_a_collective(self):
        theirs = command_json("run", "all-gather", "-m", "ring:4", "--size", "64KiB")
        outcome = hemiola.run("ring:4", "all-gather", "64KiB")
        self.assertEqual(outcome.program, theirs["results"][0]["settings"]["program"])
        self.assertEqual(outcome.time_fs, theirs["results"][0]["time_fs"])
        self.assertIn("is the fastest of", outcome.notices[-1].message)

    def test_the_default_size_is_that_of_the_command_line(self):
        theirs = command_json("run", "all-gather/direct", "-m", "ring:5")
        self.assertEqual(hemiola.run("ring:5", "all-gather/direct").size_bytes, theirs["results"][0]["size_bytes"])

    def test_attributions_sum_to_the_time(self):
        outcome = hemiola.run("ring:4", "all-reduce/ring", "64KiB")
        self.assertEqual([sum(rank.values()) for rank in outcome.attribution], [outcome.time_fs] * 4)
        self.assertGreaterEqual(outcome.time_fs, outcome.bound_fs)

    def test_an_outcome_is_printed_and_pickled(self):
        outcome = hemiola.run("ring:4", "all-reduce/ring", "64KiB")
        self.assertIn("# machine  ring:4", str(outcome))
        self.assertIn("# where the", str(outcome))
        copy = pickle.loads(pickle.dumps(outcome))
        self.assertEqual((copy.time_fs, copy.links), (outcome.time_fs, outcome.links))
        self.assertIn("time_fs", str(copy))
        with self.assertRaises(TypeError):
            copy.to_json()

    def test_a_trace(self):
        self.assertGreater(len(hemiola.run("ring:2", "all-reduce/ring", "4KiB").trace()), 1000)


class Check(unittest.TestCase):
    def compare(self, check, theirs):
        self.assertEqual(check.verdict, theirs["verdict"])
        self.assertEqual(len(check.proofs), len(theirs["checks"]))
        for mine, other in zip(check.proofs, theirs["checks"]):
            self.assertEqual(mine.summary, other["summary"])
            self.assertEqual(mine.proven, other["proven"])
            self.assertEqual(mine.of_plan, other["kind"] == "plan")
            self.assertEqual([step.text for step in mine.counterexample], [step["text"] for step in other["counterexample"]])
            if not mine.of_plan:
                self.assertEqual((mine.size_bytes, mine.calls), (other["size_bytes"], other["calls"]))

    def test_what_is_proven(self):
        self.compare(
            hemiola.check("all-reduce/ring", "dgx-h100", "1MiB"),
            command_json("check", "all-reduce/ring", "-m", "dgx-h100", "--size", "1MiB"),
        )

    def test_what_is_wrong(self):
        check = hemiola.check(example("faulty_wrong_sum"))
        self.compare(check, command_json("check", example("faulty_wrong_sum"), code=3))
        self.assertFalse(check)
        self.assertIn("rank", str(check))

    def test_a_deadlock(self):
        check = hemiola.check(example("faulty_missing_signal"))
        self.compare(check, command_json("check", example("faulty_missing_signal"), code=4))

    def test_a_promise(self):
        """A custom program without a promise is not proven, with one it is as on the command line."""
        plan = json.loads(command("plan", "convert", "all-gather/direct", "--ranks", "4", "--to", "mscclpp"))
        plan["collective"] = "custom"
        promise = {"begin": "i", "loop": 4, "copy": {"rank": "i", "begin": 0}}
        with tempfile.TemporaryDirectory() as folder:
            program, stated = os.path.join(folder, "plan.json"), os.path.join(folder, "promise.json")
            with open(program, "w", encoding="utf-8") as file:
                json.dump(plan, file)
            with open(stated, "w", encoding="utf-8") as file:
                json.dump({"hemiola_promise": 1, "codes": [{"ranks": "all", "output": [promise]}]}, file)
            self.compare(hemiola.check(program), command_json("check", program, code=6))
            check = hemiola.check(program, promise=stated)
            self.compare(check, command_json("check", program, "--promise", stated))
            self.assertTrue(check, str(check))
            with self.assertRaisesRegex(hemiola.BadInput, "says itself what it leaves"):
                hemiola.check("all-reduce/ring", promise=stated)

    def test_a_plan_and_its_program(self):
        parameters = ["--param", "m=512", "--param", "n=512", "--param", "k=512"]
        self.compare(
            hemiola.check("ag-gemm/ring", "ring:4", parameters={"m": 512, "n": 512, "k": 512}),
            command_json("check", "ag-gemm/ring", "-m", "ring:4", *parameters),
        )


class Sweep(unittest.TestCase):
    def test_a_table_of_sizes_is_that_of_the_command_line(self):
        theirs = command_json("run", "all-gather/direct", "-m", "ring:4", "--sizes", "1KiB:64KiB:x4")
        table = hemiola.sweep("ring:4", "all-gather/direct", "1KiB:64KiB:x4", jobs=2)
        mine = json.loads(table.to_json())
        self.assertEqual([steady(one) for one in mine["results"]], [steady(one) for one in theirs["results"]])

    def test_combinations_in_their_order(self):
        table = hemiola.sweep(
            "ring:4", ["all-gather/direct", "all-gather/ring"], ["4KiB", 8192], settings={"link.*.latency": ["1us", "2us"]}
        )
        asked = [(row.settings["link.*.latency"], row.program, row.size_bytes) for row in table]
        programs = ("all-gather/direct", "all-gather/ring")
        self.assertEqual(asked, [(a, b, c) for a in ("1us", "2us") for b in programs for c in (4096, 8192)])
        self.assertEqual(table.fastest().time_fs, min(outcome.time_fs for outcome in table.outcomes))
        self.assertLess(table[0].outcome.time_fs, table[4].outcome.time_fs)

    def test_a_point_that_fails_is_a_row(self):
        table = hemiola.sweep("ring:4", "all-gather/direct", [100, 4096])
        self.assertIsInstance(table[0].error, hemiola.BadInput)
        self.assertIsNone(table[0].outcome)
        self.assertIsNotNone(table[1].outcome)
        self.assertIn("failed", repr(table))
        self.assertEqual(len(table.to_dicts()), 2)


class Optional(unittest.TestCase):
    def setUp(self):
        self.outcome = hemiola.run("ring:4", "all-reduce/ring", "64KiB")

    def test_a_package_that_is_not_there_is_named(self):
        real = builtins.__import__

        def without(name, *arguments, **keywords):
            if name.partition(".")[0] in ("pandas", "matplotlib"):
                raise ImportError(name)
            return real(name, *arguments, **keywords)

        hidden = {"pandas": None, "matplotlib": None, "matplotlib.pyplot": None}
        with mock.patch.dict("sys.modules", hidden), mock.patch("builtins.__import__", without):
            with self.assertRaisesRegex(ImportError, r"to_pandas\(\) needs pandas.*pip install pandas"):
                self.outcome.to_pandas()
            with self.assertRaisesRegex(ImportError, r"plot\(\) needs matplotlib.*pip install matplotlib"):
                self.outcome.plot()

    def test_frames(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("pandas is not installed")
        frame = self.outcome.to_pandas()
        self.assertEqual(frame.shape[0], 4)
        self.assertAlmostEqual(frame.loc[0].sum(), self.outcome.time_ns, places=3)
        self.assertEqual(len(self.outcome.to_pandas("links")), len(self.outcome.links))
        table = hemiola.sweep("ring:4", "all-gather/direct", ["4KiB", "8KiB"])
        self.assertEqual(list(table.to_pandas()["size_bytes"]), [4096, 8192])

    def test_pictures(self):
        try:
            import matplotlib
        except ImportError:
            self.skipTest("matplotlib is not installed")
        matplotlib.use("Agg")
        self.assertEqual(self.outcome.plot().get_xlabel(), "time (us)")
        self.assertEqual(len(hemiola.sweep("ring:4", "all-gather/direct", ["4KiB", "8KiB"]).plot().lines), 1)


class Jobs(unittest.TestCase):
    def job(self, *launches):
        return hemiola.Job({"launches": list(launches)})

    def launch(self, name, **more):
        return {"name": name, "run": "all-gather/direct", "size": "64KiB", **more}

    def test_launches_of_a_job(self):
        job = self.job(self.launch("a"), self.launch("b", after=["a"]))
        outcome = hemiola.run("ring:4", job)
        self.assertEqual([launch.name for launch in outcome.launches], ["a", "b"])
        first, second = outcome.launches
        self.assertGreaterEqual(second.end_fs, first.end_fs)
        self.assertEqual(sum(second.attribution.values()), second.end_fs - second.begin_fs)
        self.assertEqual(first.ranks, [0, 1, 2, 3])
        self.assertTrue(hemiola.check(job, "ring:4"))

    def test_a_job_is_that_of_the_command_line(self):
        file = os.path.join(SOURCE, "examples/job_overlap/job.yaml")
        theirs = command_json("run", file, "-m", "dgx-h100")
        outcome = hemiola.run("dgx-h100", file)
        self.assertEqual(steady(json.loads(outcome.to_json())["results"][0]), steady(theirs["results"][0]))
        self.assertEqual([one.alone_fs for one in outcome.launches], [one["alone_fs"] for one in theirs["results"][0]["launches"]])
        self.assertIn(outcome.launches[0].name, str(outcome))

    def test_bad_jobs(self):
        with self.assertRaises(hemiola.Deadlock):  # launches that wait for each other
            hemiola.run("ring:4", self.job(self.launch("a", after=["b"]), self.launch("b", after=["a"])))
        with self.assertRaisesRegex(hemiola.BadInput, "rank"):
            hemiola.run("ring:4", self.job(self.launch("a", ranks="0-9")))
        with self.assertRaises(hemiola.BadInput):
            hemiola.run("ring:4", self.job(self.launch("a")), "64KiB")
        with self.assertRaises(hemiola.BadInput):
            hemiola.check(self.job(self.launch("a")))
        with self.assertRaises(hemiola.BadInput):
            hemiola.Job({"launch": []})


class Machines(unittest.TestCase):
    def test_what_there_is(self):
        self.assertIn("dgx-h100", hemiola.Machine.built_ins())
        self.assertIn("all-reduce/ring", hemiola.Program.built_ins())
        self.assertIn("all-reduce/ring", hemiola.Plan.templates())
        self.assertEqual(hemiola.Machine("dgx-h100").parameters["gpu.l2.size"].value, "50 MiB")

    def test_it_is_shown_as_the_command_line_shows_it(self):
        self.assertEqual(hemiola.Machine("dgx-h100").show(), command("machine", "show", "dgx-h100"))

    def test_ranks(self):
        self.assertEqual(hemiola.Machine("dgx-h100", ranks=[0, 2, 4, 6]).ranks, 4)
        self.assertEqual(hemiola.Machine("dgx-h100").with_ranks(2).ranks, 2)

"""explore and explore_suite give what the command line gives."""

import os
import tempfile
import unittest

import hemiola
from support import command, command_json

SCENARIOS = """
scenarios:
  - {name: one, set: fit, operator: ag-gemm, gemm: [512, 1024, 512], ranks: 8}
  - {name: many, operator: ag-gemm, gemm: [512, 1024, 512], ranks: 16}
  - {name: experts, operator: a2a-gemm, gemm: [512, 512, 512], ranks: 4}
"""
ARGUMENTS = ("--machine", "mi300x-8", "--degrees", "2")


def frame_of(test, found, *what):
    try:
        import pandas  # noqa: F401
    except ImportError:
        test.skipTest("pandas is not installed")
    return found.to_pandas(*what)


class Explore(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.found = hemiola.explore("ag-gemm", gemm=(512, 1024, 512), machine="mi300x-8", degrees=(2,))

    def test_an_exploration_is_that_of_the_command_line(self):
        theirs = command_json("explore", "ag-gemm", "--gemm", "512,1024,512", *ARGUMENTS)
        self.assertEqual(self.found.best.text, theirs["best"])
        self.assertEqual(self.found.serial.time_fs, theirs["serial"]["time_fs"])
        self.assertEqual(self.found.serial.program, theirs["serial"]["program"])
        self.assertEqual(self.found.ideal_fs, theirs["ideal_fs"])
        self.assertEqual(self.found.space, theirs["space"])
        self.assertEqual(len(self.found.schedules), len(theirs["results"]))
        for mine, other in zip(self.found.schedules, theirs["results"]):
            self.assertEqual(mine.text, other["schedule"])
            self.assertEqual(mine.parameters, other["parameters"])
            self.assertEqual((mine.time_fs, mine.confirmed_fs), (other["time_fs"], other["confirmed_fs"]))
            self.assertEqual(mine.speedup, other["speedup"])
            self.assertEqual(mine.losses, other["losses"]["fs"] if other["losses"] else {})

    def test_the_best_is_a_program(self):
        best = self.found.best
        run = hemiola.run("mi300x-8", best.to_program(), engine="fluid", warmup=1, iterations=1)
        self.assertEqual(run.time_fs, best.fluid_fs)
        self.assertEqual(self.found.best_fs, best.time_fs)
        self.assertGreater(self.found.speedup, 1)

    def test_serial_may_be_the_best(self):
        found = hemiola.explore("a2a-gemm", local=(64, 64, 64), machine="mi300x-8", degrees=[2], losses="none")
        self.assertEqual(found.operator.m, 512)
        self.assertIs(found.best, found.serial)
        self.assertEqual(found.speedup, 1)

    def test_it_is_printed_and_a_table(self):
        self.assertIn("serial", str(self.found))
        row = self.found.to_dicts()[0]
        self.assertEqual(row["time_fs"], self.found.schedules[0].time_fs)
        self.assertIn("lost_links_fs", row)
        frame = frame_of(self, self.found)
        self.assertEqual(list(frame["text"]), [one.text for one in self.found.schedules])

    def test_bad_arguments(self):
        def expect(message, *arguments, error=hemiola.BadInput, **named):
            with self.assertRaisesRegex(error, message):
                hemiola.explore(*arguments, **named)

        sizes = (512, 1024, 512)
        expect("no machine is given", "ag-gemm", gemm=sizes)
        expect("no sizes are given", "ag-gemm", machine="mi300x-8")
        expect("sizes are given twice", "ag-gemm", sizes, "mi300x-8", local=sizes)
        expect("did you mean 'ag-gemm'", "ag-gem", sizes, "mi300x-8")
        expect("does not divide by 8", "ag-gemm", (500, 1024, 512), "mi300x-8")
        expect("2 sizes are given", "ag-gemm", (512, 1024), "mi300x-8")
        expect("gemm-rs gathers nothing", "gemm-rs", sizes, "mi300x-8", gather="b")
        expect("losses: error: 'some' is none of them", "ag-gemm", sizes, "mi300x-8", losses="some")
        expect("did you mean 'push'", "ag-gemm", sizes, "mi300x-8", transfers=["pus"])
        expect("there is no argument 'degree'", "ag-gemm", sizes, "mi300x-8", degree=2, error=TypeError)


class Suite(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = os.path.join(self.folder.name, "suite.yaml")
        with open(self.file, "w", encoding="utf-8") as text:
            text.write(SCENARIOS)

    def explore(self, **named):
        return hemiola.explore_suite(self.file, "mi300x-8", degrees=[2], losses="none", **named)

    def test_a_suite_is_that_of_the_command_line(self):
        database = os.path.join(self.folder.name, "rows")
        theirs = command_json("explore", "--suite", self.file, *ARGUMENTS, "--losses", "none", "--database", database)
        found = self.explore(threads=2)
        self.assertEqual([one.name for one in found], [one["name"] for one in theirs["scenarios"]])
        for mine, other in zip(found, theirs["scenarios"]):
            if mine.found is None:
                self.assertEqual((other["status"], mine.error), ("refused", other["error"]))
                continue
            row = mine.to_dict()
            for key in ("set", "m", "n", "k", "ranks", "serial_fs", "best", "best_family", "best_fs", "speedup", "simulated", "space"):
                self.assertEqual(row[key], other[key], key)
        self.assertEqual([one.name for one in found.refused], ["many"])
        self.assertEqual(len(found.explored), 2)
        self.assertEqual(found["experts"].operator.kind, "a2a-gemm")

    def test_it_goes_on_with_what_the_command_line_wrote(self):
        database = os.path.join(self.folder.name, "rows")
        command("explore", "--suite", self.file, *ARGUMENTS, "--losses", "none", "--database", database, "--quiet")
        self.assertEqual(self.explore(database=database).to_dicts(), self.explore().to_dicts())
        with self.assertRaisesRegex(hemiola.BadInput, "holds other results: option fluid 60, not 5"):
            self.explore(database=database, fluid=5)

    def test_tables(self):
        found = self.explore()
        self.assertEqual(list(frame_of(self, found)["name"]), ["one", "many", "experts"])
        schedules = found.to_pandas("schedules")
        self.assertEqual(len(schedules), sum(len(one.found.schedules) for one in found.explored))
        families = found.to_pandas("families")
        self.assertEqual(list(families.index), ["one", "experts"])
        self.assertEqual(families.loc["one"].max(), max(one.speedup for one in found["one"].found.schedules))


if __name__ == "__main__":
    unittest.main()

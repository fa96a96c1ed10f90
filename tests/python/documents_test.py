"""The Python lines of README.md, docs/python.md and docs/explore.md run as they stand, each document's in one program."""

import contextlib
import doctest
import io
import os
import re
import unittest

import hemiola
import hemiola.plan
from support import SOURCE


class Documents(unittest.TestCase):
    def run_document(self, name):
        with open(os.path.join(SOURCE, name), encoding="utf-8") as text:
            lines = text.read()
        blocks = list(re.finditer(r"^```python\n(.*?)^```$", lines, re.MULTILINE | re.DOTALL))
        self.assertTrue(blocks, f"{name} has no Python")
        names: dict = {}
        before = os.getcwd()
        os.chdir(SOURCE)  # files are named as a reader of the clone names them
        try:
            for block in blocks:
                first = lines.count("\n", 0, block.start()) + 1
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(compile("\n" * first + block.group(1), name, "exec"), names)
        finally:
            os.chdir(before)
        return names

    def test_the_examples_of_docstrings(self):
        for module in (hemiola, hemiola.plan):
            found = doctest.testmod(module)
            self.assertGreater(found.attempted, 0)
            self.assertEqual(found.failed, 0)

    def test_the_readme(self):
        self.run_document("README.md")

    def test_what_explore_finds(self):
        names = self.run_document("docs/explore.md")
        self.assertGreater(names["found"].speedup, 1)

    def test_the_manual(self):
        names = self.run_document("docs/python.md")
        self.assertEqual(names["outcome"].checked, "full")
        self.assertEqual(len(names["rows"]), 12)

"""The notebooks of examples/notebooks run from top to bottom. Cells that draw or need pandas run where these are there; tools/test notebooks runs all with Jupyter."""

import ast
import glob
import importlib.util
import json
import os
import unittest

from support import SOURCE

FOLDER = os.path.join(SOURCE, "examples", "notebooks")
CAN_PLOT = all(importlib.util.find_spec(name) for name in ("matplotlib", "pandas"))


def run_cell(text, names):
    """As Jupyter does: the last expression is shown. Returns how it looks."""
    tree = ast.parse(text)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    shown = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if last else None
    look = getattr(shown, "_repr_html_", None)
    return look() if look else repr(shown)


class Notebooks(unittest.TestCase):
    def run_notebook(self, file):
        with open(file, encoding="utf-8") as text:
            cells = [cell for cell in json.load(text)["cells"] if cell["cell_type"] == "code"]
        names, left_out = {}, 0
        here = os.getcwd()
        os.chdir(FOLDER)
        self.addCleanup(os.chdir, here)
        for cell in cells:
            if "plot" in cell["metadata"].get("tags", ()) and not CAN_PLOT:
                left_out += 1
                continue
            self.assertTrue(run_cell("".join(cell["source"]), names))
        self.assertLess(left_out, len(cells) - 2)
        return left_out

    def test_there_are_five(self):
        self.assertEqual(len(glob.glob(os.path.join(FOLDER, "*.ipynb"))), 5)


def _test_of(file):
    def test(self):
        left_out = self.run_notebook(file)
        if left_out:
            self.skipTest(f"{left_out} cells of {os.path.basename(file)} need matplotlib and pandas; the others ran")

    return test


for path in glob.glob(os.path.join(FOLDER, "*.ipynb")):
    setattr(Notebooks, "test_" + os.path.basename(path).partition(".")[0], _test_of(path))

if __name__ == "__main__":
    unittest.main()

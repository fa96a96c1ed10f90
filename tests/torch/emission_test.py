"""What is compiled from plans, without PyTorch: the same bytes every time, and Python."""

import ast
import unittest

import plans


class Emission(unittest.TestCase):
    def test_every_kind_is_python_and_the_same_bytes_every_time(self):
        with plans.temporary_folder() as folder:
            for name, template, parameters in [*plans.gather_kinds(), *plans.other_kinds()]:
                with self.subTest(name):
                    plan = plans.make_plan(folder, name.replace(" ", "-"), template, *parameters)
                    text = plans.read(plans.compiled(plan))
                    self.assertEqual(text, plans.read(plans.compiled(plan)))
                    self.check_python(text)

    def test_collectives_are_python(self):
        with plans.temporary_folder() as folder:
            for template in plans.COLLECTIVES:
                with self.subTest(template):
                    self.check_python(plans.read(plans.compiled(plans.make_collective(folder, template.replace("/", "-"), template))))

    def check_python(self, text):
        tree = ast.parse(text)
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.assertEqual(functions, {"setup", "inputs", "run", "reference"})
        imported = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
        self.assertEqual(imported, {"sys", "types", "torch", "hemiola_rt"})
        # Ranks that do the same are written once, and what repeats is a loop.
        self.assertLess(text.count("\n"), 150)
        self.assertLess(max(map(len, text.split("\n"))), 200)

    def test_another_shape_changes_numbers_and_nothing_else(self):
        with plans.temporary_folder() as folder:
            small = plans.compiled(plans.make_plan(folder, "plan", "ag-gemm/sequence"))
            before = plans.read(small)
            sizes = ["m=256", "n=64", "k=64", "tile_m=16", "tile_n=16", "tile_k=16"]
            after = plans.read(plans.compiled(plans.make_plan(folder, "plan", "ag-gemm/sequence", sizes=sizes)))
            self.assertNotEqual(before, after)
            self.assertEqual(before.count("\n"), after.count("\n"))


if __name__ == "__main__":
    unittest.main()

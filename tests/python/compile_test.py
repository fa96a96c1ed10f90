"""compile gives what the command line gives, without PyTorch and Triton."""

import os
import pathlib
import tempfile
import unittest

import hemiola
from support import command

KERNELS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "kernels"
KERNEL = KERNELS / "gemm_persistent.py"
CONFIG = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32, "num_stages": 3}


def plan_of(name="ag-gemm/swizzle", **more):
    return hemiola.Plan.make(name, 2, {"m": 128, "n": 64, "k": 64, **more})


def body(text):
    """Without the header, which says who wrote it."""
    return text[text.index("import sys"):]


class Compile(unittest.TestCase):
    def test_gives_what_the_command_line_gives(self):
        plan = plan_of()
        made = hemiola.compile(KERNEL, plan, constants={"GROUP_M": 4, "BLOCK_M": 32})
        with tempfile.TemporaryDirectory() as folder:
            file, output = os.path.join(folder, "plan.json"), os.path.join(folder, "fused.py")
            pathlib.Path(file).write_text(plan.to_json(), encoding="utf-8")
            command("compile", str(KERNEL), "--plan", file, "--constexpr", "GROUP_M=4", "--constexpr", "BLOCK_M=32", "-o", output)
            self.assertEqual(body(made.text), body(pathlib.Path(output).read_text(encoding="utf-8")))
            for same in (file, pathlib.Path(file), plan.to_json()):
                self.assertEqual(body(hemiola.compile(KERNEL, same, constants={"GROUP_M": 4, "BLOCK_M": 32}).text), body(made.text))
            made.write(output)
            self.assertEqual(pathlib.Path(output).read_text(encoding="utf-8"), made.text)
        self.assertEqual(made.kernel, "gemm_persistent")
        self.assertEqual(made.ranks, 2)
        self.assertIn(f'PLAN = "{made.plan_hash}"', made.text)

    def test_takes_the_text_of_a_kernel_and_its_configurations(self):
        text = KERNEL.read_text(encoding="utf-8")
        large = {**CONFIG, "BLOCK_M": 128}
        made = hemiola.compile(text, plan_of(), configs=[CONFIG, large], name="gemm_persistent")
        self.assertIn('"num_stages": 3', made.text)
        self.assertEqual(len(made.dropped), 1)
        self.assertRegex(made.dropped[0], "BLOCK_M=128.*straddle chunks")

    def test_without_a_kernel_products_are_those_of_pytorch(self):
        made = hemiola.compile(None, plan_of("ag-gemm/sequence"))
        self.assertEqual(made.kernel, "")
        self.assertIn(".mm(", made.text)

    def test_refuses_with_the_place(self):
        with self.assertRaises(hemiola.BadInput) as caught:
            hemiola.compile(KERNEL, hemiola.Plan.from_json(plan_of("ag-gemm/sequence").to_json().replace('"gemm"', '"swiglu"')))
        self.assertIn("is a 'swiglu', and kernel 'gemm_persistent' a product", str(caught.exception))
        with self.assertRaises(hemiola.BadInput) as caught:
            hemiola.compile("def f():\n    pass\n", plan_of())
        self.assertIn("@triton.jit", str(caught.exception))
        with self.assertRaises(hemiola.BadInput) as caught:
            hemiola.compile(7, plan_of())
        self.assertIn("int is no kernel", str(caught.exception))
        with self.assertRaises(hemiola.BadInput):
            hemiola.compile(KERNEL, plan_of(), target="metal")

    def test_a_wrong_plan_is_not_compiled(self):
        text = plan_of().to_json()
        wrong = text.replace('"source": {"tensor": "a", "begin": ["(rank + i + 1) % 2 * 64"', '"source": {"tensor": "a", "begin": ["rank*64"')
        self.assertNotEqual(wrong, text)
        with self.assertRaises(hemiola.WrongProgram) as caught:
            hemiola.compile(KERNEL, wrong, constants={"GROUP_M": 4})
        self.assertIsNotNone(caught.exception.proof)
        self.assertTrue(hemiola.compile(KERNEL, wrong, constants={"GROUP_M": 4}, check=False).text)


if __name__ == "__main__":
    unittest.main()

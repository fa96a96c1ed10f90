"""What kernels do in Triton's interpreter, beside the program that `hemiola check` reads from the text: the same tiles, waits and signals."""

import json
import os
import re
import subprocess
import tempfile
import unittest

import kinds
import support

PAIRS = [("gemm_persistent", "ag-gemm/swizzle"), ("gemm_tma", "gemm-rs/direct"), ("gemm_grouped", "a2a-gemm/direct"), ("attention", "ring-attention/swizzle"),
         ("gemm_persistent", "gemm-rs/sequence:degree=2"), ("attention_split_kv", "ulysses-attention/split-kv:")]
MORE = [("attention_gqa", "ulysses-attention/direct:kv_heads=1,causal=yes,transfer=pull,waves=2"), ("attention_gqa_split_kv", "ulysses-attention/split-kv:kv_heads=2,causal=yes,tile_kv=32"), ("attention", "ulysses-attention/direct:transfer=pull,waves=2"), ("gemm_persistent", "gemm-a2a-gemm/direct:waves=1"), ("gemm", "ag-gemm/double-ring"), ("gemm_persistent", "gemm-rs/ring"), ("gemm_grouped", "gemm-ar/partitioned"), ("gemm", "gemm-rs/ring"), ("gemm_tma", "ag-gemm/ring"), ("gemm_grouped", "gemm-rs/direct"), ("attention", "double-ring-attention/ring")]


class Traces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def traced(self, kernel, template):
        constants = kinds.CONSTANTS[kernel]
        file = kinds.fused(self.folder.name, kernel, constants, kinds.make_plan(self.folder.name, template))
        trace = file[:-3] + ".jsonl"
        support.run_processes(file, "--poison", "--permute", "3", "--trace", trace)
        return file, trace

    def check(self, file, trace):
        done = subprocess.run([kinds.BINARY, "check", file, "--trace", trace], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_are_what_the_text_says(self):
        for kernel, template in PAIRS + (MORE if kinds.tries_all() else []):
            with self.subTest(kernel=kernel, template=template):
                file, trace = self.traced(kernel, template)
                code, said = self.check(file, trace)
                self.assertEqual(code, 0, said)
                self.assertIn("the text says the same", said)
                tells = template.startswith("gemm-rs")
                found = re.search(r"(\d+) tiles, (\d+) waits and (\d+) signals of 2 calls", said)
                self.assertGreater(int(found[1]), 0)
                self.assertGreater(int(found[3 if tells else 2]), 0)

    def test_of_another_text_are_not(self):
        file, trace = self.traced("gemm_persistent", "ag-gemm/ring")
        text = kinds.read(file)
        waves = re.findall(r"^    t\.work\.wave\(.*\n", text, re.M)
        changes = {"another order": (waves[0] + waves[1], waves[1] + waves[0]),
                   "other tiles": ("GROUP_M * (tile_id //", "GROUP_M * (0 * tile_id //")}
        for what, (old, new) in changes.items():
            with self.subTest(what=what):
                self.assertIn(old, text)
                changed = os.path.join(self.folder.name, "changed.py")
                with open(changed, "w", encoding="utf-8") as out:
                    out.write(text.replace(old, new))
                code, said = self.check(changed, trace)
                self.assertEqual(code, 3, said)
        with open(trace, encoding="utf-8") as lines:
            events = [json.loads(line) for line in lines]
        short = os.path.join(self.folder.name, "short.jsonl")
        lost = next(event for event in events if "wait" in event)
        with open(short, "w", encoding="utf-8") as out:
            out.writelines(json.dumps(event) + "\n" for event in events if event is not lost)
        code, said = self.check(file, short)
        self.assertEqual(code, 3, said)
        self.assertIn("in the text it waits for arrived[", said)


if __name__ == "__main__":
    unittest.main()

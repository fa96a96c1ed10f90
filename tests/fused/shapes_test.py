"""load_plan with the kernel of an emitted file: a plan of another shape gets what the compiler would have written for it, without the compiler."""

import json
import os
import pathlib
import re
import tempfile
import unittest

import kinds
import strangers
import support
from hemiola_rt import load_plan
from hemiola_rt._interleaved import at_random
from hemiola_rt._tasks import PlanError

# More rows, columns and keys, in two parts, of more ranks.
SIZES = {"products": ("m=128", "n=96", "k=64"), "layers": ("m=128", "h=48", "f=128"), "experts": ("rows=32", "experts=3", "n=48", "k=64"), "attention": ("heads=2", "sequence=256", "head=16"),
         "heads": ("heads=12", "sequence=256", "head=16")}


def larger(folder, template):
    """A plan of another shape, cut finer, on twice as many ranks where the template has no levels."""
    ranks = kinds.ranks_of(template)
    ranks = ranks if ranks == 4 else 4
    more = () if ":" in template else ("split=2",) if template not in ("a2a-gemm/direct",) else ("waves=2",)
    return kinds.make_plan(folder, template, *more, ranks=ranks, sizes=SIZES["heads" if template.startswith("ulysses") else "attention" if "attention" in template else "layers" if kinds.is_layer(template)
                                  else "experts" if template.startswith("moe/") else "products"])


def tables(schedule):
    """By rank and launch what its kernel is told."""
    world = support.InterleavedWorld(schedule.RANKS)
    return [[{name: value.tolist() if hasattr(value, "tolist") else value for name, value in work.arguments.items()
              if name not in ("hm_signals", "hm_peers")} for work in kinds.works_of(schedule.setup(rt))] for rt in world.members]


class Shapes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def fused(self, kernel, constants, plan, name):
        return support.module_of(kinds.read(kinds.fused(self.folder.name, kernel, constants, plan, name=name)))

    def test_every_kind_gets_what_the_compiler_writes(self):
        for kernel, constants, template in kinds.kinds():
            if not kinds.tries_all() and kernel not in ("gemm", "attention", "attention_split_kv") and template not in ("ag-gemm/ring", "gemm-rs/direct"):
                continue
            with self.subTest(kernel=kernel, template=template):
                own = kinds.make_plan(self.folder.name, template)
                other = larger(self.folder.name, template)
                small = self.fused(kernel, constants, own, "small.py")
                same = [(own, small)] if kinds.tries_all() else []
                for plan, written in [*same, (other, self.fused(kernel, constants, other, "large.py"))]:
                    loaded = load_plan(plan, kernel=small)
                    self.assertEqual(tables(loaded), tables(written))
                    self.assertEqual(support.calls_of(loaded), support.calls_of(written))
                    self.assertEqual([loaded.VALUES, *loaded.CONFIGS], [written.VALUES, *written.CONFIGS])

    def test_another_shape_is_right(self):
        for kernel, constants, template in (("gemm_persistent", ("GROUP_M=2",), "ag-gemm/swizzle"), ("gemm", (), "gemm-rs/direct"),
                                            ("gemm_persistent", ("GROUP_M=2",), "a2a-gemm/direct"), ("gemm", (), "gemm-ar/partitioned")):
            small = self.fused(kernel, constants, kinds.make_plan(self.folder.name, template), "small.py")
            loaded = load_plan(larger(self.folder.name, template), kernel=small)
            support.run_in_order(loaded, lambda world: at_random(3))

    def test_what_the_kernel_adds_to_its_product_is_in_the_reference(self):
        source = pathlib.Path(self.folder.name, "with_bias.py")
        source.write_text(strangers.with_bias())
        for template in ("ag-gemm/swizzle", "gemm-rs/direct"):
            small = support.module_of(kinds.read(kinds.fused(self.folder.name, "with_bias", (), kinds.make_plan(self.folder.name, template), source=source)))
            loaded = load_plan(larger(self.folder.name, template), kernel=small)
            support.run_in_order(loaded, support.orders_of(loaded, ranks=(0,), seeds=1)[1])

    def test_launches_need_no_kernel_of_their_own(self):
        small = self.fused("gemm_persistent", ("GROUP_M=2",), kinds.make_plan(self.folder.name, "ag-gemm/swizzle"), "small.py")
        loaded = load_plan(larger(self.folder.name, "ag-gemm/sequence:degree=2,steps=hetero"), kernel=small)
        support.run_in_order(loaded, lambda world: at_random(3))

    def test_what_does_not_fit_is_refused_by_name(self):
        small = self.fused("gemm_persistent", ("GROUP_M=2",), kinds.make_plan(self.folder.name, "ag-gemm/swizzle"), "small.py")
        adds = json.loads(kinds.read(kinds.make_plan(self.folder.name, "ag-gemm/sequence", "degree=2", "axis=k")))
        for code in adds["codes"]:
            next(operand for operand in code["computes"][0]["operands"] if operand["use"] == "accumulate")["use"] = "add"
        path = os.path.join(self.folder.name, "adds.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(adds, file)
        with self.assertRaisesRegex(PlanError, "compute 'step 0' adds to what is there already"):
            load_plan(path, kernel=small)
        with self.assertRaisesRegex(PlanError, "needs 2 launches of a kernel, and this file has 1"):
            load_plan(kinds.make_plan(self.folder.name, "ag-gemm/sequence", "degree=2", "steps=hetero", "placement=copy"), kernel=small)
        with self.assertRaisesRegex(PlanError, "no 'c'|no 'a'|not compiled for"):
            load_plan(kinds.make_plan(self.folder.name, "gemm-rs/direct"), kernel=small)
        attention = self.fused("attention", kinds.ATTENTION["attention"], kinds.make_plan(self.folder.name, "ring-attention/ring"), "ring.py")
        shared = "ulysses-attention/direct:kv_heads=2"
        all_keys = self.fused("attention_gqa", ("CAUSAL=False", "scale=0.25"), kinds.make_plan(self.folder.name, shared), "all_keys.py")
        with self.assertRaisesRegex(PlanError, "is causal, and the kernel of this file looks at keys behind a query"):
            load_plan(kinds.make_plan(self.folder.name, shared + ",causal=yes"), kernel=all_keys)
        wide = kinds.make_plan(self.folder.name, "ring-attention/ring", sizes=("heads=2", "sequence=128", "head=32"))
        with self.assertRaisesRegex(PlanError, re.escape("has 32 elements, and the kernel's blocks are made for 16")):
            load_plan(wide, kernel=attention)
        finer = kinds.make_plan(self.folder.name, "ag-gemm/swizzle", "split=4")
        with self.assertRaisesRegex(ValueError, "straddle"):
            support.calls_of(load_plan(finer, kernel=small))


if __name__ == "__main__":
    unittest.main()

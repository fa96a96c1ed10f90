"""Kernels with plans that have more rows, columns and keys than those of the other tests, are cut finer and are for more ranks."""

import pathlib
import tempfile
import unittest

import kinds
import strangers
import support
from interleaved import at_random

SIZES = {"products": ("m=128", "n=96", "k=64"), "layers": ("m=128", "h=48", "f=128"), "experts": ("rows=32", "experts=3", "n=48", "k=64"), "attention": ("heads=2", "sequence=256", "head=16"),
         "heads": ("heads=12", "sequence=256", "head=16")}


def larger(folder, template):
    """A plan on four ranks, cut finer where nothing is said of it."""
    more = () if ":" in template else ("split=2",) if template not in ("a2a-gemm/direct",) else ("waves=2",)
    return kinds.make_plan(folder, template, *more, ranks=4, sizes=SIZES["heads" if template.startswith("ulysses") else "attention" if "attention" in template else "layers" if kinds.is_layer(template)
                                                                         else "experts" if template.startswith("moe/") else "products"])


class Shapes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def fused(self, kernel, constants, template, source=None):
        return support.module_of(kinds.read(kinds.fused(self.folder.name, kernel, constants, larger(self.folder.name, template), source=source)))

    def test_of_every_kind_are_right(self):
        usual = {("gemm_persistent", "ag-gemm/swizzle"), ("gemm", "gemm-rs/direct"), ("gemm_persistent", "ag-gemm/sequence:degree=2,steps=hetero"),
                 ("attention", "ring-attention/ring"), ("moe_capacity_gemm", "moe/direct:")}
        for kernel, constants, template in kinds.kinds():
            if not kinds.tries_all() and (kernel, template) not in usual:
                continue
            with self.subTest(kernel=kernel, template=template):
                support.run_in_order(self.fused(kernel, constants, template), lambda world: at_random(3))

    def test_what_the_kernel_adds_to_its_product_is_in_the_reference(self):
        source = pathlib.Path(self.folder.name, "with_bias.py")
        source.write_text(strangers.with_bias())
        for template in ("ag-gemm/swizzle", "gemm-rs/direct"):
            schedule = self.fused("with_bias", (), template, source)
            support.run_in_order(schedule, support.orders_of(schedule, ranks=(0,), seeds=1)[1])


if __name__ == "__main__":
    unittest.main()

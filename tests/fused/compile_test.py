"""What is emitted, compiled for GPUs by Triton: machine code for NVIDIA's sm_90 and AMD's gfx942. No GPU is needed for that, and Triton's
interpreter, in which the other tests execute kernels, sees nothing of it: types that a compiler refuses, loops that it no longer pipelines.

Loads that overlap products (cp.async, or TMA) are counted in the PTX: where the original has them, the fused kernel has to, too.
"""

import os
import tempfile
import unittest
import unittest.mock

import kinds
import torch
import triton
from hemiola_rt import _movers, _switch, load_file
from interleaved import InterleavedStream, InterleavedWorld
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

GPUS = {"sm_90": GPUTarget("cuda", 90, 32), "gfx942": GPUTarget("hip", "gfx942", 64)}
TYPES = {torch.float16: "*fp16", torch.bfloat16: "*bf16", torch.float32: "*fp32", torch.int32: "*i32", torch.int64: "*i64"}


class Address:
    """A number of 64 bits that is not known."""


def machine_code(function, arguments, target, options):
    """By kind of text or code ("ptx", "cubin", "hsaco"): what Triton makes of a kernel that is given these arguments."""
    constants = {parameter.name for parameter in function.params if parameter.is_constexpr}
    signature, values, hints = {}, {}, {}
    for place, name in enumerate(function.arg_names):
        value = arguments[name]
        if name in constants:
            signature[name], values[name] = "constexpr", value
        elif isinstance(value, torch.Tensor):
            signature[name], hints[(place,)] = TYPES[value.dtype], [["tt.divisibility", 16]]
        elif isinstance(value, float):
            signature[name] = "fp32"
        elif isinstance(value, Address):
            signature[name] = "i64"
        elif value == 1 and not name.startswith("hm_"):
            signature[name], values[name] = "constexpr", value
        else:
            signature[name] = "i32"
            if value % 16 == 0:
                hints[(place,)] = [["tt.divisibility", 16]]
    return triton.compile(ASTSource(function, signature, values, hints), target=target, options=options).asm


def launched(schedule):
    """What the first rank launches in a call: its work and the kernel's arguments."""
    found = []

    class Stream(InterleavedStream):
        def launch(self, work, **tensors):
            found.append((work, work.launched(0, tensors)[1]))

    world = InterleavedWorld(schedule.RANKS)
    states = [schedule.setup(rt) for rt in world.members]
    for stream in world.members[0].all_streams():
        stream.__class__ = Stream
    schedule.run(world.members[0], states[0])
    return found[0]


def original_of(name):
    function = getattr(load_file(os.path.join(kinds.KERNELS, f"{name}.py")), name)
    while not hasattr(function, "params"):
        function = function.fn
    return function


def overlaps(code):
    """Whether loads run beside products."""
    return "cp.async" in code["ptx"]


class MachineCode(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        os.environ["TRITON_CACHE_DIR"] = os.path.join(cls.folder.name, "triton")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_is_made_of_every_kernel_and_plan(self):
        pairs = list(kinds.kinds())
        for kernel, constants, template in pairs if kinds.tries_all() else pairs[::4]:
            file = kinds.fused(self.folder.name, kernel, constants, kinds.make_plan(self.folder.name, template))
            for gpu, target in GPUS.items():
                # Which stores the file waits for depends on the PyTorch that it meets.
                with self.subTest(kernel=kernel, plan=template, gpu=gpu), unittest.mock.patch("torch.version.hip", gpu == "gfx942" or None):
                    work, arguments = launched(load_file(file))
                    made = machine_code(work.kernel, arguments, target, work.options)
                    self.assertIn("cubin" if gpu == "sm_90" else "hsaco", made)

    def test_is_made_of_kernels_whose_programs_move_the_data(self):
        for kernel, template in (("gemm_persistent", "gemm-rs/direct"), ("gemm_persistent", "ag-gemm/ring"), ("gemm_tma", "ag-gemm/swizzle")):
            plan = kinds.make_plan(self.folder.name, template, sizes=("m=1024", "n=1024", "k=512"))
            file = kinds.fused(self.folder.name, kernel, kinds.PRODUCTS[kernel], plan, "--realization", "co-located", block=128, block_k=64)
            for gpu, target in GPUS.items():
                with self.subTest(kernel=kernel, plan=template, gpu=gpu), unittest.mock.patch("torch.version.hip", gpu == "gfx942" or None):
                    work, arguments = launched(load_file(file))
                    made = machine_code(work.kernel, arguments, target, work.options)
                    self.assertIn("cubin" if gpu == "sm_90" else "hsaco", made)
                    if gpu == "sm_90":  # the loads of its products stay as they were
                        self.assertTrue(overlaps(made))

    def test_is_made_of_kernels_that_store_to_peers(self):
        for kernel, template in (("gemm", "gemm-rs/direct:transfer=push"), ("attention_gqa", "ulysses-attention/direct:kv_heads=2,causal=yes")):
            file = kinds.fused(self.folder.name, kernel, kinds.CONSTANTS[kernel], kinds.make_plan(self.folder.name, template), "--store-to-peers")
            for gpu, target in GPUS.items():
                with self.subTest(kernel=kernel, gpu=gpu), unittest.mock.patch("torch.version.hip", gpu == "gfx942" or None):
                    work, arguments = launched(load_file(file))
                    self.assertIn("cubin" if gpu == "sm_90" else "hsaco", machine_code(work.kernel, arguments, target, work.options))

    def test_loads_overlap_products_where_they_do_in_the_original(self):
        for kernel, constants in kinds.PRODUCTS.items():
            for template in ("ag-gemm/swizzle", "gemm-rs/direct"):
                plan = kinds.make_plan(self.folder.name, template, sizes=("m=1024", "n=1024", "k=512"))
                work, arguments = launched(load_file(kinds.fused(self.folder.name, kernel, constants, plan, block=128, block_k=64)))
                before = machine_code(original_of(kernel), arguments, GPUS["sm_90"], work.options)
                after = machine_code(work.kernel, arguments, GPUS["sm_90"], work.options)
                with self.subTest(kernel=kernel, plan=template):
                    self.assertTrue(overlaps(before))
                    self.assertTrue(overlaps(after))
                    self.assertEqual(before["ptx"].count("wgmma.mma_async"), after["ptx"].count("wgmma.mma_async"))

    def test_movers_are_made_for_both_makers(self):
        memory = torch.zeros(1 << 16, dtype=torch.float16)
        moves = {"target": memory, "source": memory, "operand": memory, "rows": 64, "width": 512, "target_pitch": 512, "source_pitch": 512,
                 "operand_pitch": 512, "WIDE": True, "BLOCK": _movers.BLOCK}
        bulk = {"target": memory, "source": memory, "rows": 64, "width": 512, "target_pitch": 512, "source_pitch": 512,
                "ROWS": _movers.BULK_ROWS, "WIDTH": _movers.BULK_WIDTH}
        for gpu, target in GPUS.items():
            for operator in (0, *_movers.OPERATORS.values()):
                with self.subTest(gpu=gpu, operator=operator):
                    machine_code(_movers.hm_move, {**moves, "OPERATOR": operator}, target, {"num_warps": 8})
            made = machine_code(_movers.hm_move_bulk, bulk, target, {"num_warps": 4})
            if gpu == "sm_90":
                self.assertIn("cp.async.bulk.tensor", made["ptx"])

    def test_movement_through_a_switch_is_made_for_nvidia(self):
        words = torch.zeros(1 << 16, dtype=torch.int32)
        rows = {"rows": 64, "width": 64, "target_pitch": 64, "source_pitch": 64, "BLOCK": _switch.BLOCK}
        stores = machine_code(_switch.hm_to_all, {"target": Address(), "source": words, **rows}, GPUS["sm_90"], {"num_warps": 8})
        self.assertIn("multimem.st.relaxed.sys.global.v4.f32", stores["ptx"])
        for number, kind in enumerate(("acc::f32.v4.f16x2", "acc::f32.v4.bf16x2", "v4.f32"), 1):
            with self.subTest(kind=kind):
                sums = machine_code(_switch.hm_sum_of_all, {"target": words, "source": Address(), **rows, "SUM": number}, GPUS["sm_90"], {"num_warps": 8})
                self.assertIn(f"multimem.ld_reduce.relaxed.sys.global.add.{kind}", sums["ptx"])
                self.assertIn("cubin", sums)


if __name__ == "__main__":
    unittest.main()

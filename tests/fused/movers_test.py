"""Data that workgroups move in a fused file, by loads and stores or in bulk: executed by Triton's interpreter, and the text read
back. `compile_test` compiles what moves it, `emission_test` has what is refused."""

import os
import re
import tempfile
import unittest

import kinds
import support
import torch
from hemiola_rt import _interpreter, _movers, _switch

KINDS = (("gemm_persistent", "ag-gemm/swizzle"), ("gemm", "gemm-rs/direct"))  # copies that are waited for; sums


# What the kernel's own programs move, between their tiles; behind the colon, parameters of the template.
CARRIED = ("ag-gemm/swizzle", "ag-gemm/swizzle:transfer=push", "ag-gemm/ring", "gemm-rs/direct", "gemm-rs/direct:transfer=push", "gemm-rs/ring",
           "a2a-gemm/direct", "ag-gemm/sequence:degree=2,steps=hetero", "gemm-rs/sequence:degree=2", "gemm-ar/sequence:degree=2,axis=n")


class Moved(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        _interpreter.prepare()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def files(self):
        for kernel, template in KINDS:
            for way in ("load-store", "bulk"):
                plan = kinds.make_plan(self.folder.name, template, ranks=2, dtype="float16")
                yield kinds.fused(self.folder.name, kernel, kinds.PRODUCTS[kernel], plan, "--realization", way, "--workgroups", "3",
                                  name=f"{kernel}_{way.replace('-', '_')}.py")

    def test_equals_the_reference_as_processes_and_as_virtual_ranks(self):
        files = list(self.files())
        support.run_equal(self, files, "--poison", "--permute", "1")
        support.run_equal(self, files, "--virtual", "--poison")

    def test_is_read_back_and_proven(self):
        for file in self.files():
            with self.subTest(file=os.path.basename(file)):
                self.assertEqual(kinds.hemiola("check", file).count("check: proven"), 2 if "persistent" in file else 1)

    def carried(self, template, name="carried.py", kernel="gemm_persistent"):
        plan = kinds.make_plan(self.folder.name, template, ranks=2)
        return kinds.fused(self.folder.name, kernel, kinds.PRODUCTS[kernel], plan, "--realization", "co-located", name=name)

    def test_by_the_programs_that_compute_equals_the_reference_and_is_proven(self):
        """Three programs of each rank run at the same time, as threads or in turns, and wait for each other's shares."""
        files = []
        for number, template in enumerate(CARRIED if kinds.tries_all() else CARRIED[::3]):
            with self.subTest(plan=template):
                files.append(self.carried(template, f"carried_{number}.py"))
                self.assertNotIn("rt.streams(1, movers", kinds.read(files[-1]))
                self.assertEqual(kinds.hemiola("check", files[-1]).count("check: proven"), 2)
                schedule = support.module_of(kinds.read(files[-1]))
                for order in support.orders_of(schedule, ranks=(0,), seeds=1):
                    support.run_in_order(schedule, order)
        support.run_equal(self, files, "--poison")
        support.run_equal(self, files, "--virtual", "--poison")

    def test_what_is_wrong_with_their_shares_is_found_in_the_text(self):
        texts = [kinds.read(self.carried(template)) for template in ("gemm-rs/direct", "ag-gemm/swizzle")]
        file = os.path.join(self.folder.name, "wrong.py")
        for was, becomes, said in (
                ("tl.program_id(0), rows * blocks, tl.num_programs(0)", "tl.program_id(0) + 1, rows * blocks, tl.num_programs(0)", "elements of"),
                ("row * source_pitch + column", "row * source_pitch", "the host did not ask for"),
                ("hm_carry(hm_moves, hm_moved, hm_all,", "hm_carry(hm_moves, hm_moved, hm_moved,", "has no share in movement"),
                ("        hm_moved = hm_next", "        hm_moved = 0", "movement 0 comes where"),
                ('before = tl.atomic_add(shares + i, 1, sem="acq_rel"', 'before = tl.atomic_add(shares + i, 1, sem="release"', "counter-acq-rel"),
                ("        hm_wait(needs, tl.load(move), tl.load(move + 1), signals, call)\n", "", "race"),
                ("hm_before + tile_id", "hm_before + tile_id + 1", "element 16 of a table")):
            with self.subTest(was=was):
                text = texts[1 if "hm_moved = hm_next" in was else 0]
                self.assertIn(was, text)
                with open(file, "w", encoding="utf-8") as out:
                    out.write(text.replace(was, becomes))
                with self.assertRaisesRegex(AssertionError, said):
                    kinds.hemiola("check", file)

    def test_tiles_that_are_stored_to_peers_equal_the_reference_and_are_proven(self):
        files = []
        for kernel in ("gemm", "gemm_grouped", "gemm_persistent"):
            plan = kinds.make_plan(self.folder.name, "gemm-rs/direct:transfer=push", ranks=4)
            files.append(kinds.fused(self.folder.name, kernel, kinds.PRODUCTS[kernel], plan, "--store-to-peers", name=f"{kernel}_stores.py"))
            text = kinds.read(files[-1])
            self.assertNotIn("copies[0].copy(", text)  # what pushed
            self.assertEqual(kinds.hemiola("check", files[-1]).count("check: proven"), 2 if "persistent" in kernel else 1)
            schedule = support.module_of(text)
            for order in support.orders_of(schedule, ranks=(0,), seeds=1)[:: 1 if kinds.tries_all() else 3]:
                support.run_in_order(schedule, order)
        support.run_equal(self, files, "--poison", "--permute", "1")
        support.run_equal(self, files[:1], "--virtual", "--poison")
        for was, becomes, said in (("hm_out + offs_m", "c_ptr + offs_m", "not stored where its wave says"),
                                   ("hm_stores + tl.program_id(0)", "hm_stores", "not stored where its wave says"),
                                   ("[32 * (d - 1):32 * d]", "[0:32]", "data race|nobody wrote|wrong")):
            with self.subTest(was=was):
                text = kinds.read(files[0])
                self.assertIn(was, text)
                with open(os.path.join(self.folder.name, "wrong.py"), "w", encoding="utf-8") as out:
                    out.write(text.replace(was, becomes))
                with self.assertRaisesRegex(AssertionError, said):
                    kinds.hemiola("check", os.path.join(self.folder.name, "wrong.py"))

    def test_results_of_attention_go_back_without_a_transfer(self):
        """Heads lie farther apart in the output of the kernel than in what is returned: each is a wave of its own."""
        files = []
        for kernel, template in (("attention", "ulysses-attention/direct:"), ("attention_gqa", "ulysses-attention/direct:kv_heads=2,causal=yes")):
            plan = kinds.make_plan(self.folder.name, template)
            files.append(kinds.fused(self.folder.name, kernel, kinds.CONSTANTS[kernel], plan, "--store-to-peers", name=f"{kernel}_stores.py"))
            text = kinds.read(files[-1])
            self.assertEqual(len(re.findall(r"copies\[\d\]\.copy\(\s*t\.y\b", text)), 1)  # of the own rows
            self.assertIn("check: proven", kinds.hemiola("check", files[-1]))
            schedule = support.module_of(text)
            for order in support.orders_of(schedule, ranks=(0,), seeds=1)[:: 1 if kinds.tries_all() else 4]:
                support.run_in_order(schedule, order)
        support.run_equal(self, files, "--poison", "--permute", "1")
        support.run_equal(self, files[1:], "--virtual", "--poison")
        text = kinds.read(files[0])
        self.assertIn("hm_out + z", text)
        with open(os.path.join(self.folder.name, "wrong.py"), "w", encoding="utf-8") as out:
            out.write(text.replace("hm_out + z", "o_ptr + z"))
        with self.assertRaisesRegex(AssertionError, "not stored where its wave says"):
            kinds.hemiola("check", os.path.join(self.folder.name, "wrong.py"))

    def test_through_the_switch_equals_the_reference_and_is_proven(self):
        """Without a switch, what the instructions for it do is done by stores and sums: the schedule around them is what is executed."""
        files = []
        for kernel in ("gemm", "gemm_persistent"):
            plan = kinds.make_plan(self.folder.name, "gemm-ar/nvls", ranks=2)
            files.append(kinds.fused(self.folder.name, kernel, kinds.PRODUCTS[kernel], plan, "--realization", "multicast", "--workgroups", "3",
                                     name=f"{kernel}_multicast.py"))
            text = kinds.read(files[-1])
            self.assertIn("copies[0].sum_of_all(", text)
            self.assertIn("copies[0].to_all(", text)
            self.assertIn("check: proven", kinds.hemiola("check", files[-1], "--machine", "dgx-h100"))
            with self.assertRaisesRegex(AssertionError, "multicast"):
                kinds.hemiola("check", files[-1], "--machine", "mi300x-8")
        support.run_equal(self, files, "--poison", "--permute", "1")
        support.run_equal(self, files, "--virtual", "--poison")

    def test_what_has_no_address_for_the_switch_goes_to_each(self):
        for dtype in (torch.float16, torch.float32, torch.int32):
            sources = [(torch.arange(96) % (7 + r)).reshape(4, 24).to(dtype) for r in range(3)]
            target = torch.zeros(4, 24, dtype=dtype)
            _switch.sum_of_all(target, sources)
            self.assertTrue(torch.equal(target, sources[0] + sources[1] + sources[2]))
            targets = [torch.zeros(4, 24, dtype=dtype) for _ in range(3)]
            _switch.to_all(targets, target, movers=2)
            for one in targets:
                self.assertTrue(torch.equal(one, target))

    def test_any_rows_and_types(self):
        for dtype in (torch.float16, torch.float32, torch.bfloat16, torch.int32):
            for bulk in (False, True):
                with self.subTest(dtype=dtype, bulk=bulk):
                    source = (torch.arange(64 * 512) % 97).reshape(64, 512).to(dtype)
                    for to, of in ((slice(0, 270), slice(7, 277)), (slice(0, 256), slice(256, 512)), (slice(0, 512), slice(0, 512))):
                        target = torch.zeros(64, 512, dtype=dtype)
                        expected = target.clone()
                        expected[:, to] = source[:, of]
                        _movers.move(target[:, to], source[:, of], movers=3, bulk=bulk)
                        self.assertTrue(torch.equal(target, expected))
                    total = source[3].clone()
                    _movers.move(total, source[5], total, movers=2, bulk=bulk)
                    self.assertTrue(torch.equal(total, source[3] + source[5]))


if __name__ == "__main__":
    unittest.main()

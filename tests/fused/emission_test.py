"""Kernels with plans in them, as texts: parsed, and unchanged where nothing was put in. Nothing is executed."""

import ast
import os
import re
import subprocess
import tempfile
import unittest

import kinds
import strangers


class Emission(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def fuse(self, kernel, constants, template, *more):
        plan = kinds.make_plan(self.folder.name, template)
        return kinds.read(kinds.fused(self.folder.name, kernel, constants, plan, *more))

    def refused(self, kernel, plan, *more):
        path = os.path.join(self.folder.name, "refused.py")
        said = kinds.hemiola("compile", kernel, "--plan", plan, *more, "-o", path, code=2)
        self.assertFalse(os.path.exists(path))
        return said

    def kernel(self, name):
        return os.path.join(kinds.KERNELS, f"{name}.py")

    def test_every_kernel_fits_every_plan_and_python_accepts_it(self):
        for kernel, constants, template in kinds.kinds():
            with self.subTest(kernel=kernel, plan=template):
                ast.parse(self.fuse(kernel, constants, template))

    def test_lines_of_the_kernel_that_are_not_marked_are_as_they_were(self):
        for kernel, constants, template in kinds.kinds():
            with self.subTest(kernel=kernel, plan=template):
                before = self.body_of(kinds.read(self.kernel(kernel)), kernel)
                after = self.body_of(self.fuse(kernel, constants, template), kernel)
                kept = [line for line in after if "# hemiola" not in line]
                gone = [line for line in before if line not in kept]
                self.assertEqual(kept, [line for line in before if line not in gone])
                marked = "\n".join(line for line in after if "# hemiola: was" in line)
                for line in gone:
                    self.assertRegex(line, r"program_id|tile_id|for start_n in|for tile_id in")
                    self.assertIn(line.split("=")[0].strip() if "program_id" in line else "hm_", marked)

    @staticmethod
    def body_of(text, kernel):
        found = re.search(rf"^def {kernel}\(.*?(?=^\S)", text[text.index(f"def {kernel}("):] + "\nend", re.S | re.M)
        return found[0].rstrip().split("\n")

    def test_a_wave_waits_once_and_a_part_signals_once(self):
        consumer = self.fuse("gemm_persistent", kinds.PRODUCTS["gemm_persistent"], "ag-gemm/swizzle")
        self.assertEqual(consumer.count("hm_wait("), 2)  # its definition, and the one place
        self.assertNotIn("hm_done", consumer)
        producer = self.fuse("gemm_persistent", kinds.PRODUCTS["gemm_persistent"], "gemm-rs/direct")
        self.assertEqual(producer.count("hm_done("), 2)
        self.assertNotIn("hm_wait", producer)

    def test_stores_by_tma_are_complete_before_they_are_counted(self):
        text = self.fuse("gemm_tma", kinds.PRODUCTS["gemm_tma"], "gemm-rs/direct")
        self.assertLess(text.index("cp.async.bulk.wait_group 0"), text.index("tl.atomic_add(counters"))
        self.assertNotIn("cp.async", self.fuse("gemm", (), "gemm-rs/direct"))

    def test_tiles_that_read_more_than_their_own_rows_wait_for_all_chunks(self):
        fused = kinds.read(strangers.job_of(self.folder.name, strangers.HALVES, "gated")["fused"])
        self.assertEqual(re.findall(r"wave\(.*\)", fused), ["wave({}, after=[(t.arrived[rank, 0], 3)])"])

    def test_an_axis_of_tiles_and_one_of_a_loop_are_two_where_they_are_equally_long(self):
        fused = kinds.read(strangers.job_of(self.folder.name, strangers.SQUARE, "squared")["fused"])
        self.assertEqual(re.findall(r"wave\(\{.S.: \((\d+), 16\)\}, after=\[\(t.arrived\[rank, 0\], (\d)\)\]\)", fused),
                         [("32", "0"), ("0", "1"), ("48", "2"), ("16", "3")])

    def test_room_beside_the_kernel_is_proven_of_the_text(self):
        file = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "a2a_without_room.py")
        said = kinds.hemiola("check", file, code=4)
        self.assertRegex(said, r"a2a_without_room.py:\d+:\d+: error: this needs compute units")
        self.assertIn("compute[0].wait(copies[1])", self.fuse("gemm_persistent", (), "a2a-gemm/direct"))

    def test_a_tensor_that_is_too_narrow_is_refused_with_the_place(self):
        said = self.refused(*strangers.plan_of(self.folder.name, strangers.TWICE, "gated"), "--no-check")
        self.assertIn("kernel.py:12:13: error: operand 'a_ptr' is accessed up to element 128 of its axis 1, and tensor 'a_ptr' of the plan has 64", said)

    def test_what_a_kernel_needs_beside_its_text_goes_along(self):
        self.assertIn('descriptors={"a_desc": lambda BLOCK_M, BLOCK_N, **_: (BLOCK_M, BLOCK_N)',
                      kinds.read(strangers.job_of(self.folder.name, strangers.HOST_MADE, "scaled")["fused"]))
        self.assertIn("def chosen():", kinds.read(strangers.job_of(self.folder.name, strangers.CONSTANT, "scaled")["fused"]))

    def test_the_same_input_gives_the_same_bytes(self):
        self.assertEqual(self.fuse("gemm", (), "ag-gemm/ring"), self.fuse("gemm", (), "ag-gemm/ring"))

    def test_configurations_that_straddle_chunks_are_dropped_by_name(self):
        plan = kinds.make_plan(self.folder.name, "ag-gemm/swizzle", ranks=4)
        said = kinds.hemiola("compile", self.kernel("gemm_grouped"), "--plan", plan, "-o", os.path.join(self.folder.name, "x.py"),
                             "--constexpr", "BLOCK_M=32")
        self.assertNotIn("dropped", said)
        said = self.refused(self.kernel("gemm_grouped"), plan)
        self.assertIn("no configuration of kernel 'gemm_grouped' fits the chunks", said)
        self.assertIn("blocks that fit are BLOCK_M: 16, 32", said)

    def test_launches_are_waves_of_one_grid(self):
        gathered = self.fuse("gemm_persistent", kinds.PRODUCTS["gemm_persistent"], "ag-gemm/sequence:degree=2,steps=hetero")
        self.assertEqual(gathered.count(".launch("), 1)
        waves = re.findall(r"t\.work\.wave\(.*\)", gathered)
        self.assertEqual(waves[0], 't.work.wave({"M": (rank * 32, 32)})')  # the own block, which waits for nothing
        self.assertEqual([re.findall(r"after=.*", wave) for wave in waves],
                         [[], ["after=[(t.arrived[rank, 0], 0)])"], ["after=[(t.arrived[rank, 0], 1)])"]])
        scattered = self.fuse("gemm", (), "gemm-rs/sequence:degree=2")
        self.assertRegex(scattered, r"wait_signal\(t\.done\[rank, .*\], step=0\)")

    def test_products_on_other_tensors_are_launches_of_one_text(self):
        text = self.fuse("gemm_persistent", kinds.PRODUCTS["gemm_persistent"], "gemm-a2a-gemm/direct:waves=1")
        self.assertEqual(len(re.findall(r"^def gemm_persistent\(", text, re.M)), 1)
        self.assertRegex(text, r"launch\(t\.work, .*=t\.middle, a_ptr=t\.x, b_ptr=t\.w_in\)")
        self.assertRegex(text, r"launch\(t\.work_2, .*=t\.c, a_ptr=t\.gathered, b_ptr=t\.w_out\)")
        self.assertIn("t.work_2.turns(", text)  # columns arrive along the second product's loop
        parts = self.fuse("gemm", (), "mlp/domino:")
        self.assertEqual(parts.count(".launch("), 4)
        self.assertIn("c_ptr=t.partial[32:64]", parts)

    def test_computes_that_are_no_waves_of_one_grid_are_named(self):
        plan = kinds.make_plan(self.folder.name, "dispatch-gemm/shards", ranks=3, sizes=("m=144", "n=48", "k=48"))
        said = "leave out part of the box of tiles that a grid would take, because 'own' reads 'x', 'step 0 block +1' 'a'"
        self.assertIn(said, self.refused(self.kernel("gemm"), plan, "--constexpr", "BLOCK_M=16", "--constexpr", "BLOCK_N=16"))

    def test_turns_that_programs_take_are_proven(self):
        """Programs that have some keys each merge one after the other; what is wrong with that is found in the text."""
        plan = kinds.make_plan(self.folder.name, "ulysses-attention/split-kv")
        text = kinds.read(kinds.fused(self.folder.name, "attention_split_kv", kinds.CONSTANTS["attention_split_kv"], plan))
        path = os.path.join(self.folder.name, "turns.py")
        for gone, said in (
                ('    while tl.atomic_cas(turn, 0, 1, sem="acquire", scope="gpu") != 0:\n        pass\n', "a turn is given on that the kernel never takes"),
                ("    compute[0].zero(t.turn)\n", "a turn is waited for that nothing has made free"),
                ("    compute[0].zero(t.weight)\n", "computes with bytes of weight that nobody wrote"),
                ('    tl.atomic_xchg(turn, 0, sem="release", scope="gpu")\n', "a program ends with a turn that it does not give on")):
            with self.subTest(gone=gone):
                self.assertIn(gone, text)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text.replace(gone, ""))
                done = subprocess.run([kinds.BINARY, "check", path], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 3)
                self.assertIn(said, done.stdout + done.stderr)

    def test_workgroups_that_move_data_need_room(self):
        gather = kinds.make_plan(self.folder.name, "ag-gemm/swizzle")
        persistent = self.fuse("gemm_persistent", kinds.PRODUCTS["gemm_persistent"], "ag-gemm/swizzle", "--realization", "bulk")
        self.assertIn("t.copies = rt.streams(1, movers=16, bulk=True)", persistent)
        for words, what in ((("--realization", "bulk"), "kernel 'gemm' has a program for each tile; those that wait fill a GPU"),
                            (("--realization", "co-located"), "kernel 'gemm' has a program for each tile; those that wait fill a GPU, and what they"),
                            (("--workgroups", "4"), "is for data that workgroups move"),
                            (("--realization", "load-store", "--workgroups", "-1"), "-1 workgroups")):
            self.assertIn(what, self.refused(self.kernel("gemm"), gather, "--constexpr", "BLOCK_M=16", "--constexpr", "BLOCK_N=16", *words))
        pushed = kinds.make_plan(self.folder.name, "gemm-rs/direct:transfer=push")
        for kernel, plan, what in (("gemm_tma", pushed, "it is no plain store by pointers"), ("gemm_split_k", pushed, "they are added up"),
                                   ("gemm", gather, "pushes nothing that its kernel makes for nobody else")):
            self.assertIn(what, self.refused(self.kernel(kernel), plan, "--constexpr", "BLOCK_M=16", "--constexpr", "BLOCK_N=16", "--constexpr",
                                             "SPLIT_K=2" if kernel == "gemm_split_k" else "BLOCK_K=16", "--store-to-peers"))
        pairs = kinds.make_plan(self.folder.name, "gemm-rs/direct")
        self.assertIn("has no groups that a switch could serve", self.refused(self.kernel("gemm"), pairs, "--constexpr", "BLOCK_M=16", "--constexpr",
                                                                             "BLOCK_N=16", "--realization", "multicast"))

    def test_what_does_not_fit_together_is_refused_with_its_place(self):
        gather = kinds.make_plan(self.folder.name, "ag-gemm/swizzle")
        self.assertIn("kernel 'attention' is no product", self.refused(self.kernel("attention"), gather, "--bind", "a=q_ptr", "--bind", "b=k_ptr"))
        rings = kinds.make_plan(self.folder.name, "ring-attention/ring")
        self.assertIn("parameter 'scale' of kernel 'attention' has no value",
                      self.refused(self.kernel("attention"), rings, "--constexpr", "CAUSAL=False"))
        self.assertIn("attention.py:15:5", self.refused(self.kernel("attention"), rings, "--constexpr", "CAUSAL=False"))
        masked = kinds.make_plan(self.folder.name, "ulysses-attention/direct:kv_heads=2,causal=yes")
        self.assertIn("the plan's attention is causal, and the kernel's looks at keys behind a query",
                      self.refused(self.kernel("attention_gqa"), masked, "--constexpr", "CAUSAL=False", "--constexpr", "scale=0.25"))
        launches = os.path.join(self.folder.name, "launches.json")
        kinds.hemiola("plan", "make", "all-gather/ring", "--ranks", "2", "--shape", "64x64", "--dtype", "fp16", "-o", launches)
        self.assertIn("computes nothing that a kernel could be fused into", self.refused(self.kernel("gemm"), launches))
        self.assertIn("cannot be cut", self.refused(self.kernel("moe_grouped_gemm"), gather))
        self.assertIn("--bind", self.refused(self.kernel("gemm"), gather, "--bind", "x=a_ptr"))


if __name__ == "__main__":
    unittest.main()

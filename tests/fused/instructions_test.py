"""Which instructions stand where in the machine code of fused kernels: acquires and releases with their scopes, barriers, flushes and the waits
for stores, of six files as PTX for sm_90 and as AMDGCN for gfx942. Along every path through the code: what has to stand between two
instructions is passed on all of them. No GPU is needed; nothing of it has run on one.

The rules are those of the memory models: PTX ISA, "Memory Consistency Model" (an acquire of scope sys, then bar.sync, before what came is
read; stores, bar.sync, an acq_rel of scope gpu, a release of scope sys), and LLVM, "User Guide for AMDGPU Backend", memory model gfx942
(buffer_inv sc0 sc1 behind an acquire of system scope, buffer_wbl2 sc0 sc1 and s_waitcnt vmcnt(0) before a release).
"""

import os
import re
import tempfile
import unittest
import unittest.mock

import compile_test
import kinds
from hemiola_rt import load_file


class Code:
    """Instructions of a kernel, and which may come behind which."""

    def __init__(self, text, kind):
        jump, always, end = ((r"\bbra(?:\.uni)?\s+(\S+?);", r"^bra", r"^(?:ret|exit)\b") if kind == "ptx" else
                             (r"^s_(?:c?branch\w*)\s+(\S+)", r"^s_branch", r"^s_endpgm"))
        self.lines, labels, jumps = [], {}, {}
        for line in text.split("\n"):
            line = re.sub(r"\s+", " ", re.split(r"//|;" if kind == "amdgcn" else r"//", line)[0]).strip()
            label = re.match(r"^(\$?[.\w$]+):$", line)
            if label:
                labels[label.group(1)] = len(self.lines)
            elif line and not line.startswith("."):
                target = re.search(jump, line)
                if target:
                    jumps[len(self.lines)] = target.group(1)
                self.lines.append(line)
        self.next = []
        for place, line in enumerate(self.lines):
            behind = [] if re.search(always, line) or re.search(end, line) else [place + 1]
            if place in jumps and jumps[place] in labels:
                behind.append(labels[jumps[place]])
            self.next.append([one for one in behind if one < len(self.lines)])

    def places(self, what):
        return [place for place, line in enumerate(self.lines) if re.search(what, line)]

    def unguarded(self, begins, guard, ends):
        """(line, line) of ends that a path leads to from begins (None: the first instruction) without what `guard` says."""
        found = []
        for begin in [None] if begins is None else self.places(begins):
            seen, waiting = set(), [0] if begin is None else list(self.next[begin])
            while waiting:
                place = waiting.pop()
                if place in seen:
                    continue
                seen.add(place)
                if re.search(ends, self.lines[place]):
                    found.append((begin and self.lines[begin], self.lines[place]))
                if not re.search(guard, self.lines[place]):
                    waiting.extend(self.next[place])
        return found


# By kind of code: what the steps of a fused kernel look like in it.
WORDS = {
    "ptx": {"look": r"ld\.global\.sys\.acquire|atom\.global\.(sys\.acquire|acquire\.sys)\.add", "barrier": r"bar\.sync",
            "load": r"cp\.async\.c[ag]\.shared\.global|cp\.async\.bulk\.tensor\S*shared::cta\.global|ld\.global\.(b16|v)",
            "store": r"st\.global|cp\.async\.bulk\.tensor\S*\.global\.shared", "bulk store": r"cp\.async\.bulk\.tensor\S*\.global\.shared",
            "stored": r"cp\.async\.bulk\.wait_group 0", "count": r"atom\.global\.gpu\.acq_rel\.add", "tell": r"atom\.global\.sys\.release\.exch",
            "take": r"atom\.global\.(acquire\.gpu|gpu\.acquire)\.cas", "give": r"atom\.global\.(gpu\.release|release\.gpu)\.exch"},
    "amdgcn": {"look": r"global_atomic_add .*sc0 sc1|global_load_dword .*sc0 sc1", "barrier": r"s_barrier", "load": r"(global|buffer)_load_(ushort|short|dwordx4)",
               "any load": r"(global|buffer)_load", "store": r"(global|buffer)_store", "count": r"global_atomic_add .*sc0$",
               "tell": r"global_atomic_swap .*sc1$", "take": r"global_atomic_cmpswap", "give": r"global_atomic_swap [^s]*(?:s\[[^]]*\])?$"},
}
FILES = (("gemm_persistent", "ag-gemm/swizzle", ()), ("gemm_tma", "ag-gemm/ring", ()), ("gemm_grouped", "gemm-rs/direct", ()),
         ("gemm_tma", "gemm-ar/partitioned", ()), ("attention_split_kv", "ulysses-attention/split-kv:", ()),
         ("gemm_persistent", "gemm-rs/direct", ("--realization", "co-located")))


class Instructions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        os.environ["TRITON_CACHE_DIR"] = os.path.join(cls.folder.name, "triton")
        cls.codes = {}
        for kernel, template, more in FILES:
            sizes = ("m=1024", "n=1024", "k=512") if more else None
            plan = kinds.make_plan(cls.folder.name, template, **({"sizes": sizes} if sizes else {}))
            blocks = {"block": 128, "block_k": 64} if more else {}
            file = kinds.fused(cls.folder.name, kernel, kinds.CONSTANTS[kernel], plan, *more, **blocks)
            for gpu, target in compile_test.GPUS.items():
                kind = "ptx" if gpu == "sm_90" else "amdgcn"
                with unittest.mock.patch("torch.version.hip", gpu == "gfx942" or None):
                    work, arguments = compile_test.launched(load_file(file))
                    made = compile_test.machine_code(work.kernel, arguments, target, work.options)
                cls.codes[kernel, template, bool(more), kind] = Code(made[kind], kind)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def of(self, kind, *, waits=None, tells=None, turns=None, moves=None):
        """Codes of files that wait, tell, take turns or move data."""
        for (kernel, template, carries, of_kind), code in self.codes.items():
            facts = {"waits": template.startswith(("ag-", "ulysses")) or carries, "tells": not template.startswith("ag-") or carries,
                     "turns": kernel == "attention_split_kv", "moves": carries}
            asked = {"waits": waits, "tells": tells, "turns": turns, "moves": moves}
            if of_kind == kind and all(value is None or facts[name] == value for name, value in asked.items()):
                yield code, WORDS[kind], f"{kernel} {template} {kind}"

    def assert_between(self, code, begins, guard, ends, what):
        self.assertEqual(code.unguarded(begins, guard, ends), [], what)

    def test_what_came_is_loaded_behind_an_acquire_of_the_system_and_a_barrier(self):
        for kind in WORDS:
            for code, words, name in self.of(kind, waits=True):
                with self.subTest(name):
                    self.assertTrue(code.places(words["look"]) and code.places(words["load"]))
                    self.assert_between(code, words["look"], words["barrier"], words["load"], "a load without a barrier behind the look")
                    if kind == "amdgcn":  # caches keep what they had before
                        self.assert_between(code, words["look"], r"buffer_inv sc0 sc1", words["any load"], "a load without an invalidation")
                        self.assert_between(code, words["look"], r"s_waitcnt vmcnt\(0\)", r"buffer_inv sc0 sc1", "an invalidation before the look is over")

    def test_stores_are_before_the_count_and_the_count_before_the_signal(self):
        for kind in WORDS:
            for code, words, name in self.of(kind, tells=True):
                with self.subTest(name):
                    self.assertTrue(code.places(words["count"]) and code.places(words["tell"]))
                    self.assert_between(code, words["store"], words["barrier"], words["count"], "a count without a barrier behind a store")
                    if kind == "ptx":  # on AMD's GPUs waves without the thread that counts go round it
                        self.assert_between(code, None, words["count"], words["tell"], "a signal without a count")
                    if kind == "amdgcn":
                        self.assert_between(code, words["store"], r"buffer_wbl2 sc1", words["count"], "a count of what is not written back")
                        self.assert_between(code, r"buffer_wbl2 sc1$", r"s_waitcnt vmcnt\(0\)", words["count"], "a count before all is written back")
                        self.assert_between(code, words["count"], r"buffer_wbl2 sc0 sc1", words["tell"], "a signal of what is not written back to the system")
                        self.assert_between(code, r"buffer_wbl2 sc0 sc1", r"s_waitcnt vmcnt\(0\)", words["tell"], "a signal before all is written back")

    def test_stores_by_descriptors_are_complete_before_they_are_counted(self):
        code, words = self.codes["gemm_tma", "gemm-ar/partitioned", False, "ptx"], WORDS["ptx"]
        self.assertTrue(code.places(words["bulk store"]))
        self.assert_between(code, words["bulk store"], words["stored"], words["count"], "a count without a wait for bulk stores")
        # The wait that only frees shared memory (.read) is not enough, and is none of these.
        self.assertNotRegex("cp.async.bulk.wait_group.read 0", words["stored"])

    def test_a_turn_is_acquired_before_and_released_behind_what_it_is_for(self):
        for kind in WORDS:
            for code, words, name in self.of(kind, turns=True):
                with self.subTest(name):
                    self.assertTrue(code.places(words["take"]) and code.places(words["give"]))
                    self.assert_between(code, words["take"], words["barrier"], words["store"], "a store without a barrier behind the turn that is taken")
                    self.assert_between(code, words["store"], words["barrier"], words["give"], "a turn that is given on without a barrier behind a store")

    def test_movements_take_sixteen_bytes_with_an_instruction(self):
        for code, _, name in self.of("ptx", moves=True):
            with self.subTest(name):
                self.assertTrue(code.places(r"ld\.global\.v4\.b32"))
                self.assertTrue(code.places(r"st\.global\.v4\.b32"))
                self.assertEqual(code.places(r"ld\.global\.b16"), [])

    def test_finds_what_is_left_out(self):
        """The rules themselves: without the instruction that they ask for they fail."""
        for key, begins, guard, ends in ((("gemm_persistent", "ag-gemm/swizzle", False), "look", "barrier", "load"),
                                         (("gemm_grouped", "gemm-rs/direct", False), "store", "barrier", "count")):
            for kind, words in WORDS.items():
                code = self.codes[(*key, kind)]
                with self.subTest(kernel=key[0], kind=kind):
                    self.assertTrue(code.unguarded(words[begins], r"^no instruction$", words[ends]))


if __name__ == "__main__":
    unittest.main()

"""Plans that a script writes are those that templates make."""

import pickle
import unittest

import hemiola
from hemiola import Plan, PlanBuilder, rank
from support import command


def gather(name, stream):
    """An all-gather of 4, its tensors and its one stream."""
    plan = PlanBuilder("all-gather", ranks=4, name=name, chunks_per_size=4, in_place_safe=True)
    return plan, plan.tensor("input", "input", 1), plan.tensor("output", "output", 4), plan.stream(stream)


class Templates(unittest.TestCase):
    def test_all_gather_direct(self):
        plan, part, whole, main = gather("all-gather/direct", "exchange")
        with main.loop(3) as i:
            main.push((rank + 1 + i) % 4, part[0], whole[rank])
        main.copy(part[0], whole[rank])
        self.assertEqual(plan.build(), Plan.make("all-gather/direct", ranks=4))

    def test_all_gather_ring(self):
        plan, part, whole, ring = gather("all-gather/ring", "ring")
        ring.copy(part[0], whole[rank])
        passed = ring.push((rank + 1) % 4, part[0], whole[rank % 4])
        for step in (1, 2):
            chunk = (rank - step) % 4
            passed = ring.push((rank + 1) % 4, whole[chunk], whole[chunk], after=passed.on((rank - 1) % 4))
        mine, theirs = plan.build(), Plan.make("all-gather/ring", ranks=4)
        self.assertEqual(mine.to_json().replace("(rank - 1) % 4", "(rank + 3) % 4").replace("(rank - 2) % 4", "(rank + 2) % 4"),
                         theirs.to_json())  # fmt: skip

    def test_a_template_is_that_of_the_command_line(self):
        for name in ("all-reduce/ring", "all-gather/direct", "ag-gemm/ring"):
            self.assertEqual(Plan.make(name, ranks=4).to_json(), command("plan", "make", name, "--ranks", "4"))
        machine = hemiola.Machine("dgx1-v100")
        theirs = command("plan", "make", "all-reduce/ring", "-m", "dgx1-v100")
        self.assertEqual(Plan.make("all-reduce/ring", machine=machine).to_json(), theirs)

    def test_json_reads_back(self):
        plan = Plan.make("all-reduce/halving-doubling", ranks=8)
        self.assertEqual(Plan.from_json(plan.to_json()), plan)
        self.assertEqual(pickle.loads(pickle.dumps(plan)), plan)


class Words(unittest.TestCase):
    def test_a_loop_that_waits_for_its_own_step_before(self):
        plan, part, whole, ring = gather("all-gather/loop", "ring")
        ring.copy(part[0], whole[rank])
        ring.push((rank + 1) % 4, part[0], whole[rank])
        with ring.loop(2) as i:
            chunk = (rank - 1 - i) % 4
            step = ring.push((rank + 1) % 4, whole[chunk], whole[chunk])
            step.wait(step.on((rank - 1) % 4, i=i - 1))
        built = plan.build()
        self.assertTrue(hemiola.check(built))
        self.assertEqual(built.transfers, 16)
        same = hemiola.run("ring:4", "all-gather/ring", "64KiB")
        self.assertEqual(hemiola.run("ring:4", built, "64KiB").size_bytes, same.size_bytes)

    def test_nested_loops_are_numbered_in_their_order(self):
        plan = PlanBuilder("custom", ranks=2)
        part, whole = plan.tensor("input", "input", 6), plan.tensor("output", "output", 6)
        main, other = plan.stream(), plan.stream()
        with main.loop(3) as i:
            main.copy(part[2 * i], whole[2 * i])
            with main.loop(1) as j:
                inner = main.copy(part[2 * i + j + 1], whole[2 * i + j + 1])
        scratch = plan.tensor("scratch", "scratch", 1)
        other.push(1 - rank, whole[5], scratch[0], after=inner.on(rank))
        other.copy(whole[1], scratch[0], after=[inner.on(rank, i=0, j=0)])
        text = plan.to_json()
        self.assertIn('"transfer": 5', text)
        self.assertIn('"transfer": 1', text)

    def test_reductions(self):
        n = 4
        plan = PlanBuilder("all-reduce", ranks=n, chunks_per_size=n)
        given, result = plan.tensor("input", "input", n), plan.tensor("output", "output", n)
        arrived = plan.tensor("arrived", "scratch", n)
        main = plan.stream("main")
        sends = []
        with main.loop(n - 1) as i:
            peer = (rank + i + 1) % n
            sends.append(main.push(peer, given[peer], arrived[rank]))
        main.copy(given[rank], result[rank])
        with main.loop(n - 1) as i:
            peer = (rank + i + 1) % n
            main.reduce(arrived[peer], result[rank], after=sends[0].on(peer, i=n - 2 - i))
        with main.loop(n - 1) as i:
            main.push((rank + i + 1) % n, result[rank], result[rank])
        check = hemiola.check(plan.build(), "ring:4")
        self.assertTrue(check, str(check))

    def test_roles(self):
        plan = PlanBuilder("broadcast", ranks=4, chunks_per_size=1)
        given, result = plan.tensor("input", "input", 1), plan.tensor("output", "output", 1)
        plan.stream()
        root = plan.code(ranks=[0]).stream("root")
        root.copy(given[0], result[0])
        for peer in (1, 2, 3):
            root.push(peer, given[0], result[0])
        self.assertTrue(hemiola.check(plan.build()))

    def test_computes_and_what_they_computed(self):
        plan = PlanBuilder("custom", ranks=2, name="gemm-then-push")
        a = plan.tensor("a", "input", (256, 128), "half")
        b = plan.tensor("b", "input", (128, 256), "half")
        c = plan.tensor("c", "scratch", (256, 256), "half")
        theirs = plan.tensor("theirs", "output", (256, 256), "half")
        plan.compute(
            "gemm", {"m": (256, 128), "n": (256, 128), "k": (128, 64)},
            [plan.read(a, "m", "k"), plan.read(b, "k", "n"), plan.accumulate(c, "m", "n")], reduced=["k"],
        )  # fmt: skip
        plan.stream().push((rank + 1) % 2, c, theirs, after=plan.computed(c))
        plan.expect(theirs, of=c, holder=(rank + 1) % 2)
        check = hemiola.check(plan.build(), "ring:2")
        self.assertTrue(check, str(check))
        self.assertEqual(len(check.proofs), 2)

    def test_a_sequence_of_launches(self):
        """C = A B in two halves of k, the second added to the first."""
        plan = PlanBuilder("custom", ranks=2, name="two-halves")
        a = plan.tensor("a", "input", (256, 256), "half")
        b = plan.tensor("b", "input", (256, 256), "half")
        c = plan.tensor("c", "output", (256, 256), "half")
        axes = {"m": (256, 128), "n": (256, 128), "k": (128, 64)}
        first = plan.compute(
            "gemm", axes, [plan.read(a, "m", "k"), plan.read(b, "k", "n"), plan.accumulate(c, "m", "n")],
            name="first", reduced=["k"], stream="compute", waits="launch",
        )  # fmt: skip
        plan.compute(
            "gemm", axes, [plan.read(a, "m", "k", begin=[0, 128]), plan.read(b, "k", "n", begin=[128, 0]), plan.add(c, "m", "n")],
            name="second", reduced=["k"], stream="other", waits="launch", after=first.on(rank),
        )  # fmt: skip
        plan.stream()
        plan.expect(c)
        built = plan.build()
        self.assertIn('"use": "add"', built.to_json())
        check = hemiola.check(built)
        self.assertTrue(check, str(check))

    def test_what_cannot_be_said(self):
        plan, part, whole, main = gather("mistakes", "main")
        with self.assertRaises(ValueError):
            whole[rank % 2 : rank]
        with self.assertRaises(ValueError):
            (rank % 2) % 4
        with self.assertRaises(ValueError):
            part[0] | whole[0]
        with self.assertRaises(IndexError):
            whole[0, 1]
        with self.assertRaises(TypeError):
            whole[1.5]
        with self.assertRaises(ValueError):
            main.push(1, part, whole[0], operand=whole[0])

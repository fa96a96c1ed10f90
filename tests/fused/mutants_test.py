"""Of emitted files with one thing wrong at least 99 in 100 are found: by the rules (`hemiola check`), by the tables that hemiola_rt makes, or
by executing them in the orders that find missing waits. What execution finds, the proof of the program that `check` reads from the text finds, too."""

import os
import re
import signal
import subprocess
import tempfile
import unittest

import kinds
import mutation
import support
from interleaved import InterleavedStream, InterleavedWorld

FILES = [("gemm_persistent", "ag-gemm/ring"), ("gemm", "gemm-rs/direct"), ("gemm_grouped", "gemm-ar/partitioned"),
         ("attention", "ring-attention/swizzle"), ("gemm_tma", "ag-gemm/swizzle"), ("gemm_persistent", "gemm-rs/ring"),
         ("gemm_persistent", "ag-gemm/sequence:degree=2,steps=hetero"), ("gemm_persistent", "gemm-a2a-gemm/direct:waves=1"),
         ("gemm_persistent", "ag-gemm/ring:k=256,split=2", "--realization", "co-located")]
MORE = [("gemm", "a2a-gemm/direct"), ("gemm_split_k", "gemm-rs/direct"), ("attention", "ring-attention/ring"), ("gemm_tma", "gemm-rs/ring"),
        ("gemm_persistent", "gemm-ar/partitioned"), ("gemm_grouped", "gemm-rs/direct"), ("gemm_split_k", "ag-gemm/ring"), ("gemm_persistent", "a2a-gemm/direct"),
        ("gemm_grouped", "gemm-rs/ring"), ("gemm_tma", "a2a-gemm/direct"), ("gemm", "gemm-rs/sequence:degree=2"), ("gemm_persistent", "mlp/domino:"),
        ("gemm_persistent", "gemm-rs/direct:n=256,split=2", "--realization", "co-located"), ("gemm", "gemm-rs/direct:transfer=push", "--store-to-peers"), ("moe_capacity_gemm", "moe/direct:"), ("attention", "ulysses-attention/direct:"), ("attention_split_kv", "ulysses-attention/split-kv:"),
        ("attention_gqa", "ulysses-attention/direct:kv_heads=2,causal=yes", "--store-to-peers")]


def is_right(text, orders):
    """In a process of its own, as a mutant may write anywhere, or have no end."""
    child = os.fork()
    if child == 0:
        signal.alarm(300)
        code = 1
        try:
            schedule = support.module_of(text)
            for order in orders:
                support.run_in_order(schedule, order)
            code = 0
        except Exception:  # a wrong result, tables that cannot be made, a wait without an end, or what is no call
            pass
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def meaning(text):
    """What tiles and copies of each rank wait for, as numbers of signals in the order in which they are told. None: it has none.

    A wait for a step that nobody is told of is one for the next that somebody is, and tells as much.
    """
    told, asked = {}, []

    class Recorder(InterleavedStream):
        def signal(self, signal, to, step):
            told.setdefault((to, signal.slot), []).append(signal.value(0, step))

        def wait_signal(self, signal, step):
            asked.append((self.runtime.rank, self.name, signal.slot, signal.value(0, step)))

    def number(rank, slot, value):
        values = told.get((rank, slot), [])
        return rank, slot, next((i for i, known in enumerate(values) if known >= value), None)

    try:
        schedule = support.module_of(text)
        world = InterleavedWorld(schedule.RANKS)
        waits = []
        for rt in world.members:
            rt._make_stream = lambda number, rt=rt: Recorder(rt, f"stream {number}")
            t = schedule.setup(rt)
            schedule.run(rt, t)
            for work in kinds.works_of(t):
                for number_of_move, move in enumerate(work._moves):
                    asked.extend((rt.rank, f"movement {number_of_move}", signal.slot, signal.value(0, step)) for signal, step in move["after"])
                    for to, slot, _, value in move["tells"]:
                        told.setdefault((to, slot), []).append(value)
                tables = work.arguments
                needs = tables["hm_needs"].tolist()
                for name, first in (("hm_rows", 1), ("hm_turns", 2)):
                    table = tables[name].tolist()
                    for i in range(0, len(table) - 3, 4):
                        wanted = [needs[3 * n:3 * n + 3] for n in range(table[i + first], table[i + first + 1])]
                        waits.append((rt.rank, name, table[i], table[i + 4 - first:i + 5 - first], wanted))
        return ([(rank, name, tile, part, [number(rank, slot, value) for slot, _, value in wanted]) for rank, name, tile, part, wanted in waits],
                [(rank, name, number(rank, slot, value)) for rank, name, slot, value in asked],
                {key: len(values) for key, values in told.items()})
    except Exception:  # it is no schedule
        return None


def complete(text):
    """For each tile, and each movement of a stream: how many movements of which streams are complete when its waits are over.

    A stream does one after the other, so who waits for it knows what it has waited for before. None: the text is no schedule, or signals go
    back or are told by several streams, of which nothing is said here.
    """
    told, asked, moved = {}, {}, {}

    class Recorder(InterleavedStream):
        def place(self):
            return self.runtime.rank, self.name

        def give(self, run, moves=False, **more):
            super().give(run, moves=moves, **more)
            moved[self.place()] = moved.get(self.place(), 0) + moves

        def signal(self, signal, to, step):
            told.setdefault((to, signal.slot), []).append((signal.value(0, step), self.place(), moved.get(self.place(), 0)))

        def wait_signal(self, signal, step):
            asked.setdefault(self.place(), []).append((moved.get(self.place(), 0), (self.runtime.rank, signal.slot), signal.value(0, step)))

    def add(known, more):
        for place, count in more.items():
            known[place] = max(known.get(place, 0), count)
        return known

    def after(key, value):
        tells = told.get(key, [])
        if sorted(tells) != tells or len({place for _, place, _ in tells}) > 1:
            raise ValueError("signals that go back, or of several streams")
        place, count = next(((place, count) for told_value, place, count in tells if told_value >= value), (("nobody", *key), value))
        return add({place: count}, before(place, count))

    def before(place, count):
        known = {}
        for position, key, value in asked.get(place, []):
            if position < count or place[0] == "nobody":
                add(known, after(key, value))
        return known

    try:
        schedule = support.module_of(text)
        world = InterleavedWorld(schedule.RANKS)
        tables = []
        for rt in world.members:
            rt._make_stream = lambda number, rt=rt: Recorder(rt, f"stream {number}")
            t = schedule.setup(rt)
            schedule.run(rt, t)
            for number, work in enumerate(kinds.works_of(t)):
                # What its programs move, one after the other as a stream does.
                place = rt.rank, f"work {number}"
                for i, move in enumerate(work._moves):
                    asked.setdefault(place, []).extend((i, (rt.rank, signal.slot), signal.value(0, step)) for signal, step in move["after"])
                    for to, slot, _, value in move["tells"]:
                        told.setdefault((to, slot), []).append((value, place, i + 1))
                if work.carries:
                    moved[place] = len(work._moves)
                for to, slot in work.tells:
                    told.setdefault((to, slot), []).append((1, ("tiles", rt.rank, slot), 1))
                needs = work.arguments["hm_needs"].tolist()
                for name, first in (("hm_rows", 1), ("hm_turns", 2)):
                    table = work.arguments[name].tolist()
                    for i in range(0, len(table) - 3, 4):
                        tables.append(((rt.rank, number, name, i, table[i], table[i + 4 - first:i + 5 - first]),
                                       [((rt.rank, needs[3 * n]), needs[3 * n + 2]) for n in range(table[i + first], table[i + first + 1])]))
        found = []
        for key, needs in tables:
            known = {}
            for need in needs:
                add(known, after(*need))
            found.append((key, known))
        found.extend(((place, i), before(place, i + 1)) for place, count in sorted(moved.items()) for i in range(count))
        return found
    except Exception:  # it is no schedule
        return None


WAITS = re.compile(r"\.signal\(|\.wait_signal\(|, after=\[.*?\)\]")


def only_waits_longer(text, mutant):
    """Whether nothing but waits and signals of the host's part differ, and every tile and movement waits for at least what it waited for."""
    pairs = [(a, b) for a, b in zip(text.split("\n"), mutant.split("\n")) if a != b]
    if not all(WAITS.search(a) and (".signal(" in a or ".wait_signal(" in a or WAITS.sub("", a) == WAITS.sub("", b)) for a, b in pairs):
        return False
    right, other = complete(text), complete(mutant)
    if right is None or other is None or [key for key, _ in right] != [key for key, _ in other]:
        return False
    return all(other_known.get(place, 0) >= count for (_, known), (_, other_known) in zip(right, other) for place, count in known.items())


class Mutants(unittest.TestCase):
    def is_accepted(self, text, *more):
        """Whether `check` finds nothing: with the kernel's name, by its rules alone."""
        path = os.path.join(self.folder, "mutant.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run([kinds.BINARY, "check", path, *more], capture_output=True, text=True, check=False)
        self.assertIn(done.returncode, (0, 2, 3, 4, 6), done.stdout + done.stderr)
        return done.returncode == 0

    def test_are_found(self):
        every = 1 if kinds.tries_all() else 8
        made, by_rule, by_proof, longer, alive, unproven = 0, 0, 0, [], [], []
        with tempfile.TemporaryDirectory() as folder:
            self.folder = folder
            for kernel, template, *more in FILES + (MORE if every == 1 else []):
                constants = kinds.CONSTANTS[kernel]
                text = kinds.read(kinds.fused(folder, kernel, constants, kinds.make_plan(folder, template), *more))
                orders = support.orders_of(support.module_of(text), ranks=(0,), seeds=2)
                self.assertTrue(is_right(text, orders), f"{kernel} {template}")
                right = meaning(text)
                self.assertIsNotNone(right)
                for number, (what, mutant) in enumerate(mutation.mutants(text)):
                    is_number = " as " in what and ("after=[" in what or "signal(" in what)
                    if number % every != 0 or (is_number and meaning(mutant) == right):
                        continue
                    made += 1
                    if not self.is_accepted(mutant, "--kernel", kernel):
                        by_rule += 1
                    elif "co-located" in more and not self.is_accepted(mutant):
                        by_proof += 1  # programs that take what others should, or too much: no order of three need show it
                    elif is_right(mutant, orders):
                        waits = only_waits_longer(text, mutant)
                        made -= waits  # it is not wrong
                        (longer if waits else alive).append(f"{kernel} {template}: {what}")
                    elif self.is_accepted(mutant):
                        unproven.append(f"{kernel} {template}: {what}")
        print(f"{len(longer)} wait for at least as much, end, and are right:", *longer, sep="\n  ")
        print(f"{made - len(alive)} of {made} mutants found, {by_rule} of them by the rules, {by_proof} where programs move data by the proof; not:", *alive, sep="\n  ")
        self.assertLessEqual(len(alive), made / 100)
        print(f"{len(unproven)} are proven and go wrong:", *unproven, sep="\n  ")
        self.assertLessEqual(len(unproven), made / 100)


if __name__ == "__main__":
    unittest.main()

"""A table of what `hemiola check` alone finds in emitted files with one thing wrong: python mutant_table.py [--each 200] [--seed 1] [--only WORD]

HEMIOLA_BINARY names the program. Of every kind of mutation.NAMES as many mutants are drawn from the files of all kernels and plans.
What check accepts is executed in the orders that find missing waits: what goes wrong there is listed, and the rest is right.
"""

import argparse
import collections
import os
import random
import subprocess
import tempfile

import kinds
import mutation
import support
from mutants_test import FILES, MORE, is_right, only_waits_longer


def sources(folder):
    """(name, text) of every emitted file."""
    files = [(kernel, template, ()) for kernel, _, template in kinds.kinds()] + [(kernel, template, tuple(more)) for kernel, template, *more in FILES + MORE if more]
    for kernel, template, more in files:
        is_slow = kinds.ranks_of(template) > 2 or "gqa" in kernel  # minutes in the interpreter
        if "placement=copy" not in template and not is_slow:  # a copy's row is not proven as it is
            path = kinds.fused(folder, kernel, kinds.CONSTANTS[kernel], kinds.make_plan(folder, template), *more)
            yield " ".join((kernel, template, *more)), kinds.read(path)


def code_of(folder, text):
    path = os.path.join(folder, "mutant.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return subprocess.run([kinds.BINARY, "check", path], capture_output=True, text=True, check=False).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="kinds with this word")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        texts = dict(sources(folder))
        by_kind = collections.defaultdict(list)
        for name, text in texts.items():
            for what, mutant in [*mutation.mutants(text), *mutation.values(text)]:
                by_kind[mutation.name_of(what)].append((name, what, mutant))
        orders, missed = {}, []
        print("| kind | mutants | drawn | wrong (3, 4) | no schedule (2) | not proven (6) | accepted and right | accepted and wrong |\n" + "| --- |" * 8, flush=True)
        for kind in (name for name, _ in mutation.NAMES if options.only in name):
            all_of = by_kind[kind]
            drawn = draw.sample(all_of, min(options.each, len(all_of)))
            counts = collections.Counter()
            for name, what, mutant in drawn:
                code = code_of(folder, mutant)
                if code == 0:
                    if name not in orders:
                        orders[name] = support.orders_of(support.module_of(texts[name]), ranks=(0,), seeds=2)
                    right = is_right(mutant, orders[name]) or only_waits_longer(texts[name], mutant)
                    code = "right" if right else "missed"
                    if not right:
                        missed.append(f"{kind}: {name}: {what}")
                counts[code] += 1
            print(f"| {kind} | {len(all_of)} | {len(drawn)} | {counts[3] + counts[4]} | {counts[2]} | {counts[6]} | {counts['right']} | {counts['missed']} |", flush=True)
            for code in set(counts) - {2, 3, 4, 6, "right", "missed"}:
                print(f"exit code {code}: {counts[code]}", flush=True)
    print(f"{len(missed)} accepted, and wrong when they are executed:", *missed, sep="\n  ")


if __name__ == "__main__":
    main()

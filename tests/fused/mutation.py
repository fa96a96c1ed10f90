"""Emitted files with one thing wrong: without a wait, a signal, a count, a barrier or an order of memory, with another chunk or step."""

import re

ORDERS = {'sem="acquire"': ('sem="relaxed"', 'sem="release"'), 'sem="acq_rel"': ('sem="release"', 'sem="acquire"', 'sem="relaxed"'),
          'sem="release"': ('sem="relaxed"', 'sem="acquire"'), 'scope="sys"': ('scope="gpu"', 'scope="cta"'), 'scope="gpu"': ('scope="cta"',)}
CHANGES = [  # in the functions that wait and count
    (r"- value < 0", "- value < -2"), (r"tl.load\(row\) - 1", "tl.load(row) - 2"), (r"tl.load\(row\) - 1", "tl.load(row)"),
    (r"call \+ 1, sem", "call, sem"), (r"\+ tl\.load\(need \+ 2\)", ""), (r"signals \+ tl\.load\(need\)", "signals"),
    (r"counters \+ part", "counters"), (r"tl\.load\(peers \+ tl\.load\(tell\)\)", "tl.load(peers)"), (r" \+ tl\.load\(tell \+ 1\)", ""),
    (r"range\(begin, end\)", "range(begin, end - 1)"), (r"2 \* i", "2 * 0"), (r"3 \* part", "0"),
    (r"hm_rows \+ 4 \* ", "hm_rows + 0 * "), (r"tl\.load\(hm_row \+ 1\)", "-1"), (r"tl\.load\(hm_row \+ 2\)", "tl.load(hm_row + 1)"),
    (r"hm_turns \+ 4 \* ", "hm_turns + 0 * "), (r"tl\.load\(hm_chunk \+ 2\)", "-1"), (r"tl\.load\(hm_chunk \+ 3\)", "tl.load(hm_chunk + 2)"),
    (r"tl\.load\(hm_chunk \+ 1\)", "tl.load(hm_chunk)"), (r"tl\.load\(hm_chunk\)", "0"), (r"if hm_first < hm_last", "if hm_first > hm_last"),
    (r"hm_done\(tl\.load\(hm_row \+ 3\)", "hm_done(0"), (r"hm_tile = tl\.load\(hm_row\)", "hm_tile = 0"),
    (r"hm_stores \+ ", "hm_stores + 0 * "),  # where tiles are stored
    # in what programs move between their tiles
    (r"13 \* i", "13 * begin"), (r"4 \* k", "0"), (r"shares \+ i", "shares"), (r"tl\.load\(move \+ 1\)", "tl.load(move)"),
    (r"tl\.load\(move \+ 3\)", "tl.load(move + 2)"), (r"tl\.load\(move \+ 6\)", "0"), (r"move \+ 9", "move + 7"), (r"move \+ 11", "move + 9"),
    (r"tl\.program_id\(0\)", "tl.program_id(0) + 1"), (r"tl\.num_programs\(0\)\)", "1)"), (r"tl\.num_programs\(0\) \* ", ""),
    (r"call \* tl\.load\(tell \+ 2\) \+ ", ""), (r" \+ tl\.load\(tell \+ 3\)", ""), (r"j % blocks", "0"),
    (r"hm_moved, hm_next", "0, hm_next"), (r"hm_moved, hm_all", "hm_all, hm_all"), (r"hm_moved = hm_next", "hm_moved = 0"),
]
DELETED = re.compile(r"hm_wait\(|hm_done\(tl|tl\.debug_barrier\(\)|tl\.atomic_|\.wave\(|\.part\(|\.turns\(|\.wait\(|\.wait_signal\(|\.signal\(|"
                     r"rt\.begin\(\)|rt\.end\(\)|\.zero\(|hm_carry\(hm_|hm_moved = hm_next")


# Lines of hm_carry that do nothing unless the host's part says so.
UNUSED = [(r"before ==|tell|move \+ 3", "signal"), (r"adds = ", "accumulate|reduce"), (r"hm_wait\(", "wait_signal")]
SEVERAL = [(r"3 \* i", "3 * begin")]  # of which a wave that waits for one transfer knows nothing


def mutants(text):
    """(what is wrong, text) of each, and no text twice. Waiting or telling more often than need be is not wrong."""
    made = {text}
    for what, mutant in _all(text):
        if mutant not in made:
            made.add(mutant)
            yield what, mutant


def _all(text):
    lines = text.split("\n")
    end = next(number for number, line in enumerate(lines) if line.startswith("def inputs"))
    run = next(number for number, line in enumerate(lines) if line.startswith("def run"))
    function = ""
    for number, line in enumerate(lines):
        if line.startswith("def "):
            function = line[4:].split("(")[0]
        is_dead = any(re.search(what, line) and not re.search(rf"\.work(_\d+)?\.({used})\(", text) for what, used in UNUSED)
        if function == "hm_carry" and is_dead:
            continue
        if function == "hm_wait" and "debug_barrier" in line:
            continue  # Triton 3.3 to 3.9 put one behind a scalar waiting loop themselves (docs/kernel_rules.md)
        if line.lstrip().startswith(("#", '"', "def ", "@")) or end <= number < run:
            continue

        def with_line(new, number=number):
            return "\n".join([*lines[:number], new, *lines[number + 1:]])

        spaces = line[:len(line) - len(line.lstrip())]
        place = f"{number + 1}: {line.strip()}"
        if DELETED.search(line):
            if line.rstrip().endswith(":"):
                yield f"{place}: never", with_line(f"{spaces}if True:")
            else:
                yield f"{place}: gone", with_line(f"{spaces}pass")
        for order, others in ORDERS.items():
            if order in line:
                for other in others:
                    yield f"{place}: {other}", with_line(line.replace(order, other))
        ours = "# hemiola" in line or any(word in line for word in ("needs", "signals", "counters", "peers", "tell", "value", "row", "move", "before", "program"))
        code, mark, comment = line.partition("  #")
        for what, other in CHANGES + (SEVERAL if re.search(r"after=\[\(.*\), \(", text) else []):
            if ours and re.search(what, code):
                yield f"{place}: {other}", with_line(re.sub(what, lambda _, other=other: other, code) + mark + comment)
        yield from _numbers(place, line, with_line)


def _numbers(place, line, with_line):
    """Other chunks, ranks, steps and parts of the calls that say what waits for what."""
    if not re.search(r"t\.work(_\d+)?\.(wave|turns|part)\(|\.wait_signal\(|\.signal\(|\.copy\(|\.accumulate\(|\.reduce\(", line):
        return
    for found in re.finditer(r"(?<![\w.])\d+(?!\w)", line):
        for other in (int(found[0]) + 1, int(found[0]) - 1, 0):
            if other >= 0 and str(other) != found[0]:
                yield f"{place}: {found[0]} as {other} at {found.start()}", with_line(line[:found.start()] + str(other) + line[found.end():])
    without = re.sub(r", after=\[.*?\]", "", line)
    if without != line:
        yield f"{place}: no wait", with_line(without)


# Kinds of what goes wrong, by the words in which mutants() and values() say it. The first that fits.
NAMES = [("a wait is left out", r"hm_wait\(.*: (gone|never)|\.wait(_signal)?\(.*: gone|: no wait"),
         ("a signal or a count is left out", r"(hm_done\(|\.signal\(|tl\.atomic_|\.part\().*: (gone|never)"),
         ("a barrier is left out", r"debug_barrier\(\).*: gone"),
         ("an order is weaker", r": sem="),
         ("a scope is narrower", r": scope="),
         ("waves, turns or zeros are left out", r": gone$"),
         ("another wave, turn or part", r"\.(wave|turns|part)\(.* as \d+ at"),
         ("another signal, rank or step", r"\.(wait_signal|signal)\(.* as \d+ at"),
         ("another chunk is moved", r" as \d+ at"),
         ("another value is stored", r": value "),
         ("a table is read elsewhere", r".")]


def name_of(what):
    return next(name for name, words in NAMES if re.search(words, what))


VALUES = [(r"range\(0, (.*)\):", r"range(0, (\1) - 1):"), (r"range\(0, ", "range(1, "), (r"\+= tl\.dot", "-= tl.dot"), (r"other=0\.0", "other=1.0"),
          (r"tl\.zeros\(", "1 + tl.zeros("), (r"\bhm_pieces\b", "(hm_pieces - 1)"), (r"= acc\b", "= 2 * acc"), (r"\b(acc|accumulator)\.to\(", r"(-\1).to("),
          (r"tl\.dot\((\w+), (\w+)\)", r"tl.dot(\1 + 1, \2)"), (r"tl\.dot\((\w+), (\w+), ", r"tl.dot(\1, \2 * 0.5, "), (r"tl\.exp2?\(", "tl.abs("),
          (r"(\w+_ptrs?) \+= ", r"\1 += 2 * "), (r"offs_k\[None, :\]", "(offs_k[None, :] + 1)"), (r"offs_n\[None, :\]", "(offs_n[None, :] ^ 1)"),
          (r"^( +)((tl|\w+)\.store\(.*\))$", r"\1if tl.program_id(0) != 1: \2"), (r"\boffs_m\[:, None\] < M", "offs_m[:, None] < M - 16"),
          (r"tl\.max\(", "tl.min("), (r"qk \* ", "qk + "), (r"tl\.sum\((\w+), 1\)", r"tl.max(\1, 1)")]


def values(text):
    """(what is wrong, text): what tiles compute, in the kernel's own lines."""
    lines = text.split("\n")
    end = next(number for number, line in enumerate(lines) if line.startswith("AXES = "))
    function = ""
    for number, line in enumerate(lines[:end]):
        if line.startswith("def "):
            function = line[4:].split("(")[0]
        if function.startswith("hm_") or line.startswith(("#", "def ")):
            continue
        for what, other in VALUES:
            changed = re.sub(what, other, line)
            if changed != line:
                yield f"{number + 1}: {line.strip()}: value {changed.strip()}", "\n".join([*lines[:number], changed, *lines[number + 1:]])

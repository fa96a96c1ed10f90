"""Emitted texts without one wait, event or signal: what a test has to find.

A line may go as a whole, or in one turn of the loops around it (the first, the last).
"""

import re

_ORDERS = re.compile(r"\.wait\(|\.wait_signal\(|\.signal\(|\.record\(\)|rt\.begin\(\)|rt\.end\(\)")
_LOOP = re.compile(r"( *)for (\w+) in range\((?:(\d+), )?(\d+)\):")


def _loops_around(lines, number):
    """(counter, first, last) of the loops around a line, outermost first."""
    loops, indent = [], len(lines[number]) - len(lines[number].lstrip())
    for line in reversed(lines[:number]):
        depth = len(line) - len(line.lstrip())
        if not line.strip() or depth >= indent:
            continue
        found = _LOOP.match(line)
        if found:
            loops.insert(0, (found[2], int(found[3] or 0), int(found[4]) - 1))
        indent = depth
    return loops


def mutants(text):
    """(what is missing, text) of each."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not _ORDERS.search(line) or line.lstrip().startswith(("#", '"')):
            continue
        spaces = line[:len(line) - len(line.lstrip())]

        def with_line(new, number=number):
            return "\n".join([*lines[:number], new, *lines[number + 1:]])

        yield f"{number + 1}: {line.strip()}", with_line(f"{spaces}pass")
        loops = _loops_around(lines, number)
        if not loops:
            continue
        for turn, which in ((1, "first"), (2, "last")):
            here = " and ".join(f"{loop[0]} == {loop[turn]}" for loop in loops)
            yield f"{number + 1}: {line.strip()} in the {which} turn", with_line(f"{spaces}if not ({here}): {line.strip()}")

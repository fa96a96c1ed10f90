"""The kinds of invariants that tools/invariants holds: how a trial is drawn, what its outcomes must satisfy, and the physical reason."""
import dataclasses
import re
import typing

import invariants_grid as grid
from invariants_grid import JOB, JOBS, KIB, MIB, cell

REFUSED = object()  # the binary says that it has no answer: exit 2
SLOW = 20  # seconds of CPU that no cell of the engine fluid needs
PUBLISHED = 0.30  # docs/fluid.md: 99 % of cells are within it


@dataclasses.dataclass
class Trial:
    cells: list
    judge: typing.Callable  # of their outcomes, in order: what is wrong, or nothing
    refusal: bool = False  # what is asked for is exit 2, and the judge sees what is not


@dataclasses.dataclass
class Kind:
    name: str
    reason: str
    trial: typing.Callable = None  # (draw, grid, small): one, or nothing where the draw makes none
    judge: typing.Callable = None  # of every cell: (outcome) what is wrong, or nothing
    engine: str = "fluid"
    weight: float = 1


def judged(trial, outcomes):
    found = [outcomes[cell] for cell in trial.cells]
    if any(one.code == 2 for one in found):
        return None if trial.refusal else REFUSED
    if any(one.code != 0 for one in found):
        return None  # the kind 'ends' counts it
    return trial.judge(*found)


def percent(value, of):
    return f"{100 * (value / of - 1):+.1f} %"


def us(seconds):
    return f"{seconds * 1e6:.3f} us"


# ------------------------------------------------------------------------------------------------ of every cell

def ends(outcome):
    if outcome.code < 0:
        return f"killed by signal {-outcome.code} after {outcome.cpu:.0f} s of CPU"
    if outcome.code not in (0, 2):
        return f"exit {outcome.code}: {outcome.message}"
    if outcome.cpu > SLOW and "line" not in outcome.words and "sampled" not in outcome.words:
        return f"{outcome.cpu:.0f} s of CPU"
    return None


def below(outcome):
    if outcome.time is None:
        return None
    if outcome.bound and outcome.time < outcome.bound * 0.999:
        return f"{us(outcome.time)} is below the bound {us(outcome.bound)}"
    return None


def useful(outcome):
    if outcome.time is None or not outcome.ideal or outcome.ideal < 500e-6:
        return None
    if outcome.bound is not None and outcome.bound * 5 < outcome.ideal:
        return f"bound {us(outcome.bound)}, but the collective's bytes take {us(outcome.ideal)}"
    return None


# ------------------------------------------------------------------------------------------------ sizes and nodes

def sizes(draw, places, small):
    machine, program = places.machine(draw), places.program(draw)
    size = places.size(draw, most=2048 * MIB)

    def judge(one, two):
        if two.time < one.time * 0.98:
            return f"twice the size is faster: {us(one.time)}, then {us(two.time)}"
        if two.time > one.time * 2.6:  # 2, and what a cache that no longer holds it costs
            return f"twice the size takes {two.time / one.time:.2f} times as long: {us(one.time)}, then {us(two.time)}"
        return None

    return Trial([cell(program, machine, size), cell(program, machine, 2 * size)], judge)


def nodes(draw, places, small):
    name = draw.choice([name for name in places.builtin if not name.startswith("gb200")])
    few = draw.choice((1,) if small else (1, 2, 4, 8, 16))
    program, size = places.program(draw), places.size(draw)

    def judge(one, two):
        if two.time < one.time * 0.95:
            return f"twice the nodes are faster: {us(one.time)}, then {us(two.time)}"
        return None

    machines = [(name if count == 1 else f"{name}:{count}", ()) for count in (few, 2 * few)]
    return Trial([cell(program, machine, size) for machine in machines], judge)


def bandwidth(draw, places, small):
    machine, program, size = places.machine(draw), places.program(draw), places.size(draw)
    classes = places.classes(machine[0])
    if not classes:
        return None
    name, value = draw.choice(sorted(classes.items()))

    def judge(whole, half):
        if half.time < whole.time * 0.98:
            return f"half the bandwidth of {name} is faster: {us(whole.time)}, then {us(half.time)}"
        return None

    return Trial([cell(program, machine, size), cell(program, machine, size, "--set", f"link.{name}.bandwidth={value / 2:g}GB/s")], judge)


# ------------------------------------------------------------------------------------------------ links

def fat_link(draw, places, small):
    gpus = draw.choice((4, 8))
    links, bandwidth_of = draw.choice(((2, 100), (4, 100), (8, 100), (2, 200), (4, 50), (8, 50)))
    program, size = places.program(draw), places.size(draw, least=1 * MIB)

    def judge(several, one):
        if abs(one.time / several.time - 1) > 0.05:
            return f"{links} links take {us(several.time)}, one of the same bandwidth {us(one.time)}"
        return None

    machines = [(f"switch{gpus}_{links}x{bandwidth_of}.yaml", ()), (f"switch{gpus}_1x{links * bandwidth_of}.yaml", ())]
    return Trial([cell(program, machine, size) for machine in machines], judge)


def more_links(draw, places, small):
    gpus = draw.choice((4, 8))
    few, many = draw.choice((("1x100", "2x100"), ("2x100", "4x100"), ("4x100", "8x100"), ("1x200", "2x200"), ("4x50", "8x50"), ("1x100", "1x200"),
                             ("1x200", "1x400"), ("1x400", "1x800")))
    program, size = places.program(draw), places.size(draw)

    def judge(one, two):
        if two.time > one.time * 1.02:
            return f"twice the links are slower: {us(one.time)}, then {us(two.time)}"
        return None

    return Trial([cell(program, (f"switch{gpus}_{kind}.yaml", ()), size) for kind in (few, many)], judge)


def permuted(draw, places, small):
    name = draw.choice(("dgx-h100", "dgx-a100", "hgx-b200", "mi300x-8", "mi355x-8", "switch:8"))
    ranks = list(range(8))
    draw.shuffle(ranks)
    program, size = places.program(draw), places.size(draw)

    def judge(one, other):
        if abs(other.time / one.time - 1) > 0.01:
            return f"another order of equal GPUs: {us(one.time)}, then {us(other.time)}"
        return None

    return Trial([cell(program, (name, ()), size), cell(program, (name, ()), size, "--ranks", ",".join(map(str, ranks)))], judge)


def written(draw, places, small):
    machine, own = places.machine(draw, 144)
    name = places.written(machine)
    if own or not name:
        return None
    program, size = places.program(draw), places.size(draw)

    def judge(one, other):
        if one.time != other.time or one.bound != other.bound:
            return f"as InfraGraph {us(other.time)}, without {us(one.time)}"
        return None

    return Trial([cell(program, (machine, ()), size), cell(program, (name, ()), size)], judge)


# ------------------------------------------------------------------------------------------------ choices

def bytes_over_bandwidth(collective, size, node, count):
    """Seconds that a ring's bytes take on the slower of node and network (all-to-all: those of pairs), and the least that any form needs there."""
    ranks = node.gpus * count
    network = node.nics * node.nic_rate
    if collective == "all-to-all":
        inside = size * (node.gpus - 1) / ranks / node.rate
        across = node.gpus * size * (ranks - node.gpus) / ranks / network if count > 1 else 0
        return max(inside, across), max(inside, across)
    times = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1}.get(collective, 0)
    ring = size * (times * (ranks - 1) / ranks if times else 1)
    rate = min(node.rate, network) if count > 1 else node.rate
    least = size * max(1, times) / 2 / node.rate  # a switch adds up and multiplies: half of the bytes
    if count > 1:
        least = max(least, size * max(1, times) * (count - 1) / count / network)
    return ring / rate, least


def closed(draw, places, small):
    """The library's choice and the best of all against links of node and network."""
    name = draw.choice(places.builtin)
    count = draw.choice((1, 2) if small or name.startswith("gb200") else grid.NODES)
    node = places.node(name)
    size = 64 * MIB if small else places.size(draw, least=256 * MIB)
    collective = draw.choice(grid.COLLECTIVES)
    program = (collective if count == 1 and draw.random() < 0.3 else f"{collective}/nccl",)
    ring, least = bytes_over_bandwidth(collective, size, node, count)
    if collective in ("broadcast", "reduce"):  # a chain that fills: each rank has a slot of 512 KiB of every channel before it passes that on
        ring += (node.gpus * count - 1) * 60e-6

    def judge(outcome):
        if ring > 500e-6 and outcome.time > ring / 0.6:
            return f"{us(outcome.time)}, {ring / outcome.time:.2f} of bytes over the slower of node and network, {us(ring)}"
        if outcome.time < least * 0.98:
            return f"{us(outcome.time)}, but the fewest bytes that do it take {us(least)}"
        return None

    return Trial([cell(program, (name if count == 1 else f"{name}:{count}", ()), size)], judge)


def own_cut(draw, places, small):
    machine, program = places.machine(draw), places.program(draw)
    size = places.size(draw, least=256 * MIB) if not small else 16 * MIB
    # What goes along chains and up trees waits for them to fill, lines with flags wait for their flags, levels take turns.
    if program[0].startswith(("broadcast", "reduce/")) or any(word in " ".join(program) for word in ("tree", "=ll", "hierarchical")):
        return None

    def judge(outcome):
        if outcome.busiest > 300e-6 and outcome.busiest < outcome.time * 0.5:
            return f"{us(outcome.time)}, its busiest link {us(outcome.busiest)}"
        return None

    return Trial([cell(program, machine, size)], judge)


def best(draw, places, small):
    machine = places.machine(draw, most_gpus=32)
    collective, size = draw.choice(("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast")), places.size(draw, most=512 * MIB)

    def judge(every, library):
        if every.time > library.time * 1.001:
            return f"the best of all takes {us(every.time)}, the library's choice {us(library.time)}"
        return None

    return Trial([cell((collective,), machine, size), cell((f"{collective}/nccl",), machine, size)], judge)


def synth(draw, places, small):
    """All templates are candidates of a synthesis, judged by a simulation at the size of the run: from these sizes on by fluid."""
    machine = places.machine(draw, most_gpus=16)
    template = draw.choice(("all-reduce/two-shot", "all-reduce/ring", "all-gather/direct", "all-gather/ring", "reduce-scatter/direct", "reduce-scatter/collective",
                            "all-to-all/direct", "all-to-all/waves"))
    size = 16 * MIB if small else places.size(draw, least=64 * MIB)

    def judge(made, of_template):
        if made.result["size_bytes"] != of_template.result["size_bytes"]:
            return None  # the template has no such size: it was rounded
        if made.time > of_template.time * 1.02:
            return f"the synthesis takes {us(made.time)}, a template {us(of_template.time)}"
        return None

    return Trial([cell((f"{template.split('/')[0]}/synth",), machine, size), cell((template,), machine, size)], judge)


def choice(draw, places, small):
    machine, size = places.machine(draw), places.size(draw)
    words = ("all-reduce/nccl", "--param", f"algorithm={draw.choice(('ring', 'tree'))}", "--param", f"protocol={draw.choice(grid.PROTOCOLS)}")

    def judge(automatic, forced):
        if automatic.time > forced.time * 1.3:
            return f"the library's choice takes {us(automatic.time)}, this one {us(forced.time)}"
        return None

    return Trial([cell(("all-reduce/nccl",), machine, size), cell(words, machine, size)], judge)


# ------------------------------------------------------------------------------------------------ engines

def engines(draw, places, small):
    machine, program = places.machine(draw, most_gpus=8), places.program(draw)
    size = places.size(draw, most=(1 if small else 16) * MIB)
    other = "line" if small else draw.choice(("line", "line", "sampled"))

    def judge(fluid, line):
        if fluid.bound and line.bound and abs(fluid.bound / line.bound - 1) > 0.001:
            return f"bound {us(fluid.bound)} by fluid, {us(line.bound)} by {other}"
        if abs(fluid.time / line.time - 1) > PUBLISHED:
            return f"{us(fluid.time)} by fluid, {us(line.time)} by {other} ({percent(fluid.time, line.time)})"
        return None

    return Trial([cell(program, machine, size), cell(program, machine, size, engine=other)], judge)


CHANGED = re.compile(r"([\d.]+)( ?)(.*)")


def parameters(draw, places, small):
    """Four times a parameter, by line and by fluid: both move alike, or fluid refuses it."""
    machine = (draw.choice(("dgx-h100", "mi300x-8", "dgx-a100")), ())
    name, value = draw.choice(places.parameters(machine[0]))
    number = CHANGED.fullmatch(value)
    if not number or number[3] in ("inf",):
        return None
    less = number[3].endswith("/s") or draw.random() < 0.3
    changed = float(number[1]) / 4 if less else float(number[1]) * 4
    if not number[3]:
        changed = max(1, int(changed))
    text = f"{changed:g}{number[3]}".replace(" ", "")
    program = draw.choice((("all-reduce/two-shot",), ("all-reduce/ring",), ("all-reduce/one-shot", "--param", "protocol=ll"), ("all-gather/direct",)))
    size, words = draw.choice((64 * KIB, 1 * MIB)), ("--set", f"{name}={text}")

    def judge(fluid, fluid_set, line, line_set):
        ratio = (fluid_set.time / fluid.time) / (line_set.time / line.time)
        if not 1 / 1.25 < ratio < 1.25:
            return (f"{name}={text} moves line {us(line.time)} to {us(line_set.time)}, fluid {us(fluid.time)} to {us(fluid_set.time)}")
        return None

    return Trial([cell(program, machine, size), cell(program, machine, size, *words), cell(program, machine, size, engine="line"),
                 cell(program, machine, size, *words, engine="line")], judge)


# ------------------------------------------------------------------------------------------------ jobs, explore, options

def job_of(places, first, size, second):
    name = f"job_{first.replace('/', '-')}_{size}_{second}.yaml"
    grid.GENERATED[name] = JOB.format(first=first, size=size, second=JOBS[second].format(size=size))
    return name


def jobs(draw, places, small):
    machine = (draw.choice(("dgx-h100", "dgx-a100", "mi300x-8", "hgx-b200", "dgx1-v100", "switch:8")), ())
    size = places.size(draw, least=1 * MIB, most=64 * MIB)
    first, second = draw.choice(("all-reduce/ring", "all-gather/direct")), draw.choice(sorted(JOBS))
    names = [job_of(places, first, size, second)]
    for kept in ("first", "second"):
        text = "\n".join(line for line in grid.GENERATED[names[0]].splitlines() if "name: pair" in line or "dtype" in line or "launches" in line
                         or f"name: {kept}," in line)
        grid.GENERATED[f"{kept}_{names[0]}"] = text + "\n"
        names.append(f"{kept}_{names[0]}")

    def judge(both, one, two):
        if both.time < max(one.time, two.time) * 0.99:
            return f"together {us(both.time)}, alone {us(one.time)} and {us(two.time)}"
        if both.time > (one.time + two.time) * 1.05:
            return f"together {us(both.time)}, one after the other {us(one.time + two.time)}"
        return None

    return Trial([("run", name, "--machine", machine[0], "--no-check", "--engine", "fluid") for name in names], judge)


def explores(draw, places, small):
    operator = draw.choice(("ag-gemm", "gemm-rs", "gemm-ar", "a2a-gemm", "gemm-a2a"))
    machine = draw.choice(("dgx-h100", "dgx-a100", "mi300x-8", "hgx-b200", "dgx1-v100"))
    m = draw.choice((512, 2048, 8192))
    n, k = draw.choice((1024, 4096, 8192)), draw.choice((1024, 4096, 8192))

    def judge(outcome):
        document = outcome.document
        for one in document.get("results", []):
            losses = one.get("losses") or {}
            lost = sum((losses.get("fs") or {}).values())
            for name, value in (losses.get("fs") or {}).items():
                if value < -0.01 * one["time_fs"]:
                    return f"loss '{name}' of {value * 1e-9:.3f} us of {one['schedule']}, in all {lost * 1e-9:.3f} us"
            if one["time_fs"] < document["ideal_fs"] * 0.999:
                return f"{100 * document['ideal_fs'] / one['time_fs']:.1f} % of ideal: {one['schedule']}"
        return None

    return Trial([("explore", operator, "--gemm", f"{m},{n},{k}", "--machine", machine)], judge)


UNUSED = (
    ("run", "all-reduce/ring", "--machine", "dgx-h100", "--gpu", "mi300x", "--size", "1MiB"),
    ("run", "all-reduce/ring", "--machine", "dgx-h100:2", "--gpu", "a100", "--size", "1MiB"),
    ("explore", "gemm-ar", "--gemm", "512,1024,1024", "--machine", "dgx-h100", "--gpu", "mi300x"),
    ("machine", "show", "dgx-h100", "--gpu", "mi300x"),
    ("check", "all-reduce/ring", "--machine", "dgx-h100", "--gpu", "mi300x", "--size", "1MiB"),
    ("workload", "make", "--model", "llama-3-8b", "--machine", "dgx-h100", "--gpu", "mi300x", "-o", "FOLDER/w.yaml"),
    ("run", "all-reduce/ring", "--machine", "dgx-h100", "--size", "1MiB", "--csv", "FOLDER/a.csv", "--csv", "FOLDER/b.csv"),
    ("run", "all-reduce/ring", "--machine", "dgx-h100", "--size", "1MiB", "--replicate", "8"),
    ("run", "all-reduce/ring", "--machine", "dgx-h100", "--size", "1MiB", "--groups", "FOLDER/none.json"),
    ("run", "all-reduce/ring", "--machine", "dgx-h100", "--size", "1MiB", "--lenient"),
    ("run", "all-reduce/ring", "--machine", "dgx-h100", "--size", "1MiB", "--compute", "recorded"),
    ("run", "all-reduce/ring", "--machine", "dgx-h100", "--size", "1MiB", "--without", "copies"),
    ("run", "all-reduce/ring", "--machine", "dgx-h100", "--size", "1MiB", "--no-contention"),
    ("run", "all-reduce/ring", "--machine", "dgx-h100", "--size", "1MiB", "--record-rank", "1"),
    ("run", "all-reduce/ring", "--machine", "dgx-h100", "--size", "1MiB", "--trace-lines", "0ns:1us"),
)


def unused(draw, places, small):
    return Trial([draw.choice(UNUSED)], lambda outcome: f"exit {outcome.code}, no word of what it does not use", refusal=True)


ALL = [
    Kind("ends", "every question ends with an answer or a refusal", judge=ends),
    Kind("below", "nothing is faster than its bytes over its bandwidth", judge=below),
    Kind("bound", "a bound that is no fifth of bytes over bandwidth says nothing", judge=useful),
    Kind("sizes", "more bytes take longer, and what is done once can be done twice", sizes, weight=4),
    Kind("nodes", "more nodes have more to agree on", nodes, weight=2),
    Kind("bandwidth", "less bandwidth is never faster", bandwidth, weight=3),
    Kind("fat-link", "bytes are striped over links: only the sum of their bandwidths counts", fat_link, weight=1),
    Kind("more-links", "more wires carry at least as much", more_links, weight=1),
    Kind("permuted", "numbers of equal GPUs mean nothing", permuted, weight=1),
    Kind("written", "a machine is what its InfraGraph file says", written, weight=1),
    Kind("closed", "large collectives come near their bytes over the slower of node and network", closed, weight=1),
    Kind("own-cut", "a large program keeps its busiest link busy", own_cut, weight=1),
    Kind("best", "the best of all is no slower than one of them", best, weight=1),
    Kind("synth", "what is made for a machine is no slower than what it was chosen among", synth, weight=1),
    Kind("choice", "the library's choice is near the best of its own", choice, weight=1),
    Kind("engines", "engines of one machine agree", engines, engine="line", weight=3),
    Kind("parameters", "a parameter means the same to every engine", parameters, engine="line", weight=3),
    Kind("jobs", "together takes no less than the longest alone, and no more than all in turn", jobs, weight=0.5),
    Kind("explore", "what is lost against an ideal is not negative", explores, weight=0.15),
    Kind("unused", "what is given and not used is an error", unused, weight=0.1),
]
OF_EVERY_CELL = [kind for kind in ALL if kind.judge]
ALL_DRAWN = [kind for kind in ALL if kind.trial]

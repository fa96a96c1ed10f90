"""ConCCL's ladder (arXiv 2412.14335), and by how much products are slowed down (arXiv 2507.03114): the same jobs tell both."""
import statistics

from . import common
from .pairs import PAIRS

RUNGS = ["plain", "priority and partition", "copy engines"]
PUBLISHED = ["21 %", "42 %", "72 %"]
GPUS = 8
UNITS = 304  # compute units of one MI300X
SHARE_OF_COLLECTIVE = 56  # of them, in the second rung: as many as RCCL has workgroups on this machine (docs/kernels.md)


def size_of(text):
    units = {"MiB": 2**20, "GiB": 2**30}
    return int(float(text[:-3]) * units[text[-3:]])


def copies(size):
    """An all-gather or an all-to-all by copy engines: every rank sends an eighth to every other, on all links at once."""
    return [{"name": f"copy {a} to {b}", "copy": {"from": a, "to": b, "size": f"{size_of(size) // GPUS}B"}, "stream": f"{a} to {b}"}
            for a in range(GPUS) for b in range(GPUS) if a != b]


def job(pair, rung):
    """Launches and streams. Without a priority the product comes first: its workgroups are there when the collective starts."""
    _, (m, n, k), kind, size = pair
    product = {"name": "product", "product": {"m": m, "n": n, "k": k}, "stream": "compute"}
    moves = {"name": "collective", "run": f"{kind}/nccl", "size": size, "stream": "comm"}
    if rung == 1:
        streams = {"comm": {"priority": 1, "units": f"0-{SHARE_OF_COLLECTIVE - 1}"},
                   "compute": {"units": f"{SHARE_OF_COLLECTIVE}-{UNITS - 1}"}}
        return [moves, product], streams
    if rung == 2:
        return [product, *copies(size)], {}
    return [product, moves], {}


def simulate(pair, rung):
    """Femtoseconds of both together, and the launches by name."""
    result = common.run_job(*job(pair, rung), "mi300x-8")
    launches = {launch["name"]: launch for launch in result["launches"]}
    begin, end = (choose(launch[at] for launch in launches.values()) for choose, at in ((min, "begin_fs"), (max, "end_fs")))
    return end - begin, launches


def share_of_ideal(serial, longer, together):
    return (serial / together - 1) / (serial / longer - 1)


def run():
    rows, shares, slowed = [], [[] for _ in RUNGS], [[] for _ in RUNGS]
    for pair in PAIRS:
        cells, slower = [], []
        for rung in range(len(RUNGS)):
            together, launches = simulate(pair, rung)
            product = launches["product"]
            if rung == 0:
                alone = [launches[name]["alone_fs"] for name in ("product", "collective")]
                serial, longer = sum(alone), max(alone)
            shares[rung].append(share_of_ideal(serial, longer, together))
            slowed[rung].append((product["end_fs"] - product["begin_fs"]) / alone[0] - 1)
            cells.append(common.percent(shares[rung][-1]))
            slower.append(f"{100 * slowed[rung][-1]:.1f} %")
        common.say(f"{pair[0]}, {pair[2]} {pair[3]}: {cells} {slower}")
        rows.append([pair[0], f"{pair[2]} {pair[3]}", *map(common.ms, alone), f"{serial / longer:.2f}", *cells, *slower])
    common.table(["product", "collective", "product (ms)", "collective (ms)", "ideal", *RUNGS,
                  *(f"product slowed: {r}" for r in RUNGS)], rows)
    common.table(["", *RUNGS], [
        ["published, mean share of ideal", *PUBLISHED],
        ["simulated, mean", *(common.percent(statistics.mean(s)) for s in shares)],
        ["simulated, median", *(common.percent(statistics.median(s)) for s in shares)],
        ["pairs", *map(len, shares)],
        ["product slowed by, mean", *(f"{100 * statistics.mean(s):.1f} %" for s in slowed)],
        ["product slowed by, worst", *(f"{100 * max(s):.1f} %" for s in slowed)]])
    print(f"In the published order: {sum(a <= b <= c for a, b, c in zip(*shares))} of {len(PAIRS)} pairs.\n")

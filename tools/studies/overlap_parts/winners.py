"""Does the engine sampled agree with what fluid takes for the fastest, at full size?"""
from . import common

# Of the scenarios of 8 ranks with at most so many rows, and so many flop on a GPU (a schedule of a larger one takes sampled minutes), 30
# at even distances in the order of the file, on two machines in turn. Of each, sampled is asked for the three that fluid takes for the
# fastest, and for serial.
SCENARIOS, MOST_ROWS, MOST_FLOP, TOP = 30, 8192, 1.3e11, 3
RANKS = 8
MACHINES = ["dgx-h100", "mi300x-8"]
NEAR = 0.03


def scenarios():
    """Those of common.scenarios() that are asked for."""
    found = [of for of in common.scenarios() if of["ranks"] == RANKS and of["gemm"][0] <= MOST_ROWS and flop(of) <= MOST_FLOP]
    return [found[i * len(found) // SCENARIOS] for i in range(SCENARIOS)]


def flop(of):
    """On a GPU."""
    m, n, k = of["gemm"]
    return 2 * m * n * k / (1 if "gather" in of else RANKS)


def run():
    rows, near = [], 0
    for number, of in enumerate(scenarios()):
        name, machine = of["name"], MACHINES[number % len(MACHINES)]
        common.say(f"{number + 1}: {name} on {machine}")
        more = ["--dtype", of["dtype"]] + (["--gather", of["gather"]] if "gather" in of else [])
        found = common.result_of(["explore", of["operator"], "--gemm", ",".join(map(str, of["gemm"])), "--machine", machine, *more,
                                  "--losses", "none", "--top", str(TOP)])
        serial = found["serial"]
        tried = [("serial", serial["time_fs"], serial["confirmed_fs"])]
        tried += [(r["schedule"], r["fluid_fs"], r["confirmed_fs"]) for r in found["results"] if r.get("confirmed_fs")]
        ours, best = min(tried, key=lambda one: one[1]), min(tried, key=lambda one: one[2])
        behind = ours[2] / best[2] - 1
        near += behind <= NEAR
        rows.append([name, machine, ours[0], common.us(ours[1]), common.us(ours[2]), f"{100 * (ours[1] / ours[2] - 1):+.1f} %",
                     common.us(serial["confirmed_fs"]), f"{100 * behind:.1f} %"])
    common.table(["scenario", "machine", "fastest by fluid", "fluid (us)", "sampled (us)", "fluid's error", "serial, sampled (us)", "behind sampled's best"],
                 rows)
    print(f"Within {100 * NEAR:.0f} % of the fastest by sampled: {near} of {len(rows)} ({common.percent(near / len(rows))}).\n")

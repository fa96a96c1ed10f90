"""One shard of one peer after the other, against serial: on a full mesh, where it leaves six of seven links idle, and on a switch."""
from . import common

RATIOS = [0.1, 0.5, 1.0, 1.2, 2.0]
M, K, GPUS = 8192, 8192, 8
SIZE = f"{M * K * 2}B"


def closed(ratio):
    """Time of shards over time of serial on a full mesh without losses; `ratio`: all-gather over product."""
    piece = 1 / GPUS
    return ((GPUS - 1) * max(piece, ratio) + piece) / (1 + ratio)


def product_fs(columns, machine):
    launch = {"name": "product", "product": {"m": M, "n": columns, "k": K}, "stream": "compute"}
    found = common.run_job([launch], {}, machine)["launches"][0]
    return found["end_fs"] - found["begin_fs"]


def columns_for(ratio, machine):
    """Columns whose product takes 1 / ratio of the all-gather, to a multiple of 256: two steps from a proportional guess."""
    columns = 2048
    collective = common.explore("ag-gemm", (M, columns, K), "--losses", "none", "--top", "0", "--fluid", "1",
                                machine=machine)["serial"]["collective_fs"]
    for _ in range(3):
        columns = max(256, 256 * round(columns * collective / ratio / product_fs(columns, machine) / 256))
    return columns


def on(machine):
    rows = []
    for ratio in RATIOS:
        columns = columns_for(ratio, machine)
        found = common.explore("ag-gemm", (M, columns, K), "--losses", "none", "--top", "0", "--fluid", "12", "--degrees", "2",
                               "--realization", "copy-engine", "--transfer", "push", machine=machine)
        serial = found["serial"]
        reached = serial["collective_fs"] / serial["product_fs"]
        shards = min(r["time_fs"] for r in found["results"] if r["family"] == "shards")
        slower = shards / serial["time_fs"]
        expected = closed(reached)
        rows.append([ratio, f"{closed(ratio):.2f}", columns, f"{reached:.2f}", f"{expected:.2f}", common.us(serial["time_fs"]),
                     common.us(shards), f"{slower:.2f}", f"{100 * (slower / expected - 1):+.0f} %"])
    print(f"{machine}:\n")
    common.table(["r wanted", "closed form there", "columns of a GPU", "r simulated", "closed form there", "serial (us)",
                  "shards (us)", "shards / serial", "against the closed form"], rows)


def run():
    on("mi300x-8")
    on("dgx-h100")

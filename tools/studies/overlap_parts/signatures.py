"""Do static sizes tell what a schedule loses? Rank correlations of DIL and CIL with them, by family."""
import random

from . import common

# FiCCO's setting (arXiv 2512.10236): eight steps on eight GPUs, moved by copy engines. Every second all-gather before a product of the
# scenarios with 2048 to 8192 rows on 8 ranks in bf16, in the order of the file.
SETTING = ["--degrees", "8", "--realization", "copy-engine", "--transfer", "push", "--fluid", "14", "--losses", "all", "--top", "0"]
RESAMPLES = 2000
FEATURES = ["flop", "bytes", "flop / byte"]
LOSSES = [("DIL", "dil_product"), ("CIL", "cil_product")]


def scenarios():
    """(name, [m, n, k] over all GPUs)."""
    found = [(of["name"], of["gemm"]) for of in common.scenarios()
             if of["operator"] == "ag-gemm" and "gather" not in of and of["dtype"] == "bf16" and of["ranks"] == 8 and 2048 <= of["gemm"][0] <= 8192]
    return found[::2]


def ranks(values):
    order = sorted(range(len(values)), key=lambda i: values[i])
    result = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end + 1 < len(order) and values[order[end + 1]] == values[order[at]]:
            end += 1
        for i in order[at:end + 1]:
            result[i] = (at + end) / 2
        at = end + 1
    return result


def correlation(xs, ys):
    """Spearman's, or None where one does not vary."""
    xs, ys = ranks(xs), ranks(ys)
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    top = sum((a - x) * (b - y) for a, b in zip(xs, ys))
    bottom = (sum((a - x) ** 2 for a in xs) * sum((b - y) ** 2 for b in ys)) ** 0.5
    return top / bottom if bottom else None


def with_interval(xs, ys):
    """Text: the correlation and the middle 90 % of those of resampled scenarios."""
    value = correlation(xs, ys)
    if value is None:
        return "-"
    draw = random.Random(1)
    found = []
    while len(found) < RESAMPLES:
        chosen = [draw.randrange(len(xs)) for _ in xs]
        again = correlation([xs[i] for i in chosen], [ys[i] for i in chosen])
        if again is not None:
            found.append(again)
    found.sort()
    return f"{value:+.2f} ({found[RESAMPLES // 20]:+.2f} to {found[-RESAMPLES // 20]:+.2f})"


def features_of(shape):
    m, n, k = shape
    flop, size = 2 * m * n * k, 2 * (m * k + n * k + m * n)
    return flop, size, flop / size


def run():
    by_family, rows = {}, []
    for name, sizes in scenarios():
        found = common.result_of(["explore", "ag-gemm", "--gemm", ",".join(map(str, sizes)), "--machine", "mi300x-8", *SETTING])
        local = tuple(found["operator"]["local"][axis] for axis in "mnk")
        fastest = {}
        for result in found["results"]:
            if result["losses"]:
                fastest.setdefault(result["family"], result)
        for family, result in fastest.items():
            by_family.setdefault(family, []).append((local, result))
        best = found["results"][0]
        flop, size, intensity = features_of(local)
        rows.append([name, " x ".join(map(str, local)), f"{flop / 1e9:.0f}", f"{size / 1e6:.0f}", f"{intensity:.0f}", best["family"],
                     f"{best['speedup']:.2f}", f"{found['serial']['time_fs'] / found['ideal_fs']:.2f}"])
        common.say(f"{name}: {best['family']}")
    common.table(["scenario", "product of a GPU", "GFLOP", "MB", "flop / byte", "fastest family", "serial / fastest",
                  "serial / ideal"], rows)
    table = []
    for family, results in sorted(by_family.items()):
        for label, field in LOSSES:
            kept = [(features_of(shape), result["losses"][field]) for shape, result in results
                    if result["losses"][field] is not None]
            if len(kept) < 6:
                continue
            values = [value for _, value in kept]
            table.append([family, label, len(kept), f"{min(values):.2f} to {max(values):.2f}",
                          *(with_interval([f[i] for f, _ in kept], values) for i in range(len(FEATURES)))])
    common.table(["family", "loss", "scenarios", "range", *FEATURES], table)

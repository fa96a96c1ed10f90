"""What dividing a product costs, by the product model, against measured rows; of MI300X half of them were fitted to."""
import csv
import os
import statistics
import subprocess
import tempfile

from . import common

PARTS = (2, 4, 8)

# hipBLASLt, Tensile logic of gfx942, `Equality` records of TN bf16 (ROCm/hipBLASLt on GitHub): (features, tokens, k) -> TFLOP/s.
MI300X = {
    (8192, 4608, 1024): 502, (8192, 2304, 1024): 488, (4096, 18432, 512): 448, (4096, 9216, 512): 435,
    (16384, 1152, 2048): 472, (16384, 576, 2048): 380, (16384, 288, 2048): 322, (16384, 144, 2048): 226,
    (2048, 1152, 8192): 389, (2048, 576, 8192): 322, (2048, 288, 8192): 236, (2048, 144, 8192): 161,
    (2048, 1152, 2048): 332, (2048, 576, 2048): 241, (2048, 288, 2048): 163, (2048, 144, 2048): 109,
    (1024, 4608, 4096): 380, (1024, 2304, 4096): 359, (512, 18432, 2048): 427, (512, 9216, 2048): 347}

# The same logic's grid of sizes, samples of all of it. Its unit is not said; times 2.1 it meets the `Equality` records.
MI300X_GRID = {
    (9216, 17408, 4096): 311, (26880, 9728, 4096): 304, (2816, 73728, 4096): 302, (9728, 20480, 2048): 291,
    (5376, 5376, 1024): 254, (31744, 8192, 1024): 261, (21504, 10240, 256): 168, (52224, 512, 2048): 227,
    (20480, 384, 2048): 179, (2304, 3200, 4096): 229, (1280, 192, 2048): 50, (16, 110592, 4096): 25}
GRID_UNIT = 2.1


def modelled_rows(table, gpu, *more):
    """{(m, n, k): (measured, modelled)} in microseconds of the products of `table` in bf16, one of a batch."""
    done = subprocess.run([common.binaries.gemm_table, str(table), "--gpu", gpu, "--types", "bf16", "--rows", *more],
                          capture_output=True, text=True, check=True)
    return {tuple(int(row[axis]) for axis in "mnk"): (float(row["measured_us"]), float(row["modelled_us"]))
            for row in csv.DictReader(done.stdout.splitlines()) if row["batch"] == "1"}


def piece(shape, axis, parts):
    m, n, k = shape
    return (m // parts, n, k) if axis == "m" else (m, n, k // parts)


def losses(rows):
    """{(shape, axis, parts): (measured, modelled)} of all divisions whose pieces are in the table, too."""
    found = {}
    for shape, whole in rows.items():
        for axis in "mk":
            for parts in PARTS:
                part = rows.get(piece(shape, axis, parts))
                if part:
                    found[shape, axis, parts] = tuple(parts * p / w for p, w in zip(part, whole))
    return found


def rows_of_errors(found):
    rows = []
    for axis in "mk":
        for parts in PARTS:
            pairs = [pair for (_, a, p), pair in found.items() if (a, p) == (axis, parts)]
            if not pairs:
                continue
            errors = [abs(b / a - 1) for a, b in pairs]
            rows.append([f"{axis.upper()} by {parts}", len(pairs), f"{statistics.mean(a for a, _ in pairs):.2f}",
                         f"{statistics.mean(b for _, b in pairs):.2f}", f"{100 * statistics.median(errors):.1f} %",
                         f"{100 * max(errors):.1f} %"])
    errors = [abs(b / a - 1) for a, b in found.values()]
    rows.append(["all", len(errors), f"{statistics.mean(a for a, _ in found.values()):.2f}",
                 f"{statistics.mean(b for _, b in found.values()):.2f}", f"{100 * statistics.median(errors):.1f} %",
                 f"{100 * max(errors):.1f} %"])
    return rows


def cheaper_axis(found):
    """By parts: how often the model has the cheaper of M and K right, and 'K where M < K', where they differ by more than 5 %."""
    rows = []
    for parts in (*PARTS, "all"):
        cases = [(shape, found[shape, "m", p], found[shape, "k", p]) for (shape, axis, p) in found
                 if axis == "m" and (shape, "k", p) in found and parts in (p, "all")]
        clear = [(shape, m, k) for shape, m, k in cases if max(m[0], k[0]) > 1.05 * min(m[0], k[0])]
        if not clear:
            continue
        by_model = sum((m[1] < k[1]) == (m[0] < k[0]) for _, m, k in clear)
        by_rule = sum((shape[0] >= shape[2]) == (m[0] < k[0]) for shape, m, k in clear)
        rows.append([parts, len(cases), len(clear), f"{by_model} ({common.percent(by_model / len(clear))})",
                     f"{by_rule} ({common.percent(by_rule / len(clear))})"])
    return rows


ERRORS = ["division", "cases", "measured, mean", "modelled, mean", "median error", "worst"]


def show(title, found):
    print(f"{title}\n")
    common.table(ERRORS, rows_of_errors(found))
    common.table(["parts", "cases", "differ by more than 5 %", "right by the model", "right by 'K where M < K'"],
                 cheaper_axis(found))


def mi300x_rows(rates):
    """As modelled_rows(): records are of kernels alone, in a loop, without what a traced launch takes."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "rows.csv")
        with open(file, "w") as out:
            out.write("batch,m,n,k,dtype,time_us\n")
            for (features, tokens, k), rate in rates.items():
                out.write(f"1,{tokens},{features},{k},bfloat16,{2e-6 * tokens * features * k / rate:.3f}\n")
        return modelled_rows(file, "mi300x", "--steady")


def mi300x():
    rows = mi300x_rows(MI300X)
    grid = mi300x_rows({shape: GRID_UNIT * rate for shape, rate in MI300X_GRID.items()})
    print("MI300X, the times themselves and what their division costs:\n")
    found = losses(rows)
    table = []
    for number, (shape, (a, b)) in enumerate(rows.items()):
        cells = [f"{found[shape, axis, p][0]:.2f}, {found[shape, axis, p][1]:.2f}" if (shape, axis, p) in found else ""
                 for axis, p in (("m", 2), ("m", 4), ("m", 8), ("k", 4))]
        table.append([" x ".join(map(str, shape)), "yes" if number % 2 == 0 else "", f"{a:.1f}, {b:.1f}", *cells])
    common.table(["tokens x features x K", "fitted", "measured, modelled (us)", "tokens by 2", "by 4", "by 8", "K by 4"],
                 table)
    print("MI300X, errors of the times:\n")
    pairs = list(rows.values())
    common.table(["rows", "number", "median", "mean", "worst"],
                 [[name, len(some), *errors_of(some)] for name, some in (
                     ("fitted: every second one", pairs[::2]), ("the other half", pairs[1::2]),
                     ("the grid, nothing fitted", list(grid.values())))])
    show("MI300X, in short:", found)


def errors_of(pairs):
    errors = [abs(modelled / measured - 1) for measured, modelled in pairs]
    return [common.percent(function(errors)) for function in (statistics.median, statistics.mean, max)]


def run():
    mi300x()
    rows = modelled_rows(common.measured("check/xla_gemm_b200.csv"), "b200")
    found = losses(rows)
    show("B200, all divisions in the table:", found)
    large = {key: pair for key, pair in found.items() if rows[key[0]][0] > 20}
    show("B200, products of more than 20 us:", large)

"""A fused all-gather and product on eight H100 of 500 W, against what its authors measured."""
import csv

from . import common

GPUS = 8
# Tiles of the Triton kernel by rows of A, as the authors give them beside the times.
TILES = {4096: (128, 128), 8192: (128, 128), 16384: (256, 128)}


def machine_file():
    """A DGX H100 of the variant."""
    text = (common.ROOT / "data/machines/dgx-h100.yaml").read_text()
    old = 'hemiola.device_model, value: "h100"'
    assert text.count(old) == 1
    return text.replace(old, 'hemiola.device_model, value: "h100-500w"')


def call(*arguments):
    return common.result_of([*arguments, "--machine", "{machine}"], {"machine.yaml": machine_file()})


def own_product(m, n, k):
    """The product alone in the tiles of the persistent kernel."""
    job = f"launches:\n- {{name: product, product: {{m: {m}, n: {n}, k: {k}}}}}\n"
    found = common.result_of(["run", "{job}", "--machine", "{machine}", "--set", "gpu.gemm.tiles=" + "x".join(map(str, TILES[m])), "--engine", "fluid",
                              "--no-check"], {"machine.yaml": machine_file(), "job.yaml": "dtype: bf16\n" + job})
    launch = found["results"][0]["launches"][0]
    return launch["end_fs"] - launch["begin_fs"]


def fused_kernel(m, n, k):
    """The persistent kernel, whose tiles wait for shards that copy engines pull from one peer after the other."""
    tile = TILES[m]
    parameters = {"m": m, "n": n * GPUS, "k": k, "dtype": "bfloat16", "tile_m": tile[0], "tile_n": tile[1], "tile_k": 64,
                  "transfer": "pull", "realization": "copy-engine"}
    words = [word for name, value in parameters.items() for word in ("--param", f"{name}={value}")]
    return call("run", "ag-gemm/swizzle", *words, "--engine", "fluid", "--no-check")["results"][0]["time_fs"]


def with_measured(shape, product_us, all_gather_us, software_us):
    """The fused kernel by `explore --measured`: its own product and the all-gather as measured, and what software takes around it."""
    m, n, k = shape
    rows = ["what,m,n,k,size_bytes,schedule,time_us", f"product,{m},{n},{k},,,{product_us}", f"all-gather,,,,{2 * m * k},,{all_gather_us}"]
    if software_us:
        rows.append(f"software,,,,,,{software_us:.1f}")
    found = common.result_of(["explore", "ag-gemm", "--local", f"{m},{n},{k}", "--losses", "none", "--top", "0", "--realization", "copy-engine",
                              "--transfer", "pull", "--measured", "{own}", "--machine", "{machine}"],
                             {"machine.yaml": machine_file(), "own.csv": "\n".join(rows) + "\n"})
    return min(row["time_fs"] for row in found["results"] if row["family"] == "fused kernel") / 1e9


def measured_rows():
    with open(common.measured("calibrate/overlap.csv")) as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {(int(r["M"]), int(r["N"]), int(r["K"]), r["variant"].split()[0] + " " + r["variant"].split()[-1]): float(r["time_us"])
                for r in rows}


def ratio_row(shape, what, measured, simulated):
    return ["{} x {} x {}".format(*shape), what, f"{measured:.2f}", f"{simulated:.2f}", f"{100 * (simulated / measured - 1):+.0f} %"]


def run():
    measured = measured_rows()
    times, ratios, rows, right, software = [], [], [], 0, 0
    shapes = sorted({key[:3] for key in measured})
    for shape in shapes:
        library, triton, serial, fused = (measured[(*shape, v)] for v in
                                          ("gemm cuBLAS", "gemm triton", "NCCL cuBLAS", "fused triton)"))
        found = call("explore", "ag-gemm", "--local", ",".join(map(str, shape)), "--losses", "none", "--top", "0", "--fluid", "1",
                     "--iterations", "0")["serial"]
        ours = {"product": found["product_fs"] / 1e9, "kernel": own_product(*shape) / 1e9, "serial": found["time_fs"] / 1e9,
                "fused": fused_kernel(*shape) / 1e9}
        for what, a, b in (("product, library", library, ours["product"]), ("product, fused kernel's tiles", triton, ours["kernel"]),
                           ("serial", serial, ours["serial"]), ("fused", fused, ours["fused"])):
            times.append(["{} x {} x {}".format(*shape), what, f"{a:.0f}", f"{b:.0f}", f"{100 * (b / a - 1):+.0f} %"])
        ratios.append(ratio_row(shape, "serial / product", serial / library, ours["serial"] / ours["product"]))
        ratios.append(ratio_row(shape, "fused / product", fused / library, ours["fused"] / ours["product"]))
        ratios.append(ratio_row(shape, "fused / its own product", fused / triton, ours["fused"] / ours["kernel"]))
        ratios.append(ratio_row(shape, "fused / serial", fused / serial, ours["fused"] / ours["serial"]))
        met = with_measured(shape, triton, serial - library, software)
        error = f"{100 * (met / fused - 1):+.1f} %" if software else f"software: {fused - met:.1f} us"
        rows.append(["{} x {} x {}".format(*shape), f"{fused:.0f}", f"{met:.1f}", error])
        software = software or fused - met
        right += (fused < serial) == (ours["fused"] < ours["serial"])
    common.table(["product of a GPU", "", "measured (us)", "simulated (us)", "error"], times)
    common.table(["product of a GPU", "", "measured", "simulated", "error"], ratios)
    common.table(["fused, with --measured", "measured (us)", "simulated (us)", "error"], rows)
    print(f"The order of serial and fused is right for {right} of {len(shapes)} shapes.\n")

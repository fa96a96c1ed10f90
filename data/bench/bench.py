"""Times the schedules that `hemiola explore --bench` chose, or the kernels of `hemiola tune --bench`, on your own GPUs.

    torchrun --nproc-per-node 8 bench.py            # writes times.csv beside this file
    hemiola explore ... --measured times.csv        # simulated beside measured, in the measured order

Beside this file lie schedules.json (the operator, and which schedule each file is), the compiled schedules, and hemiola_rt, which they run on:
copies between peers on streams whatever moves the data in the plan's lowering, products by torch (cuBLAS, hipBLASLt) or by the kernel. Beside
those of an operator serial is timed too: the library's collective (NCCL, RCCL) and then one product. Every schedule is checked against its
reference before it is timed. Without GPUs it runs on processes that share memory, which tells nothing about time: for checks of this file.
"""

import csv
import json
import pathlib
import statistics
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

import torch  # noqa: E402

import hemiola_rt  # noqa: E402

TYPES = {"bfloat16": torch.bfloat16, "half": torch.float16, "float": torch.float32}


class Library:
    """Serial, as a framework does it: one collective and one product, on the caller's stream."""

    def __init__(self, rt, operator):
        self.rt, n = rt, rt.ranks
        self.everybody = rt.group(range(n))
        kind, dtype = operator["kind"], TYPES[operator["dtype"]]
        m, columns, k = operator["m"], operator["n"], operator["k"]
        if operator["gather"] == "b":  # the transposed product
            m, columns = columns, m
        self.first = kind in ("ag-gemm", "a2a-gemm")
        rows = m // n // n if "a2a" in kind else m // n
        depth = k // n if kind in ("gemm-rs", "gemm-ar") else k
        columns = columns // n if kind == "ag-gemm" else columns
        self.collective_name = {"ag-gemm": "all-gather", "gemm-rs": "reduce-scatter", "gemm-ar": "all-reduce"}.get(kind, "all-to-all")

        def tensor(name, *shape):
            made = rt.symmetric(f"library {name}", shape, dtype)
            rt.fill(made, torch.randn(shape).to(dtype))
            return made

        self.left, self.b = tensor("left", n, rows, depth), tensor("b", depth, columns)
        self.product_of = tensor("product", n, rows, columns)
        own = (rows, depth) if kind == "ag-gemm" else (n, rows, depth)
        result = (rows, columns) if kind == "gemm-rs" else (n, rows, columns)
        self.source, self.target = (tensor("own", *own), self.left) if self.first else (self.product_of, tensor("result", *result))

    def collective(self):
        self.rt.main.collective(self.collective_name, self.target, self.source, self.everybody)

    def product(self):
        self.rt.main.mm(self.left, self.b, out=self.product_of)

    def serial(self):
        for run in (self.collective, self.product) if self.first else (self.product, self.collective):
            run()


def rows_of_library(rt, asked, operator, time_us):
    if operator["dtype"] not in TYPES:
        raise SystemExit(f"this file multiplies {', '.join(TYPES)}, not {operator['dtype']}")
    library, local = Library(rt, operator), operator["local"]
    return [{"what": "product", "m": local["m"], "n": local["n"], "k": local["k"], "time_us": time_us(library.product)},
            {"what": asked["collective"], "size_bytes": operator["collective_size_bytes"], "time_us": time_us(library.collective)},
            {"what": "schedule", "schedule": "serial", "time_us": time_us(library.serial)}]


def main():
    rt = hemiola_rt.connect()
    asked = json.loads((FOLDER / "schedules.json").read_text())
    operator = asked["operator"]
    ranks = operator["ranks"] if operator else asked["ranks"]
    if ranks != rt.ranks:
        raise SystemExit(f"schedules.json is for {ranks} ranks, not {rt.ranks}")

    def time_us(run):
        rt.synchronize()
        return statistics.median(rt.time(run)) * 1e6

    rows = rows_of_library(rt, asked, operator, time_us) if operator else []
    for number, of in enumerate(asked["schedules"]):
        schedule = hemiola_rt.load_file(str(FOLDER / of["file"]))
        with rt.scope(f"schedule {number}"):
            t = schedule.setup(rt)
            hemiola_rt.check(rt, schedule, t, calls=2)
            rows.append({"what": "schedule", "schedule": of["text"], "time_us": time_us(lambda: schedule.run(rt, t))})
            del t
    if rt.rank == 0:
        columns = ("what", "m", "n", "k", "size_bytes", "schedule", "time_us")
        with open(FOLDER / "times.csv", "w", newline="") as file:
            table = csv.DictWriter(file, columns, restval="")
            table.writeheader()
            for row in rows:
                table.writerow({**row, "time_us": f"{row['time_us']:.3f}"})
        for row in rows:
            print(f"{row['time_us']:12.1f} us  {row.get('schedule', row['what'])}")
        print(f"wrote {FOLDER / 'times.csv'}")
    rt.close()


if __name__ == "__main__":
    main()

"""Times the schedules that `hemiola explore --bench` chose, on your own GPUs.

    torchrun --nproc-per-node 8 bench.py            # writes times.csv beside this file
    hemiola explore ... --measured times.csv        # simulated beside measured, in the measured order

schedules.json beside this file says the operator and the schedules: families, steps and streams as they were found. Who moves the
data is not theirs: here it is torch.distributed (NCCL, or RCCL on ROCm), so that schedules by copy engines are timed with
workgroups. Products are torch's (cuBLAS, hipBLASLt). Every schedule is checked against the product after the collective before it is
timed. Without GPUs it runs on CPUs with gloo, which tells nothing about time: for checks of this file.
"""

import csv
import json
import os
import pathlib
import statistics

import torch
import torch.distributed as dist

FOLDER = pathlib.Path(__file__).resolve().parent
TYPES = {"bfloat16": torch.bfloat16, "half": torch.float16, "float": torch.float32}


class Device:
    """GPU or CPU: streams and events that do nothing on a CPU."""

    def __init__(self):
        self.gpu = torch.cuda.is_available()
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        if self.gpu:
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", self.rank)))
        self.device = torch.device("cuda", torch.cuda.current_device()) if self.gpu else torch.device("cpu")
        self.comm = torch.cuda.Stream() if self.gpu else None
        self.streams = [torch.cuda.Stream() for _ in range(4)] if self.gpu else [None] * 4

    def on(self, stream):
        import contextlib
        return torch.cuda.stream(stream) if stream is not None else contextlib.nullcontext()

    def event(self, stream=None):
        """What a stream (the present one by default) has been given until now."""
        if not self.gpu:
            return None
        event = torch.cuda.Event()
        event.record(stream if stream is not None else torch.cuda.current_stream())
        return event

    def wait(self, event, stream=None):
        if event is not None:
            (stream if stream is not None else torch.cuda.current_stream()).wait_event(event)

    def time_us(self, run, repeat=20, warmup=5):
        """The median over repetitions of the slowest rank."""
        times = []
        for turn in range(warmup + repeat):
            dist.barrier()
            if self.gpu:
                torch.cuda.synchronize()
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                run()
                end.record()
                torch.cuda.synchronize()
                us = begin.elapsed_time(end) * 1000
            else:
                import time
                start = time.perf_counter()
                run()
                us = (time.perf_counter() - start) * 1e6
            slowest = torch.tensor([us], device=self.device, dtype=torch.float64)
            dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
            if turn >= warmup:
                times.append(slowest.item())
        return statistics.median(times)


class Gather:
    """Communication first: blocks come from all ranks, and each is multiplied by `b`.

    `own` [rows, depth] of ag-gemm goes to all; `own` [ranks, rows, depth] of a2a-gemm has a block for each."""

    def __init__(self, device, rows, columns, depth, dtype, exchange):
        self.d, self.exchange = device, exchange
        self.n, self.rows, self.columns, self.depth = device.ranks, rows, columns, depth
        torch.manual_seed(device.rank)
        shape = (self.n, rows, depth) if exchange else (rows, depth)
        self.own = torch.randn(shape, device=device.device, dtype=torch.float32).to(dtype)
        self.b = torch.randn((depth, columns), device=device.device, dtype=torch.float32).to(dtype)
        self.out = torch.empty((self.n, rows, columns), device=device.device, dtype=dtype)
        self.whole = torch.empty((self.n, rows, depth), device=device.device, dtype=dtype)

    def move(self, into, part):
        """`part` of every rank, by rank, into [ranks, ...]."""
        if self.exchange:
            dist.all_to_all_single(into, part.contiguous())
        else:
            dist.all_gather_into_tensor(into.view(-1, *into.shape[2:]), part.contiguous())

    def collective(self):
        self.move(self.whole, self.own)

    def product(self):
        torch.matmul(self.whole.view(-1, self.depth), self.b, out=self.out.view(-1, self.columns))

    def serial(self):
        self.collective()
        self.product()

    def own_block(self):
        return self.own[self.d.rank] if self.exchange else self.own

    def steps(self, schedule):
        by_rows, degree = schedule["division"] == "1D", schedule["degree"]
        hetero, fused, streams = schedule["hetero"], schedule["fused"], schedule.get("streams", 1)
        extent = (self.rows if by_rows else self.depth) // degree
        blocks = [r for r in range(self.n) if not (hetero and r == self.d.rank)]
        parts, there = [], []
        start = self.d.event()
        with self.d.on(self.d.comm):
            self.d.wait(start, self.d.comm)
            for step in range(degree):
                axis = (1 if by_rows else 2) if self.exchange else (0 if by_rows else 1)
                part = self.own.narrow(axis, step * extent, extent)
                into = torch.empty((self.n,) + tuple(part.shape[1:] if self.exchange else part.shape),
                                   device=self.d.device, dtype=self.own.dtype)
                self.move(into, part)
                parts.append(into)
                there.append(self.d.event(self.d.comm))
        if hetero:
            torch.matmul(self.own_block(), self.b, out=self.out[self.d.rank])
        ready = self.d.event()
        for stream in self.d.streams[:streams] if streams > 1 else []:
            self.d.wait(ready, stream)
        for step in range(degree):
            rows = slice(step * extent, (step + 1) * extent) if by_rows else slice(0, self.rows)
            weights = self.b if by_rows else self.b[step * extent:(step + 1) * extent]
            adds = not by_rows and step > 0
            if fused:
                self.d.wait(there[step])
                which = parts[step] if len(blocks) == self.n else parts[step][blocks]
                made = torch.matmul(which.reshape(-1, which.shape[-1]), weights).view(len(blocks), -1, self.columns)
                for i, block in enumerate(blocks):
                    target = self.out[block, rows]
                    target.add_(made[i]) if adds else target.copy_(made[i])
                continue
            for i, block in enumerate(blocks):
                stream = self.d.streams[i % streams] if streams > 1 else None
                with self.d.on(stream):
                    self.d.wait(there[step], stream)
                    target = self.out[block, rows]
                    if adds:
                        target.addmm_(parts[step][block], weights)
                    else:
                        torch.matmul(parts[step][block], weights, out=target)
        for stream in self.d.streams[:streams] if streams > 1 else []:
            self.d.wait(self.d.event(stream))

    def shards(self, schedule):
        del schedule
        there, start = {}, self.d.event()
        with self.d.on(self.d.comm):
            self.d.wait(start, self.d.comm)
            for distance in range(1, self.n):
                to, source = (self.d.rank + distance) % self.n, (self.d.rank - distance) % self.n
                block = self.own[to] if self.exchange else self.own
                for request in dist.batch_isend_irecv([dist.P2POp(dist.isend, block.contiguous(), to),
                                                       dist.P2POp(dist.irecv, self.whole[source], source)]):
                    request.wait()
                there[source] = self.d.event(self.d.comm)
        torch.matmul(self.own_block(), self.b, out=self.out[self.d.rank])
        for distance in range(1, self.n):
            source = (self.d.rank - distance) % self.n
            self.d.wait(there[source])
            torch.matmul(self.whole[source], self.b, out=self.out[source])

    def result(self):
        return self.out


class Scatter:
    """The product first: blocks go to all ranks, summed (gemm-rs, gemm-ar) or as they are (gemm-a2a)."""

    def __init__(self, device, rows, columns, depth, dtype, kind):
        self.d, self.kind = device, kind
        self.n, self.rows, self.columns, self.depth = device.ranks, rows, columns, depth
        torch.manual_seed(device.rank)
        self.a = torch.randn((self.n, rows, depth), device=device.device, dtype=torch.float32).to(dtype)
        self.b = torch.randn((depth, columns), device=device.device, dtype=torch.float32).to(dtype)
        self.partial = torch.empty((self.n, rows, columns), device=device.device, dtype=dtype)
        shape = (rows, columns) if kind == "gemm-rs" else (self.n, rows, columns)
        self.out = torch.empty(shape, device=device.device, dtype=dtype)

    def move(self, made):
        """What arrives of `made` [ranks, ...]."""
        if self.kind == "gemm-ar":
            dist.all_reduce(made)
            return made
        if self.kind == "gemm-rs":
            into = torch.empty(made.shape[1:], device=made.device, dtype=made.dtype)
            if dist.get_backend() == "gloo":  # has no reduce-scatter of every version
                dist.all_reduce(made)
                return into.copy_(made[self.d.rank])
            dist.reduce_scatter_tensor(into, made.view(-1, *made.shape[2:]))
            return into
        into = torch.empty_like(made)
        dist.all_to_all_single(into, made)
        return into

    def product(self):
        torch.matmul(self.a.view(-1, self.depth), self.b, out=self.partial.view(-1, self.columns))

    def collective(self):
        self.out.copy_(self.move(self.partial.clone() if self.kind == "gemm-ar" else self.partial))

    def serial(self):
        self.product()
        self.out.copy_(self.move(self.partial))

    def steps(self, schedule):
        by_rows, degree = schedule["division"] == "1D", schedule["degree"]
        fused, streams = schedule["fused"], schedule.get("streams", 1)
        extent = (self.rows if by_rows else self.columns) // degree
        ready = self.d.event()
        for stream in self.d.streams[:streams] if streams > 1 else []:
            self.d.wait(ready, stream)
        for step in range(degree):
            cut = slice(step * extent, (step + 1) * extent)
            left = self.a[:, cut] if by_rows else self.a
            weights = self.b if by_rows else self.b[:, cut]
            made = torch.empty((self.n, left.shape[1], weights.shape[1]), device=self.d.device, dtype=self.b.dtype)
            if fused:
                torch.matmul(left.reshape(-1, self.depth), weights, out=made.view(-1, weights.shape[1]))
                done = [self.d.event()]
            else:
                done = []
                for block in range(self.n):
                    stream = self.d.streams[block % streams] if streams > 1 else None
                    with self.d.on(stream):
                        torch.matmul(left[block], weights, out=made[block])
                        done.append(self.d.event(stream))
            with self.d.on(self.d.comm):
                for event in done:
                    self.d.wait(event, self.d.comm)
                arrived = self.move(made)
                where = self.out.narrow(self.out.dim() - (2 if by_rows else 1), step * extent, extent)
                where.copy_(arrived)
                if self.d.gpu:
                    made.record_stream(self.d.comm)
        self.d.wait(self.d.event(self.d.comm) if self.d.gpu else None)

    def result(self):
        return self.out


def made(operator, device):
    kind, n, dtype = operator["kind"], device.ranks, TYPES[operator["dtype"]]
    m, columns, k = operator["m"], operator["n"], operator["k"]
    if operator["gather"] == "b":  # the transposed product
        m, columns = columns, m
    if kind == "ag-gemm":
        return Gather(device, m // n, columns // n, k, dtype, False)
    if kind == "a2a-gemm":
        return Gather(device, m // n // n, columns, k, dtype, True)
    if kind == "gemm-a2a":
        return Scatter(device, m // n // n, columns, k, dtype, kind)
    return Scatter(device, m // n, columns, k // n, dtype, kind)


def main():
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    device = Device()
    asked = json.loads((FOLDER / "schedules.json").read_text())
    operator = asked["operator"]
    if operator["ranks"] != device.ranks:
        raise SystemExit(f"schedules.json is for {operator['ranks']} ranks, not {device.ranks}")
    if operator["dtype"] not in TYPES:
        raise SystemExit(f"this file multiplies {', '.join(TYPES)}, not {operator['dtype']}")
    work = made(operator, device)
    work.serial()
    expected = work.result().clone()
    local = operator["local"]
    rows = [{"what": "product", "m": local["m"], "n": local["n"], "k": local["k"], "time_us": device.time_us(work.product)},
            {"what": asked["collective"], "size_bytes": operator["collective_size_bytes"],
             "time_us": device.time_us(work.collective)},
            {"what": "schedule", "schedule": "serial", "time_us": device.time_us(work.serial)}]
    for schedule in asked["schedules"]:
        run = getattr(work, schedule["function"], None)
        if run is None:  # shards of a product that comes first
            if device.rank == 0:
                print(f"left out, as this file has no such schedule: {schedule['text']}")
            continue
        work.out.zero_()
        run(schedule)
        if device.gpu:
            torch.cuda.synchronize()
        scale = expected.float().abs().max().item()
        error = (work.result().float() - expected.float()).abs().max().item() / max(scale, 1e-6)
        if error > 0.02:
            raise SystemExit(f"rank {device.rank}: {schedule['text']} is {error:.3f} off: its time would mean nothing")
        rows.append({"what": "schedule", "schedule": schedule["text"], "time_us": device.time_us(lambda: run(schedule))})
    if device.rank == 0:
        columns = ("what", "m", "n", "k", "size_bytes", "schedule", "time_us")
        with open(FOLDER / "times.csv", "w", newline="") as file:
            table = csv.DictWriter(file, columns, restval="")
            table.writeheader()
            for row in rows:
                table.writerow({**row, "time_us": f"{row['time_us']:.3f}"})
        for row in rows:
            print(f"{row['time_us']:12.1f} us  {row.get('schedule', row['what'])}")
        print(f"wrote {FOLDER / 'times.csv'}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

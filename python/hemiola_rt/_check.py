"""Runs a schedule (what an emitted file has: setup, inputs, run, reference) and compares it with its reference."""

import argparse
import contextlib
import importlib.util
import json
import os
import statistics
import sys

import torch

from . import _interpreter

# Relative to the largest value: what rounding to the type leaves of sums that were added in another order.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5, torch.float16: 5e-3, torch.bfloat16: 3e-2}


class Mismatch(RuntimeError):
    """A result is not what the reference says."""


def random_like(view, seed):
    """Values for an input: normal, or small integers."""
    chance = torch.Generator(device=view.device).manual_seed(seed)
    if view.is_floating_point():
        return torch.randn(view.shape, generator=chance, dtype=torch.float32, device=view.device).to(view.dtype)
    return torch.randint(0, 3, view.shape, generator=chance, device=view.device).to(view.dtype)


def seed_of(seed, call, rank):
    """Another one for each call and rank, so that what an earlier call left is seen."""
    return (seed * 1009 + call) * 4099 + rank


def give_inputs(rt, inputs, seed):
    """Fills what a rank holds at the start; returns copies of it."""
    held = {}
    for number, (name, view) in enumerate(inputs.items()):
        held[name] = random_like(view, seed * 31 + number)
        rt.fill(view, held[name])
    return held


def compare(results, expected, rank):
    """Largest error of the results relative to the largest expected value. Mismatch: beyond the tolerance of its type."""
    worst = 0.0
    for name, value in expected.items():
        result = results[name]
        if tuple(result.shape) != tuple(value.shape):
            value = value.reshape(result.shape)
        if not result.is_floating_point():
            if not torch.equal(result.cpu(), value.to(result.dtype).cpu()):
                raise Mismatch(f"rank {rank}: '{name}' is not the reference")
            continue
        value = value.to(torch.float64)
        error = ((result.to(torch.float64) - value).abs().max() / value.abs().max().clamp(min=1e-30)).item()
        if not error <= TOLERANCE[result.dtype]:
            what = "holds values that had not arrived" if error != error else f"is {error:.3g} off"
            raise Mismatch(f"rank {rank}: '{name}' {what}")
        worst = max(worst, error)
    return worst


def give_call(rt, schedule, t, seed, poison):
    """Gives a call with random inputs to the streams, and waits for nothing: (inputs, copies of the results that are there after it)."""
    if poison:
        rt.poison()
    held = give_inputs(rt, schedule.inputs(rt, t), seed)
    results = {}
    for name, tensor in schedule.run(rt, t).items():
        results[name] = torch.empty_like(tensor)
        rt.main.copy(results[name], tensor)
    return held, results


def check(rt, schedule, t, calls=1, poison=False, seed=0):
    """`calls` calls in a row with inputs of their own, without a reset or a wait in between; returns the largest error.

    `t` is what `schedule.setup(rt)` returned. poison: everything but the inputs is NaN before every call. Mismatch: a wrong result.
    """
    given = [give_call(rt, schedule, t, seed_of(seed, call, rt.rank), poison) for call in range(calls)]
    rt.synchronize()
    return max(compare(results, schedule.reference(rt.rank, rt.exchange(held)), rt.rank) for held, results in given)


def check_world(world, schedule, states, execute, calls=1, poison=False, seed=0):
    """The same of all ranks of a world in one process, whose `states` are what setup() returned of each: `execute()` does what they gave."""
    given = [[give_call(rt, schedule, t, seed_of(seed, call, rt.rank), poison) for rt, t in zip(world.members, states)]
             for call in range(calls)]
    execute()
    worst = 0.0
    for call in given:
        held = [inputs for inputs, _ in call]
        for rank, (_, results) in enumerate(call):
            worst = max(worst, compare(results, schedule.reference(rank, held), rank))
    return worst


def text_of(times):
    """Seconds by repetition, for people."""
    return f"{statistics.median(times) * 1e6:.1f} us (median of {len(times)}, {min(times) * 1e6:.1f} to {max(times) * 1e6:.1f})"


def main(schedule):
    """What an emitted file does when torchrun, or `python -m hemiola_rt`, starts it: checks itself, then prints its times."""
    from . import connect
    rt = connect()
    if rt.ranks != schedule.RANKS:
        raise SystemExit(f"{rt.ranks} ranks are running; the plan is for {schedule.RANKS}")
    t = schedule.setup(rt)
    if schedule.reference is None:
        give_inputs(rt, schedule.inputs(rt, t), seed_of(0, 0, rt.rank))
        said = "not compared: no reference is known for this plan"
    else:
        said = f"equal to the reference (largest error {check(rt, schedule, t, calls=2, poison=True):.1e})"
    times = rt.time(lambda: schedule.run(rt, t))
    if rt.rank == 0:
        print(f"{rt.ranks} ranks, {rt.device}: {said}; {text_of(times)}")
    rt.close()


def bench(files):
    """What torchrun starts for `--bench`: times of schedules in one run, each as it is and with its kernels one by one. Exit code."""
    from . import connect
    try:
        rt = connect()
    except RuntimeError as error:
        print(f"error: --bench: {error}", file=sys.stderr)
        return 2
    rows, wrong = [], 0
    for number, file in enumerate(files):
        try:
            schedule = load_schedule(file)
        except (OSError, ValueError) as error:
            raise SystemExit(f"{file}: error: {error}") from None
        if schedule.RANKS != rt.ranks:
            raise SystemExit(f"{file} is for {schedule.RANKS} ranks, not {rt.ranks}")
        with rt.scope(str(number)):
            t = schedule.setup(rt)
            try:
                said = "not compared" if schedule.reference is None else f"{check(rt, schedule, t, calls=1):.1e}"
            except Mismatch as error:
                said, wrong = f"WRONG: {error}", 1
            give_inputs(rt, schedule.inputs(rt, t), seed_of(0, 0, rt.rank))
            for how in ("overlapped", "kernels alone"):
                rt.one_by_one = how == "kernels alone"
                rows.append((file, how, rt.time(lambda t=t, schedule=schedule: schedule.run(rt, t)), said))
            rt.one_by_one = False
    if rt.rank == 0:
        least = min(statistics.median(times) for _, _, times, _ in rows)
        for file, how, times, said in rows:
            print(f"{file} {how}: {text_of(times)}, {statistics.median(times) / least:.2f} of the fastest; largest error {said}", flush=True)
    rt.close()
    return wrong


def load_file(path):
    """An emitted file as a module."""
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0].replace("-", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_schedule(path):
    """An emitted file, or a plan file, which the package hemiola compiles. ValueError: it refuses the plan, or is not there."""
    if not path.endswith(".json"):
        return load_file(path)
    try:
        import hemiola
    except ImportError as error:
        raise ValueError(f"a plan has to be compiled: 'hemiola compile --plan {path} -o FILE.py' ({error})") from None
    try:
        return hemiola.compile(None, path).module
    except hemiola.Error as error:
        raise ValueError(str(error).removeprefix(f"{path}: error: ")) from None


def _positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("has to be 1 or more")
    return number


def _delay(text):
    rank, stream, number, *seconds = text.split(",")
    return int(rank), int(stream), int(number), float(seconds[0]) if seconds else 0.2


def _member(rank, arguments, folder):
    torch.set_num_threads(1)
    from . import _trace
    from ._shared import SharedRuntime
    events = []
    rt = SharedRuntime(folder, rank, arguments.ranks, delay=arguments.delay, permute=arguments.permute, patience=arguments.patience,
                       sm_slots=arguments.sm_slots)
    for number, file in enumerate(arguments.files):
        schedule = load_schedule(file)
        if schedule.RANKS != arguments.ranks:
            raise SystemExit(f"{file} is for {schedule.RANKS} ranks, not {arguments.ranks}")
        if schedule.reference is None:
            raise SystemExit(f"{file}: no reference is known for this plan, so there is nothing to compare with")
        try:
            with rt.scope(str(number)), _trace.into(events) if arguments.trace else contextlib.nullcontext():
                _trace.begin(rt)
                worst = rt.slowest([check(rt, schedule, schedule.setup(rt), calls=arguments.calls, poison=arguments.poison)])[0]
        except RuntimeError as error:  # a wrong result, or a wait without an end
            rt.fail(error)
            print(f"{file}: {error}", file=sys.stderr, flush=True)
            raise SystemExit(1) from None
        if rank == 0:
            print(f"{file}: {arguments.calls} calls on {arguments.ranks} processes equal the reference (largest error {worst:.1e})",
                  flush=True)
    if arguments.trace:
        with open(arguments.trace, "a", encoding="utf-8") as file:  # of all ranks, each at once
            file.write("".join(json.dumps(event) + "\n" for event in events))
    rt.close()


def run_virtual(arguments, schedules):
    """`python -m hemiola_rt --virtual FILE ...`; returns the exit code."""
    from ._virtual import VirtualWorld
    failed = False
    for file, schedule in zip(arguments.files, schedules):
        world = VirtualWorld(schedule.RANKS)
        on = torch.cuda.get_device_name() if world.on_gpu else "the interpreter"
        try:
            if schedule.reference is None:
                raise Mismatch("no reference is known for this plan, so there is nothing to compare with")
            states = [schedule.setup(rt) for rt in world.members]
            if world.on_gpu:  # before anything is late, since CUDA may wait for the GPU when it loads and allocates
                check_world(world, schedule, states, world.execute, seed=1)
            world.late = arguments.late
            worst = check_world(world, schedule, states, world.execute, calls=arguments.calls, poison=arguments.poison)
        except (RuntimeError, ValueError) as error:
            print(f"{file}: {error}", file=sys.stderr, flush=True)
            failed = True
            continue
        said = f"{file}: {arguments.calls} calls on {schedule.RANKS} virtual ranks of {on} equal the reference (largest error {worst:.1e})"
        if world.on_gpu:
            world.late = 0
            times = world.time(lambda: [schedule.run(rt, t) for rt, t in zip(world.members, states)])
            said += f"; {text_of(times)}"
        print(said, flush=True)
    return 1 if failed else 0


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m hemiola_rt", description="Runs a schedule on processes of this machine, without GPUs, "
                                     "and compares every call with the reference.")
    parser.add_argument("files", nargs="+", help="what 'hemiola compile --plan' wrote, or plans (.json)")
    parser.add_argument("--ranks", type=int, help="processes; by default as many ranks as the plan has")
    parser.add_argument("--bench", action="store_true", help="with torchrun: times of all files in one run, each as it is and with its kernels one by "
                        "one; a plan of the library's collective and product (ag-gemm/serial) may be among them")
    parser.add_argument("--calls", type=int, default=2, help="in a row, without a reset (2)")
    parser.add_argument("--poison", action="store_true", help="what has not arrived is NaN")
    parser.add_argument("--delay", type=_delay, metavar="RANK,STREAM,NUMBER[,SECONDS]", help="one movement of data comes late")
    parser.add_argument("--permute", type=int, metavar="SEED", help="movements of data come in another order")
    parser.add_argument("--sm-slots", type=_positive, metavar="N", help="compute units of a rank, which kernels share with sums and copies "
                        "within it; a kernel has as many as it has programs until it ends")
    parser.add_argument("--virtual", action="store_true", help="all ranks in one process and, where PyTorch sees one, on one GPU, whose time it "
                        "prints; a kernel is one grid for all of them")
    parser.add_argument("--late", type=float, default=0, metavar="SECONDS", help="with --virtual on a GPU: every movement of data is so late, so "
                        "that kernels have to wait")
    parser.add_argument("--trace", metavar="FILE", help="write the tiles, waits and signals of the kernels in Triton's interpreter, for "
                        "'hemiola check --trace'; of one schedule")
    parser.add_argument("--patience", type=float, default=60, help="seconds after which a wait is an error (60)")
    return parser.parse_args(arguments)


def run(arguments):
    """`python -m hemiola_rt ...`; returns the exit code."""
    parsed = _parse(arguments)
    return bench(parsed.files) if parsed.bench else run_processes(parsed)


def run_processes(arguments):
    """`python -m hemiola_rt FILE ...`; returns the exit code."""
    import multiprocessing
    import tempfile
    idle = [name for name, is_given in (("--delay", arguments.delay), ("--permute", arguments.permute is not None), ("--trace", arguments.trace),
                                        ("--sm-slots", arguments.sm_slots))
            if is_given and arguments.virtual] + (["--late"] if arguments.late and not arguments.virtual else [])
    if idle:
        print(f"error: {idle[0]} has no effect {'with' if arguments.virtual else 'without'} --virtual", file=sys.stderr)
        return 2
    if arguments.trace and (len(arguments.files) > 1 or not _interpreter.is_interpreted()):
        print("error: --trace is of one schedule whose kernels run in Triton's interpreter (TRITON_INTERPRET=1)", file=sys.stderr)
        return 2
    if arguments.trace:
        try:
            open(arguments.trace, "w", encoding="utf-8").close()
        except OSError as error:
            print(f"{arguments.trace}: error: {error.strerror}", file=sys.stderr)
            return 2
    schedules = []
    for file in arguments.files:
        try:
            schedules.append(load_schedule(file))
            ranks = schedules[-1].RANKS
        except (OSError, ValueError, SyntaxError, AttributeError) as error:
            print(f"{file}: error: {error}", file=sys.stderr)
            return 2
        arguments.ranks = arguments.ranks or ranks
    if arguments.virtual:
        return run_virtual(arguments, schedules)
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        members = [context.Process(target=_member, args=(rank, arguments, folder)) for rank in range(arguments.ranks)]
        for member in members:
            member.start()
        for member in members:
            member.join()
    return 0 if all(member.exitcode == 0 for member in members) else 1


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))

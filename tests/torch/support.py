"""What tests of schedules share: ranks in one process in chosen orders, and ranks as processes."""

import inspect
import subprocess
import sys
import types

import torch

from hemiola_rt import _check
from hemiola_rt._interleaved import InterleavedWorld, at_random, in_turn, prefer, starve

torch.set_num_threads(1)


def module_of(text, name="schedule"):
    """An emitted text as a module."""
    module = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
    return module


def run_in_order(schedule, choose, calls=2, seed=0):
    """All ranks in one process: `calls` calls without a reset or a wait in between, everything but the inputs NaN before each.

    `choose(world)` is the order. Mismatch, or Stuck: what is wrong. Returns the largest error.
    """
    world = InterleavedWorld(schedule.RANKS)
    states = [schedule.setup(rt) for rt in world.members]
    return _check.check_world(world, schedule, states, lambda: world.execute(choose(world)), calls, True, seed)


def orders_of(schedule, ranks=(0, 1), seeds=3):
    """Orders that find missing waits: each stream of some ranks last of all, and first of all; some at random."""
    world = InterleavedWorld(schedule.RANKS)
    for rt in world.members:
        schedule.setup(rt)
    made = [lambda world: in_turn]
    for rank in ranks:
        for stream in range(len(world.members[rank].all_streams())):
            for kind in (starve, prefer):
                made.append(lambda world, rank=rank, stream=stream, kind=kind: kind(world.members[rank].all_streams()[stream]))
    made.extend(lambda world, seed=seed: at_random(seed) for seed in range(seeds))
    return made


def run_equal(case, files, *options):
    """`python -m hemiola_rt` runs all files, and each equals its reference."""
    said = run_processes(*files, *options)
    case.assertEqual(said.count("equal the reference"), len(files), said)


def run_processes(*arguments, code=0):
    """`python -m hemiola_rt`: what it printed."""
    done = subprocess.run([sys.executable, "-m", "hemiola_rt", "--patience", "600", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def calls_of(schedule):
    """What every rank gives to its streams in one call, as text."""
    world = InterleavedWorld(schedule.RANKS)
    states = [schedule.setup(rt) for rt in world.members]
    calls = []
    for rt, t in zip(world.members, states):
        for stream in rt.all_streams():
            record(stream, rt, calls)
        schedule.run(rt, t)
    return calls


def record(stream, rt, calls):
    """Writes down what a stream is given, with tensors as their memory and shape."""
    def place(value):
        if isinstance(value, dict):
            return {name: place(one) for name, one in value.items()}
        if hasattr(value, "storage_offset"):
            for other in rt.world.members:
                for name, tensor in other._tensors.items():
                    if tensor.storage().data_ptr() == value.storage().data_ptr():
                        return name, other.rank, value.storage_offset(), tuple(value.shape), value.stride()
        if hasattr(value, "slot"):
            return "signal", value.slot
        if hasattr(value, "name"):
            return value.name
        return type(value).__name__ if type(value).__module__.startswith("hemiola") else value

    def recorded(method):
        original = getattr(stream, method)
        signature = inspect.signature(original)

        def call(*arguments, **named):
            given = signature.bind(*arguments, **named)
            given.apply_defaults()
            calls.append((rt.rank, stream.name, method, *((name, place(value)) for name, value in given.arguments.items())))
            return original(*arguments, **named)
        return call

    for method in ("copy", "accumulate", "reduce", "mm", "addmm", "zero", "launch", "collective", "to_all", "sum_of_all", "wait", "signal", "wait_signal"):
        setattr(stream, method, recorded(method))

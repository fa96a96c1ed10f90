"""What the tests of schedules share: plans, the command line, ranks in one process in chosen orders, ranks as processes."""

import os
import subprocess
import sys
import tempfile
import types

import torch

import hemiola_rt
from hemiola_rt import _check
from hemiola_rt._interleaved import InterleavedWorld, at_random, in_turn, prefer, starve

BINARY = os.environ.get("HEMIOLA_BINARY", "hemiola")
torch.set_num_threads(1)

SHAPE = ["m=128", "n=64", "k=64", "tile_m=16", "tile_n=16", "tile_k=16"]
RANKS = 4


def hemiola(*arguments, code=0):
    """What the command line prints; of an error what it says."""
    done = subprocess.run([BINARY, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout if code == 0 else done.stderr


def options(parameters):
    return [word for parameter in parameters for word in ("--param", parameter)]


def make_plan(folder, name, template, *parameters, dtype="float32", shape=SHAPE, ranks=RANKS):
    """A plan file of a template with products."""
    path = os.path.join(folder, f"{name}.json")
    hemiola("plan", "make", template, "--ranks", str(ranks), *options([*shape, f"dtype={dtype}", *parameters]), "-o", path)
    return path


def compiled(plan):
    """The file that the command line makes of a plan."""
    path = plan.replace(".json", ".py")
    hemiola("compile", "--plan", plan, "-o", path)
    return path


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
    given = [[_check.give_call(rt, schedule, t, _check.seed_of(seed, call, rt.rank), True) for rt, t in zip(world.members, states)]
             for call in range(calls)]
    world.execute(choose(world))
    worst = 0.0
    for call in given:
        held = [inputs for inputs, _ in call]
        for rank, (_, results) in enumerate(call):
            worst = max(worst, _check.compare(results, schedule.reference(rank, held), rank))
    return worst


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


def run_processes(*arguments, code=0):
    """`python -m hemiola_rt`: what it printed."""
    done = subprocess.run([sys.executable, "-m", "hemiola_rt", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def temporary_folder():
    return tempfile.TemporaryDirectory(prefix="hemiola-torch-")

"""What tests of schedules share: ranks in one process in chosen orders, and ranks as processes."""

import subprocess
import sys
import types

import torch

from hemiola_rt import _check
from interleaved import InterleavedWorld, at_random, in_turn, prefer, starve

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

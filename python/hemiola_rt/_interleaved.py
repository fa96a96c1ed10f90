"""All ranks of a world in one process, one operation after the other in an order that a test chooses.

An order is a function of the list of streams whose next operation may run; it returns one of them. `starve` and `prefer` are the two
that find a missing wait: the stream that brings data comes last of all, or the one that uses them first of all.
"""

import random

import torch

from ._queues import QueueRuntime


class Stuck(RuntimeError):
    """No operation can run, and there are some."""


class InterleavedRuntime(QueueRuntime):
    """One rank of an `InterleavedWorld`."""

    def __init__(self, world, rank, ranks):
        super().__init__(rank, ranks)
        self.world = world
        self.values = {}

    def write_signal(self, peer, slot, value):
        self.world.members[peer].values[slot] = value

    def signal_value(self, slot):
        return self.values.get(slot, 0)

    def _allocate_symmetric(self, name, shape, dtype):
        return self.world.memory_of(name, shape, dtype)[self.rank]

    def _allocate_local(self, shape, dtype):
        return torch.zeros(shape, dtype=dtype)

    def peer(self, tensor, rank):
        return next(memory for memory in self.world.memory.values() if memory[self.rank] is tensor)[rank]

    def synchronize(self):
        """Nothing: `InterleavedWorld.execute` does it for all ranks."""

    host_barrier = synchronize

    def exchange(self, held):
        raise NotImplementedError("the world has what all ranks hold")

    def slowest(self, numbers):
        return numbers

    def _time_once(self, run):
        raise NotImplementedError("there is no time in a world of one process")


class InterleavedWorld:
    """`members`: a runtime for each rank."""

    def __init__(self, ranks):
        self.memory = {}
        self.members = [InterleavedRuntime(self, rank, ranks) for rank in range(ranks)]

    def memory_of(self, name, shape, dtype):
        """By rank, a symmetric tensor, which the first rank that asks allocates for all. ValueError: another one asked for another."""
        if name not in self.memory:
            self.memory[name] = [torch.zeros(shape, dtype=dtype) for _ in self.members]
        if self.memory[name][0].shape != torch.Size(shape) or self.memory[name][0].dtype != dtype:
            raise ValueError(f"ranks allocate '{name}' with other shapes or types")
        return self.memory[name]

    def streams(self):
        return [stream for member in self.members for stream in member.all_streams()]

    def execute(self, choose):
        """Until nothing is left. Stuck: the rest waits for what nobody does."""
        streams = self.streams()
        while True:
            ready = [s for s in streams if s.operations and (s.operations[0].ready is None or s.operations[0].ready())]
            if not ready:
                break
            choose(ready).operations.popleft().run()
        left = [f"rank {s.runtime.rank}, {s.name}: {s.operations[0].text}" for s in streams if s.operations]
        if left:
            raise Stuck("; ".join(left))


def in_turn(ready):
    """The first stream of the first rank that may."""
    return ready[0]


def at_random(seed):
    """Any stream that may."""
    return random.Random(seed).choice


def starve(stream):
    """Any other one, as long as there is one."""
    return lambda ready: next((other for other in ready if other is not stream), stream)


def prefer(stream):
    """This one as soon as it may; of the others the last one, which is another order than `in_turn`."""
    return lambda ready: stream if stream in ready else ready[-1]

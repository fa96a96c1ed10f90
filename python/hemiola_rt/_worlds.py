"""Ranks of a world that all live in one process: on one GPU (`_virtual.py`), or in an order that a test chooses."""

import torch

from ._queues import QueueRuntime


class Stuck(RuntimeError):
    """Nothing of what ranks gave can go on, and there is some of it."""


class Member(QueueRuntime):
    """One rank. The world has the memory of all of them and what they hold, and waits for all of them at once."""

    def __init__(self, world, rank, ranks):
        super().__init__(rank, ranks)
        self.world, self.device = world, world.device

    def _allocate_symmetric(self, name, shape, dtype):
        return self.world.memory_of(name, shape, dtype)[self.rank]

    def _allocate_local(self, shape, dtype):
        return torch.zeros(shape, dtype=dtype, device=self.device)

    def peer(self, tensor, rank):
        return next(memory for memory in self.world.memory.values() if memory[self.rank] is tensor)[rank]

    def synchronize(self):
        """Nothing: the world's `execute` does it for all ranks."""

    host_barrier = synchronize

    def exchange(self, held):
        raise NotImplementedError("the world has what all ranks hold")

    def slowest(self, numbers):
        return numbers

    def _time_once(self, run):
        raise NotImplementedError("a rank of a world in one process has no time of its own")


class World:
    """`members`: a runtime for each rank, made by `member(world, rank, ranks)`. memory: by name and rank."""

    def __init__(self, ranks, device, member):
        self.device, self.memory = device, {}
        self.members = [member(self, rank, ranks) for rank in range(ranks)]

    def memory_of(self, name, shape, dtype):
        """By rank, a symmetric tensor, which the first rank that asks allocates for all. ValueError: another one asked for another."""
        if name not in self.memory:
            self.memory[name] = [torch.zeros(shape, dtype=dtype, device=self.device) for _ in self.members]
        if self.memory[name][0].shape != torch.Size(shape) or self.memory[name][0].dtype != dtype:
            raise ValueError(f"ranks allocate '{name}' with other shapes or types")
        return self.memory[name]

    def streams(self):
        return [stream for member in self.members for stream in member.all_streams()]

    def raise_if_stuck(self):
        """Stuck, with what the first operation of each stream is."""
        left = [f"rank {s.runtime.rank}, {s.name}: {s.operations[0].text}" for s in self.streams() if s.operations]
        if left:
            raise Stuck("; ".join(left))

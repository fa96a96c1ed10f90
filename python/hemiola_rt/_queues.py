"""Streams without a GPU: operations in queues, each with what it waits for. Who takes them from the queues is the back ends' difference."""

import collections

import torch

from . import _interpreter, _products
from ._runtime import Runtime, Signals, Stream, _memory_of


class Operation:
    """`run` once `ready` says so (None: at once). `moves`: it brings data, so that it may be delayed. `text`: for who is stuck in it.
    `units`: compute units that it has meanwhile, of those that kernels share."""

    __slots__ = ("run", "ready", "moves", "text", "units")

    def __init__(self, run, ready=None, moves=False, text="", units=0):
        self.run, self.ready, self.moves, self.text, self.units = run, ready, moves, text, units


class Event:
    """What a stream had been given; `done` once it is complete."""

    def __init__(self, stream):
        self.stream, self.done = stream, False

    def finish(self):
        self.done = True


class Group:
    """Ranks that do collectives together, and signals by which they meet: a row for those that are there, one for those that have read."""

    def __init__(self, ranks, signals):
        self.ranks, self.signals, self.count = tuple(ranks), signals, 0


class QueueStream(Stream):
    """A queue of operations of a `QueueRuntime`."""

    def __init__(self, runtime, name):
        self.runtime, self.name = runtime, name
        self.operations = collections.deque()

    def give(self, run, **more):
        self.operations.append(Operation(run, **more))

    def copy(self, target, source):
        if self._moves():
            self.give(lambda: self._move(target, source), moves=True, text=f"a copy to {tuple(target.shape)}", units=self.movers)
            return
        # Between GPUs engines copy; within one the library does by a kernel.
        self.give(lambda: target.copy_(_products.same_shape(source, target)), moves=True, text=f"a copy to {tuple(target.shape)}",
                  units=self.runtime.units_between(target, source))

    def reduce(self, target, source, operand, operator="sum"):
        if self._moves():
            self.give(lambda: self._move(target, source, operand, operator), moves=True, text=f"a reduction to {tuple(target.shape)}",
                      units=self.movers)
            return
        function = _products.REDUCTIONS[operator]
        self.give(lambda: target.copy_(function(_products.same_shape(source, target), _products.same_shape(operand, target))),
                  moves=True, text=f"a reduction to {tuple(target.shape)}", units=1)

    def to_all(self, target, source, group):
        self.give(lambda: self._to_all(target, source, group), moves=True, text=f"a multicast to {tuple(target.shape)}")

    def sum_of_all(self, target, source, group):
        self.give(lambda: self._sum_of_all(target, source, group), moves=True, text=f"a sum through the switch to {tuple(target.shape)}")

    def _moves(self):
        """Whether workgroups move data here: without a GPU those of Triton's interpreter."""
        return self.movers > 0 and _interpreter.is_interpreted()

    def mm(self, a, b, out):
        self.give(lambda: _products.multiply(a, b, out, False), text=f"a product of {tuple(out.shape)}", units=1)

    def addmm(self, a, b, out):
        self.give(lambda: _products.multiply(a, b, out, True), text=f"a product added to {tuple(out.shape)}", units=1)

    def zero(self, target):
        self.give(target.zero_, text="zeros", units=1)

    def launch(self, work, **tensors):
        call = self.runtime.call
        with self.runtime._beside(self):
            self.give(lambda: work.launch(call, tensors), text=f"kernel {work.kernel.__name__}", units=self.runtime.units_of(work))

    def poison(self, target):
        worst = float("nan") if target.is_floating_point() else torch.iinfo(target.dtype).min
        self.give(lambda: target.fill_(worst))

    def record(self):
        event = Event(self)
        self.give(event.finish)
        return event

    def wait(self, what):
        event = what.record() if isinstance(what, QueueStream) else what
        if event.stream is not self:
            self.give(lambda: None, ready=lambda: event.done, text=f"a wait for {event.stream.name}")

    def signal(self, signal, to, step):
        value = signal.value(self.runtime.call, step)
        self.give(lambda: self.runtime.write_signal(to, signal.slot, value))

    def wait_signal(self, signal, step):
        value = signal.value(self.runtime.call, step)
        self.give(lambda: None, ready=lambda: self.runtime.signal_reached(signal.slot, value),
                  text=f"a wait for signal {signal.slot} to reach {value}")

    def collective(self, name, target, source, group, operator="sum"):
        runtime, group_ranks = self.runtime, group.ranks
        group.count += 1
        count, place = group.count, group_ranks.index(runtime.rank)
        made = []

        def meet(row):
            def tell():
                for peer in group_ranks:
                    runtime.write_signal(peer, group.signals[row, place].slot, count)
            self.give(tell)
            self.give(lambda: None, text=f"a wait for all ranks of {name}", ready=lambda: all(
                runtime.signal_reached(group.signals[row, i].slot, count) for i in range(len(group_ranks))))

        meet(0)
        self.give(lambda: made.append(_collected(name, [runtime.peer_view(source, r) for r in group_ranks], place, operator)), moves=True,
                  text=f"{name} of {tuple(source.shape)}", units=1)
        meet(1)
        self.give(lambda: target.copy_(_products.same_shape(made[0], target)))


def _collected(name, sources, place, operator):
    """What the member at `place` gets."""
    if name in ("all-reduce", "reduce-scatter"):
        total = sources[0].clone()
        for source in sources[1:]:
            total = _products.REDUCTIONS[operator](total, source)
        return total if name == "all-reduce" else total.reshape(-1).chunk(len(sources))[place]
    if name == "all-gather":
        return torch.cat([source.reshape(-1) for source in sources])
    if name == "all-to-all":
        return torch.cat([source.reshape(-1).chunk(len(sources))[place] for source in sources])
    if name == "broadcast":
        return sources[0].clone()
    raise ValueError(f"there is no collective '{name}' here")


class QueueRuntime(Runtime):
    """What both back ends of queues share; memory, signals and who executes are theirs."""

    sm_slots = None  # compute units of a rank, which kernels, sums and copies within it share

    def __init__(self, rank, ranks):
        super().__init__()
        self.rank, self.ranks, self.device = rank, ranks, torch.device("cpu")
        self.main = QueueStream(self, "the caller's stream")
        self._meeting = Signals(self._slots, (ranks,), 1)
        self._slots += ranks
        self._meetings = 0

    def write_signal(self, peer, slot, value):
        """Stores a value into a signal of a rank."""
        raise NotImplementedError

    def signal_value(self, slot):
        """Of the own signal."""
        raise NotImplementedError

    def signal_reached(self, slot, value):
        """Whether the own signal stands at a value or beyond (cyclic)."""
        return (self.signal_value(slot) - value) & 0xFFFFFFFF < 0x80000000

    def units_between(self, *tensors):
        """Compute units that a copy takes: none, unless all of it is in this rank's own memory."""
        own = [_memory_of(one) for one in self._tensors.values()] if self.sm_slots is not None else ()
        return int(all(_memory_of(one) in own for one in tensors))

    def units_of(self, work):
        """Compute units that a kernel has until it ends, in the worst case; 0: nobody counts them."""
        if self.sm_slots is None:
            return 0
        return min(work.tiles, max(1, self.sm_slots - (self.moving if work.tile is not None else 0)))

    def group(self, ranks):
        return Group(ranks, self.signals((2, len(ranks)), 1))

    def _allocate_signals(self, first, count):
        del first, count

    def _make_stream(self, number):
        return QueueStream(self, f"stream {number}")

    def _barrier(self):
        self._meetings += 1
        meeting = self._meetings

        def tell():
            for peer in range(self.ranks):
                self.write_signal(peer, self._meeting[self.rank].slot, meeting)
        self.main.give(tell)
        self.main.give(lambda: None, text="a barrier", ready=lambda: all(
            self.signal_reached(self._meeting[peer].slot, meeting) for peer in range(self.ranks)))

    def all_streams(self):
        return [self.main, *self._streams]

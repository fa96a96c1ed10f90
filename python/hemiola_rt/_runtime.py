"""What a schedule is written against: ranks, memory that peers reach, streams, signals. Back ends fill it in.

Terms
-----
symmetric memory
    A buffer that every rank of the world allocates under the same name, in the same order and with the same shape. `peer(tensor, r)` is
    rank r's instance, mapped here.
stream
    Operations in the order in which they were given to it; streams run at the same time. The host only gives: nothing below waits for an
    operation, but `synchronize`, `exchange` and `host_barrier`.
signal
    A number in symmetric memory that only grows. In call c (from 0) step s of `steps` stands for c * steps + s + 1, so nothing is ever
    reset between calls. Who writes it has all earlier operations of its stream complete and visible to the reader.
call
    What stands between `begin()` and `end()`. `begin` waits until the inputs of all ranks are there, `end` until all operations of all
    ranks are complete: what a rank holds may be read and overwritten from then on, in the order of the caller's stream.
"""

import abc
import contextlib
import math


class Signals:
    """Signals by index, `steps` of each in a call: `signals[rank, stream]` is one of them."""

    def __init__(self, first, shape, steps):
        self.first, self.shape, self.steps = first, tuple(shape), steps

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        if len(index) != len(self.shape) or any(not 0 <= i < extent for i, extent in zip(index, self.shape)):
            raise IndexError(f"no signal {index} among {self.shape}")
        slot = 0
        for i, extent in zip(index, self.shape):
            slot = slot * extent + i
        return Signal(self.first + slot, self.steps)


class Signal:
    """One signal: its place among those of a rank, and the steps of a call."""

    def __init__(self, slot, steps):
        self.slot, self.steps = slot, steps

    def value(self, call, step):
        """What stands for a step of a call. Comparisons are cyclic, so 2^31 steps are no end."""
        if not 0 <= step < self.steps:
            raise IndexError(f"step {step} of a signal that has {self.steps} in a call")
        return (call * self.steps + step + 1) & 0xFFFFFFFF


def _memory_of(tensor):
    """Where its memory begins: the same of all views."""
    return getattr(tensor, "untyped_storage", tensor.storage)().data_ptr()


class Stream(abc.ABC):
    """Operations in order. Tensors are views of the rank's own memory or of a peer's; shapes pair elements in order.

    movers: workgroups that copy and add up here (`_movers.py`), in bulk or by loads and stores; 0: copy engines copy, PyTorch adds up.
    """

    movers, bulk = 0, False

    def move_by(self, movers, bulk):
        self.movers, self.bulk = movers, bulk

    def _move(self, *arguments):
        from ._movers import move  # Triton, which schedules without a kernel do not need
        move(*arguments, movers=self.movers, bulk=self.bulk)

    @abc.abstractmethod
    def copy(self, target, source):
        """target = source: a copy of any strides, by a copy engine where both lie on different devices and the driver has one free."""

    @abc.abstractmethod
    def reduce(self, target, source, operand, operator="sum"):
        """target = source (operator) operand, all of one shape; `operand` is often the target itself."""

    def accumulate(self, target, source, operator="sum"):
        """target = target (operator) source."""
        self.reduce(target, source, target, operator)

    @abc.abstractmethod
    def mm(self, a, b, out):
        """out = a b. a [rows, k] or [blocks, rows, k], b [k, n], out [rows, n] or [blocks, rows, n]."""

    @abc.abstractmethod
    def addmm(self, a, b, out):
        """out += a b; shapes as `mm`."""

    @abc.abstractmethod
    def zero(self, target):
        """target = 0."""

    @abc.abstractmethod
    def launch(self, work, **tensors):
        """Starts the kernel of `work` (`Work`), which waits for its chunks itself and tells of its parts. tensors: by its parameters."""

    @abc.abstractmethod
    def collective(self, name, target, source, group, operator="sum"):
        """A library's collective of a `group` of the runtime; all its members have to call it, in the same order.

        all-reduce: shapes equal; all-gather: target is the sources in the order of ranks; reduce-scatter: the source has a part for each;
        all-to-all: both have a part for each, in the order of ranks; broadcast: the source of the first rank.
        """

    def _all_views(self, view, group):
        return [self.runtime.peer_view(view, rank) for rank in group.ranks]

    def _to_all(self, target, source, group):
        from ._switch import to_all
        to_all(self._all_views(target, group), source, self.runtime.multicast_address(target, group), max(1, self.movers))

    def _sum_of_all(self, target, source, group):
        from ._switch import sum_of_all
        sum_of_all(target, self._all_views(source, group), self.runtime.multicast_address(source, group), max(1, self.movers))

    @abc.abstractmethod
    def to_all(self, target, source, group):
        """target = source on every rank of a group: `target` is the own view, and the same place of all others. By the switch where there is
        one that multicasts, else by stores to each."""

    @abc.abstractmethod
    def sum_of_all(self, target, source, group):
        """target = the sum of the source of every rank of a group, `source` being the own view, and the same place of all others."""

    @abc.abstractmethod
    def record(self):
        """An event: what this stream has been given so far."""

    @abc.abstractmethod
    def wait(self, what):
        """What comes later in this stream starts after an event, or after all that another stream has been given so far."""

    @abc.abstractmethod
    def signal(self, signal, to, step):
        """Tells rank `to` that everything before in this stream is complete, in `step` of the call."""

    @abc.abstractmethod
    def wait_signal(self, signal, step):
        """What comes later in this stream starts once somebody has given the own `signal` its `step` of the call."""


class Runtime(abc.ABC):
    """One rank of a world. `rank`, `ranks`, `device` (a torch.device), `main` (the caller's stream), `call` (its number from 0)."""

    rank, ranks, device, main = 0, 1, None, None
    works = 0  # how many kernels were told what to do (_work.py)
    one_by_one = False  # kernels run beside nothing: behind what streams were given before, and before what comes next

    def __init__(self):
        self.call = -1
        self._streams, self._slots, self._tensors, self._scope = [], 0, {}, ""

    @contextlib.contextmanager
    def scope(self, name):
        """For several schedules on one world, one after the other: names of tensors are of this scope, and its tensors and streams are
        given back at its end. All ranks enter the same scopes in the same order."""
        before = self._scope, len(self._streams), set(self._tensors)
        self._scope = f"{self._scope}{name}/"
        try:
            yield self
            self.synchronize()
            self.host_barrier()
        finally:
            for stream in self._streams[before[1]:]:
                self._forget_stream(stream)
            del self._streams[before[1]:]
            for forgotten in set(self._tensors) - before[2]:
                self._forget_tensor(self._tensors.pop(forgotten))
            self._scope = before[0]

    def _forget_stream(self, stream):
        """Nothing is given to it any more."""

    def _forget_tensor(self, tensor):
        """Nobody uses it any more."""

    # What a schedule allocates, once, on all ranks in the same order.

    def symmetric(self, name, shape, dtype):
        """A tensor that peers reach. ValueError: the name is taken."""
        return self._named(name, self._allocate_symmetric(self._scope + name, tuple(shape), dtype))

    def local(self, name, shape, dtype):
        """A tensor of this rank alone. ValueError: the name is taken."""
        return self._named(name, self._allocate_local(tuple(shape), dtype))

    @abc.abstractmethod
    def peer(self, tensor, rank):
        """Rank `rank`'s instance of a symmetric tensor (the whole one, not a view). KeyError: peers do not reach it."""

    def signals(self, shape, steps):
        """Signals of a shape, all at the step before the first. `steps` of each in a call, at least 1."""
        first = self._slots
        self._slots += math.prod(shape)
        self._allocate_signals(first, math.prod(shape))
        return Signals(first, shape, max(1, steps))

    @property
    def slots(self):
        """How many signals there are by now."""
        return self._slots

    def peer_view(self, view, rank):
        """What `view`, a view of a symmetric tensor, is on another rank."""
        whole = self.peer(self._whole(view), rank)
        return whole.as_strided(view.shape, view.stride(), view.storage_offset())

    def _whole(self, view):
        for tensor in self._tensors.values():
            if _memory_of(tensor) == _memory_of(view):
                return tensor
        raise KeyError("a view of no tensor of this runtime")

    def multicast_address(self, view, group):
        """Where a view of a symmetric tensor lies for a switch that serves a group; 0: none does."""
        del view, group
        return 0

    def streams(self, count, main_first=False, movers=0, bulk=False):
        """`count` streams of this rank; with `main_first` the caller's is the first of them. movers, bulk: who moves data on them, together."""
        made = [self.main] if main_first and count > 0 else []
        while len(made) < count:
            made.append(self._make_stream(len(self._streams)))
            self._streams.append(made[-1])
        for number, stream in enumerate(made if movers > 0 else ()):
            stream.move_by(max(1, movers // count + (number < movers % count)), bulk)
        return made

    @property
    def moving(self):
        """Workgroups that move data, on all streams: a persistent kernel leaves room for them."""
        return sum(stream.movers for stream in self._streams)

    @abc.abstractmethod
    def signal_words(self):
        """The own signals, for kernels: an int32 tensor, by slot."""

    @abc.abstractmethod
    def signal_addresses(self):
        """Where the signals of each rank are, for kernels: an int64 tensor on this device, by rank."""

    def processors(self):
        """How many programs a persistent kernel has here, beside those that move data."""
        return 1

    @abc.abstractmethod
    def group(self, ranks):
        """Ranks (ascending) for collectives. All ranks of the world call it, members or not."""

    @contextlib.contextmanager
    def _beside(self, stream):
        """Around a launch: of `one_by_one` what else streams are given stands before it or behind it."""
        others = [one for one in (self.main, *self._streams) if self.one_by_one and one is not stream]
        for other in others:
            stream.wait(other)
        yield
        for other in others:
            other.wait(stream)

    # A call.

    def fill(self, target, source):
        """Puts an input where a call looks for it, in the order of the caller's stream; None, or the place itself: it is there."""
        if source is not None and source is not target:
            self.main.copy(target, source.detach())  # no gradient goes through places that the next call writes again

    def place(self, inputs, given):
        """Puts what is given of a schedule's inputs, both by name, to their places. TypeError: a name that is no input."""
        for name in given:
            if name not in inputs:
                raise TypeError(f"'{name}' is no input of this schedule; there are {', '.join(inputs)}")
        for name, target in inputs.items():
            self.fill(target, given.get(name))

    def begin(self):
        """Starts a call: see above. All ranks have to."""
        self.call += 1
        self._barrier()
        begun = self.main.record()
        for stream in self._streams:
            stream.wait(begun)

    def end(self):
        """Ends a call: see above."""
        for stream in self._streams:
            self.main.wait(stream)
        self._barrier()

    @abc.abstractmethod
    def _barrier(self):
        """On the caller's stream: what comes later starts when all ranks are here."""

    # The host's.

    @abc.abstractmethod
    def synchronize(self):
        """Waits for all that was given to all streams of this rank."""

    @abc.abstractmethod
    def host_barrier(self):
        """Waits until all ranks are here."""

    @abc.abstractmethod
    def exchange(self, held):
        """{name: tensor} of every rank, by rank, on this device. Shapes are the same on all ranks. Waits."""

    @abc.abstractmethod
    def slowest(self, numbers):
        """Of a list of numbers, one after the other, the largest that any rank gives. Waits."""

    def time(self, run, repeat=20, warm_up=5):
        """Seconds that a call takes: by repetition, of the slowest rank each."""
        times = []
        for _ in range(warm_up + repeat):
            self.synchronize()
            self.host_barrier()
            times.append(self._time_once(run))
        return self.slowest(times)[warm_up:]

    def poison(self):
        """NaN into everything that this rank holds (integers: their least number): who uses what has not arrived is then seen."""
        for tensor in self._tensors.values():
            self.main.poison(tensor)

    def describe(self):
        """{"backend", "device", "rank", "ranks", "torch", ...}: what results should be reported with."""
        import torch
        return {"backend": type(self).__name__, "device": str(self.device), "rank": self.rank, "ranks": self.ranks,
                "torch": torch.__version__}

    def close(self):
        """Gives back what the world shares. All ranks have to."""

    def _named(self, name, tensor):
        if self._scope + name in self._tensors:
            raise ValueError(f"there is a tensor '{name}' already; a world has one of each name")
        self._tensors[self._scope + name] = tensor
        return tensor


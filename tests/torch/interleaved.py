"""All ranks of a world in one process, one operation after the other in an order that a test chooses.

An order is a function of the list of streams whose next operation may run; it returns one of them. `starve` and `prefer` are the two
that find a missing wait: the stream that brings data comes last of all, or the one that uses them first of all.
"""

import collections
import ctypes
import random
import threading

import torch

from hemiola_rt import _interpreter
from hemiola_rt._queues import QueueStream
from hemiola_rt._worlds import Member, Stuck, World  # noqa: F401: tests look for Stuck here

_SLOTS = 1 << 14


class Turn:
    """A kernel in a thread of its own, which runs only while somebody waits in `go_on()`, from one signal to the next."""

    def __init__(self, run):
        self._run, self._error, self._given_up = run, None, False
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self.is_over, self.has_moved = False, True
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def go_on(self):
        """Until it looks at a signal, or is over. `has_moved`: it did more than to look at the same one again. Raises what it raised."""
        self.has_moved = False
        self._go.release()
        self._back.acquire()
        if self._error is not None:
            raise self._error
        return self.is_over

    def give_up(self):
        """It never goes on."""
        self._given_up = True
        self._go.release()
        self._thread.join()

    def _work(self):
        self._go.acquire()
        _interpreter.turns.turn = self
        try:
            if not self._given_up:
                self._run()
        except Exception as error:  # handed to whoever waits
            self._error = error
        self.is_over = self.has_moved = True
        self._back.release()

    def pause(self):
        """Before a look at a signal or a count, and behind a signal: others run."""
        self._back.release()
        self._go.acquire()
        if self._given_up:
            raise RuntimeError("given up")


class KernelOperation:
    """A kernel that waits for signals itself. It runs from one look at a signal to the next, and again once anything has happened.

    Where its programs wait for each other there are several, and each goes as far as it can before the next one does; `backwards`: the
    last of them first.
    """

    moves = False

    def __init__(self, world, text, launch, backwards):
        self.world, self.text, self.launch, self.backwards = world, text, launch, backwards
        self.turns, self.seen, self.idle = None, -1, 0

    def ready(self):
        return self.turns is None or self.seen != self.world.events or self.idle < len(self.turns)

    def run(self):
        """Whether it is over."""
        if self.turns is None:
            runs = self.launch()
            self.turns = collections.deque(Turn(run) for run in (reversed(runs) if self.backwards else runs))
        if self.seen != self.world.events:
            self.idle = 0
        turn = self.turns[0]
        is_over = turn.go_on()
        if is_over:
            self.turns.popleft()
        if is_over or turn.has_moved:
            self.world.events += 1
        else:
            self.seen = self.world.events
            self.idle += 1
            self.turns.rotate(-1)
        return not self.turns

    def give_up(self):
        for turn in self.turns or ():
            turn.give_up()


class InterleavedStream(QueueStream):
    """A queue whose kernels are interrupted."""

    def launch(self, work, **tensors):
        call = self.runtime.call
        self.operations.append(KernelOperation(self.runtime.world, f"kernel {work.kernel.__name__}", lambda: work.runs(call, tensors),
                                               self.runtime.rank % 2 == 1))


class InterleavedRuntime(Member):
    """One rank of an `InterleavedWorld`."""

    def __init__(self, world, rank, ranks):
        super().__init__(world, rank, ranks)
        self.values = (ctypes.c_uint32 * _SLOTS)()
        self.main = InterleavedStream(self, self.main.name)

    def _make_stream(self, number):
        return InterleavedStream(self, f"stream {number}")

    def write_signal(self, peer, slot, value):
        self.world.members[peer].values[slot] = value

    def signal_value(self, slot):
        return self.values[slot]

    def signal_words(self):
        return torch.frombuffer(self.values, dtype=torch.int32)

    def signal_addresses(self):
        return torch.tensor([ctypes.addressof(member.values) for member in self.world.members], dtype=torch.int64)


class InterleavedWorld(World):
    """`events`: how much has happened."""

    def __init__(self, ranks):
        self.events = 0
        super().__init__(ranks, torch.device("cpu"), InterleavedRuntime)

    def execute(self, choose):
        """Until nothing is left. Stuck: the rest waits for what nobody does."""
        streams = self.streams()
        try:
            while True:
                ready = [s for s in streams if s.operations and (s.operations[0].ready is None or s.operations[0].ready())]
                if not ready:
                    break
                self._go_on(choose(ready))
        finally:
            for stream in streams:
                if stream.operations and isinstance(stream.operations[0], KernelOperation):
                    stream.operations[0].give_up()
        self.raise_if_stuck()

    def _go_on(self, stream):
        operation = stream.operations[0]
        over = operation.run()
        if isinstance(operation, KernelOperation) and not over:
            return
        stream.operations.popleft()
        self.events += 1


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

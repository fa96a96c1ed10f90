"""What interpreted kernels do that others can see, in order: tiles that they take, waits that are over, signals that they send.

    with _trace.into(events): ...           # kernels of this process, until the end of the block

An event is a dictionary: "rank", "call", "program" (of the grid), and one of
"tile" (of the kernel's own) with "at" (where it lies, by axis), "wait" (a slot) with "value" (what it was awaited to reach),
"signal" (a slot) with "to" (a rank) and "value". The first event of a rank says how many signals are not the file's own: "first_signal".
`hemiola check FILE --trace EVENTS` compares them with the program that it reads from the
file's text.
"""

import contextlib
import threading

import numpy

_lock = threading.Lock()
_sink = None  # where events go
_kernels = threading.local()  # .launch: of the thread of a kernel


@contextlib.contextmanager
def into(events):
    """Appends to a list what the kernels of this process do."""
    global _sink
    before, _sink = _sink, events
    try:
        yield events
    finally:
        _sink = before


def begin(rt):
    """Before the file's setup()."""
    if _sink is not None:
        _sink.append({"rank": rt.rank, "first_signal": rt.slots})


def launched(work, call):
    """What a launch writes down; a context. Nothing where nobody asks."""
    return _Launch(work, call) if _sink is not None else contextlib.nullcontext()


def current():
    """The launch whose kernel this thread interprets, if it is written down."""
    return getattr(_kernels, "launch", None)


class _Launch:
    def __init__(self, work, call):
        self.work, self.call, self.events = work, call, _sink
        tables = work.arguments
        self.rows, self.row_count = tables["hm_rows"].data_ptr(), tables["hm_rows"].numel()
        self.numbers = tables["hm_rows"].tolist()
        self.own_signals = tables["hm_signals"].data_ptr()
        self.signals = tables["hm_peers"].tolist()
        self.polled = None  # what the last look at a signal gave, and its slot

    def __enter__(self):
        _kernels.launch = self

    def __exit__(self, *_):
        _kernels.launch = None

    def note(self, builder, **event):
        with _lock:
            self.events.append({"rank": self.work.rt.rank, "call": self.call, "program": int(builder.grid_idx[0]), **event})

    def loaded(self, builder, pointer):
        """A load of one element: of a tile's row?"""
        place, rest = divmod(int(pointer) - self.rows, 4)
        if rest == 0 and 0 <= place < self.row_count and place % 4 == 0:
            tile = self.numbers[place]
            self.note(builder, tile=tile, at=self.work.place_of(tile))

    def looked(self, pointer, old):
        """A look at an own signal."""
        self.polled = old, (int(pointer) - self.own_signals) // 4

    def subtracted(self, builder, left, right):
        """`signal - value`: the wait is over if that is not below 0."""
        if self.polled is None or left is not self.polled[0]:
            return
        awaited = int(numpy.asarray(right.data).reshape(-1)[0])
        seen = int(numpy.asarray(left.data).reshape(-1)[0])
        if ((seen - awaited) & 0xFFFFFFFF) < 1 << 31:
            self.note(builder, wait=self.polled[1], value=awaited & 0xFFFFFFFF)
        self.polled = None

    def told(self, builder, pointer, value):
        """A store to a signal of some rank. What else a kernel tells its own programs (whose turn it is) is none."""
        address = int(pointer)
        to = next((rank for rank, base in enumerate(self.signals) if 0 <= address - base < 4 * self.work.rt.slots), None)
        if to is None:
            return
        self.note(builder, signal=(address - self.signals[to]) // 4, to=to, value=int(numpy.asarray(value.data).reshape(-1)[0]))

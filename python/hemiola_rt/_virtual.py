"""All ranks of a world on one GPU and in one process: virtual ranks, for tries and tests of what is meant for several GPUs.

A kernel of a call is one grid for all ranks: grid (programs of a rank, ranks), so that rank = program // programs of a rank, and what a
program loads and stores is looked up in a table of addresses by rank. The kernel's text stays as it is: a kernel around it, written
here, calls it. The ranks' memory, signals and streams are their own; a peer's memory is other memory of the same GPU.

Operations are given to queues first (`_queues.py`) and from there to CUDA's streams, in an order in which nothing waits for what comes
later: streams that share a hardware queue cannot block each other, and kernels that wait come behind the copies that they wait for.
Without a GPU they are executed instead of given, and kernels run in Triton's interpreter.

Times say what waits and tables cost a kernel and how copies run beside it. They are no times of several GPUs: all ranks share one memory,
one L2 and the same multiprocessors.
"""

import contextlib
import ctypes
import functools
import importlib.util
import itertools
import os
import tempfile
import time

import torch

from . import _interpreter, _products
from ._driver import Driver
from ._queues import Event, Group, Operation, QueueStream, _collected
from ._symmetric import GpuStream
from ._work import start
from ._worlds import Member, World

_SLOTS = 1 << 14
_TYPES = {torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float32: "float32", torch.float64: "float64", torch.int8: "int8",
          torch.uint8: "uint8", torch.int16: "int16", torch.int32: "int32", torch.int64: "int64"}
for _name, _type in (("float8_e4m3fn", "float8e4nv"), ("float8_e5m2", "float8e5")):
    if hasattr(torch, _name):
        _TYPES[getattr(torch, _name)] = _type


class _Launch(Operation):
    """A rank's part of a grid."""

    __slots__ = ("work", "call", "tensors")

    def __init__(self, work, call, tensors):
        super().__init__(None, ready=lambda: False, text=f"kernel {work.kernel.__name__}")
        self.work, self.call, self.tensors = work, call, tensors


class VirtualStream(QueueStream):
    """A queue, and the stream of the GPU that its operations are given to."""

    def __init__(self, runtime, name, priority=0):
        super().__init__(runtime, name)
        # Between memories of one GPU its multiprocessors may copy, so copies go first wherever a program of a kernel has ended.
        self.gpu = GpuStream(runtime, torch.cuda.Stream(priority=priority)) if runtime.world.on_gpu else None

    def move_by(self, movers, bulk):
        super().move_by(movers, bulk)
        if self.gpu is not None:
            self.gpu.move_by(movers, bulk)

    def here(self):
        """Where an operation is given: on this stream."""
        return contextlib.nullcontext() if self.gpu is None else torch.cuda.stream(self.gpu.stream)

    def copy(self, target, source):
        if self.gpu is None:
            super().copy(target, source)
        else:
            self.give(lambda: self.gpu.copy(target, source), moves=True, text=f"a copy to {tuple(target.shape)}")

    def reduce(self, target, source, operand, operator="sum"):
        if self.gpu is None:
            super().reduce(target, source, operand, operator)
        else:
            self.give(lambda: self.gpu.reduce(target, source, operand, operator), moves=True, text=f"a reduction to {tuple(target.shape)}")

    def to_all(self, target, source, group):
        self.give(lambda: self._switched("_to_all", target, source, group), moves=True, text=f"a multicast to {tuple(target.shape)}")

    def sum_of_all(self, target, source, group):
        self.give(lambda: self._switched("_sum_of_all", target, source, group), moves=True, text=f"a sum of all to {tuple(target.shape)}")

    def _switched(self, what, *given):
        with self.here():
            getattr(self, what)(*given)

    def launch(self, work, **tensors):
        self.operations.append(_Launch(work, self.runtime.call, tensors))

    def record(self):
        event = Event(self)
        event.reached = None

        def finish():
            event.reached = self.reached()
            event.finish()
        self.give(finish)
        return event

    def wait(self, what):
        event = what.record() if isinstance(what, QueueStream) else what
        if event.stream is not self:
            self.give(lambda: self.after(event.reached), ready=lambda: event.done, text=f"a wait for {event.stream.name}")

    def wait_signal(self, signal, step):
        runtime, value = self.runtime, signal.value(self.runtime.call, step)
        self.give(lambda: runtime.world.wait_value(self, runtime.rank, signal.slot, value),
                  ready=lambda: runtime.signal_reached(signal.slot, value), text=f"a wait for signal {signal.slot} to reach {value}")

    def reached(self):
        """An event of the GPU: what its stream has been given so far."""
        return None if self.gpu is None else self.gpu.stream.record_event()

    def after(self, reached):
        """What comes later in the GPU's stream starts behind an event."""
        if reached is not None:
            self.gpu.stream.wait_event(reached)

    def collective(self, name, target, source, group, operator="sum"):
        runtime, place = self.runtime, group.ranks.index(self.runtime.rank)
        group.count += 1
        made = []
        self.meet((group.ranks, group.count, 0), group.ranks)
        self.give(lambda: made.append(_collected(name, [runtime.peer_view(source, r) for r in group.ranks], place, operator)), moves=True)
        self.meet((group.ranks, group.count, 1), group.ranks)
        self.give(lambda: target.copy_(_products.same_shape(made[0], target)))

    def meet(self, key, ranks):
        """What comes later starts when all of `ranks` are here. key: which meeting it is."""
        there = self.runtime.world.meetings.setdefault(key, {})

        def come():
            there[self.runtime.rank] = self.reached()

        def go():
            for reached in there.values():
                self.after(reached)
        self.give(come)
        self.give(go, ready=lambda: len(there) == len(ranks), text="a meeting of ranks")


class VirtualRuntime(Member):
    """One rank of a `VirtualWorld`."""

    torch = torch

    def __init__(self, world, rank, ranks):
        super().__init__(world, rank, ranks)
        self.driver = world.driver
        self.main = VirtualStream(self, self.main.name)

    def _make_stream(self, number):
        return VirtualStream(self, f"stream {number}", -1)

    def group(self, ranks):
        return Group(ranks, None)

    def _barrier(self):
        self._meetings += 1
        self.main.meet(("call", self._meetings), range(self.ranks))

    def write_signal(self, peer, slot, value):
        self.world.write_value(peer, slot, value)

    def signal_value(self, slot):
        """What it stands at once all is done that has been given to the GPU by now."""
        return self.world.given[self.rank].get(slot, 0)

    def signal_words(self):
        return self.world.signals[self.rank]

    def signal_addresses(self):
        return torch.tensor([signals.data_ptr() for signals in self.world.signals], dtype=torch.int64, device=self.device)

    def processors(self):
        """A share of the GPU's: the programs of all ranks are there at the same time, and copies find room beside them."""
        return max(1, (self.world.processors - self.world.for_copies) // self.ranks - self.moving)

    def _allocate_signals(self, first, count):
        if first + count > _SLOTS:
            raise RuntimeError(f"{first + count} signals of a rank; there are {_SLOTS}")


class VirtualWorld(World):
    """`members`: a runtime for each rank. The GPU is PyTorch's current one; without any, the interpreter.

    late: seconds between two movements of data, the first of which goes when everything is given, so that kernels have to wait (on a GPU).
    """

    def __init__(self, ranks, late=0.0):
        self.on_gpu = torch.cuda.is_available() and not _interpreter.is_interpreted()
        device = torch.device("cuda", torch.cuda.current_device()) if self.on_gpu else torch.device("cpu")
        self.driver = Driver(torch.version.hip is not None) if self.on_gpu else None
        self.processors = torch.cuda.get_device_properties(device).multi_processor_count if self.on_gpu else ranks
        self.for_copies = 4 if self.on_gpu else 0  # multiprocessors: they, not copy engines, copy within a GPU
        self.late = late
        self.meetings = {}
        self.signals = torch.zeros((ranks, _SLOTS), dtype=torch.int32, device=device)
        self.given = [{} for _ in range(ranks)]  # by rank and slot, what signals will stand at
        self._moved, self._tables = 0, {}
        self._clock = torch.zeros(1, dtype=torch.int32).pin_memory() if self.on_gpu else None  # how many late movements may go
        super().__init__(ranks, device, VirtualRuntime)

    # Signals, on the stream that an operation is given to.

    def write_value(self, peer, slot, value):
        self.given[peer][slot] = value
        if self.on_gpu:
            self.driver.write_value(torch.cuda.current_stream().cuda_stream, self._address(peer, slot), value)
        else:
            self.signals[peer, slot] = ctypes.c_int32(value).value

    def wait_value(self, stream, rank, slot, value):
        if self.on_gpu:
            self.driver.wait_value(stream.gpu.stream.cuda_stream, self._address(rank, slot), value)

    def _address(self, rank, slot):
        return self.signals.data_ptr() + 4 * (rank * _SLOTS + slot)

    # Execution.

    def give(self):
        """All that ranks have given, to the GPU. Stuck: the rest waits for what nobody does."""
        streams = self.streams()
        if self.on_gpu:  # what the caller has given to its stream, inputs perhaps, comes first
            before = torch.cuda.current_stream().record_event()
            for stream in streams:
                stream.after(before)
        while True:
            is_given = False
            for stream in streams:
                while stream.operations and (stream.operations[0].ready is None or stream.operations[0].ready()):
                    self._give_next(stream)
                    is_given = True
            if is_given:
                continue
            launching = [stream for stream in streams if stream.operations and isinstance(stream.operations[0], _Launch)]
            if not launching:
                break
            self._give_grid(self._grid_of(launching))
        self.raise_if_stuck()
        self.meetings.clear()

    def execute(self):
        """... and waits until it is done. Late movements go one by one, once all is given."""
        self.give()
        if not self.on_gpu:
            return
        clock = ctypes.c_int32.from_address(self._clock.data_ptr())
        while clock.value < self._moved:
            time.sleep(self.late)
            clock.value += 1
        torch.cuda.synchronize()

    def _give_next(self, stream):
        operation = stream.operations[0]
        with stream.here():
            if operation.moves and self.late > 0 and self.on_gpu:
                self._moved += 1
                self.driver.wait_value(stream.gpu.stream.cuda_stream, self._clock.data_ptr(), self._moved)
            operation.run()
        stream.operations.popleft()

    @staticmethod
    def _grid_of(launching):
        """The streams, one of a rank, that make the same launch of a kernel now."""
        first = launching[0].operations[0].work
        of = {}
        for stream in launching:
            work = stream.operations[0].work
            if (work.kernel, work.number) == (first.kernel, first.number):
                of.setdefault(stream.runtime.rank, stream)
        return list(of.values())

    def _give_grid(self, streams):
        launches = [stream.operations[0] for stream in streams]
        lead = streams[0]
        for stream in streams[1:]:
            lead.after(stream.reached())
        with lead.here():
            self._start([launch.work.launched(launch.call, launch.tensors) for launch in launches], launches[0].work)
        reached = lead.reached()
        for stream, launch in zip(streams, launches):
            if stream is not lead:
                stream.after(reached)
            for rank, slot in launch.work.tells:
                self.given[rank][slot] = (launch.call + 1) & 0xFFFFFFFF
            stream.operations.popleft()

    def _start(self, launched, work):
        """One grid of what each rank would launch: (programs, arguments) each. ValueError: they differ in what a grid has one of."""
        programs, arguments = launched[0]
        name = work.kernel.__name__
        addresses, others, shapes = {}, {}, {}
        for argument in arguments:
            values = [given[argument] for _, given in launched]
            shape = _described(values[0])
            if any(_described(value) != shape or (shape is None and value != values[0]) for value in values if not isinstance(value, torch.Tensor)):
                raise ValueError(f"ranks launch kernel {name} with different '{argument}'; a grid has one")
            if isinstance(values[0], torch.Tensor) or shape is not None:
                shapes[argument] = shape
                addresses[argument] = [value if shape is None else value.base for value in values]
            else:
                others[argument] = values[0]
        if any(count != programs for count, _ in launched):
            raise ValueError(f"ranks launch kernel {name} with different numbers of programs; a grid has one")
        types = tuple((argument, values[0].dtype, shapes[argument]) for argument, values in addresses.items())
        kernel = _grid_kernel(work.kernel, types, tuple(others))
        at = tuple(tuple(values[rank].data_ptr() for values in addresses.values()) for rank in range(len(launched)))
        if at not in self._tables:  # kept, since a kernel that looks it up may have been given only
            self._tables[at] = torch.tensor(at, dtype=torch.int64).to(self.device)
        table = self._tables[at]
        def run(grid):
            start(kernel, grid, {"hm_table": table, **others}, work.options)
        if work.carries and not self.on_gpu:
            _interpreter.at_once(_interpreter.programs(lambda: run((1,)), (programs, len(launched))))
        else:
            run((programs, len(launched)))

    # Times.

    def time(self, run, repeat=20, warm_up=3):
        """Seconds that the GPU takes for what `run()` gives, from its first operation to its last, by repetition.

        All of it is given before the first operation starts, so that the host is no part of it.
        """
        gate = torch.zeros(1, dtype=torch.int32).pin_memory()
        opened = ctypes.c_int32.from_address(gate.data_ptr())
        times = []
        for turn in range(1, warm_up + repeat + 1):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            streams = self.streams()
            if turn > 1:  # the first call loads and allocates, for which CUDA may wait for the GPU
                for stream in streams:
                    self.driver.wait_value(stream.gpu.stream.cuda_stream, gate.data_ptr(), turn)
            begin.record(streams[0].gpu.stream)
            for stream in streams[1:]:
                stream.gpu.stream.wait_event(begin)
            run()
            self.give()
            for stream in streams[1:]:
                streams[0].after(stream.reached())
            end.record(streams[0].gpu.stream)
            opened.value = turn
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) / 1e3)
        return times[warm_up:]


_numbers = itertools.count()


def _described(value):
    """What a descriptor that the host makes says beside its address, as a kernel's text says it. None: it is none."""
    if not hasattr(value, "block_shape"):
        return None
    return f"shape={list(value.shape)}, strides={list(value.strides)}, block_shape={list(value.block_shape)}"


@functools.lru_cache(maxsize=None)
def _grid_kernel(kernel, types, others):
    """The kernel around `kernel` whose grid is (programs, ranks): addresses come from a table of (rank, tensor), in the order of `types`.

    types: name, type and, where the kernel takes a descriptor, what else that says.
    """
    constants = {parameter.name for parameter in getattr(kernel, "params", ()) if parameter.is_constexpr}
    if not constants:  # the interpreter's functions have no parameters
        annotations = kernel.fn.__annotations__
        constants = {name for name in others if "constexpr" in str(annotations.get(name, ""))}
    parameters = ["hm_table", *(f"{name}: tl.constexpr" if name in constants else name for name in others)]
    # What grows from call to call: another value must not compile another kernel.
    plain = [parameter.name for parameter in getattr(kernel, "params", ()) if parameter.do_not_specialize]
    lines = ["import triton", "import triton.language as tl", "", "", f"@triton.jit(do_not_specialize={plain})", f"def hm_ranks({', '.join(parameters)}):",
             f"    hm_row = hm_table + tl.program_id(1) * {len(types)}"]
    for number, (name, dtype, shape) in enumerate(types):
        if dtype not in _TYPES:
            raise ValueError(f"'{name}' of kernel {kernel.__name__} is of {dtype}, which Triton has no name for")
        lines.append(f"    {name} = tl.multiple_of(tl.load(hm_row + {number}).to(tl.pointer_type(tl.{_TYPES[dtype]})), 16)")
        if shape is not None:
            lines.append(f"    {name} = tl.make_tensor_descriptor({name}, {shape})")
    given = ", ".join(f"{name}={name}" for name in [*(name for name, _, _ in types), *others])
    lines.append(f"    hm_kernel({given})")
    # Triton asks for the text of a function, which therefore stands in a file while it is read.
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"hm_ranks_{next(_numbers)}.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
        module = importlib.util.module_from_spec(spec)
        module.hm_kernel = kernel
        spec.loader.exec_module(module)
    return module.hm_ranks

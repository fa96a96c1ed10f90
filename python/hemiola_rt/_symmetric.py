"""GPUs of one node, a process each, started by torchrun: PyTorch's symmetric memory (2.8 or newer), CUDA and ROCm.

Memory is `torch.distributed._symmetric_memory.empty` and `rendezvous`, a peer's instance `get_buffer`. Streams and events are
torch.cuda's, copies `Tensor.copy_` on a stream: cudaMemcpyPeerAsync (a copy engine) for contiguous views; PyTorch copies strided ones
between GPUs with a kernel. Signals are a symmetric tensor of uint32: a peer's is written with `stream_write_value32`, which fences the
whole system first, and awaited by the driver's stream wait (_driver.py). Barriers are the handle's, on the caller's stream.

A call can be captured into a CUDA graph, on all ranks, and replayed any number of times, between other calls too: values that waits await
are fixed in the graph, so a captured call is number 0 and begins with its rank's signals at 0. Calls that are not captured begin with 1.

More processes than GPUs share them, to try a schedule: they take turns, some milliseconds each, so times mean nothing. NCCL refuses that,
so collectives of the library go by the hosts (Gloo).
"""

import os

from . import _products
from ._driver import Driver
from ._runtime import Runtime, Stream

_SLOTS = 1 << 14


class GpuStream(Stream):
    """A torch.cuda.Stream; `stream` None: whatever is the caller's at the time."""

    def __init__(self, runtime, stream):
        self.runtime, self._stream = runtime, stream

    @property
    def stream(self):
        return self._stream if self._stream is not None else self.runtime.torch.cuda.current_stream()

    def _here(self):
        return self.runtime.torch.cuda.stream(self.stream)

    def copy(self, target, source):
        if self.movers > 0:
            with self._here():
                self._move(target, source)
            return
        rows = None
        if tuple(target.shape) == tuple(source.shape) and target.dtype == source.dtype:
            rows = _products.rows_of(target.shape, target.stride(), source.stride())
        if rows is not None:  # PyTorch would copy these by a kernel, for which a kernel that waits may leave no room
            count, width, (to, of) = rows
            size = target.element_size()
            self.runtime.driver.copy_rows(self.stream.cuda_stream, target.data_ptr(), to * size, source.data_ptr(), of * size,
                                          width * size, count)
            return
        with self._here():
            target.copy_(_products.same_shape(source, target), non_blocking=True)

    def reduce(self, target, source, operand, operator="sum"):
        with self._here():
            if self.movers > 0:
                self._move(target, source, operand, operator)
                return
            source, operand = _products.same_shape(source, target), _products.same_shape(operand, target)
            if operand.data_ptr() == target.data_ptr():
                _products.REDUCTIONS[operator](operand, source, out=target)
            else:
                target.copy_(_products.REDUCTIONS[operator](source, operand))

    def to_all(self, target, source, group):
        with self._here():
            self._to_all(target, source, group)

    def sum_of_all(self, target, source, group):
        with self._here():
            self._sum_of_all(target, source, group)

    def mm(self, a, b, out):
        with self._here():
            _products.multiply(a, b, out, False)

    def addmm(self, a, b, out):
        with self._here():
            _products.multiply(a, b, out, True)

    def zero(self, target):
        with self._here():
            target.zero_()

    def launch(self, work, **tensors):
        with self.runtime._beside(self), self._here():
            work.launch(self.runtime.call, tensors)

    def poison(self, target):
        torch = self.runtime.torch
        with self._here():
            target.fill_(float("nan") if target.is_floating_point() else torch.iinfo(target.dtype).min)

    def collective(self, name, target, source, group, operator="sum"):
        dist = self.runtime.dist
        operation = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX, "min": dist.ReduceOp.MIN, "prod": dist.ReduceOp.PRODUCT}[operator]
        with self._here():
            whole = source.contiguous()
            if name in ("all-reduce", "broadcast"):
                made = whole.clone() if whole.data_ptr() == source.data_ptr() else whole
                if name == "all-reduce":
                    dist.all_reduce(made, op=operation, group=group.handle)
                else:
                    dist.broadcast(made, src=group.ranks[0], group=group.handle)
            else:
                made = self.runtime.torch.empty(target.numel(), dtype=target.dtype, device=target.device)
                flat = whole.view(-1)
                if name == "all-gather":
                    dist.all_gather_into_tensor(made, flat, group=group.handle)
                elif name == "reduce-scatter":
                    dist.reduce_scatter_tensor(made, flat, op=operation, group=group.handle)
                elif name == "all-to-all":
                    dist.all_to_all_single(made, flat, group=group.handle)
                else:
                    raise ValueError(f"there is no collective '{name}' here")
            target.copy_(_products.same_shape(made, target))

    def record(self):
        return self.stream.record_event()

    def wait(self, what):
        if isinstance(what, GpuStream):
            self.stream.wait_stream(what.stream)
        else:
            self.stream.wait_event(what)

    def signal(self, signal, to, step):
        self.runtime.write_signal(self, to, signal.slot, signal.value(self.runtime.call, step))

    def wait_signal(self, signal, step):
        runtime = self.runtime
        runtime.driver.wait_value(self.stream.cuda_stream, runtime.signal_address(signal.slot), signal.value(runtime.call, step))


class Group:
    """Ranks, and their process group (None: the world)."""

    def __init__(self, ranks, handle):
        self.ranks, self.handle = tuple(ranks), handle


class HostCollectives:
    """torch.distributed over Gloo for tensors of GPUs: they go by the host, which waits for the stream at hand."""

    def __init__(self, dist):
        self._dist = dist

    def __getattr__(self, name):
        return getattr(self._dist, name)

    def all_reduce(self, tensor, **named):
        made = tensor.cpu()
        self._dist.all_reduce(made, **named)
        tensor.copy_(made)

    def broadcast(self, tensor, **named):
        made = tensor.cpu()
        self._dist.broadcast(made, **named)
        tensor.copy_(made)

    def all_gather(self, parts, tensor, **named):
        made = [part.cpu() for part in parts]
        self._dist.all_gather(made, tensor.cpu(), **named)
        for part, of in zip(parts, made):
            part.copy_(of)

    def all_gather_into_tensor(self, target, source, **named):
        self.all_gather(list(target.chunk(target.numel() // source.numel())), source, **named)

    def reduce_scatter_tensor(self, target, source, group=None, **named):
        made = source.cpu()
        self._dist.all_reduce(made, group=group, **named)
        target.copy_(made.chunk(source.numel() // target.numel())[self._dist.get_rank(group)])

    def all_to_all_single(self, target, source, group=None):
        ranks = self._dist.get_world_size(group)
        made = [source.cpu() for _ in range(ranks)]
        self._dist.all_gather(made, source.cpu(), group=group)
        for part, of in zip(target.chunk(ranks), made):
            part.copy_(of.chunk(ranks)[self._dist.get_rank(group)])


class SymmetricRuntime(Runtime):
    """One GPU of a node. torch.distributed is initialised here unless it is already.

    RuntimeError: no GPU, a PyTorch without symmetric memory, or more than 2^14 signals.
    """

    def __init__(self, torch=None, dist=None, symmetric_memory=None, driver=None):
        super().__init__()
        self.shares_gpus = False
        if torch is None:
            import torch
            import torch.distributed as dist
            try:
                import torch.distributed._symmetric_memory as symmetric_memory
            except ImportError:
                raise RuntimeError(f"PyTorch {torch.__version__} has no symmetric memory; it takes 2.8 or newer") from None
        self.torch, self.dist, self.memory = torch, dist, symmetric_memory
        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no GPU here; 'python -m hemiola_rt FILE' runs a schedule on CPU processes")
        gpus = torch.cuda.device_count()
        self.shares_gpus = int(os.environ.get("LOCAL_WORLD_SIZE", "1")) > gpus
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % gpus)
        if self.shares_gpus:  # both are read when memory is first allocated
            os.environ.setdefault("TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES", "1")
            os.environ.setdefault("TORCH_SYMMMEM", "CUDA")
            self.dist = dist = HostCollectives(dist)
        if not dist.is_initialized():
            dist.init_process_group("gloo" if self.shares_gpus else "nccl")
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.device = torch.device("cuda", torch.cuda.current_device())
        self.main = GpuStream(self, None)
        self.driver = driver or Driver(torch.version.hip is not None, device=torch.cuda.current_device())
        self.call, self._eager = 0, None
        self._handles = {}
        self._signal_tensor = self._symmetric_tensor((_SLOTS,), torch.uint32)
        self._signal_tensor.zero_()
        self._signal_handle = self._handles[self._signal_tensor.data_ptr()]
        self._peer_signals = [self._signal_handle.get_buffer(rank, (_SLOTS,), torch.uint32) for rank in range(self.ranks)]
        torch.cuda.synchronize()
        dist.barrier()

    def _symmetric_tensor(self, shape, dtype):
        tensor = self.memory.empty(*shape, dtype=dtype, device=self.device)
        self._handles[tensor.data_ptr()] = self.memory.rendezvous(tensor, self.dist.group.WORLD)
        return tensor

    def _allocate_symmetric(self, name, shape, dtype):
        del name
        tensor = self._symmetric_tensor(shape, dtype)
        tensor.zero_()
        return tensor

    def _allocate_local(self, shape, dtype):
        return self.torch.zeros(shape, dtype=dtype, device=self.device)

    def _allocate_signals(self, first, count):
        if first + count > _SLOTS:
            raise RuntimeError(f"{first + count} signals of a rank; there are {_SLOTS}")

    def peer(self, tensor, rank):
        if rank == self.rank:
            return tensor
        return self._handles[tensor.data_ptr()].get_buffer(rank, tuple(tensor.shape), tensor.dtype)

    def multicast_address(self, view, group):
        if len(group.ranks) != self.ranks:
            return 0
        whole = self._whole(view)
        address = getattr(self._handles[whole.data_ptr()], "multicast_ptr", 0)
        return address + view.data_ptr() - whole.data_ptr() if address else 0

    def _forget_tensor(self, tensor):
        self._handles.pop(tensor.data_ptr(), None)

    def signal_address(self, slot):
        """Of the own signal, in bytes."""
        return self._signal_tensor.data_ptr() + 4 * slot

    def signal_words(self):
        return self._signal_tensor.view(self.torch.int32)

    def signal_addresses(self):
        return self.torch.tensor([signals.data_ptr() for signals in self._peer_signals], dtype=self.torch.int64, device=self.device)

    def processors(self):
        return max(1, self.torch.cuda.get_device_properties(self.device).multi_processor_count - self.moving)

    def write_signal(self, stream, peer, slot, value):
        """On a stream, after all that it was given."""
        signals = self._peer_signals[peer]
        if self.driver.is_rocm:
            self.driver.write_value(stream.stream.cuda_stream, signals.data_ptr() + 4 * slot, value)
        else:
            with self.torch.cuda.stream(stream.stream):
                self._signal_handle.stream_write_value32(signals, slot, value)

    def _make_stream(self, number):
        del number
        return GpuStream(self, self.torch.cuda.Stream())

    def group(self, ranks):
        everybody = tuple(ranks) == tuple(range(self.ranks))
        return Group(ranks, None if everybody else self.dist.new_group(list(ranks)))

    def begin(self):
        if self.torch.cuda.is_current_stream_capturing():
            self._eager, self.call = self.call, -1
            self._signal_tensor.zero_()  # peers tell of this call only behind the barrier that comes next
        super().begin()

    def end(self):
        super().end()
        if self._eager is not None:
            self.call, self._eager = self._eager, None

    def _barrier(self):
        self._signal_handle.barrier(channel=0)

    def synchronize(self):
        self.torch.cuda.synchronize()

    def host_barrier(self):
        self.dist.barrier()

    def exchange(self, held):
        self.synchronize()
        everybody = [{} for _ in range(self.ranks)]
        for name, tensor in held.items():
            parts = [self.torch.empty(tensor.shape, dtype=tensor.dtype, device=self.device) for _ in range(self.ranks)]
            self.dist.all_gather(parts, tensor.contiguous())
            for of, part in zip(everybody, parts):
                of[name] = part
        return everybody

    def slowest(self, numbers):
        made = self.torch.tensor(numbers, dtype=self.torch.float64, device=self.device)
        self.dist.all_reduce(made, op=self.dist.ReduceOp.MAX)
        return made.tolist()

    def _time_once(self, run):
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        self.synchronize()
        return begin.elapsed_time(end) / 1e3

    def describe(self):
        return {**super().describe(), "device": self.torch.cuda.get_device_name()}

    def close(self):
        self.synchronize()
        self.dist.barrier()
        self.dist.destroy_process_group()

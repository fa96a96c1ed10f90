"""Ranks as processes of one machine: symmetric memory is files that all of them map, streams are threads.

For tests of the very file that runs on GPUs. Its times mean nothing.
"""

import atexit
import contextlib
import ctypes
import io
import mmap
import os
import random
import shutil
import threading
import time

import torch

from ._queues import QueueRuntime, QueueStream

_SLOTS = 1 << 16
_FAILED = _SLOTS - 1
_FIRST_PAUSE, _LAST_PAUSE = 20e-6, 1e-3  # between two looks at what is waited for


class ThreadStream(QueueStream):
    """A queue whose thread sleeps while nothing is in it."""

    def __init__(self, runtime, name):
        super().__init__(runtime, name)
        self.is_over, self.given = False, threading.Condition()

    def give(self, run, **more):
        with self.given:
            super().give(run, **more)
            self.given.notify()

    def end(self):
        with self.given:
            self.is_over = True
            self.given.notify()

    def next(self):
        """The next operation, which stays in the queue until it is done; None: there will be none."""
        with self.given:
            self.given.wait_for(lambda: self.operations or self.is_over)
            return self.operations[0] if self.operations else None


class SharedRuntime(QueueRuntime):
    """One rank, in a process of its own.

    folder: where the mapped files stand; empty at the start, in memory (/dev/shm) at best.
    delay: (rank, stream, number, seconds): before the number-th movement of data of that stream (-1: the caller's), counted from 0 over
    all calls, its thread sleeps. permute: a seed; before every movement a thread sleeps for up to two milliseconds.
    owns_folder: it is removed at the end of the process of rank 0.
    sm_slots: compute units, which kernels share with sums, zeros and copies within a rank: a kernel begins once as many are free as it has
    programs (at most all of them), and has them until it ends. None: nobody counts.
    patience: seconds after which a wait is an error (RuntimeError, which names what is waited for).

    Order: a copy is complete before the store of the signal behind it, and who sees the signal sees the copy. That rests on the order of
    stores of x86, and elsewhere on the locks that Python takes between two operations.
    """

    def __init__(self, folder, rank, ranks, delay=None, permute=None, patience=60.0, owns_folder=False, sm_slots=None):
        super().__init__(rank, ranks)
        self.sm_slots, self._free, self._taking = sm_slots, sm_slots, threading.Lock()
        self.main = ThreadStream(self, self.main.name)
        self.folder, self.patience, self.failure = folder, patience, None
        self._delay, self._permute = delay, permute
        self._names, self._peers, self._own_signals = {}, {}, None
        self._exchanges, self._host_meetings, self._threads = 0, 0, []
        self._host_meeting = self.signals((ranks,), 1)
        self._own_signals = self._signal_map(rank, create=True)
        self._signal_maps = {rank: self._own_signals}
        self._start(self.main, -1)
        if owns_folder and rank == 0:
            atexit.register(shutil.rmtree, folder, ignore_errors=True)

    # Memory.

    def _file(self, name, rank):
        return os.path.join(self.folder, f"{name.replace('/', '.')}.{rank}")

    def _map(self, name, rank, size, create):
        path = self._file(name, rank)
        if create:
            with open(path + ".new", "wb") as file:
                file.truncate(size)
            os.rename(path + ".new", path)
        self._until(lambda: os.path.exists(path), f"rank {rank} to allocate '{name}'")
        with open(path, "r+b") as file:
            return mmap.mmap(file.fileno(), size)

    def _signal_map(self, rank, create=False):
        return (ctypes.c_uint32 * _SLOTS).from_buffer(self._map("signals", rank, 4 * _SLOTS, create))

    def _tensor(self, name, rank, shape, dtype, create):
        elements = max(1, int(torch.Size(shape).numel()))
        size = elements * torch.empty((), dtype=dtype).element_size()
        return torch.frombuffer(self._map(name, rank, size, create), dtype=dtype, count=elements).view(shape)

    def _allocate_symmetric(self, name, shape, dtype):
        tensor = self._tensor(name, self.rank, shape, dtype, True)
        self._names[tensor.data_ptr()] = name
        return tensor

    def _allocate_local(self, shape, dtype):
        return torch.zeros(shape, dtype=dtype)

    def _allocate_signals(self, first, count):
        if first + count > _FAILED:
            raise ValueError(f"{first + count} signals of a rank; this back end has {_FAILED}")

    def peer(self, tensor, rank):
        if rank == self.rank:
            return tensor
        key = self._names[tensor.data_ptr()], rank
        if key not in self._peers:
            self._peers[key] = self._tensor(*key, tensor.shape, tensor.dtype, False)
        return self._peers[key]

    # Signals.

    def write_signal(self, peer, slot, value):
        if peer not in self._signal_maps:
            self._signal_maps[peer] = self._signal_map(peer)
        self._signal_maps[peer][slot] = value

    def signal_value(self, slot):
        return self._own_signals[slot]

    def signal_words(self):
        return torch.frombuffer(self._own_signals, dtype=torch.int32)

    def signal_addresses(self):
        for peer in range(self.ranks):
            if peer not in self._signal_maps:
                self._signal_maps[peer] = self._signal_map(peer)
        return torch.tensor([ctypes.addressof(self._signal_maps[peer]) for peer in range(self.ranks)], dtype=torch.int64)

    # Threads.

    def _make_stream(self, number):
        stream = ThreadStream(self, f"stream {number}")
        self._start(stream, number)
        return stream

    def _start(self, stream, number):
        thread = threading.Thread(target=self._work, args=(stream, number), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _forget_stream(self, stream):
        stream.end()

    def _forget_tensor(self, tensor):
        name = self._names.pop(tensor.data_ptr(), None)
        if name is not None:
            for peer in range(self.ranks):
                self._peers.pop((name, peer), None)
            os.remove(self._file(name, self.rank))

    def _work(self, stream, number):
        torch.set_grad_enabled(False)  # of this thread
        moved = 0
        chance = random.Random(None if self._permute is None else f"{self._permute}/{self.rank}/{number}")
        while True:
            operation = stream.next()
            if operation is None:
                return
            try:
                if operation.moves:
                    if self._permute is not None:
                        time.sleep(chance.random() * 2e-3)
                    if self._delay is not None and self._delay[:3] == (self.rank, number, moved):
                        time.sleep(self._delay[3])
                    moved += 1
                if operation.ready is not None:
                    self._until(operation.ready, f"{stream.name}: {operation.text}")
                with self._units(operation.units, stream, operation):
                    operation.run()
            except Exception as error:  # handed to whoever synchronizes
                self.fail(error)
                return
            stream.operations.popleft()

    @contextlib.contextmanager
    def _units(self, count, stream, operation):
        """As many compute units as it needs."""
        if self.sm_slots is None or count == 0:
            yield
            return
        count = min(count, self.sm_slots)
        self._until(lambda: self._take(count), f"{stream.name}: {operation.text}: {count} of {self.sm_slots} compute units, which kernels hold")
        try:
            yield
        finally:
            self._take(-count)

    def _take(self, count):
        with self._taking:
            if self._free < count:
                return False
            self._free -= count
            return True

    def fail(self, error):
        """Ends the waits of all ranks with an error."""
        self.failure = self.failure or error
        for peer in range(self.ranks):
            if peer == self.rank or os.path.exists(self._file("signals", peer)):
                self.write_signal(peer, _FAILED, 1)

    def _until(self, ready, what):
        end, pause = time.monotonic() + self.patience, _FIRST_PAUSE
        while not ready():
            if self.failure is not None:
                raise self.failure
            if self._own_signals is not None and self._own_signals[_FAILED] != 0:
                raise RuntimeError(f"rank {self.rank}: another rank failed during {what}")
            if time.monotonic() > end:
                raise RuntimeError(f"rank {self.rank}: no end after {self.patience:g} s of {what}")
            time.sleep(pause)
            pause = min(2 * pause, _LAST_PAUSE)

    # The host's.

    def synchronize(self):
        for stream in self.all_streams():
            self._until(lambda given=stream: not given.operations, f"the work of {stream.name}")
        if self.failure is not None:
            raise self.failure

    def host_barrier(self):
        self._host_meetings += 1
        for peer in range(self.ranks):
            self.write_signal(peer, self._host_meeting[self.rank].slot, self._host_meetings)
        self._until(lambda: all(self.signal_reached(self._host_meeting[peer].slot, self._host_meetings) for peer in range(self.ranks)),
                    "a barrier of hosts")

    def exchange(self, held):
        self._exchanges += 1
        name = f"exchange-{self._exchanges}"
        packed = io.BytesIO()
        torch.save({key: tensor.clone() for key, tensor in held.items()}, packed)
        path = self._file(name, self.rank)
        with open(path + ".new", "wb") as file:
            file.write(packed.getvalue())
        os.rename(path + ".new", path)
        self.host_barrier()
        everybody = [torch.load(self._file(name, rank)) for rank in range(self.ranks)]
        self.host_barrier()
        os.remove(path)
        return everybody

    def slowest(self, numbers):
        everybody = self.exchange({"numbers": torch.tensor(numbers, dtype=torch.float64)})
        return torch.stack([of["numbers"] for of in everybody]).amax(0).tolist()

    def _time_once(self, run):
        start = time.perf_counter()
        run()
        self.synchronize()
        return time.perf_counter() - start

    def close(self):
        self.synchronize()
        self.host_barrier()

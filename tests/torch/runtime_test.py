"""hemiola_rt by itself: expressions, signals, streams, errors; the calls that its GPU back end makes, against a fake PyTorch."""

import contextlib
import io
import os
import sys
import tempfile
import types
import unittest
import unittest.mock

import torch

from hemiola_rt import SharedRuntime, _check, _doctor, around
from hemiola_rt._driver import Driver
from hemiola_rt._products import multiply, rows_of
from hemiola_rt._runtime import Signals
from hemiola_rt._symmetric import SymmetricRuntime
from hemiola_rt._work import Kernel
from interleaved import InterleavedWorld, Stuck, in_turn


class SignalValues(unittest.TestCase):
    def test_grow_from_call_to_call_and_need_no_reset(self):
        signals = Signals(10, (4, 3), 8)
        self.assertEqual(signals[1, 2].slot, 15)
        values = [signals[0, 0].value(call, step) for call in range(3) for step in range(8)]
        self.assertEqual(values, list(range(1, 25)))

    def test_have_bounds(self):
        signals = Signals(0, (2,), 4)
        for wrong in (lambda: signals[2], lambda: signals[0, 0], lambda: signals[0].value(0, 4)):
            self.assertRaises(IndexError, wrong)

    def test_are_compared_around_the_end_of_32_bits(self):
        rt = InterleavedWorld(1).members[0]
        rt.write_signal(0, 7, 3)
        self.assertTrue(rt.signal_reached(7, 0xFFFFFFFE))
        self.assertFalse(rt.signal_reached(7, 4))


class Products(unittest.TestCase):
    def test_of_blocks_are_those_of_one_matrix(self):
        a, b = torch.randn(3, 4, 5), torch.randn(5, 6)
        for left, out in ((a, torch.zeros(3, 4, 6)), (a[:, 1:3], torch.zeros(3, 4, 6)[:, 1:3])):
            multiply(left, b, out, False)
            torch.testing.assert_close(out, left @ b)
            multiply(left, b, out, True)
            torch.testing.assert_close(out, 2 * (left @ b))

    def test_go_around_the_last_block(self):
        self.assertEqual(around(3, 3, 4), [(3, 1), (0, 2)])
        self.assertEqual(around(1, 3, 4), [(1, 3)])


class Streams(unittest.TestCase):
    def test_wait_for_what_another_one_had_been_given(self):
        world = InterleavedWorld(1)
        rt = world.members[0]
        first, second = rt.streams(2)
        a, b = rt.local("a", (2,), torch.float32), rt.local("b", (2,), torch.float32)
        rt.begin()
        first.copy(a, torch.ones(2))
        second.wait(first)
        second.copy(b, a)
        first.copy(a, torch.full((2,), 5.0))
        rt.end()
        world.execute(lambda ready: ready[-1])
        self.assertEqual(b.tolist(), [1, 1])

    def test_that_wait_for_nobody_are_named(self):
        world = InterleavedWorld(2)
        for rt in world.members:
            signals, stream = rt.signals((1,), 1), rt.streams(1)[0]
            rt.begin()
            stream.wait_signal(signals[0], step=0)
            rt.end()
        with self.assertRaisesRegex(Stuck, "rank 0, stream 0: a wait for signal"):
            world.execute(in_turn)

    def test_tensors_have_one_name_each_in_a_scope(self):
        rt = InterleavedWorld(1).members[0]
        rt.local("a", (1,), torch.float32)
        self.assertRaises(ValueError, rt.local, "a", (1,), torch.float32)
        with rt.scope("another"):
            rt.local("a", (1,), torch.float32)

    def test_names_that_are_no_inputs_are_refused(self):
        rt = InterleavedWorld(1).members[0]
        with self.assertRaisesRegex(TypeError, "'q' is no input of this schedule; there are a"):
            rt.place({"a": torch.zeros(1)}, {"q": torch.zeros(1)})

    def test_of_a_process_that_wait_too_long_say_for_what(self):
        with tempfile.TemporaryDirectory() as folder:
            rt = SharedRuntime(folder, 0, 1, patience=0.1)
            signals, stream = rt.signals((1,), 1), rt.streams(1)[0]
            rt.begin()
            stream.wait_signal(signals[0], step=0)
            rt.end()
            with self.assertRaisesRegex(RuntimeError, "no end after 0.1 s of"):
                rt.synchronize()


class Plans(unittest.TestCase):
    def loaded(self, hemiola):
        with unittest.mock.patch.dict(sys.modules, {"hemiola": hemiola}):
            return _check.load_schedule("plan.json")

    def test_are_compiled_by_the_package(self):
        hemiola = types.SimpleNamespace(compile=lambda kernel, plan: types.SimpleNamespace(module=(kernel, plan)), Error=KeyError)
        self.assertEqual(self.loaded(hemiola), (None, "plan.json"))

    def test_that_the_package_refuses_are_refused(self):
        def refuse(kernel, plan):
            raise KeyError("no plan")
        with self.assertRaisesRegex(ValueError, "no plan"):
            self.loaded(types.SimpleNamespace(compile=refuse, Error=KeyError))

    def test_say_how_to_compile_them_where_there_is_no_package(self):
        with self.assertRaisesRegex(ValueError, "'hemiola compile --plan plan.json -o FILE.py'"):
            self.loaded(None)


class Kernels(unittest.TestCase):
    def test_of_an_older_hemiola_are_refused(self):
        kernel = types.SimpleNamespace(__name__="gemm", arg_names=[])
        with self.assertRaisesRegex(ValueError, "gemm was written by an older Hemiola, which said means: compile it again"):
            Kernel(kernel, None, {}, means={})


class Rows(unittest.TestCase):
    def test_of_strided_tensors_are_found(self):
        self.assertIsNone(rows_of((4, 8), (8, 1), (8, 1)))  # one piece
        self.assertEqual(rows_of((4, 8), (16, 1), (8, 1)), (4, 8, [16, 8]))
        self.assertEqual(rows_of((2, 3, 5), (90, 5, 1), (30, 5, 1)), (2, 15, [90, 30]))  # heads of keys
        self.assertEqual(rows_of((2, 3, 5), (30, 10, 1), (15, 5, 1)), (6, 5, [10, 5]))
        self.assertEqual(rows_of((4, 1), (8, 1), (1, 1)), (4, 1, [8, 1]))
        self.assertIsNone(rows_of((2, 3, 5), (90, 10, 1), (15, 5, 1)))  # two distances


class FakeTensor:
    """Memory of a fake GPU: an address and a shape."""

    def __init__(self, log, name, shape, dtype, address):
        self.log, self.name, self.shape, self.dtype, self.address = log, name, tuple(shape), dtype, address
        self.pitch = self.shape[-1]  # elements from row to row

    def data_ptr(self):
        return self.address

    def stride(self):
        return (self.pitch, 1)

    def element_size(self):
        return 4

    def zero_(self):
        if self.name == "signals":
            self.log.append(("zero_", self.name))
        return self

    def copy_(self, source, non_blocking=False):
        self.log.append(("copy_", self.name, source.name, "non_blocking" if non_blocking else "blocking"))


class FakeHandle:
    """What `rendezvous` returns: the methods that PyTorch documents, and no other."""

    def __init__(self, log, tensor):
        self.log, self.tensor = log, tensor

    def get_buffer(self, rank, sizes, dtype, storage_offset=0):
        self.log.append(("get_buffer", rank, tuple(sizes)))
        return FakeTensor(self.log, f"{self.tensor.name}@{rank}", sizes, dtype, self.tensor.address + 1000 * (rank + 1))

    def barrier(self, channel=0, timeout_ms=0):
        self.log.append(("barrier", channel))

    def stream_write_value32(self, tensor, offset, val):
        assert tensor.dtype == "uint32" and len(tensor.shape) == 1, "PyTorch takes flat tensors of uint32"
        self.log.append(("stream_write_value32", tensor.name, offset, val))


class FakeGpus:
    """torch, torch.distributed, its symmetric memory and a driver that write down what they are asked."""

    def __init__(self, is_rocm):
        self.log, self.addresses, self.stack = [], iter(range(1 << 20, 1 << 30, 1 << 20)), ["the caller's"]
        log, self.captures, self.flushes = self.log, False, 0

        class Stream:
            def __init__(self, name="side"):
                self.name, self.cuda_stream = name, 77

            def record_event(self):
                log.append(("record_event", self.name))
                return f"event of {self.name}"

            def wait_event(self, event):
                log.append(("wait_event", self.name, event))

            def wait_stream(self, other):
                log.append(("wait_stream", self.name, other.name))

        @contextlib.contextmanager
        def on(stream):
            self.stack.append(stream.name)
            yield
            self.stack.pop()

        self.torch = types.SimpleNamespace(
            uint32="uint32", float32="float32", version=types.SimpleNamespace(hip="6.2" if is_rocm else None), device=lambda *a: a,
            zeros=lambda shape, dtype, device: FakeTensor(log, "local", shape, dtype, next(self.addresses)),
            cuda=types.SimpleNamespace(is_available=lambda: True, set_device=lambda d: None, device_count=lambda: 1, current_device=lambda: 0,
                                       Stream=Stream, stream=on, is_current_stream_capturing=lambda: self.captures, current_stream=lambda: Stream("the caller's"), synchronize=lambda: None))
        self.dist = types.SimpleNamespace(is_initialized=lambda: True, get_rank=lambda: 0, get_world_size=lambda: 2, barrier=lambda: None,
                                          group=types.SimpleNamespace(WORLD="world"), new_group=lambda ranks: ("group", ranks))
        self.names = iter(("signals", "a", "c"))
        self.memory = types.SimpleNamespace(empty=self.empty, rendezvous=self.rendezvous)

        def entry(name):
            def call(*arguments):
                if name == "cuDeviceGetAttribute":
                    arguments[0]._obj.value = self.flushes
                    return 0
                log.append((name, *(argument.value for argument in arguments)))
                return 0
            return call

        class Library:
            def __getattr__(self, name):
                return entry(name)

        self.loaded = []
        self.driver_library = lambda name: self.loaded.append(name) or Library()
        self.driver = Driver(is_rocm, load=self.driver_library)

    def empty(self, *size, dtype=None, device=None):
        self.log.append(("empty", size, dtype))
        return FakeTensor(self.log, next(self.names), size, dtype, next(self.addresses))

    def rendezvous(self, tensor, group):
        self.log.append(("rendezvous", tensor.name, group))
        return FakeHandle(self.log, tensor)

    def runtime(self):
        return SymmetricRuntime(self.torch, self.dist, self.memory, self.driver)


class SymmetricMemory(unittest.TestCase):
    """Not executed on GPUs anywhere in these tests: what is called, in which order, is what is looked at."""

    def test_is_allocated_and_met_in_the_order_that_pytorch_asks_for(self):
        gpus = FakeGpus(False)
        rt = gpus.runtime()
        a = rt.symmetric("a", (4, 8), "float32")
        self.assertIs(rt.peer(a, 0), a)
        self.assertEqual(rt.peer(a, 1).name, "a@1")
        self.assertEqual(gpus.log[:2], [("empty", (1 << 14,), "uint32"), ("rendezvous", "signals", "world")])
        self.assertEqual(gpus.log[-3:], [("empty", (4, 8), "float32"), ("rendezvous", "a", "world"), ("get_buffer", 1, (4, 8))])

    def call(self, gpus):
        rt = gpus.runtime()
        a = rt.symmetric("a", (4, 8), "float32")
        peer = rt.peer(a, 1)
        stream, arrived = rt.streams(1)[0], rt.signals((2, 1), steps=4)
        del gpus.log[:]
        for _ in range(2):
            rt.begin()
            stream.copy(peer, a)
            stream.signal(arrived[0, 0], to=1, step=3)
            rt.main.wait_signal(arrived[1, 0], step=3)
            rt.end()
        return rt, gpus.log

    def test_on_cuda_is_signalled_by_pytorch_and_awaited_by_the_driver(self):
        gpus = FakeGpus(False)
        rt, log = self.call(gpus)
        self.assertEqual(gpus.loaded, ["libcuda.so.1"])
        first = [("barrier", 0), ("record_event", "the caller's"), ("wait_event", "side", "event of the caller's"),
                 ("copy_", "a@1", "a", "non_blocking"), ("stream_write_value32", "signals@1", 0, 8),
                 ("cuStreamWaitValue32_v2", 77, rt.signal_address(1), 8, 0), ("wait_stream", "the caller's", "side"), ("barrier", 0)]
        self.assertEqual(log[:8], first)
        self.assertEqual(log[12:14], [("stream_write_value32", "signals@1", 0, 12),
                                      ("cuStreamWaitValue32_v2", 77, rt.signal_address(1), 12, 0)])

    def test_a_captured_call_is_number_0_behind_signals_of_0_and_the_next_one_goes_on(self):
        gpus = FakeGpus(False)
        rt = gpus.runtime()
        arrived = rt.signals((2, 1), steps=4)
        told = []
        for gpus.captures in (False, True, True, False):
            del gpus.log[:]
            rt.begin()
            rt.main.signal(arrived[0, 0], to=1, step=3)
            rt.end()
            told.append((gpus.log[0], [value for name, *_, value in gpus.log if name == "stream_write_value32"]))
        zeros, barrier = ("zero_", "signals"), ("barrier", 0)
        self.assertEqual(told, [(barrier, [8]), (zeros, [4]), (zeros, [4]), (barrier, [12])])

    def test_waits_flush_where_writes_of_peers_may_be_reordered(self):
        gpus = FakeGpus(False)
        gpus.flushes = 1
        gpus.driver = Driver(False, load=gpus.driver_library)
        rt = gpus.runtime()
        del gpus.log[:]
        rt.main.wait_signal(rt.signals((1,), steps=1)[0], step=0)
        self.assertEqual(gpus.log[0][-1], 1 << 30)

    def test_on_rocm_is_signalled_and_awaited_by_hip(self):
        gpus = FakeGpus(True)
        rt, log = self.call(gpus)
        self.assertEqual(gpus.loaded, ["libamdhip64.so"])
        address = rt._peer_signals[1].data_ptr()
        self.assertEqual(log[4:6], [("hipStreamWriteValue32", 77, address, 8, 0),
                                    ("hipStreamWaitValue32", 77, rt.signal_address(1), 8, 0, 0xFFFFFFFF)])

    def test_rows_are_copied_by_copy_engines(self):
        for is_rocm in (False, True):
            gpus = FakeGpus(is_rocm)
            rt = gpus.runtime()
            a = rt.symmetric("a", (4, 8), "float32")
            peer, stream = rt.peer(a, 1), rt.streams(1)[0]
            peer.pitch = 16
            copies = []
            gpus.driver._call = lambda name, *arguments, copies=copies: copies.append((name, arguments))
            stream.copy(peer, a)
            (name, arguments), = copies
            if is_rocm:
                self.assertEqual((name, [argument.value for argument in arguments]),
                                 ("hipMemcpy2DAsync", [peer.data_ptr(), 64, a.data_ptr(), 32, 32, 4, 4, 77]))
            else:
                copy = arguments[0]._obj
                self.assertEqual(name, "cuMemcpy2DAsync_v2")
                self.assertEqual((copy.dst_device, copy.dst_pitch, copy.src_device, copy.src_pitch, copy.width, copy.height),
                                 (peer.data_ptr(), 64, a.data_ptr(), 32, 32, 4))

    def test_kernels_start_on_the_stream_with_signals_of_the_own_rank_and_addresses_of_all(self):
        gpus = FakeGpus(False)
        gpus.torch.int32, gpus.torch.int64 = "int32", "int64"
        gpus.torch.tensor = lambda values, dtype, device: (values, dtype)
        rt = gpus.runtime()
        rt._signal_tensor.view = lambda dtype: ("signals as", dtype)
        work = types.SimpleNamespace(launch=lambda call, tensors: gpus.log.append(("launch", gpus.stack[-1], call, tensors)))
        rt.begin()
        rt.streams(1)[0].launch(work, a_ptr="a")
        self.assertEqual(gpus.log[-1], ("launch", "side", 1, {"a_ptr": "a"}))
        self.assertEqual(rt.signal_words(), ("signals as", "int32"))
        self.assertEqual(rt.signal_addresses(), ([signals.data_ptr() for signals in rt._peer_signals], "int64"))

    def test_driver_that_fails_is_named(self):
        driver = Driver(False, load=lambda name: types.SimpleNamespace(cuStreamWaitValue32_v2=lambda *a: 801, cuDeviceGetAttribute=lambda *a: 0))
        with self.assertRaisesRegex(RuntimeError, "cuStreamWaitValue32_v2 failed with 801"):
            driver.wait_value(1, 2, 3)


class Doctor(unittest.TestCase):
    def test_says_what_this_machine_has(self):
        out = io.StringIO()
        code = _doctor.run(out)
        self.assertIn(f"PyTorch: {torch.__version__}", out.getvalue())
        self.assertEqual(code, int("MISSING" in out.getvalue()))

    def test_gpus_that_do_not_reach_each_other_are_refused(self):
        gpus = types.SimpleNamespace(cuda=types.SimpleNamespace(device_count=lambda: 4, can_device_access_peer=lambda one, other: {one, other} != {1, 3}))
        with unittest.mock.patch.dict(os.environ, LOCAL_WORLD_SIZE="3"):
            _doctor.require_links(gpus)
        with unittest.mock.patch.dict(os.environ, LOCAL_WORLD_SIZE="4"), self.assertRaisesRegex(RuntimeError, "GPU 1 does not reach the memory of GPU 3"):
            _doctor.require_links(gpus)

    def test_reads_versions(self):
        self.assertEqual([_doctor.version_of(text) for text in ("2.8.0+cu128", "1.13.0a0", "3.9")], [(2, 8), (1, 13), (3, 9)])


if __name__ == "__main__":
    unittest.main()

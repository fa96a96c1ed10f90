"""Waits of a stream on a value in memory, by the driver: PyTorch has `stream_write_value32` and no counterpart that waits.

CUDA: cuStreamWaitValue32 (CUDA Driver API, "Stream Memory Operations"), with the flag CU_STREAM_WAIT_VALUE_GEQ, whose comparison is
cyclic: (int32)(*address - value) >= 0. ROCm: hipStreamWaitValue32 and hipStreamWriteValue32 (HIP Runtime API, "Stream Memory
Operations"), with hipStreamWaitValueGte and a mask of all bits. The comparison of HIP is documented as unsigned, so there a world ends
after 2^32 steps.
"""

import ctypes

GREATER_OR_EQUAL = 0  # CU_STREAM_WAIT_VALUE_GEQ and hipStreamWaitValueGte
ALL_BITS = 0xFFFFFFFF


class Driver:
    """The driver's library. OSError: there is none. RuntimeError: a call failed; its message has the call and the driver's number."""

    def __init__(self, is_rocm, load=ctypes.CDLL):
        self.is_rocm = is_rocm
        self.library = load("libamdhip64.so" if is_rocm else "libcuda.so.1")

    def wait_value(self, stream, address, value):
        """What comes later in `stream` (its handle, an integer) starts once the 32 bits at `address` are `value` or beyond."""
        handle, place, bits = ctypes.c_void_p(stream), ctypes.c_uint64(address), ctypes.c_uint32(value)
        if self.is_rocm:
            self._call("hipStreamWaitValue32", handle, ctypes.c_void_p(address), bits, ctypes.c_uint(GREATER_OR_EQUAL),
                       ctypes.c_uint32(ALL_BITS))
        else:
            self._call("cuStreamWaitValue32_v2", handle, place, bits, ctypes.c_uint(GREATER_OR_EQUAL))

    def write_value(self, stream, address, value):
        """Stores `value` once all before it in `stream` is complete and visible to the whole system. Of ROCm."""
        self._call("hipStreamWriteValue32", ctypes.c_void_p(stream), ctypes.c_void_p(address), ctypes.c_uint32(value), ctypes.c_uint(0))

    def _call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name} failed with {code}; does this GPU have stream memory operations?")

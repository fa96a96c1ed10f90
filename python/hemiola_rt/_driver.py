"""Waits of a stream on a value in memory, and stores, by the driver: PyTorch has `stream_write_value32`, of symmetric memory only, and no
counterpart that waits.

CUDA: cuStreamWriteValue32 and cuStreamWaitValue32 (CUDA Driver API, "Stream Memory Operations"), with the flag CU_STREAM_WAIT_VALUE_GEQ, whose comparison is
cyclic: (int32)(*address - value) >= 0. ROCm: hipStreamWaitValue32 and hipStreamWriteValue32 (HIP Runtime API, "Stream Memory
Operations"), with hipStreamWaitValueGte and a mask of all bits. The comparison of HIP is documented as unsigned, so there a world ends
after 2^32 steps.
"""

import ctypes

GREATER_OR_EQUAL = 0  # CU_STREAM_WAIT_VALUE_GEQ and hipStreamWaitValueGte
ALL_BITS = 0xFFFFFFFF
FLUSH = 1 << 30  # CU_STREAM_WAIT_VALUE_FLUSH: what arrived before the value is seen behind the wait, where a GPU may reorder remote writes
CAN_FLUSH = 98  # CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES


UNIFIED_MEMORY = 4  # CU_MEMORYTYPE_UNIFIED: the address says which memory it is
HIP_MEMCPY_DEFAULT = 4


class RowsCopy(ctypes.Structure):
    """CUDA_MEMCPY2D of the CUDA Driver API, "Memory Management"."""

    _fields_ = [("src_x", ctypes.c_size_t), ("src_y", ctypes.c_size_t), ("src_memory_type", ctypes.c_uint), ("src_host", ctypes.c_void_p),
                ("src_device", ctypes.c_uint64), ("src_array", ctypes.c_void_p), ("src_pitch", ctypes.c_size_t),
                ("dst_x", ctypes.c_size_t), ("dst_y", ctypes.c_size_t), ("dst_memory_type", ctypes.c_uint), ("dst_host", ctypes.c_void_p),
                ("dst_device", ctypes.c_uint64), ("dst_array", ctypes.c_void_p), ("dst_pitch", ctypes.c_size_t),
                ("width", ctypes.c_size_t), ("height", ctypes.c_size_t)]


class Driver:
    """The driver's library. device: by number, of the streams. OSError: there is none. RuntimeError: a call failed; its message has the call
    and the driver's number."""

    def __init__(self, is_rocm, load=ctypes.CDLL, device=0):
        self.is_rocm = is_rocm
        self.library = load("libamdhip64.so" if is_rocm else "libcuda.so.1")
        flushes = ctypes.c_int(0)
        if not is_rocm:
            self._call("cuDeviceGetAttribute", ctypes.byref(flushes), ctypes.c_int(CAN_FLUSH), ctypes.c_int(device))
        self._wait = GREATER_OR_EQUAL | (FLUSH if flushes.value else 0)

    def wait_value(self, stream, address, value):
        """What comes later in `stream` (its handle, an integer) starts once the 32 bits at `address` are `value` or beyond."""
        handle, place, bits = ctypes.c_void_p(stream), ctypes.c_uint64(address), ctypes.c_uint32(value)
        if self.is_rocm:
            self._call("hipStreamWaitValue32", handle, ctypes.c_void_p(address), bits, ctypes.c_uint(GREATER_OR_EQUAL),
                       ctypes.c_uint32(ALL_BITS))
        else:
            self._call("cuStreamWaitValue32_v2", handle, place, bits, ctypes.c_uint(self._wait))

    def write_value(self, stream, address, value):
        """Stores `value` once all before it in `stream` is complete and visible to the whole system."""
        handle, bits = ctypes.c_void_p(stream), ctypes.c_uint32(value)
        if self.is_rocm:
            self._call("hipStreamWriteValue32", handle, ctypes.c_void_p(address), bits, ctypes.c_uint(0))
        else:  # CU_STREAM_WRITE_VALUE_DEFAULT: behind a fence
            self._call("cuStreamWriteValue32_v2", handle, ctypes.c_uint64(address), bits, ctypes.c_uint(0))

    def copy_rows(self, stream, target, target_pitch, source, source_pitch, width, rows):
        """Copies `rows` rows of `width` bytes, whose beginnings are so many bytes apart, by a copy engine, in the order of `stream`."""
        if self.is_rocm:
            self._call("hipMemcpy2DAsync", ctypes.c_void_p(target), ctypes.c_size_t(target_pitch), ctypes.c_void_p(source),
                       ctypes.c_size_t(source_pitch), ctypes.c_size_t(width), ctypes.c_size_t(rows), ctypes.c_int(HIP_MEMCPY_DEFAULT),
                       ctypes.c_void_p(stream))
            return
        copy = RowsCopy(src_memory_type=UNIFIED_MEMORY, src_device=source, src_pitch=source_pitch, dst_memory_type=UNIFIED_MEMORY,
                        dst_device=target, dst_pitch=target_pitch, width=width, height=rows)
        self._call("cuMemcpy2DAsync_v2", ctypes.byref(copy), ctypes.c_void_p(stream))

    def _call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name} failed with {code}; does this GPU have stream memory operations?")

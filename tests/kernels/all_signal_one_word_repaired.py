"""Every PE puts its row to PE 0 with a signal; Triton-distributed's shmem."""
import triton
import triton.language as tl
from triton_dist.language.extra import libshmem_device


@triton.jit
def gather_rows(rows, table, sig, serial, ROW: tl.constexpr):
    me = libshmem_device.my_pe()
    n = libshmem_device.n_pes()
    if me != 0:
        libshmem_device.putmem_signal_block(table + me * ROW, rows, ROW * 4, sig + me, serial, libshmem_device.NVSHMEM_SIGNAL_SET, 0)
    else:
        for p in range(1, n):
            libshmem_device.signal_wait_until(sig + p, libshmem_device.NVSHMEM_CMP_GE, serial)
    libshmem_device.barrier_all()

"""All-gather over NVSHMEM: put with signal to every peer; the receiver waits for every sender."""
import triton
import triton.language as tl
from triton_dist.language.extra import libshmem_device


@triton.jit
def gather(buf, sig, nbytes, seq):
    me = libshmem_device.my_pe()
    n = libshmem_device.n_pes()
    pid = tl.program_id(0)
    peer = (me + pid + 1) % n
    libshmem_device.putmem_signal_block(buf + me * nbytes, buf + me * nbytes, nbytes, sig + me, seq, 9, peer)
    libshmem_device.signal_wait_until(sig + (peer + n), 0, seq)  # wrong: nobody tells that word


def host(buf, sig, nbytes, seq, world):
    gather[(world - 1,)](buf, sig, nbytes, seq)
    libshmem_host.barrier_all()

"""Flags and data have places that do not depend on the message."""
import triton
import triton.language as tl


@triton.jit
def two_phase(pad, peer_pad, tiles, rank, world: tl.constexpr, epoch, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    there = tl.load(peer_pad + (rank + 1) % world).to(tl.pointer_type(tl.int32))
    tl.store(there + 1024 + pid * BLOCK + at, at + epoch)
    tl.debug_barrier()
    tl.atomic_xchg(there + pid, epoch, sem="release", scope="sys")
    while tl.atomic_add(pad + pid, 0, sem="acquire", scope="sys") < epoch:
        pass
    tl.debug_barrier()
    got = tl.load(pad + 1024 + pid * BLOCK + at)
    tl.debug_barrier()
    back = tl.load(peer_pad + (rank + world - 1) % world).to(tl.pointer_type(tl.int32))
    tl.atomic_xchg(back + 4096 + pid, epoch, sem="release", scope="sys")
    while tl.atomic_add(pad + 4096 + pid, 0, sem="acquire", scope="sys") < epoch:
        pass
    tl.debug_barrier()

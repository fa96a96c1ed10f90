"""Data are pushed to the next rank and told of with release."""
import triton
import triton.language as tl


@triton.jit
def push(x, inbox, flag, next_inbox, next_flag, ack, prev_ack, out, epoch, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    while tl.atomic_add(ack + pid, 0, sem="acquire", scope="sys") < epoch - 1:
        pass
    tl.debug_barrier()
    tl.store(next_inbox + at, tl.load(x + at))
    tl.debug_barrier()
    tl.atomic_xchg(next_flag + pid, epoch, sem="release", scope="sys")
    while tl.atomic_add(flag + pid, 0, sem="acquire", scope="sys") < epoch:
        pass
    tl.debug_barrier()
    tl.store(out + at, tl.load(inbox + at))
    tl.debug_barrier()
    tl.atomic_xchg(prev_ack + pid, epoch, sem="release", scope="sys")

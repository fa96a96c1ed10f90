"""Each rank zeroes its own word, tells the other and waits: the other may have told before the zero."""
import triton
import triton.language as tl


@triton.jit
def exchange(x, inbox, flag, peer_inbox, peer_flag, out, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_xchg(flag + pid, 0, sem="release", scope="sys")  # wrong: the peer may have told
    there = tl.load(peer_inbox).to(tl.pointer_type(tl.float32))
    far = tl.load(peer_flag).to(tl.pointer_type(tl.int32))
    tl.store(there + at, tl.load(x + at, mask=at < n), mask=at < n)
    tl.debug_barrier()
    tl.atomic_xchg(far + pid, 1, sem="release", scope="sys")
    while tl.atomic_add(flag + pid, 0, sem="acquire", scope="sys") != 1:
        pass
    tl.debug_barrier()
    tl.store(out + at, tl.load(inbox + at, mask=at < n), mask=at < n)

"""Words carry the number of the call and are never set back; two inboxes take turns."""
import triton
import triton.language as tl


@triton.jit
def exchange(x, inbox, flag, peer_inbox, peer_flag, out, n, call, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    there = tl.load(peer_inbox).to(tl.pointer_type(tl.float32))
    far = tl.load(peer_flag).to(tl.pointer_type(tl.int32))
    tl.store(there + (call % 2) * n + at, tl.load(x + at, mask=at < n), mask=at < n)
    tl.debug_barrier()
    tl.atomic_xchg(far + pid, call, sem="release", scope="sys")
    while tl.atomic_add(flag + pid, 0, sem="acquire", scope="sys") < call:
        pass
    tl.debug_barrier()
    tl.store(out + at, tl.load(inbox + (call % 2) * n + at, mask=at < n), mask=at < n)

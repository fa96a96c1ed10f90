"""Consumer of an all-gather GEMM in the style of Triton-distributed; producer in the same kernel, own GPU's half of programs."""
import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device


@triton.jit
def push_and_use(a, ag, sig, c, rows, call_no, BLOCK: tl.constexpr):
    me = dl.rank()
    n = dl.num_ranks()
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(a + at)
    for i in range(1, n):
        to = (me + i) % n
        far = dl.symm_at(ag, to)
        tl.store(far + me * rows + at, x)
        tl.debug_barrier()
        dl.notify(sig + me * tl.num_programs(0) + pid, to, signal=call_no, sig_op="set", comm_scope="intra_node")
    acc = x
    for i in range(1, n):
        frm = (me + i) % n
        token = dl.wait(sig + frm * tl.num_programs(0) + pid, 1, "sys", "acquire", waitValue=call_no)
        src = dl.consume_token(ag, token)
        acc += tl.load(src + frm * rows + at)
    tl.store(c + at, acc)
    tl.debug_barrier()
    libshmem_device.barrier_all()

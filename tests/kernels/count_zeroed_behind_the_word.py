"""Two phases with a sense-reversing barrier of all programs between and behind them; cooperative launch."""
import triton
import triton.language as tl


@triton.jit
def meet(count, sense, to, n):
    tl.debug_barrier()
    if tl.atomic_add(count, 1, sem="acq_rel", scope="gpu") == n - 1:
        tl.atomic_xchg(sense, to, sem="release", scope="gpu")
        tl.atomic_xchg(count, 0, sem="relaxed", scope="gpu")  # wrong: others may count already
    else:
        while tl.atomic_add(sense, 0, sem="acquire", scope="gpu") < to:
            pass
    tl.debug_barrier()


@triton.jit
def two_phases(x, tmp, y, count, sense, launch_no, n_programs, B: tl.constexpr):
    pid = tl.program_id(0)
    o = tl.arange(0, B)
    tl.store(tmp + pid * B + o, tl.load(x + pid * B + o) * 0.5)
    meet(count, sense, launch_no * 2 + 1, n_programs)
    q = (pid + 1) % n_programs
    tl.store(y + pid * B + o, tl.load(tmp + q * B + o))
    meet(count, sense, launch_no * 2 + 2, n_programs)


# launch_no counts launches from 0

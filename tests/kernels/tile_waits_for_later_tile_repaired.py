"""GEMM whose last tiles wait for the first ones' neighbours: a program for each tile."""
import triton
import triton.language as tl


@triton.jit
def halo(x, y, done, serial, tiles, B: tl.constexpr):
    t = tl.program_id(0)
    o = t * B + tl.arange(0, B)
    tl.store(y + o, tl.load(x + o) * 2)
    tl.debug_barrier()
    tl.atomic_xchg(done + t, serial, sem="release", scope="gpu")
    nb = tl.maximum(t - 1, 0)
    while tl.atomic_add(done + nb, 0, sem="acquire", scope="gpu") < serial:
        pass
    tl.debug_barrier()
    tl.store(x + o, tl.load(y + nb * B + tl.arange(0, B)))


def run(x, y, done, serial):
    tiles = triton.cdiv(x.numel(), 128)
    # more tiles than the GPU has room for: they begin in order
    halo[(tiles,)](x, y, done, serial, tiles, B=128)

import triton
import triton.language as tl


@triton.jit
def k(x, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
        m = o < n
    tl.store(x + o, tl.load(x + o, mask=m), mask=m)

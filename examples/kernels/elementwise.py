"""out = silu(gate) * up, element by element."""

import torch
import triton
import triton.language as tl


@triton.jit
def silu_and_mul(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offs < n
    gate = tl.load(gate_ptr + offs, mask=inside).to(tl.float32)
    up = tl.load(up_ptr + offs, mask=inside)
    silu = gate * tl.sigmoid(gate)
    tl.store(out_ptr + offs, silu.to(up.dtype) * up, mask=inside)


def run(gate, up):
    out = torch.empty_like(gate)
    silu_and_mul[(triton.cdiv(gate.numel(), 1024),)](gate, up, out, gate.numel(), BLOCK=1024)
    return out

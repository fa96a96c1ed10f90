"""Movement through a switch that multicasts and adds up (NVLS): `multimem` instructions on one address that stands for all ranks' memory.

    to_all(targets, source, address, movers=16)           # every target = source, by one store for all
    sum_of_all(target, sources, address, movers=16)       # target = the sum of all sources, by one load for all

`address`: where targets or sources lie for the switch; 0: there is none (AMD's GPUs, a group without all ranks, a test without a GPU), and rows
that are no multiples of 16 bytes go the same way: by loads and stores to each rank.
"""

import torch
import triton
import triton.language as tl

from . import _movers, _products
from ._work import start

BLOCK = 1024  # pieces of 16 bytes that a workgroup moves at a time
SUMS = {torch.float16: 1, torch.bfloat16: 2, torch.float32: 3}  # added up as float


@triton.jit
def hm_to_all(target, source, rows, width, target_pitch, source_pitch, BLOCK: tl.constexpr):
    """Rows of `width` pieces of 16 bytes, so many pieces apart in each. target: the switch's address; source: words."""
    blocks = tl.cdiv(width, BLOCK)
    for i in range(tl.program_id(0), rows * blocks, tl.num_programs(0)):
        row = (i // blocks).to(tl.int64)
        column = (i % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        inside = column < width
        words = source + (row * source_pitch + column) * 4
        at = target + (row * target_pitch + column) * 16
        tl.inline_asm_elementwise(
            "{ .reg .pred %in; setp.ne.s32 %in, $6, 0; @%in multimem.st.relaxed.sys.global.v4.f32 [$1], {$2, $3, $4, $5}; mov.u32 $0, 0; }",
            "=r,l,r,r,r,r,r",
            [at, tl.load(words, mask=inside), tl.load(words + 1, mask=inside), tl.load(words + 2, mask=inside), tl.load(words + 3, mask=inside),
             inside.to(tl.int32)], dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
def hm_sum_of_all(target, source, rows, width, target_pitch, source_pitch, SUM: tl.constexpr, BLOCK: tl.constexpr):
    """Likewise. source: the switch's address; target: words. SUM: of SUMS."""
    blocks = tl.cdiv(width, BLOCK)
    for i in range(tl.program_id(0), rows * blocks, tl.num_programs(0)):
        row = (i // blocks).to(tl.int64)
        column = (i % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        inside = column < width
        words = target + (row * target_pitch + column) * 4
        at = source + (row * source_pitch + column) * 16
        if SUM == 1:
            a, b, c, d = tl.inline_asm_elementwise(
                "{ .reg .pred %in; setp.ne.s32 %in, $5, 0; "
                "@%in multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.f16x2 {$0, $1, $2, $3}, [$4]; }",
                "=r,=r,=r,=r,l,r", [at, inside.to(tl.int32)], dtype=(tl.int32, tl.int32, tl.int32, tl.int32), is_pure=False, pack=1)
        elif SUM == 2:
            a, b, c, d = tl.inline_asm_elementwise(
                "{ .reg .pred %in; setp.ne.s32 %in, $5, 0; "
                "@%in multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {$0, $1, $2, $3}, [$4]; }",
                "=r,=r,=r,=r,l,r", [at, inside.to(tl.int32)], dtype=(tl.int32, tl.int32, tl.int32, tl.int32), is_pure=False, pack=1)
        else:
            a, b, c, d = tl.inline_asm_elementwise(
                "{ .reg .pred %in; setp.ne.s32 %in, $5, 0; @%in multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {$0, $1, $2, $3}, [$4]; }",
                "=r,=r,=r,=r,l,r", [at, inside.to(tl.int32)], dtype=(tl.int32, tl.int32, tl.int32, tl.int32), is_pure=False, pack=1)
        tl.store(words, a, mask=inside)
        tl.store(words + 1, b, mask=inside)
        tl.store(words + 2, c, mask=inside)
        tl.store(words + 3, d, mask=inside)


def _pieces(target, source, addresses):
    """(rows, pieces of a row, pitches in pieces) where both lie in pieces of 16 bytes. None: they do not."""
    lies = _products.rows_together(target, source) if target.dtype == source.dtype else None
    if lies is None:
        return None
    rows, width, pitches = lies
    sizes = [number * target.element_size() for number in (width, *pitches)]
    if any(number % 16 != 0 for number in (*sizes, *addresses)):
        return None
    return rows, sizes[0] // 16, [size // 16 for size in sizes[1:]]


def to_all(targets, source, address=0, movers=16):
    """On the current stream. The first target says how all lie."""
    pieces = _pieces(targets[0], source, (address, source.data_ptr())) if address != 0 else None
    if pieces is None:
        for target in targets:
            _movers.move(target, source, movers=movers)
        return
    rows, width, (to, of) = pieces
    start(hm_to_all, (movers,), {"target": address, "source": _words(source), "rows": rows, "width": width, "target_pitch": to,
                                 "source_pitch": of, "BLOCK": BLOCK}, {"num_warps": 8})


def sum_of_all(target, sources, address=0, movers=16):
    """Likewise; sums are made as float and rounded once."""
    pieces = _pieces(target, sources[0], (target.data_ptr(), address)) if address != 0 and target.dtype in SUMS else None
    if pieces is None:
        wide = torch.float32 if target.dtype in (torch.float16, torch.bfloat16) else target.dtype
        target.copy_(sum(source.reshape(target.shape).to(wide) for source in sources))
        return
    rows, width, (to, of) = pieces
    start(hm_sum_of_all, (movers,), {"target": _words(target), "source": address, "rows": rows, "width": width, "target_pitch": to,
                                     "source_pitch": of, "SUM": SUMS[target.dtype], "BLOCK": BLOCK}, {"num_warps": 8})


def _words(tensor):
    """The memory from where a view begins, as words of 4 bytes."""
    bytes_behind = tensor.storage_offset() * tensor.element_size()
    return torch.tensor([], dtype=torch.int32, device=tensor.device).set_(tensor.untyped_storage(), bytes_behind // 4, (1,), (1,))

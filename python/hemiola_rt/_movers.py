"""Who moves data if no copy engine does: kernels of as many workgroups as a schedule says, by loads and stores or in bulk (TMA).

    move(target, source, movers=16)                       # target = source
    move(target, source, operand, "sum", movers=16)       # target = source + operand

Triton's, so NVIDIA and AMD, and its interpreter. In bulk a tile goes through a workgroup's shared memory by descriptors; where these cannot
say how tensors lie (rows that are no multiples of 16 bytes, say), and where something is added, loads and stores do it.
"""

import torch
import triton
import triton.language as tl

from . import _interpreter, _products
from ._work import start

BLOCK = 2048  # elements that a workgroup loads before it stores them
BULK_ROWS, BULK_WIDTH = 16, 256  # of a tile in bulk
OPERATORS = {"sum": 1, "max": 2, "min": 3, "prod": 4}


@triton.jit
def hm_move(target, source, operand, rows, width, target_pitch, source_pitch, operand_pitch, OPERATOR: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """Rows of `width` elements, so many elements apart in each. OPERATOR 0: copies; else combines source and operand, as float if WIDE."""
    blocks = tl.cdiv(width, BLOCK)
    for i in range(tl.program_id(0), rows * blocks, tl.num_programs(0)):
        row = (i // blocks).to(tl.int64)
        column = (i % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        inside = column < width
        value = tl.load(source + row * source_pitch + column, mask=inside)
        if OPERATOR > 0:
            other = tl.load(operand + row * operand_pitch + column, mask=inside)
            if WIDE:
                value, other = value.to(tl.float32), other.to(tl.float32)
            if OPERATOR == 1:
                value = value + other
            elif OPERATOR == 2:
                value = tl.maximum(value, other)
            elif OPERATOR == 3:
                value = tl.minimum(value, other)
            else:
                value = value * other
        tl.store(target + row * target_pitch + column, value.to(target.dtype.element_ty), mask=inside)


@triton.jit
def hm_move_bulk(target, source, rows, width, target_pitch, source_pitch, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """The same, a tile at a time by descriptors."""
    there = tl.make_tensor_descriptor(source, shape=[rows, width], strides=[source_pitch, 1], block_shape=[ROWS, WIDTH])
    here = tl.make_tensor_descriptor(target, shape=[rows, width], strides=[target_pitch, 1], block_shape=[ROWS, WIDTH])
    across = tl.cdiv(width, WIDTH)
    for i in range(tl.program_id(0), tl.cdiv(rows, ROWS) * across, tl.num_programs(0)):
        row = i // across * ROWS
        column = i % across * WIDTH
        here.store([row, column], there.load([row, column]))


def _in_bulk(rows, width, size, tensors, pitches):
    """The same rows where descriptors can say it: (rows, width, pitches). None: they cannot."""
    if rows == 1:
        if width % BULK_WIDTH != 0:
            return None
        rows, width, pitches = width // BULK_WIDTH, BULK_WIDTH, [BULK_WIDTH] * len(pitches)
    fits = width >= BULK_WIDTH and all(one.data_ptr() % 16 == 0 for one in tensors) and all(pitch * size % 16 == 0 for pitch in pitches)
    return (rows, width, pitches) if fits else None


def move(target, source, operand=None, operator="sum", movers=16, bulk=False):
    """On the current stream, by `movers` workgroups. Shapes pair elements in order."""
    source = _products.same_shape(source, target)
    tensors = [target, source] + ([] if operand is None else [_products.same_shape(operand, target)])
    lies = _products.rows_together(*tensors) if len({one.dtype for one in tensors}) == 1 else None
    if lies is None:  # PyTorch's kernel for any strides
        target.copy_(source if operand is None else _products.REDUCTIONS[operator](source, tensors[2]))
        return
    if _interpreter.is_interpreted():
        _interpreter.prepare()
    rows, width, pitches = lies
    described = _in_bulk(rows, width, target.element_size(), tensors, pitches) if bulk and operand is None else None
    if described is not None:
        rows, width, pitches = described
        start(hm_move_bulk, (movers,), {"target": target, "source": source, "rows": rows, "width": width, "target_pitch": pitches[0],
                                        "source_pitch": pitches[1], "ROWS": BULK_ROWS, "WIDTH": BULK_WIDTH}, {"num_warps": 4})
        return
    start(hm_move, (movers,), {"target": target, "source": source, "operand": tensors[-1], "rows": rows, "width": width,
                               "target_pitch": pitches[0], "source_pitch": pitches[1], "operand_pitch": pitches[-1],
                               "OPERATOR": 0 if operand is None else OPERATORS[operator],
                               "WIDE": target.dtype in (torch.float16, torch.bfloat16), "BLOCK": BLOCK}, {"num_warps": 8})

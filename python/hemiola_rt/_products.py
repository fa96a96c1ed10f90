"""Products as the steps of a schedule need them: rows in one block or in several."""

import torch


def _folded(tensor):
    """[blocks, rows, columns] as [blocks * rows, columns] of the same memory; None: it does not lie so."""
    if tensor.dim() == 2:
        return tensor
    blocks, rows, columns = tensor.shape
    if blocks == 1 or tensor.stride(0) == rows * tensor.stride(1):
        return tensor.as_strided((blocks * rows, columns), (tensor.stride(1), tensor.stride(2)), tensor.storage_offset())
    return None


def multiply(a, b, out, adds):
    """out = a b, or out += a b with `adds`; a [rows, k] or [blocks, rows, k], b [k, n], out as a, with n in the place of k.

    One launch: `torch.mm` (`addmm_`) where the blocks lie behind each other, else `torch.bmm` (`baddbmm_`) with the same b for all.
    Half and bfloat16 on a CPU are multiplied as float: GPUs sum in float too, and PyTorch 1.13 has no such product there (half) or sums in
    the type itself (bfloat16).
    """
    if a.dtype in (torch.float16, torch.bfloat16) and not a.is_cuda:
        product = torch.matmul(a.float(), b.float())
        out.copy_(out.float() + product if adds else product)
        return
    left, target = _folded(a), _folded(out)
    if left is not None and target is not None:
        if adds:
            target.addmm_(left, b)
        else:
            torch.mm(left, b, out=target)
        return
    right = b.expand(a.shape[0], *b.shape)
    if adds:
        out.baddbmm_(a, right)
    else:
        torch.bmm(a, right, out=out)


def around(first, count, ranks):
    """`count` blocks from `first` on, around the end of `ranks` of them: at most two (begin, count), none of them empty."""
    before_end = min(count, ranks - first)
    pieces = [(first, before_end)]
    if count > before_end:
        pieces.append((0, count - before_end))
    return pieces


def rows_of(shape, *strides):
    """How tensors of a shape with these strides (in elements) lie as rows: (rows, elements of a row, distance of rows in each).

    None: in all of them they are one piece (a copy engine needs no rows), or in one they are no rows at equal distances.
    """
    axes = [(extent, [stride[axis] for stride in strides]) for axis, extent in enumerate(shape) if extent != 1]
    width = 1
    while axes and all(distance == width for distance in axes[-1][1]):
        width *= axes.pop()[0]
    if not axes:
        return None
    rows, distances = axes.pop()
    while axes and all(outer == rows * distance for outer, distance in zip(axes[-1][1], distances)):
        rows *= axes.pop()[0]
    return None if axes else (rows, width, distances)


def rows_together(target, *others):
    """(rows, elements of a row, distance of rows in each): how tensors of one shape lie together. None: not as rows."""
    if all(one.is_contiguous() for one in (target, *others)):
        return 1, target.numel(), [target.numel()] * (1 + len(others))
    return rows_of(target.shape, target.stride(), *(one.stride() for one in others))


REDUCTIONS = {"sum": torch.add, "max": torch.maximum, "min": torch.minimum, "prod": torch.mul}


def same_shape(source, target):
    """`source` with the shape of `target`: regions of a plan pair their elements in order."""
    return source if source.shape == target.shape else source.reshape(target.shape)

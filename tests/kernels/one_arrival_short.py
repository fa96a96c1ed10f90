"""Reduce-scatter: all ranks put partial tiles into the owner's slots and count themselves in; iris style."""
import triton
import triton.language as tl
import iris


@triton.jit
def scatter_reduce(partial, slots, arrived, out, bases, me: tl.constexpr, ws: tl.constexpr, epoch, T: tl.constexpr):
    o = tl.arange(0, T)
    for owner in tl.static_range(ws):
        v = tl.load(partial + owner * T + o)
        iris.store(slots + me * T + o, v, me, owner, bases)
        tl.debug_barrier()
        iris.atomic_add(arrived, 1, me, owner, bases, sem="release", scope="sys")
    while tl.atomic_add(arrived, 0, sem="acquire", scope="sys") < epoch * (ws - 1):
        pass
    tl.debug_barrier()
    acc = tl.zeros((T,), tl.float32)
    for r in tl.static_range(ws):
        acc += tl.load(slots + r * T + o)  # wrong: the last one may not have come
    tl.store(out + o, acc)


def run(ctx, partial, slots, arrived, out, epoch):
    ctx.barrier()
    scatter_reduce[(1,)](partial, slots, arrived, out, ctx.heap_bases, ctx.cur_rank, ctx.num_ranks, epoch, T=256)
    ctx.barrier()

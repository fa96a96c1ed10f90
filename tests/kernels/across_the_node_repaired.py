"""Ranks exchange inside of their node only: two ranks a node."""
import triton
import triton.language as tl


@triton.jit
def inside_node(x, boxes, words, y, rank, world, epoch, LOCAL: tl.constexpr = 2, B: tl.constexpr = 64):
    i = tl.arange(0, B)
    node = rank // LOCAL
    peer = node * LOCAL + (rank % LOCAL + 1) % LOCAL
    src = node * LOCAL + (rank % LOCAL + LOCAL - 1) % LOCAL
    far = tl.load(boxes + peer).to(tl.pointer_type(tl.float32))
    tl.store(far + rank * B + i, tl.load(x + i))
    tl.debug_barrier()
    word = tl.load(words + peer).to(tl.pointer_type(tl.int32))
    tl.atomic_xchg(word + rank, epoch, sem="release", scope="sys")
    own = tl.load(words + rank).to(tl.pointer_type(tl.int32))
    while tl.atomic_add(own + src, 0, sem="acquire", scope="sys") < epoch:
        pass
    tl.debug_barrier()
    box = tl.load(boxes + rank).to(tl.pointer_type(tl.float32))
    tl.store(y + i, tl.load(box + src * B + i))


def go(dist, x, boxes, words, y, epoch):
    dist.barrier()
    inside_node[(1,)](x, boxes, words, y, dist.get_rank(), dist.get_world_size(), epoch)

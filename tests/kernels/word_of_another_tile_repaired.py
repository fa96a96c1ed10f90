"""All-gather and product in one kernel: programs that push, programs that take tiles, own rows first."""
import triton
import triton.language as tl


@triton.jit
def push(shard, gathered_of, flags_of, rank, world: tl.constexpr, TILES_PER_RANK: tl.constexpr, call, out, gathered, flags, B: tl.constexpr):
    pid = tl.program_id(0)
    o = tl.arange(0, B)
    if pid < world:
        far = tl.load(gathered_of + pid).to(tl.pointer_type(tl.float16))
        for t in range(TILES_PER_RANK):
            tl.store(far + (rank * TILES_PER_RANK + t) * B + o, tl.load(shard + t * B + o))
        tl.debug_barrier()
        word = tl.load(flags_of + pid).to(tl.pointer_type(tl.int32))
        tl.atomic_xchg(word + rank, call, sem="release", scope="sys")
    else:
        p = pid - world
        tiles = world * TILES_PER_RANK
        tile = (p + rank * TILES_PER_RANK) % tiles
        src = tile // TILES_PER_RANK
        while tl.atomic_add(flags + src, 0, sem="acquire", scope="sys") < call:
            pass
        tl.debug_barrier()
        tl.store(out + tile * B + o, tl.load(gathered + tile * B + o))


def go(dist, shard, gathered_of, flags_of, out, gathered, flags, call):
    dist.barrier()
    world = dist.get_world_size()
    push[(world + world * 2,)](shard, gathered_of, flags_of, dist.get_rank(), world, 2, call, out, gathered, flags, B=128)
    dist.barrier()

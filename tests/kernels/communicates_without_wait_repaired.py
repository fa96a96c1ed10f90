"""Producer and consumer programs of a fused GEMM + all-scatter, iris: the consumer polls tiles of all ranks."""
import triton
import triton.language as tl
import iris


@triton.jit
def all_scatter(A, C, locks, heap_bases, cur_rank: tl.constexpr, world_size: tl.constexpr, M, num_tiles, iteration, BLOCK: tl.constexpr, GEMM_SMS: tl.constexpr, COMM_SMS: tl.constexpr):
    pid = tl.program_id(0)
    if pid < GEMM_SMS:
        for tile in range(pid, num_tiles, GEMM_SMS):
            at = tile * BLOCK + tl.arange(0, BLOCK)
            tl.store(C + cur_rank * M + at, tl.load(A + at) * 2)
            tl.debug_barrier()
            tl.atomic_xchg(locks + tile, iteration, sem="release", scope="gpu")
    else:
        for tile in range(pid - GEMM_SMS, num_tiles, COMM_SMS):
            while tl.atomic_cas(locks + tile, iteration, iteration, sem="acquire", scope="gpu") != iteration:
                pass
            tl.debug_barrier()
            at = tile * BLOCK + tl.arange(0, BLOCK)
            x = tl.load(C + cur_rank * M + at)
            for r in range(world_size):
                if r != cur_rank:
                    iris.store(C + cur_rank * M + at, x, cur_rank, r, heap_bases)


def run(ctx, A, C, locks, M, it):
    bases = ctx.get_heap_bases()
    all_scatter[(8,)](A, C, locks, bases, ctx.get_rank(), ctx.get_num_ranks(), M, M // 64, it, BLOCK=64, GEMM_SMS=4, COMM_SMS=4)
    ctx.barrier()

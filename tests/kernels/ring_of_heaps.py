"""Ring all-gather by neighbours, iris style: heap bases, persistent programs."""
import torch
import triton
import triton.language as tl
import iris


@triton.jit
def ring_all_gather(local_ptr, gathered_ptr, ready_ptr, heap_bases, cur_rank: tl.constexpr, num_ranks: tl.constexpr,
                    n_tiles, step_id, TILE: tl.constexpr, NUM_SMS: tl.constexpr):
    pid = tl.program_id(0)
    nxt = (cur_rank + 1) % num_ranks
    for t in range(pid, n_tiles, NUM_SMS):
        cols = t * TILE + tl.arange(0, TILE)
        chunk = tl.load(local_ptr + cols)
        tl.store(gathered_ptr + cur_rank * n_tiles * TILE + cols, chunk)
        for hop in range(num_ranks - 1):
            who = (cur_rank + num_ranks - hop) % num_ranks
            piece = tl.load(gathered_ptr + who * n_tiles * TILE + cols)
            iris.store(gathered_ptr + who * n_tiles * TILE + cols, piece, cur_rank, nxt, heap_bases)
            tl.debug_barrier()
            iris.atomic_xchg(ready_ptr + who * n_tiles + t, step_id, cur_rank, nxt, heap_bases, sem="release", scope="gpu")  # wrong: the neighbour looks at it
            src = (cur_rank + num_ranks - hop - 1) % num_ranks
            while tl.atomic_cas(ready_ptr + src * n_tiles + t, step_id, step_id, sem="acquire", scope="sys") != step_id:
                pass
            tl.debug_barrier()


def launch(shmem, local, gathered, ready, step):
    # step counts calls from 1; the host calls shmem.barrier() before every call, so nobody still reads `gathered`
    n_tiles = local.numel() // 1024
    sms = min(n_tiles, torch.cuda.get_device_properties(0).multi_processor_count)
    ring_all_gather[(sms,)](local, gathered, ready, shmem.get_heap_bases(), shmem.get_rank(), shmem.get_num_ranks(), n_tiles, step, TILE=1024, NUM_SMS=sms)
    shmem.barrier()

"""A barrier helper is called with release and acquire once, and relaxed between the stages."""
import triton
import triton.language as tl


@triton.jit
def meet(pads, rank, world: tl.constexpr, place, epoch, SEM_TELL: tl.constexpr, SEM_WAIT: tl.constexpr):
    for peer in range(world):
        far = tl.load(pads + peer).to(tl.pointer_type(tl.uint32))
        tl.atomic_xchg(far + place * world + rank, epoch, sem=SEM_TELL, scope="sys")
    near = tl.load(pads + rank).to(tl.pointer_type(tl.uint32))
    for peer in range(world):
        while tl.atomic_add(near + place * world + peer, 0, sem=SEM_WAIT, scope="sys") < epoch:
            pass
    tl.debug_barrier()


@triton.jit
def two_stage(inputs, sums, pads, out, rank, world: tl.constexpr, epoch, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    meet(pads, rank, world, 3 * pid, epoch, "release", "acquire")
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for peer in range(world):
        data = tl.load(inputs + peer).to(tl.pointer_type(tl.float32))
        total += tl.load(data + (pid * world + rank) * BLOCK + at)
    mine = tl.load(sums + rank).to(tl.pointer_type(tl.float32))
    tl.store(mine + pid * BLOCK + at, total)
    tl.debug_barrier()
    meet(pads, rank, world, 3 * pid + 1, epoch, "relaxed", "relaxed")  # wrong: relaxed
    for peer in range(world):
        part = tl.load(sums + peer).to(tl.pointer_type(tl.float32))
        tl.store(out + (pid * world + peer) * BLOCK + at, tl.load(part + pid * BLOCK + at))
    tl.debug_barrier()
    meet(pads, rank, world, 3 * pid + 2, epoch, "release", "acquire")

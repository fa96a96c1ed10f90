"""Own wait loop in PTX."""
import triton
import triton.language as tl


@triton.jit
def wait_eq(ptr, val):
    tl.inline_asm_elementwise("""
        {
        .reg .pred %p<1>;
        again:
            ld.acquire.sys.global.b32 $0, [$1];
            setp.ne.s32 %p0, $0, $2;
            @%p0 bra again;
        }
        """, "=r,l,r", [ptr, val], dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
def send(ptr, val):
    tl.inline_asm_elementwise("{ red.release.sys.global.add.s32 [$1], $2; mov.u32 $0, 0; }", "=r,l,r", [ptr, val], dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
def go(x, inbox, word, table_inbox, table_word, y, rank, world: tl.constexpr, call, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    dst = (rank + 1) % world
    pi = tl.load(table_inbox + dst).to(tl.pointer_type(tl.float32))
    pw = tl.load(table_word + dst).to(tl.pointer_type(tl.int32))
    tl.store(pi + o, tl.load(x + o))
    tl.debug_barrier()
    send(pw + tl.program_id(0), 1)
    wait_eq(word + tl.program_id(0), call)
    tl.debug_barrier()
    tl.store(y + o, tl.load(inbox + o))


def step(x, inbox, word, ti, tw, y, rank, world, call, group):
    go[(8,)](x, inbox, word, ti, tw, y, rank, world, call, B=64)
    group.barrier()

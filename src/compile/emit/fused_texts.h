#pragma once

namespace hemiola::compile {

/// The functions that a fused kernel calls, in Triton, as every emitted file has them.

/// `{}`: where kProxyFence goes.
inline constexpr const char* kWaitFunction = R"(@triton.jit
def hm_wait(needs, begin, end, signals, call):
    """Waits for needs [begin, end), each a slot of `signals`, its steps per call and the step of this call."""
    for i in range(begin, end):
        need = needs + 3 * i
        value = call * tl.load(need + 1) + tl.load(need + 2)
        signal = signals + tl.load(need)
        # Copies that come before the signal are seen after it: acquire, and sys since they are not this GPU's.
        while tl.atomic_add(signal, 0, sem="acquire", scope="sys") - value < 0:
            pass
    tl.debug_barrier()  # all threads are behind the one that looked
{})";

/// `{}`: where kBulkWait goes.
inline constexpr const char* kDoneFunction = R"(@triton.jit
def hm_done(part, parts, tells, counters, peers, call):
    """Counts a tile of a part; the last one tells the ranks that wait for it. parts: tiles, begin and end in `tells` of each."""
    if part >= 0:
        {}tl.debug_barrier()  # the stores of all threads are before the count
        row = parts + 3 * part
        # acq_rel: the last tile takes over what the others have released.
        before = tl.atomic_add(counters + part, 1, sem="acq_rel", scope="gpu")
        if before == tl.load(row) - 1:
            tl.store(counters + part, 0)  # as the next launch finds it
            for i in range(tl.load(row + 1), tl.load(row + 2)):
                tell = tells + 2 * i
                signal = tl.load(peers + tl.load(tell)).to(tl.pointer_type(tl.int32)) + tl.load(tell + 1)
                tl.atomic_xchg(signal, call + 1, sem="release", scope="sys")
)";

/// `{0}`, `{1}`: types of what is moved, and of its sums; `{2}`, `{3}`: what
/// lies together, in elements and bytes.
inline constexpr const char* kCarryFunction = R"(CARRIED = tl.constexpr(tl.{0})  # of what is moved
CARRIED_SUM = tl.constexpr(tl.{1})  # of sums
CARRIED_BLOCK = tl.constexpr(2048)  # elements that a program moves at a time
CARRIED_LANES = tl.constexpr({2})  # elements that rows and their distances are multiples of
CARRIED_BYTES = tl.constexpr({3})  # likewise addresses


@triton.jit
def hm_carry(moves, begin, end, needs, signals, told, shares, peers, call):
    """This program's share of movements [begin, end); who moves the last share of one tells the ranks that wait for it.

    moves: first and last need, begin and end in `told`, rows, elements of a row, whether it adds up; target, source and operand, each
    with the distance of its rows. told: rank, signal, its steps per call and the step of this call.
    """
    for i in range(begin, end):
        move = moves + 13 * i
        hm_wait(needs, tl.load(move), tl.load(move + 1), signals, call)
        rows = tl.load(move + 4)
        width = tl.multiple_of(tl.load(move + 5), CARRIED_LANES)
        adds = tl.load(move + 6)
        target = tl.multiple_of(tl.load(move + 7).to(tl.pointer_type(CARRIED)), CARRIED_BYTES)
        target_pitch = tl.multiple_of(tl.load(move + 8), CARRIED_LANES)
        source = tl.multiple_of(tl.load(move + 9).to(tl.pointer_type(CARRIED)), CARRIED_BYTES)
        source_pitch = tl.multiple_of(tl.load(move + 10), CARRIED_LANES)
        operand = tl.multiple_of(tl.load(move + 11).to(tl.pointer_type(CARRIED)), CARRIED_BYTES)
        operand_pitch = tl.multiple_of(tl.load(move + 12), CARRIED_LANES)
        blocks = tl.cdiv(width, CARRIED_BLOCK)
        for j in range(tl.program_id(0), rows * blocks, tl.num_programs(0)):
            row = j // blocks
            column = j % blocks * CARRIED_BLOCK + tl.arange(0, CARRIED_BLOCK)
            inside = column < width
            value = tl.load(source + (row * source_pitch + column), mask=inside)
            if adds > 0:
                other = tl.load(operand + (row * operand_pitch + column), mask=inside)
                value = (value.to(CARRIED_SUM) + other.to(CARRIED_SUM)).to(CARRIED)
            tl.store(target + (row * target_pitch + column), value, mask=inside)
        tl.debug_barrier()  # the stores of all threads are before the count
        # acq_rel: the last program takes over what the others have released.
        before = tl.atomic_add(shares + i, 1, sem="acq_rel", scope="gpu")
        if before == tl.num_programs(0) - 1:
            tl.store(shares + i, 0)  # as the next launch finds it
            for k in range(tl.load(move + 2), tl.load(move + 3)):
                tell = told + 4 * k
                signal = tl.load(peers + tl.load(tell)).to(tl.pointer_type(tl.int32)) + tl.load(tell + 1)
                tl.atomic_xchg(signal, call * tl.load(tell + 2) + tl.load(tell + 3), sem="release", scope="sys")
)";

inline constexpr const char* kProxyFence =
    R"(    if BULK:  # loads by TMA see what others have stored
        tl.inline_asm_elementwise("fence.proxy.async; mov.u32 $0, 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
)";

inline constexpr const char* kBulkWait = R"(if BULK:  # stores by TMA are complete, not only read
            tl.inline_asm_elementwise(
                "cp.async.bulk.wait_group 0; mov.u32 $0, 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
        )";

}  // namespace hemiola::compile

#pragma once

namespace hemiola::compile {

/// The functions that a fused kernel calls, in Triton, as every emitted file has them.

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
)";

/// `{}`: where kBulkWait goes.
inline constexpr const char* kDoneFunction = R"(@triton.jit
def hm_done(part, parts, tells, counters, peers, round, call):
    """Counts a tile of a part; the last one tells the ranks that wait for it. parts: tiles, begin and end in `tells` of each."""
    if part >= 0:
        {}tl.debug_barrier()  # the stores of all threads are before the count
        row = parts + 3 * part
        # acq_rel: the last tile takes over what the others have released.
        before = tl.atomic_add(counters + part, 1, sem="acq_rel", scope="gpu")
        if before == tl.load(row) * (round + 1) - 1:
            for i in range(tl.load(row + 1), tl.load(row + 2)):
                tell = tells + 2 * i
                signal = tl.load(peers + tl.load(tell)).to(tl.pointer_type(tl.int32)) + tl.load(tell + 1)
                tl.atomic_xchg(signal, call + 1, sem="release", scope="sys")
)";

inline constexpr const char* kBulkWait = R"(if BULK:  # stores by TMA are complete, not only read
            tl.inline_asm_elementwise(
                "cp.async.bulk.wait_group 0; mov.u32 $0, 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
        )";

}  // namespace hemiola::compile

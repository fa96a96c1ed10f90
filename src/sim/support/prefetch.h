// Memory that will be needed soon.
#pragma once

namespace hemiola::sim {

/// Brings the cache line nearer. An instruction of its own, and one that the compiler cannot see
/// through: GCC takes a function that does nothing but prefetch for one without effect, and drops
/// every call of it that is not inlined first.
inline void prefetch_line(const void* memory) {
#ifdef __GNUC__
  __builtin_prefetch(memory);
  asm volatile("" : : "r"(memory));
#endif
}

}  // namespace hemiola::sim

// When did times change?
#pragma once

namespace hemiola::sim {

/// Goes up by one with each change that gives another time for the same question. Files that keep
/// results carry it: those of another number are refused, or computed again.
inline constexpr int kModelsVersion = 8;

}  // namespace hemiola::sim

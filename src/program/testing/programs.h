// What tests of programs share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/built_in.h"
#include "program/program.h"

namespace hemiola::program::test {

constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB;

/// A built-in, not bound to a size.
inline Program built_in(const std::string& name, int ranks,
                        const plan::Parameters& parameters = {}) {
  return make_built_in(name, {ranks, parameters}).value();
}

inline std::vector<OpKind> kinds(const Body& body) {
  std::vector<OpKind> found;
  for (const Op& op : body.ops) found.push_back(op.kind);
  return found;
}

}  // namespace hemiola::program::test

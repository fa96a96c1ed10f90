// For tests: sizes of the templates of elements that a thread computes in no time.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/template.h"

namespace hemiola::plan {

/// Values for the sizes that the template has; nothing for a template of chunks.
inline Parameters small_sizes(const TemplateInfo& info, int ranks) {
  Parameters sizes;
  const bool is_exchange =
      info.name.starts_with("dispatch-gemm") || info.name.starts_with("gemm-combine");
  const bool divides_heads = info.name.starts_with("ulysses-");
  for (const auto& [name, size] :
       std::vector<std::pair<std::string, int>>{{"m", 4 * ranks * (is_exchange ? ranks : 1)},
                                                {"n", 4 * ranks},
                                                {"k", 2 * ranks},
                                                {"tile_m", 2},
                                                {"tile_n", 2},
                                                {"tile_k", 2},
                                                {"rows", 3},
                                                {"experts", 2},
                                                {"h", 4},
                                                {"f", 2 * ranks},
                                                {"heads", divides_heads ? 2 * ranks : 2},
                                                {"kv_heads", ranks},
                                                {"sequence", 4 * ranks},
                                                {"head", 2},
                                                {"tile_q", 2},
                                                {"tile_kv", 2},
                                                {"degree", 2}}) {
    for (const ParameterInfo& parameter : info.parameters)
      if (parameter.name == name) sizes.emplace_back(name, std::to_string(size));
  }
  return sizes;
}

}  // namespace hemiola::plan

// What templates have in common, and the functions that template_list.h names. Private to the
// layer.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "plan/template.h"

namespace hemiola::plan {

/// Rows of a file's table: in chunks, of the collectives that their names begin with ...
std::vector<TemplateInfo> of_collectives(std::vector<TemplateInfo> rows);
/// ... or of elements, with sizes as parameters: those that all rows have stand before their own.
std::vector<TemplateInfo> of_elements(std::vector<TemplateInfo> rows,
                                      const std::vector<ParameterInfo>& sizes = {});

/// The parameter "transfer": who moves the data.
inline ParameterInfo transfer_parameter(const char* default_value) {
  return {"transfer",
          default_value,
          {"push", "pull"},
          "who moves the data: push stores to peers, pull loads from them"};
}

/// The parameter "root": the rank that `does`. Failure: not one of the ranks.
inline ParameterInfo root_parameter(const std::string& does) {
  return {"root", "0", {}, "the rank that " + does};
}
inline int root_of(const TemplateArguments& arguments) {
  const std::int64_t root = arguments.number("root");
  if (root < arguments.ranks) return static_cast<int>(root);
  throw Failure("root " + std::to_string(root) + " is not one of " +
                    std::to_string(arguments.ranks) + " ranks",
                kOption, "ranks are numbered from 0");
}

/// All ranks, as a group of a plan.
inline std::vector<int> everybody(int ranks) {
  std::vector<int> group(static_cast<std::size_t>(ranks));
  std::iota(group.begin(), group.end(), 0);
  return group;
}

/// What a plan proposes whose groups are served by a switch (NVLS).
inline const std::pair<std::string, std::string> kThroughSwitch{"realization", "multicast"};

/// Tensors of plans of collectives, by number.
constexpr std::int32_t kInput = 0, kOutput = 1;

#define HEMIOLA_TEMPLATES(name, source) std::vector<TemplateInfo> name##_templates();
#include "plan/templates/template_list.h"
#undef HEMIOLA_TEMPLATES

}  // namespace hemiola::plan

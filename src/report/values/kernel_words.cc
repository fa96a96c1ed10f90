#include "report/values/kernel_words.h"

#include "core/names.h"

namespace hemiola::report {
namespace {

using compile::Action;
using compile::Family;
using compile::IndexKind;
using compile::Mechanism;
using compile::Role;
using Order = compile::Scheduler::Order;

constexpr std::array<std::string_view, 7> kFamilies{
    "product", "attention", "grouped product", "row", "element-wise", "reduction", "other"};
constexpr std::array<std::string_view, 5> kOrders{"none", "plain", "linear", "grouped", "other"};
constexpr std::array<std::string_view, 3> kActions{"load", "store", "atomic"};
constexpr std::array<std::string_view, 3> kMechanisms{"pointers", "block pointer", "descriptor"};
constexpr std::array<std::string_view, 6> kIndexKinds{"tile",  "loop",     "whole",
                                                      "fixed", "indirect", "unknown"};
constexpr std::array<std::string_view, 3> kRoles{"none", "consumer", "producer"};

}  // namespace

std::string_view word_of(Family family) {
  return name_in(kFamilies, family);
}

std::string_view word_of(Order order) {
  return name_in(kOrders, order);
}

std::string_view word_of(Action action) {
  return name_in(kActions, action);
}

std::string_view word_of(Mechanism mechanism) {
  return name_in(kMechanisms, mechanism);
}

std::string_view word_of(IndexKind kind) {
  return name_in(kIndexKinds, kind);
}

std::string_view word_of(Role role) {
  return name_in(kRoles, role);
}

std::string_view word_of(compile::Target target) {
  return target == compile::Target::cuda ? "cuda" : "hip";
}

std::string_view word_of(compile::Provenance provenance) {
  return provenance == compile::Provenance::annotated ? "annotated" : "inferred";
}

std::string kind_of(const compile::Description& description) {
  std::string kind(word_of(description.family));
  if (description.is_split_k) kind += ", split-K";
  const compile::Scheduler& scheduler = description.scheduler;
  if (scheduler.order == Order::none) return kind + ", no tiles found";
  kind += ", " + std::string(word_of(scheduler.order)) + " order";
  if (!scheduler.group_size.empty()) kind += " (" + scheduler.group_size + ')';
  if (scheduler.is_persistent) kind += ", persistent";
  return kind;
}

}  // namespace hemiola::report

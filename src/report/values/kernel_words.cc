#include "report/values/kernel_words.h"

namespace hemiola::report {
namespace {

using compile::Action;
using compile::Family;
using compile::IndexKind;
using compile::Mechanism;
using compile::Role;
using Order = compile::Scheduler::Order;

}  // namespace

std::string_view word_of(Family family) {
  switch (family) {
    case Family::product:
      return "product";
    case Family::attention:
      return "attention";
    case Family::grouped_product:
      return "grouped product";
    case Family::row:
      return "row";
    case Family::element_wise:
      return "element-wise";
    case Family::reduction:
      return "reduction";
    case Family::other:
      break;
  }
  return "other";
}

std::string_view word_of(Order order) {
  switch (order) {
    case Order::plain:
      return "plain";
    case Order::linear:
      return "linear";
    case Order::grouped:
      return "grouped";
    case Order::other:
      return "other";
    case Order::none:
      break;
  }
  return "none";
}

std::string_view word_of(Action action) {
  return action == Action::load ? "load" : action == Action::store ? "store" : "atomic";
}

std::string_view word_of(Mechanism mechanism) {
  return mechanism == Mechanism::pointer         ? "pointers"
         : mechanism == Mechanism::block_pointer ? "block pointer"
                                                 : "descriptor";
}

std::string_view word_of(IndexKind kind) {
  switch (kind) {
    case IndexKind::tile:
      return "tile";
    case IndexKind::loop:
      return "loop";
    case IndexKind::whole:
      return "whole";
    case IndexKind::fixed:
      return "fixed";
    case IndexKind::indirect:
      return "indirect";
    case IndexKind::unknown:
      break;
  }
  return "unknown";
}

std::string_view word_of(Role role) {
  return role == Role::consumer ? "consumer" : role == Role::producer ? "producer" : "none";
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

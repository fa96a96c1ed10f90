#include "workload/hlo/opcodes.h"

#include <array>
#include <map>
#include <ranges>
#include <utility>

#include "core/lists.h"

namespace hemiola::workload::hlo {
namespace {

using enum OpcodeClass;

constexpr std::array<std::pair<OpcodeClass, std::string_view>, 10> kOpcodes{{
    {nothing,
     "add-dependency after-all bitcast constant domain get-dimension-size "
     "get-tuple-element opt-barrier parameter partition-id replica-id "
     "set-dimension-size tuple"},
    {elementwise,
     "abs acos acosh add and asin asinh atan2 atanh cbrt ceil clamp compare complex "
     "convert cosh cosine count-leading-zeros divide erf exponential "
     "exponential-minus-one floor imag is-finite log log-plus-one logistic maximum "
     "minimum multiply negate not or popcnt power real reduce-precision remainder rng "
     "rng-bit-generator round-nearest-afz round-nearest-even rsqrt select shift-left "
     "shift-right-arithmetic shift-right-logical sign sine sinh sqrt "
     "stochastic-convert subtract tan tanh xor"},
    {moving,
     "bitcast-convert broadcast cholesky concatenate copy dynamic-reshape "
     "dynamic-slice dynamic-update-slice fft gather iota pad reshape reverse "
     "rng-get-and-update-state slice topk transpose triangular-solve"},
    {reducing,
     "batch-norm-grad batch-norm-inference batch-norm-training map reduce "
     "reduce-window scan scatter select-and-scatter sort"},
    {product, "convolution dot ragged-dot"},
    {fusion, "fusion"},
    {calling, "async call conditional while"},
    {custom, "custom-call"},
    {communicating,
     "all-gather all-reduce all-to-all collective-broadcast collective-permute "
     "ragged-all-to-all reduce-scatter"},
    {host, "infeed outfeed recv send"},
}};

const std::map<std::string_view, OpcodeClass>& classes() {
  static const auto kClasses = [] {
    std::map<std::string_view, OpcodeClass> all;
    for (const auto& [of, names] : kOpcodes)
      for (const std::string_view name : words_of(names)) all.emplace(name, of);
    return all;
  }();
  return kClasses;
}

}  // namespace

OpcodeClass class_of(std::string_view opcode) {
  const auto at = classes().find(opcode);
  return at == classes().end() ? unknown : at->second;
}

PhasedOpcode phase_of(std::string_view opcode) {
  constexpr std::array<std::pair<std::string_view, Phase>, 3> kEndings{
      {{"-start", Phase::start}, {"-update", Phase::update}, {"-done", Phase::done}}};
  for (const auto& [ending, phase] : kEndings)
    if (opcode.size() > ending.size() && opcode.ends_with(ending))
      return {opcode.substr(0, opcode.size() - ending.size()), phase};
  return {opcode, Phase::whole};
}

std::vector<std::string> known_opcodes() {
  const auto names = std::views::keys(classes());
  return {names.begin(), names.end()};
}

}  // namespace hemiola::workload::hlo

#include "workload/hlo/opcodes.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hemiola::workload::hlo {
namespace {

using Entry = std::pair<std::string_view, OpcodeClass>;
using enum OpcodeClass;

constexpr auto kOpcodes = [] {
  std::array entries{
      Entry{"add-dependency", nothing},
      Entry{"after-all", nothing},
      Entry{"bitcast", nothing},
      Entry{"constant", nothing},
      Entry{"domain", nothing},
      Entry{"get-dimension-size", nothing},
      Entry{"get-tuple-element", nothing},
      Entry{"opt-barrier", nothing},
      Entry{"parameter", nothing},
      Entry{"partition-id", nothing},
      Entry{"replica-id", nothing},
      Entry{"set-dimension-size", nothing},
      Entry{"tuple", nothing},

      Entry{"abs", elementwise},
      Entry{"acos", elementwise},
      Entry{"acosh", elementwise},
      Entry{"add", elementwise},
      Entry{"and", elementwise},
      Entry{"asin", elementwise},
      Entry{"asinh", elementwise},
      Entry{"atan2", elementwise},
      Entry{"atanh", elementwise},
      Entry{"cbrt", elementwise},
      Entry{"ceil", elementwise},
      Entry{"clamp", elementwise},
      Entry{"compare", elementwise},
      Entry{"complex", elementwise},
      Entry{"convert", elementwise},
      Entry{"cosh", elementwise},
      Entry{"cosine", elementwise},
      Entry{"count-leading-zeros", elementwise},
      Entry{"divide", elementwise},
      Entry{"erf", elementwise},
      Entry{"exponential", elementwise},
      Entry{"exponential-minus-one", elementwise},
      Entry{"floor", elementwise},
      Entry{"imag", elementwise},
      Entry{"is-finite", elementwise},
      Entry{"log", elementwise},
      Entry{"log-plus-one", elementwise},
      Entry{"logistic", elementwise},
      Entry{"maximum", elementwise},
      Entry{"minimum", elementwise},
      Entry{"multiply", elementwise},
      Entry{"negate", elementwise},
      Entry{"not", elementwise},
      Entry{"or", elementwise},
      Entry{"popcnt", elementwise},
      Entry{"power", elementwise},
      Entry{"real", elementwise},
      Entry{"reduce-precision", elementwise},
      Entry{"remainder", elementwise},
      Entry{"rng", elementwise},
      Entry{"rng-bit-generator", elementwise},
      Entry{"round-nearest-afz", elementwise},
      Entry{"round-nearest-even", elementwise},
      Entry{"rsqrt", elementwise},
      Entry{"select", elementwise},
      Entry{"shift-left", elementwise},
      Entry{"shift-right-arithmetic", elementwise},
      Entry{"shift-right-logical", elementwise},
      Entry{"sign", elementwise},
      Entry{"sine", elementwise},
      Entry{"sinh", elementwise},
      Entry{"sqrt", elementwise},
      Entry{"stochastic-convert", elementwise},
      Entry{"subtract", elementwise},
      Entry{"tan", elementwise},
      Entry{"tanh", elementwise},
      Entry{"xor", elementwise},

      Entry{"bitcast-convert", moving},
      Entry{"broadcast", moving},
      Entry{"cholesky", moving},
      Entry{"concatenate", moving},
      Entry{"copy", moving},
      Entry{"dynamic-reshape", moving},
      Entry{"dynamic-slice", moving},
      Entry{"dynamic-update-slice", moving},
      Entry{"fft", moving},
      Entry{"gather", moving},
      Entry{"iota", moving},
      Entry{"pad", moving},
      Entry{"reshape", moving},
      Entry{"reverse", moving},
      Entry{"rng-get-and-update-state", moving},
      Entry{"slice", moving},
      Entry{"topk", moving},
      Entry{"transpose", moving},
      Entry{"triangular-solve", moving},

      Entry{"batch-norm-grad", reducing},
      Entry{"batch-norm-inference", reducing},
      Entry{"batch-norm-training", reducing},
      Entry{"map", reducing},
      Entry{"reduce", reducing},
      Entry{"reduce-window", reducing},
      Entry{"scan", reducing},
      Entry{"scatter", reducing},
      Entry{"select-and-scatter", reducing},
      Entry{"sort", reducing},

      Entry{"convolution", product},
      Entry{"dot", product},
      Entry{"ragged-dot", product},

      Entry{"fusion", fusion},
      Entry{"async", calling},
      Entry{"call", calling},
      Entry{"conditional", calling},
      Entry{"while", calling},
      Entry{"custom-call", custom},

      Entry{"all-gather", communicating},
      Entry{"all-reduce", communicating},
      Entry{"all-to-all", communicating},
      Entry{"collective-broadcast", communicating},
      Entry{"collective-permute", communicating},
      Entry{"ragged-all-to-all", communicating},
      Entry{"reduce-scatter", communicating},

      Entry{"infeed", host},
      Entry{"outfeed", host},
      Entry{"recv", host},
      Entry{"send", host},
  };
  std::ranges::sort(entries);
  return entries;
}();

}  // namespace

OpcodeClass class_of(std::string_view opcode) {
  const auto at = std::lower_bound(kOpcodes.begin(), kOpcodes.end(), opcode,
                                   [](const Entry& a, std::string_view b) { return a.first < b; });
  return at != kOpcodes.end() && at->first == opcode ? at->second : unknown;
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
  std::vector<std::string> names;
  for (const Entry& entry : kOpcodes) names.emplace_back(entry.first);
  return names;
}

}  // namespace hemiola::workload::hlo

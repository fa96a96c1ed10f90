// What HLO's opcodes are, as far as time goes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hemiola::workload::hlo {

enum class OpcodeClass : std::uint8_t {
  unknown,
  nothing,      ///< takes no time: parameters, tuples, bitcasts
  elementwise,  ///< one flop for each element of the result
  moving,       ///< bytes and no flop: copies, slices, transposes
  reducing,     ///< applies a computation to elements: reduce, scatter, map
  product,      ///< dot, convolution
  fusion,
  calling,        ///< call, while, conditional: what they call is followed
  custom,         ///< custom-call
  communicating,  ///< collectives, and permutes of pairs
  host            ///< send, recv, infeed, outfeed
};
/// Of an opcode without the "-start" and "-done" of asynchronous ones.
OpcodeClass class_of(std::string_view opcode);

/// What an opcode is that may begin or end something asynchronous.
enum class Phase : std::uint8_t { whole, start, update, done };
struct PhasedOpcode {
  std::string_view opcode;  ///< "all-gather" of "all-gather-start"
  Phase phase = Phase::whole;
};
PhasedOpcode phase_of(std::string_view opcode);

/// All that are known, for suggestions.
std::vector<std::string> known_opcodes();

}  // namespace hemiola::workload::hlo

// Arbitration policies by name. What they do is said in sim/model/arbitration.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace hemiola::machine {

/// Who goes first where requests of two classes (control: requests, acknowledgements, flags; data:
/// everything with a payload) meet at one output: an index into arbitration_names(). `fifo` takes
/// them in order of arrival; the others have no names in C++, so that a new one touches the list
/// only.
enum class Arbitration : std::uint8_t { fifo = 0 };

/// "fifo", then those of arbitration_list.h in its order.
std::span<const std::string_view> arbitration_names();
std::string_view name_of(Arbitration arbitration);
std::optional<Arbitration> parse_arbitration(std::string_view name);

}  // namespace hemiola::machine

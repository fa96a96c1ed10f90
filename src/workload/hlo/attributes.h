// Values of HLO's attributes, which modules keep as they are written: lists, fields,
// configurations. What is asked for and not there is empty, and never an error: whoever needs it
// says so.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "workload/hlo/module.h"

namespace hemiola::workload::hlo {

/// The numbers of "{0,1}", "[4,2]" or "0,1". Empty if something else is in it.
std::vector<std::int64_t> integers_in(std::string_view text);
/// A number and nothing else.
std::optional<std::int64_t> integer_of(std::string_view text);
/// What a list in brackets has between its commas, without blanks; of anything else itself.
std::vector<std::string_view> items_of(std::string_view text);
/// `value` of `name=value` in "{a=1 name=value}".
std::string_view field_of(std::string_view text, std::string_view name);
/// Without quotes around it.
std::string_view unquoted(std::string_view text);

/// The dimensions of an attribute: `dimensions={0,2}`.
std::vector<std::int64_t> dimensions_of(const Module& module, const Instruction& instruction,
                                        std::string_view name);

/// `backend_config`, which is JSON, or JSON in a string; null if it is neither.
nlohmann::json backend_config(const Module& module, const Instruction& instruction);
/// A number, which backends also write as a string: "16".
std::optional<std::int64_t> number_of(const nlohmann::json& value);

}  // namespace hemiola::workload::hlo

// What the readers of measured tables hand to read_measured(): cells, not yet understood.
#pragma once

#include <string>
#include <string_view>

#include "study/support/csv.h"

namespace hemiola::study {

/// Whether this is the output of nccl-tests or rccl-tests: it has their heading.
bool is_collective_log(std::string_view text);
TableText read_collective_log(std::string_view text, const std::string& file);
/// Either of them, by its content.
TableText read_table(std::string_view text, const std::string& file);

}  // namespace hemiola::study

// Which layer judges which rows of measured tables.
#pragma once

#include <string>

#include "study/tables/rows.h"

namespace hemiola::cli {

/// Failure for a table of no known kind; rows that nothing simulates say why.
study::JudgedTable judge_table_rows(study::Laboratory& laboratory, const study::TableText& table,
                                    const std::string& file, const study::JudgeOptions& options);

}  // namespace hemiola::cli

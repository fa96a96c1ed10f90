// CSV (RFC 4180) with '#' comments: cells, not yet understood.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/lists.h"

namespace hemiola::study {

struct TableText {
  std::vector<std::string> notes;    ///< lines that start with '#', without it
  std::vector<std::string> columns;  ///< distinct, not empty
  int heading_line = 0;
  struct Row {
    int line = 0;
    std::vector<std::string> cells;  ///< as many as columns
  };
  std::vector<Row> rows;
};

TableText read_csv(std::string_view text, const std::string& file);

/// A cell that is a finite number and nothing else.
std::optional<double> parse_number(std::string_view text);

}  // namespace hemiola::study

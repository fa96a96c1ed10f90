#include "report/values/columns.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <ostream>
#include <utility>

namespace hemiola::report {

void Columns::add(std::vector<std::string> cells) {
  assert(cells.size() <= alignment_.size());
  rows_.push_back({false, std::move(cells)});
}

void Columns::add_heading(std::vector<std::string> cells) {
  assert(cells.size() <= alignment_.size());
  rows_.push_back({true, std::move(cells)});
}

void Columns::print(std::ostream& out, std::string_view indent) const {
  std::vector<std::size_t> width(alignment_.size(), 0);
  for (const Row& row : rows_)
    for (std::size_t i = 0; i < row.cells.size(); ++i)
      width[i] = std::max(width[i], row.cells[i].size());
  for (const Row& row : rows_) {
    std::string line(indent);
    if (row.heading) line.replace(0, line.empty() ? 0 : 1, "#");
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const std::string padding(width[i] - row.cells[i].size(), ' ');
      if (i > 0) line += "  ";
      line += alignment_[i] == Align::right ? padding + row.cells[i] : row.cells[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
}

}  // namespace hemiola::report

// Aligned columns of text: what every printed table of this layer is made of.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace hemiola::report {

enum class Align { left, right };
constexpr Align kLeft = Align::left, kRight = Align::right;

/// Rows of cells; a column is as wide as its widest cell and stands two blanks from the one before
/// it. Lines carry no blanks at their end.
class Columns {
 public:
  explicit Columns(std::vector<Align> alignment) : alignment_(std::move(alignment)) {}

  /// Missing cells are empty; there must not be more cells than columns.
  void add(std::vector<std::string> cells);
  /// A row that starts with '#' in place of the indent's first character.
  void add_heading(std::vector<std::string> cells);
  /// Every line starts with `indent`.
  void print(std::ostream& out, std::string_view indent) const;

 private:
  struct Row {
    bool heading;
    std::vector<std::string> cells;
  };
  std::vector<Align> alignment_;
  std::vector<Row> rows_;
};

}  // namespace hemiola::report

// CSV (RFC 4180) with '#' comments.
#include <fmt/format.h>

#include <algorithm>

#include "core/checked.h"
#include "core/diagnostics.h"
#include "study/support/csv.h"

namespace hemiola::study {
namespace {

class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& file) : text_(text), file_(file) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
  }

  TableText read() {
    while (at_ < text_.size()) {
      const int line = line_;
      if (text_[at_] == '#') {
        table_.notes.emplace_back(trimmed(rest_of_line().substr(1)));
        continue;
      }
      std::vector<std::string> cells = record();
      if (cells.size() == 1 && cells[0].empty()) continue;
      if (table_.columns.empty()) {
        read_heading(std::move(cells), line);
        continue;
      }
      if (cells.size() != table_.columns.size()) {
        throw Failure(fmt::format("this row has {} cells, but there are {} columns", cells.size(),
                                  table_.columns.size()),
                      {.file = file_, .line = line},
                      "a cell with a comma in it stands in double quotes");
      }
      table_.rows.push_back({line, std::move(cells)});
    }
    if (table_.columns.empty())
      throw Failure("this table has no heading", {.file = file_},
                    "the first line that is no comment names the columns: size_bytes,time_us");
    return std::move(table_);
  }

 private:
  std::string_view rest_of_line() {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view line = text_.substr(at_, end - at_);
    at_ = end + 1;
    ++line_;
    return line;
  }

  void read_heading(std::vector<std::string> names, int line) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i].empty())
        throw Failure(fmt::format("column {} has no name", i + 1), {.file = file_, .line = line});
      if (std::ranges::count(names, names[i]) > 1)
        throw Failure(fmt::format("there are two columns named '{}'", names[i]),
                      {.file = file_, .line = line});
    }
    table_.columns = std::move(names);
    table_.heading_line = line;
  }

  /// One record, to the end of its line; quoted cells may contain line ends.
  std::vector<std::string> record() {
    const int begin = line_;
    std::vector<std::string> cells(1);
    bool quoted = false, was_quoted = false;
    const auto finish = [&] {
      if (!was_quoted) cells.back() = std::string(trimmed(cells.back()));
      was_quoted = false;
    };
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (quoted) {
        if (c != '"') {
          cells.back() += c;
        } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
          cells.back() += '"';
          ++at_;
        } else {
          quoted = false;
        }
      } else if (c == '"' && trimmed(cells.back()).empty()) {
        cells.back().clear();
        quoted = was_quoted = true;
      } else if (c == ',') {
        finish();
        cells.emplace_back();
      } else if (c == '\n') {
        ++at_;
        break;
      } else if (!was_quoted || !trimmed({&c, 1}).empty()) {
        cells.back() += c;
      }
    }
    if (quoted) throw Failure("a quoted cell never ends", {.file = file_, .line = begin});
    finish();
    return cells;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
  TableText table_;
};

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  return finite_number(text);
}

TableText read_csv(std::string_view text, const std::string& file) {
  return CsvReader(text, file).read();
}

}  // namespace hemiola::study

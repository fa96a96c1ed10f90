#include "study/tables/measured.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

#include "core/lists.h"
#include "study/tables/table_text.h"
#include "study/tables/table_words.h"

namespace hemiola::study {
namespace {

/// Which --column takes beside those of data/tables.yaml, whose names are their own.
constexpr std::array<std::string_view, 4> kMoreRoles = {"kernel", "launch", "warmup", "iterations"};

std::optional<std::size_t> find(const std::vector<std::string>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

std::optional<std::size_t> column_of(const MeasuredTable& table, std::string_view name) {
  for (const auto& [role, index] : table.roles)
    if (role == name) return index;
  return find(table.columns, name);
}

std::string columns_text(const MeasuredTable& table) {
  return fmt::format("its columns are {}", fmt::join(table.columns, ", "));
}

void assign_roles(MeasuredTable& table, const ColumnNames& names,
                  const std::vector<std::string>& needed, int heading_line) {
  for (const auto& [role, column] : names) {
    std::vector<std::string> known = table_roles();
    known.insert(known.end(), kMoreRoles.begin(), kMoreRoles.end());
    if (!find(known, role))
      throw Failure(fmt::format("'{}' is nothing that a column can be", role), {.file = "--column"},
                    fmt::format("it is {}", fmt::join(known, ", ")));
    const auto index = find(table.columns, column);
    if (!index)
      throw Failure(fmt::format("there is no column '{}'", column),
                    {.file = table.file, .line = heading_line}, columns_text(table));
    table.roles.emplace_back(role, *index);
  }
  for (const std::string& role : table_roles()) {
    if (std::ranges::find(names, role, &std::pair<std::string, std::string>::first) != names.end())
      continue;
    if (const auto index = column_of_role(table.columns, role))
      table.roles.emplace_back(role, *index);
    else if (find(needed, role))
      throw Failure(
          fmt::format("there is no column '{}'", role), {.file = table.file, .line = heading_line},
          fmt::format("{}; --column {}=NAME takes one of them", columns_text(table), role));
  }
}

class RowReader {
 public:
  explicit RowReader(const MeasuredTable& table) : table_(table) {}

  MeasuredRow read(TableText::Row&& text) const {
    MeasuredRow row{.line = text.line, .cells = std::move(text.cells)};
    if (column_of(table_, "size_bytes"))
      row.size = {positive_integer(row, "size_bytes", std::int64_t{1} << 50, "a number of bytes")};
    if (column_of(table_, "time_us")) row.time_us = time(row);
    if (column_of(table_, "num_gpus"))
      row.ranks = static_cast<int>(positive_integer(row, "num_gpus", 1 << 20, "a number of GPUs"));
    return row;
  }

 private:
  [[noreturn]] void fail(const MeasuredRow& row, std::string_view role,
                         const std::string& what) const {
    const std::string& column = table_.columns[*column_of(table_, role)];
    throw Failure(fmt::format("column '{}': '{}' {}", column, table_.cell(row, role), what),
                  table_.at(row));
  }

  std::int64_t positive_integer(const MeasuredRow& row, std::string_view role, std::int64_t most,
                                const std::string& what) const {
    const auto number = parse_count(table_.cell(row, role));
    if (!number) fail(row, role, "is not " + what + ", written as an integer");
    if (*number < 1) fail(row, role, "is not greater than zero");
    if (*number > most) fail(row, role, fmt::format("is more than {}", most));
    return *number;
  }

  double time(const MeasuredRow& row) const {
    const std::string& text = table_.cell(row, "time_us");
    const auto value = parse_number(text);
    if (!value) fail(row, "time_us", "is not a time, written as a number");
    if (*value <= 0) fail(row, "time_us", "is not greater than zero");
    const std::string& column = table_.columns[*column_of(table_, "time_us")];
    if (column.ends_with("_ms") || column.ends_with("(ms)")) return *value * 1e3;
    return column.ends_with("_s") ? *value * 1e6 : *value;
  }

  const MeasuredTable& table_;
};

/// The distinct values of a column, in order of their appearance.
std::vector<std::string> values_of(const MeasuredTable& table, std::string_view column) {
  std::vector<std::string> values;
  for (const MeasuredRow& row : table.rows) {
    const std::string& value = table.cell(row, column);
    if (!find(values, value)) values.push_back(value);
  }
  return values;
}

std::string there_are(std::vector<std::string> values) {
  constexpr std::size_t kMost = 20;
  const bool more = values.size() > kMost;
  if (more) values.resize(kMost);
  return fmt::format("there are {}{}", fmt::join(values, ", "), more ? ", ..." : "");
}

}  // namespace

const std::string& MeasuredTable::cell(const MeasuredRow& row, std::string_view column) const {
  static const std::string kNone;
  const auto index = column_of(*this, column);
  return index ? row.cells[*index] : kNone;
}

bool MeasuredTable::same_column(std::string_view a, std::string_view b) const {
  const auto index = column_of(*this, a);
  return index && index == column_of(*this, b);
}

TableText read_table(std::string_view text, const std::string& file) {
  return is_collective_log(text) ? read_collective_log(text, file) : read_csv(text, file);
}

MeasuredTable read_measured(std::string_view text, const std::string& file,
                            const ColumnNames& names) {
  return read_measured(read_table(text, file), file, names, {"size_bytes", "time_us"});
}

MeasuredTable read_measured(TableText cells, const std::string& file, const ColumnNames& names,
                            const std::vector<std::string>& needed) {
  MeasuredTable table{
      .file = file, .notes = std::move(cells.notes), .columns = std::move(cells.columns)};
  assign_roles(table, names, needed, cells.heading_line);
  const RowReader reader(table);
  for (TableText::Row& row : cells.rows) table.rows.push_back(reader.read(std::move(row)));
  if (table.rows.empty())
    throw Failure("this table has no rows", {.file = file, .line = cells.heading_line});
  return table;
}

MeasuredTable select(const MeasuredTable& table, const std::vector<Filter>& filters) {
  for (const Filter& filter : filters) {
    if (!column_of(table, filter.column))
      throw Failure(fmt::format("there is no column '{}' to choose by", filter.column),
                    {.file = table.file},
                    suggest(filter.column, table.columns, columns_text(table)));
    const std::vector<std::string> known = values_of(table, filter.column);
    for (const std::string& value : filter.values) {
      if (find(known, value)) continue;
      throw Failure(fmt::format("no row has '{}' in column '{}'", value, filter.column),
                    {.file = table.file}, there_are(known));
    }
  }
  MeasuredTable selected = table;
  std::erase_if(selected.rows, [&](const MeasuredRow& row) {
    return std::ranges::any_of(filters, [&](const Filter& filter) {
      return !find(filter.values, table.cell(row, filter.column));
    });
  });
  if (selected.rows.empty())
    throw Failure("no row has all of " + to_text(filters), {.file = table.file});
  return selected;
}

MeasuredTable select_sizes(const MeasuredTable& table, const std::vector<Bytes>& sizes,
                           std::vector<Bytes>& absent) {
  const auto has = [&](Bytes size) {
    return std::ranges::any_of(table.rows,
                               [&](const MeasuredRow& row) { return row.size == size; });
  };
  std::copy_if(sizes.begin(), sizes.end(), std::back_inserter(absent),
               [&](Bytes size) { return !has(size); });
  MeasuredTable selected = table;
  std::erase_if(selected.rows, [&](const MeasuredRow& row) {
    return std::ranges::find(sizes, row.size) == sizes.end();
  });
  if (selected.rows.empty()) {
    std::vector<std::string> known;
    for (const MeasuredRow& row : table.rows)
      if (!find(known, to_string(row.size))) known.push_back(to_string(row.size));
    throw Failure("no row has a size that was asked for", {.file = table.file},
                  there_are(std::move(known)));
  }
  return selected;
}

std::string to_text(const std::vector<Filter>& filters) {
  return joined(
      filters, [](const Filter& one) { return one.column + '=' + joined(one.values, ","); }, " ");
}

}  // namespace hemiola::study

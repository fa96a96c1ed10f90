// Tables of measured times.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/diagnostics.h"
#include "core/units.h"

namespace hemiola::study {

struct MeasuredRow {
  int line = 0;                    ///< in the file
  Bytes size{};                    ///< 0: the table has no column of it
  double time_us = 0;              ///< greater than zero; 0: as size
  int ranks = 0;                   ///< 0: the table does not say
  std::vector<std::string> cells;  ///< by column, without blanks around them
};

/// Some columns have a role: `size_bytes`, `time_us`, `num_gpus`, `op`, `dtype`, `kernel`,
/// `launch` (graph or stream), `warmup`, `iterations`. A role's column is the one of its name, or
/// one of the names that tables of others use (data/tables.yaml), or what ColumnNames says.
struct MeasuredTable {
  std::string file;
  std::vector<std::string> notes;  ///< the lines that started with '#', without it
  std::vector<std::string> columns;
  std::vector<std::pair<std::string, std::size_t>> roles;  ///< role, index of its column
  std::vector<MeasuredRow> rows;                           ///< in the order of the file

  /// The text in a column, named by its role or as in the file; "" where there is no such column.
  const std::string& cell(const MeasuredRow& row, std::string_view column) const;
  /// Whether two names, of roles or as in the file, are of one column.
  bool same_column(std::string_view a, std::string_view b) const;
  SourceLocation at(const MeasuredRow& row) const { return {.file = file, .line = row.line}; }
};

/// Role and column: {"time_us", "time_us_inplace"}.
using ColumnNames = std::vector<std::pair<std::string, std::string>>;

/// Reads CSV (RFC 4180, with a heading, '#' comments and columns in any order) or the output of
/// nccl-tests or rccl-tests, which becomes columns of the same kind: size_bytes, count, type,
/// redop, root, time_us_outofplace, time_us_inplace, ..., and num_gpus and op where the log says
/// them. Lines of a log that are not its table are passed over. Failure with line and column name:
/// a missing column, a row that is too short, a size or number of GPUs that is not a positive
/// integer, a time that is not a positive number.
MeasuredTable read_measured(std::string_view text, const std::string& file,
                            const ColumnNames& names = {});
struct TableText;
/// The same of cells; `needed`: the roles without which a table is refused.
MeasuredTable read_measured(TableText cells, const std::string& file, const ColumnNames& names,
                            const std::vector<std::string>& needed);

/// Keeps the rows whose cell in `column` is one of `values`.
struct Filter {
  std::string column;
  std::vector<std::string> values;
};
/// Failure for an unknown column or a value that no row has, with those that there are, and where
/// nothing is left.
MeasuredTable select(const MeasuredTable& table, const std::vector<Filter>& filters);
/// Keeps the rows of these sizes. Failure where there is none, with the sizes that there are.
/// `absent`: sizes that no row has, in the order asked for.
MeasuredTable select_sizes(const MeasuredTable& table, const std::vector<Bytes>& sizes,
                           std::vector<Bytes>& absent);
/// "num_gpus=4 kernel=a,b"
std::string to_text(const std::vector<Filter>& filters);

}  // namespace hemiola::study

// What columns and words of measured tables stand for (data/tables.yaml), so that a table of
// others needs no options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data_type.h"
#include "core/units.h"
#include "sim/simulate.h"
#include "study/laboratory/experiment.h"
#include "study/tables/measured.h"
#include "study/tables/table_text.h"

namespace hemiola::study {

/// What a table has rows of.
enum class RowKind : std::uint8_t {
  collective,  ///< a call of a library, or a kernel
  product,     ///< a matrix product of one GPU
  overlap,     ///< a product and a collective: serial, fused, or a part
  iteration,   ///< of training
  other,       ///< of which nothing is simulated
};

std::string lowered(std::string text);

struct TableKind {
  RowKind kind = RowKind::other;
  std::string name;     ///< as in data/tables.yaml: "collective", "microbenchmark"
  std::string refused;  ///< why no row of it is simulated; empty: they are
};
/// By its columns. Failure: no kind has these, with those that the kinds have.
TableKind kind_of(const TableText& table, const std::string& file);

/// The roles of data/tables.yaml, and the column of a table that has one.
std::vector<std::string> table_roles();
std::optional<std::size_t> column_of_role(const std::vector<std::string>& columns,
                                          const std::string& role);

/// What the words of a row, of the table's head and of its file's name say.
struct RowWords {
  std::string program;  ///< "all-gather/nccl"; `*` stands for the collective
  std::string library;  ///< "NCCL"
  Settings parameters;
  std::optional<sim::Launch> launch;
  bool one_host = false;
  std::string refused;  ///< why the row has no program; empty: it has
};

/// What an iteration ran.
struct IterationWords {
  std::string model;      ///< that is built in; empty: none is known
  std::string framework;  ///< "Megatron-Bridge"
  Settings set;           ///< options of `workload make`, in the order in which they are followed
  std::string refused;
};

/// On what a row was measured, as its cells say, else the table's head, else its file's name.
struct RowPlace {
  std::string device;   ///< model: "h100"
  std::string machine;  ///< that has it: "dgx-h100", "dgx-h100:2"
  int ranks = 0;        ///< 0: not said
  int nodes = 1;
  std::string refused;  ///< why it can not be said; empty: it can
};

/// The words of one table.
class TableWords {
 public:
  /// Both outlive it.
  TableWords(const MeasuredTable& table, Laboratory& laboratory);

  RowWords words_of(const MeasuredRow& row) const;
  IterationWords iteration_of(const MeasuredRow& row) const;
  RowPlace place_of(const MeasuredRow& row) const;
  /// Of the column `op`, else of the head, else of the file's name.
  std::optional<Collective> collective_of(const MeasuredRow& row) const;

 private:
  std::string text_of(const MeasuredRow& row) const;

  const MeasuredTable& table_;
  Laboratory& laboratory_;
  std::string head_, name_;
};

}  // namespace hemiola::study

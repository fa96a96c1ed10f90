#include "cli/verbs/judge_rows.h"

#include "explore/suite/overlap_rows.h"
#include "workload/iteration/iteration_rows.h"

namespace hemiola::cli {

study::JudgedTable judge_table_rows(study::Laboratory& laboratory, const study::TableText& table,
                                    const std::string& file, const study::JudgeOptions& options) {
  const study::TableKind kind = study::kind_of(table, file);
  const auto judge = [&]() -> study::JudgeRow {
    using enum study::RowKind;
    if (!kind.refused.empty()) return study::refuse_rows(kind.refused);
    switch (kind.kind) {
      case collective:
        return study::judge_collectives(laboratory, options);
      case product:
        return study::judge_products(laboratory);
      case overlap:
        return explore::judge_overlaps(laboratory, options);
      case iteration:
        return workload::judge_iterations(laboratory, options);
      case other:
        break;
    }
    return study::refuse_rows("no layer simulates rows of this kind");
  };
  return study::judge_rows(laboratory, table, file, options, judge());
}

}  // namespace hemiola::cli

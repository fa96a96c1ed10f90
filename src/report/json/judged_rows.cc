#include "report/judged_rows.h"

#include <fmt/format.h>

#include "report/values/evidence_json.h"
#include "report/values/json_text.h"
#include "report/values/numbers.h"
#include "study/tables/row_summary.h"

namespace hemiola::report {
namespace {

using study::JudgedRow;

JsonText row_object(const JudgedRow& row) {
  JsonObject object;
  object.add("line", row.line, "name", row.name, "kind", row.like.kind, "op", row.like.op);
  if (row.like.kind.find("product") == std::string::npos)
    object.add("size_bytes", static_cast<std::int64_t>(row.like.amount));
  object.add("device", row.like.device, "ranks", row.like.ranks, "nodes", row.like.nodes, "machine",
             row.machine, "program", row.program, "dtype", name_of(row.type), "measured_us",
             row.measured_us, "simulated_us", row.simulated_us, "error", row.error());
  if (row.evidence) object.add("evidence", evidence_json(*row.evidence, row.simulated_us));
  if (!row.refused.empty()) object.add("not_simulated", row.refused);
  return object.json();
}

}  // namespace

std::string judged_json(const std::string& command, const study::JudgedTable& table) {
  JsonObject summary("    ");
  for (const study::RowSummary& one : study::summarise_kinds(table.rows))
    summary.add(one.name,
                json_object("n", one.errors.n, "bias", one.errors.bias, "median", one.errors.median,
                            "worst", one.errors.worst, "geomean", one.errors.geomean));
  const study::Coverage coverage = study::coverage_of(table.rows);
  return json_file(
      "schema", "hemiola/1", "command", command, "table", table.file, "kind", table.kind.name,
      "interrupted", table.interrupted, "rows", json_lines(table.rows, "  ", row_object), "summary",
      summary.json(), "coverage",
      json_object("rows", coverage.rows, "none", coverage.none, "within", coverage.within,
                  "median_width", coverage.width, "median_error", coverage.error));
}

std::string judged_csv(const study::JudgedTable& table) {
  std::string text =
      "table,line,name,device,kind,op,library,launch,ranks,nodes,amount,machine,program,dtype,"
      "measured_us,simulated_us,error,evidence_rows,low,high,not_simulated\n";
  for (const JudgedRow& row : table.rows) {
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{:.0f},{},{},{},{},", csv_cell(table.file),
                        row.line, csv_cell(row.name), row.like.device, row.like.kind,
                        csv_cell(row.like.op), csv_cell(row.like.library), row.like.launch,
                        row.like.ranks, row.like.nodes, row.like.amount, row.machine,
                        csv_cell(row.program), name_of(row.type), row.measured_us);
    text += row.simulated_us ? fmt::format("{},{},", *row.simulated_us, *row.error()) : ",,";
    text += row.evidence ? fmt::format("{},{},{},", row.evidence->rows, row.evidence->low,
                                       row.evidence->high)
                         : ",,,";
    text += csv_cell(row.refused) + '\n';
  }
  return text;
}

}  // namespace hemiola::report

// Tables of errors for the terminal.
#include "report/validation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>
#include <set>

#include "report/values/result_tables.h"

namespace hemiola::report {
namespace {

using study::Judgement;
using study::RowResult;

std::string trivial_text(const study::Validation& validation) {
  const study::TrivialModel& model = validation.trivial;
  const std::string rate =
      model.us_per_byte > 0 ? fmt::format("{:.1f} GB/s", 1e-3 / model.us_per_byte) : "infinite";
  return fmt::format("{:.2f} us + {} / {}, fitted to {} rows of {}", model.latency_us,
                     trivial_scale(validation), rate, model.rows, model.fitted_to);
}

/// What a rank sends: bus_factor() in words.
std::string_view sent_text(Collective collective) {
  if (collective == Collective::all_reduce) return "2(n-1)/n x size";
  return bus_factor(collective, 2) < 1 ? "(n-1)/n x size" : "size";
}

}  // namespace

std::string trivial_scale(const study::Validation& validation) {
  std::set<std::string_view> texts;
  for (const RowResult& row : validation.rows) texts.insert(sent_text(row.collective));
  return fmt::format("{}", fmt::join(texts, " or "));
}

void print_validation(std::ostream& out, const Judgement& judgement) {
  const study::Validation& validation = judgement.validation;
  out << "# table    " << judgement.table;
  if (!judgement.where.empty()) out << ", where " << judgement.where;
  out << fmt::format(
      "\n# machine  {}\n# program  {}, checked: {}\n# engine   {}, {} after {} repetitions\n"
      "# launch   {}\n# trivial  {}\n#\n",
      judgement.machine, judgement.program, validation.checked,
      sim::name_of(judgement.options.engine), judgement.options.iterations,
      judgement.options.warmup, sim::name_of(judgement.options.launch), trivial_text(validation));
  printed(validation_table(judgement)).print(out, "  ");
  out << "#\n# errors in %, absolute but for the bias, " << simulated_text(validation.rows) << '\n';
  if (!study::any_simulated(validation.rows)) return;
  printed(regimes_table(judgement), Units::beside).print(out, "# ");
}

void print_suite(std::ostream& out, const std::vector<Judgement>& judgements,
                 const std::vector<study::OrderResult>& orders,
                 const std::vector<study::MicroResult>& micro) {
  if (!judgements.empty()) {
    printed(entries_table(judgements)).print(out, "  ");
    out << "# " << marks_text(judgements) << '\n';
  }
  if (!orders.empty()) {
    out << "#\n";
    printed(orders_table(orders)).print(out, "  ");
  }
  if (micro.empty()) return;
  if (!judgements.empty()) out << "#\n";
  printed(micro_table(micro)).print(out, "  ");
  std::vector<study::Errors> errors;
  for (const study::MicroResult& one : micro) errors.push_back({.simulated = one.error});
  const std::vector<std::string> all = summary_cells(study::summarise(errors));
  out << fmt::format("# microbenchmarks: {}, median {} %, worst {} %, geomean {} %, bias {} %\n",
                     all[0], all[2], all[3], all[4], all[1]);
}

}  // namespace hemiola::report

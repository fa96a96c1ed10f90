#include "study/tables/rows.h"

#include <fmt/format.h>

#include <map>
#include <memory>

#include "core/monitor.h"
#include "machine/devices/gemm_model.h"
#include "study/tables/validate.h"

namespace hemiola::study {
namespace {

std::string first_message(const Failure& failure) {
  for (const Diagnostic& item : failure.diagnostics().items())
    if (item.severity == Severity::error) return item.message;
  return "it is refused";
}

class CollectiveJudge {
 public:
  CollectiveJudge(Laboratory& laboratory, const JudgeOptions& options)
      : laboratory_(laboratory), options_(options), validator_(laboratory) {}

  void judge(const MeasuredTable& table, const TableWords& words, const MeasuredRow& row,
             JudgedTable& judged) {
    const RowWords said = words.words_of(row);
    const RowPlace place = words.place_of(row);
    const auto collective = words.collective_of(row);
    JudgedRow found{.line = row.line,
                    .name = to_string(row.size),
                    .machine = place.machine,
                    .program = said.program,
                    .measured_us = row.time_us,
                    .refused = place.refused.empty() ? said.refused : place.refused};
    if (const auto type = parse_data_type(table.cell(row, "dtype"))) found.type = *type;
    if (place.refused.empty()) {
      found.like = {.device = place.device,
                    .kind = program_kind(said.program),
                    .launch = launch_kind(said.launch == sim::Launch::graph, said.one_host),
                    .op = collective ? std::string(name_of(*collective)) : said.program,
                    .library = said.library,
                    .ranks = place.ranks,
                    .nodes = place.nodes,
                    .amount = static_cast<double>(row.size.count)};
    }
    if (found.refused.empty() && !collective)
      found.refused = "neither the column op nor the table's head names a collective";
    if (found.refused.empty() && row.size > options_.max_size)
      found.refused = "larger than " + to_string(options_.max_size) + " (--max-size)";
    judged.rows.push_back(found);
    if (!found.refused.empty()) return;
    simulate(table, row, said, place, judged.rows.back());
  }

 private:
  void simulate(const MeasuredTable& table, const MeasuredRow& row, const RowWords& said,
                const RowPlace& place, JudgedRow& found) {
    MeasuredTable one = table;
    one.rows = {row};
    one.rows.front().ranks = place.ranks;
    Configuration configuration{.machine = machine_of(place.machine),
                                .program = said.program,
                                .parameters = said.parameters,
                                .options = options_.options,
                                .check = options_.check,
                                .max_size = options_.max_size};
    configuration.options.launch = said.launch.value_or(sim::Launch::stream);
    configuration.options.one_host = said.one_host;
    if (row.size > options_.exact_size) configuration.options.engine = sim::Engine::sampled;
    const Validation validation = validator_.validate(one, configuration, {});
    if (validation.interrupted) throw Interrupted();
    found.program = validation.rows.front().program;
    found.type = validation.rows.front().type;
    found.simulated_us = validation.rows.front().simulated.us();
  }

  const machine::SharedMachine& machine_of(const std::string& name) {
    machine::SharedMachine& machine = machines_[name];
    if (machine == nullptr) machine = laboratory_.machine({.name = name});
    return machine;
  }

  Laboratory& laboratory_;
  const JudgeOptions& options_;
  Validator validator_;
  std::map<std::string, machine::SharedMachine> machines_;  ///< kept, as the validator asks
};

}  // namespace

JudgedTable judge_rows(Laboratory& laboratory, const TableText& text, const std::string& file,
                       const JudgeOptions& options, const JudgeRow& judge) {
  const TableKind kind = kind_of(text, file);
  MeasuredTable table = read_measured(text, file, {}, {});
  if (!options.where.empty()) table = select(table, options.where);
  const TableWords words(table, laboratory);
  JudgedTable judged{.file = file, .kind = kind};
  const std::string name = file.substr(file.rfind('/') + 1);
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const MeasuredRow& row = table.rows[r];
    const std::size_t before = judged.rows.size();
    try {
      if (options.on_row) options.on_row(r, table.rows.size());
      judge(table, words, row, judged);
    } catch (const Interrupted&) {
      judged.rows.resize(before);
      judged.interrupted = true;
      break;
    } catch (const Failure& failure) {
      if (judged.rows.size() == before)
        judged.rows.push_back({.line = row.line, .measured_us = row.time_us});
      judged.rows.back().refused = first_message(failure);
    }
  }
  for (JudgedRow& row : judged.rows)
    if (row.simulated_us) row.evidence = evidence_of(row.like, EvidenceRows::shipped(), name);
  return judged;
}

JudgeRow judge_collectives(Laboratory& laboratory, const JudgeOptions& options) {
  const auto judge = std::make_shared<CollectiveJudge>(laboratory, options);
  return [judge](const MeasuredTable& table, const TableWords& words, const MeasuredRow& row,
                 JudgedTable& judged) { judge->judge(table, words, row, judged); };
}

JudgeRow judge_products(Laboratory& laboratory) {
  return [&laboratory](const MeasuredTable& table, const TableWords& words, const MeasuredRow& row,
                       JudgedTable& judged) {
    const machine::GemmShape shape = shape_of(table, row);
    const RowPlace place = words.place_of(row);
    JudgedRow found{.line = row.line,
                    .name = fmt::format("{} x {} x {}", shape.m, shape.n, shape.k),
                    .machine = place.machine,
                    .program = "product",
                    .type = shape.type,
                    .measured_us = row.time_us,
                    .refused = place.refused};
    if (shape.batch > 1) found.name = fmt::format("{} x ({})", shape.batch, found.name);
    if (place.refused.empty()) found.like = likeness_of(place.device, shape);
    judged.rows.push_back(found);
    if (!found.refused.empty()) return;
    const machine::SharedMachine machine = laboratory.machine({.name = place.machine});
    machine::GemmOptions how;
    double launch_us = 0;
    for (const auto& [name, value] : words.words_of(row).parameters) {
      if (name == "steady") how.steady = value == "yes";
      if (name == "cold") how.cold = value == "yes";
      if (name == "launch_us") launch_us = parse_number(value).value_or(0);
    }
    judged.rows.back().simulated_us =
        launch_us + machine::gemm_time_us(machine->models.front(), shape, how);
  };
}

JudgeRow refuse_rows(const std::string& reason) {
  return [reason](const MeasuredTable&, const TableWords&, const MeasuredRow& row,
                  JudgedTable& judged) {
    judged.rows.push_back({.line = row.line, .measured_us = row.time_us, .refused = reason});
  };
}

/// "bf16xbf16->bf16" is of bf16, with results of bf16.
machine::GemmShape shape_of(const MeasuredTable& table, const MeasuredRow& row) {
  const auto count = [&](const char* column, std::int64_t otherwise) {
    const std::string& cell = table.cell(row, column);
    if (cell.empty()) return otherwise;
    const auto number = parse_count(cell);
    if (!number || *number < 1)
      throw Failure(fmt::format("column '{}': '{}' is no number of elements", column, cell),
                    table.at(row));
    return *number;
  };
  machine::GemmShape shape{count("m", 0), count("n", 0), count("k", 0), count("b", 1)};
  const std::string& text = table.cell(row, "dtype");
  const std::size_t arrow = text.find("->"), cross = text.find('x');
  const std::string operand = text.substr(0, std::min(arrow, cross));
  const auto type = parse_data_type(operand);
  if (!text.empty() && !type)
    throw Failure(fmt::format("'{}' is no known data type", operand), table.at(row));
  if (type) shape.type = *type;
  if (arrow != std::string::npos) shape.output = parse_data_type(text.substr(arrow + 2));
  return shape;
}

}  // namespace hemiola::study

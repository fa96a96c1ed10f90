#include "workload/iteration/iteration_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/lists.h"
#include "workload/iteration/iteration.h"
#include "workload/models/generate.h"

namespace hemiola::workload {
namespace {

using study::MeasuredRow;
using study::MeasuredTable;

bool truth(const std::string& word) {
  return word == "yes";
}

/// Follows one option that data/tables.yaml sets. Failure: there is none of that name or value.
void follow(MakeRequest& make, const std::string& name, const std::string& value) {
  const auto number = [&] {
    const auto count = parse_count(value);
    if (!count) throw Failure(fmt::format("'{}' of '{}' is no number", value, name));
    return static_cast<int>(*count);
  };
  const auto known = [&](const auto& parsed) {
    if (!parsed) throw Failure(fmt::format("'{}' is no '{}'", value, name));
    return *parsed;
  };
  Parallelism& by = make.parallelism;
  if (name == "zero")
    by.zero = number();
  else if (name == "shard")
    by.shard = number();
  else if (name == "sequence_parallel")
    by.sequence_parallel = truth(value) && by.tp > 1;
  else if (name == "prefetch")
    make.prefetch = number();
  else if (name == "recompute")
    make.recompute = known(parse_recompute(value));
  else if (name == "attention")
    make.attention = known(parse_attention(value));
  else if (name == "dtype")
    make.type = known(parse_data_type(value));
  else if (name == "gradient_dtype")
    make.gradient_type = known(parse_data_type(value));
  else if (name == "overlap_gradients")
    make.overlap_gradients = truth(value);
  else if (name == "overlap_parameters")
    make.overlap_parameters = truth(value) && by.zero > 0;
  else if (name == "overlap_tensor_gradients")
    make.overlap_tensor_gradients = truth(value);
  else if (name == "fused_gradient_sum")
    make.fused_gradient_sum = truth(value);
  else if (name == "clip_gradients")
    make.clip_gradients = truth(value);
  else if (name == "chunks") {
    if (by.pp == 1) return;
    make.chunks = number();
    make.schedule = Schedule::interleaved;
  } else {
    throw Failure(fmt::format("'{}' is no option of an iteration", name));
  }
}

class IterationJudge {
 public:
  IterationJudge(study::Laboratory& laboratory, const study::JudgeOptions& options)
      : laboratory_(laboratory), options_(options) {}

  void judge(const MeasuredTable& table, const study::TableWords& words, const MeasuredRow& row,
             study::JudgedTable& judged) {
    const study::IterationWords said = words.iteration_of(row);
    study::RowPlace place = words.place_of(row);
    MakeRequest make = request_of(table, row, said);
    const auto ranks = static_cast<int>(make.parallelism.ranks());
    const Parallelism& by = make.parallelism;
    study::JudgedRow found{
        .line = row.line,
        .name = fmt::format("{}, {} GPUs: tp {} pp {} dp {}, micro batch {}", make.model.name,
                            ranks, by.tp, by.pp, by.dp, make.micro_batch),
        .machine = place.machine,
        .program = said.framework,
        .type = make.type,
        .measured_us = row.time_us,
        .refused = place.refused.empty() ? said.refused : place.refused};
    if (place.refused.empty()) {
      found.like =
          study::iteration_likeness(place.device, ranks, model_flop(make), make.model.is_mixture());
      found.like.library = said.framework;
    }
    judged.rows.push_back(found);
    if (!found.refused.empty()) return;
    study::MachineChoice machine{.name = place.machine, .ranks = std::to_string(ranks)};
    CostOptions costs = usual_costs("train");
    costs.monitor = options_.options.monitor;
    const IterationOutcome outcome = run_iteration(
        laboratory_, {.workload = std::make_shared<const Workload>(make_workload(make)),
                      .machine = machine,
                      .costs = costs});
    judged.rows.back().simulated_us = outcome.result.time.us();
  }

 private:
  static MakeRequest request_of(const MeasuredTable& table, const MeasuredRow& row,
                                const study::IterationWords& said) {
    const auto count = [&](const char* role, std::int64_t otherwise) {
      const std::string& cell = table.cell(row, role);
      if (cell.empty()) return otherwise;
      const auto number = parse_count(cell);
      if (!number || *number < 1)
        throw Failure(fmt::format("'{}' of '{}' is no whole number above zero", cell, role),
                      table.at(row));
      return *number;
    };
    MakeRequest make;
    if (const std::int64_t hidden = count("hidden", 0); hidden > 0) {
      make.model = {.name = "gpt",
                    .source = table.file,
                    .layers = count("layers", 0),
                    .hidden = hidden,
                    .heads = count("heads", 0),
                    .vocabulary = 51200,
                    .sequence = count("seq", 0)};
      make.type = DataType::float16;
    } else if (said.model.empty()) {
      throw Failure("no model is known by the name '" + table.cell(row, "model") + "'",
                    table.at(row));
    } else {
      make.model = load_model(study::lowered(said.model));
    }
    make.parallelism = {.tp = static_cast<int>(count("tp", 1)),
                        .pp = static_cast<int>(count("pp", 1)),
                        .dp = static_cast<int>(count("dp", 1)),
                        .cp = static_cast<int>(count("cp", 1)),
                        .ep = static_cast<int>(count("ep", 1))};
    make.micro_batch = count("mbs", 1);
    make.global_batch = count("gbs", 0);
    make.sequence = count("seq", 0);
    make.uneven_stages = true;
    for (const auto& [name, value] : said.set) follow(make, name, value);
    return make;
  }

  study::Laboratory& laboratory_;
  const study::JudgeOptions& options_;
};

}  // namespace

study::JudgeRow judge_iterations(study::Laboratory& laboratory,
                                 const study::JudgeOptions& options) {
  const auto judge = std::make_shared<IterationJudge>(laboratory, options);
  return [judge](const MeasuredTable& table, const study::TableWords& words, const MeasuredRow& row,
                 study::JudgedTable& judged) { judge->judge(table, words, row, judged); };
}

}  // namespace hemiola::workload

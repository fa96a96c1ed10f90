#include "explore/suite/overlap_rows.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>

#include "core/lists.h"
#include "explore/search/explorer.h"

namespace hemiola::explore {
namespace {

using study::MeasuredRow;
using study::MeasuredTable;

/// What a measured time is of.
enum class Part : std::uint8_t { product, serial, fused };

class OverlapJudge {
 public:
  OverlapJudge(study::Laboratory& laboratory, const study::JudgeOptions& options)
      : laboratory_(laboratory), options_(options) {}

  void judge(const MeasuredTable& table, const study::TableWords& words, const MeasuredRow& row,
             study::JudgedTable& judged) {
    const study::RowPlace place = words.place_of(row);
    const study::RowWords said = words.words_of(row);
    const Operator op = operator_of(table, row, place.ranks);
    study::JudgedRow found{.line = row.line,
                           .machine = place.machine,
                           .type = op.type,
                           .measured_us = row.time_us,
                           .refused = place.refused.empty() ? said.refused : place.refused};
    found.like = {.device = place.refused.empty() ? place.device : "",
                  .kind = std::string(study::kOverlapKind),
                  .ranks = place.ranks,
                  .nodes = place.nodes,
                  .amount = local_flop(op)};
    const auto add = [&](Part part, double measured_us) {
      study::JudgedRow one = found;
      one.measured_us = measured_us;
      one.name =
          fmt::format("{} {} x {} x {}, {}", name_of(op.kind), op.m, op.n, op.k, name_of(part));
      if (part == Part::product)
        one.like = study::likeness_of(one.like.device, local_product(op));
      else
        one.like.op = fmt::format("{}, {}", name_of(op.kind), name_of(part));
      if (one.refused.empty()) fill(one, op, place, said, part);
      judged.rows.push_back(one);
    };
    const auto serial = study::parse_number(table.cell(row, "serial_us"));
    if (serial && *serial > 0) add(Part::serial, *serial);
    add(part_of(table.cell(row, "variant")), row.time_us);
  }

 private:
  static std::string_view name_of(OperatorKind kind) { return explore::name_of(kind); }
  static std::string_view name_of(Part part) {
    return part == Part::product ? "product" : part == Part::serial ? "serial" : "fused";
  }

  static Part part_of(const std::string& variant) {
    if (variant.find(" only") != std::string::npos) return Part::product;
    return variant.find(" then ") != std::string::npos ? Part::serial : Part::fused;
  }

  static Operator operator_of(const MeasuredTable& table, const MeasuredRow& row, int ranks) {
    machine::GemmShape shape = study::shape_of(table, row);
    std::string kind = table.cell(row, "op");
    if (kind.empty()) kind = table.cell(row, "pattern");
    Operator op{.kind = operator_named(study::lowered(kind), table.at(row)),
                .ranks = ranks,
                .m = shape.m,
                .n = shape.n,
                .k = shape.k,
                .type = shape.type};
    // A column says whether n and k are of one GPU or of all; what is divided is n of what is
    // gathered, k of what is summed.
    const char* scope = adds_up(op.kind) ? "k_scope" : "n_scope";
    const std::string& said = table.cell(row, scope);
    if (!said.empty() && said != "global" && said != "per GPU")
      throw Failure(fmt::format("the column {} does not say whose size it is", scope),
                    table.at(row));
    if (said != "global") (adds_up(op.kind) ? op.k : op.n) *= ranks;
    check(op, table.at(row));
    return op;
  }

  void fill(study::JudgedRow& row, const Operator& op, const study::RowPlace& place,
            const study::RowWords& said, Part part) {
    const std::string key = text_of(op) + place.machine;
    auto found = known_.find(key);
    if (found == known_.end()) {
      Request request{.op = op,
                      .machine = {.name = place.machine, .ranks = std::to_string(op.ranks)}};
      request.top = 0;
      request.losses = LossesOf::none;
      request.options.threads = options_.options.threads;
      found = known_
                  .emplace(key, explore(laboratory_, request,
                                        {.watch = {.monitor = options_.options.monitor}}))
                  .first;
    }
    const Exploration& explored = found->second;
    if (part != Part::fused) {
      row.program = part == Part::serial ? explored.serial.program + ", product" : "product";
      row.simulated_us =
          (part == Part::serial ? explored.serial.time : explored.serial.product).us();
      return;
    }
    const bool steps = said.program == "fused steps";
    const bool engines = said.program == "fused kernel by copy engines";
    const Candidate* best = nullptr;
    for (const Candidate& one : explored.candidates) {
      if ((one.schedule.family.division == Division::kernel) == steps) continue;
      if (engines && one.schedule.realization != "copy-engine") continue;
      if (best == nullptr || one.fluid < best->fluid) best = &one;
    }
    if (best == nullptr) {
      row.refused = "no schedule of this family is among those that were simulated";
      return;
    }
    row.program = best->schedule.text();
    row.simulated_us = best->fluid.us();
  }

  study::Laboratory& laboratory_;
  const study::JudgeOptions& options_;
  std::map<std::string, Exploration> known_;
};

}  // namespace

study::JudgeRow judge_overlaps(study::Laboratory& laboratory, const study::JudgeOptions& options) {
  const auto judge = std::make_shared<OverlapJudge>(laboratory, options);
  return [judge](const MeasuredTable& table, const study::TableWords& words, const MeasuredRow& row,
                 study::JudgedTable& judged) { judge->judge(table, words, row, judged); };
}

}  // namespace hemiola::explore

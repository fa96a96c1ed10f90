#include "hemiola/rule.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/text.h"
#include "explore/rules/rules.h"
#include "study/laboratory/experiment.h"

namespace explore = hemiola::explore;

struct hemiola_rule {
  explore::Rule rule = explore::Rule::analytic();
  explore::RuleMachine machine;
  int ranks = 0;
  hemiola::DataType type = hemiola::DataType::bfloat16;
};

namespace {

/// Texts of families that live as long as the program.
const char* text_of_family(const explore::Family& family) {
  static const std::vector<std::pair<explore::Family, std::string>> texts = [] {
    std::vector<std::pair<explore::Family, std::string>> all;
    for (const explore::Family& one : explore::families()) all.emplace_back(one, one.text());
    return all;
  }();
  for (const auto& [one, text] : texts)
    if (one == family) return text.c_str();
  return "serial";
}

explore::Rule rule_named(const std::string& name) {
  for (const explore::Rule& rule : explore::shipped_rules())
    if (rule.name() == name) return rule;
  return explore::Rule::parse(hemiola::read_file(name), name);
}

std::unique_ptr<hemiola_rule> opened(const std::string& name, const std::string& machine, int ranks,
                                     const std::string& dtype) {
  auto rule = std::make_unique<hemiola_rule>();
  rule->rule = rule_named(name);
  const auto type = hemiola::parse_data_type(dtype);
  if (!type) throw hemiola::Failure("'" + dtype + "' is not a data type");
  rule->type = *type;
  hemiola::study::Laboratory laboratory;
  const auto loaded = laboratory.machine(
      {.name = machine, .ranks = ranks > 0 ? std::to_string(ranks) : std::string()});
  if (loaded == nullptr) throw hemiola::Failure("no machine is given");
  if (loaded->ranks() < 2) throw hemiola::Failure("a collective is among 2 ranks at least");
  rule->ranks = loaded->ranks();
  rule->machine = explore::RuleMachine::of(*loaded, rule->type);
  return rule;
}

}  // namespace

hemiola_rule* hemiola_rule_open(const char* rule, const char* machine, int32_t ranks,
                                const char* dtype, char* error, size_t error_size) {
  const auto text = [](const char* given) { return given == nullptr ? "" : given; };
  try {
    return opened(text(rule), text(machine), ranks, text(dtype)).release();
  } catch (const std::exception& failure) {
    if (error != nullptr && error_size > 0) {
      const std::string what = failure.what();
      const std::size_t length = std::min(what.size(), error_size - 1);
      std::memcpy(error, what.data(), length);
      error[length] = '\0';
    }
    return nullptr;
  }
}

int hemiola_rule_pick(const hemiola_rule* rule, const hemiola_operator* op, hemiola_pick* pick) {
  *pick = {text_of_family({explore::Division::serial}), 1};
  if (op->kind < HEMIOLA_AG_GEMM || op->kind > HEMIOLA_GEMM_A2A) return -1;
  const explore::Operator asked{.kind = static_cast<explore::OperatorKind>(op->kind),
                                .ranks = rule->ranks,
                                .m = op->m,
                                .n = op->n,
                                .k = op->k,
                                .gathers_b = op->gathers_b != 0,
                                .type = rule->type};
  if (!explore::is_divided(asked)) return -1;
  const explore::Pick found = rule->rule.pick(asked, rule->machine);
  *pick = {text_of_family(found.family), found.degree};
  return 0;
}

void hemiola_rule_close(hemiola_rule* rule) {
  delete rule;
}

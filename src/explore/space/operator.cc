#include "explore/space/operator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/lists.h"
#include "plan/template.h"

namespace hemiola::explore {
namespace {

struct KindFacts {
  OperatorKind kind;
  std::string_view name, family;
  Collective collective;
  bool communicates_first;
};
constexpr std::array<KindFacts, 5> kKinds{
    {{OperatorKind::ag_gemm, "ag-gemm", "ag-gemm", Collective::all_gather, true},
     {OperatorKind::gemm_rs, "gemm-rs", "gemm-rs", Collective::reduce_scatter, false},
     {OperatorKind::gemm_ar, "gemm-ar", "gemm-ar", Collective::all_reduce, false},
     {OperatorKind::a2a_gemm, "a2a-gemm", "dispatch-gemm", Collective::all_to_all, true},
     {OperatorKind::gemm_a2a, "gemm-a2a", "gemm-combine", Collective::all_to_all, false}}};

const KindFacts& facts_of(OperatorKind kind) {
  return kKinds[index(kind)];
}

bool is_of_experts(OperatorKind kind) {
  return kind == OperatorKind::a2a_gemm || kind == OperatorKind::gemm_a2a;
}

/// Tokens that each rank has for the experts of each; of an operator that check() takes.
std::vector<std::int64_t> tokens_of(const Operator& op, const SourceLocation& where) {
  return plan::expert_rows(op.load, op.ranks, op.m / op.ranks, where);
}

/// Types that products have, as the templates name them.
const std::vector<std::string>& template_types() {
  static const std::vector<std::string> types =
      plan::find_template("ag-gemm/sequence")->parameter("dtype")->choices;
  return types;
}

/// "" where the templates have none of it.
std::string_view template_type(DataType type) {
  for (const std::string& name : template_types())
    if (parse_data_type(name) == type) return name;
  return {};
}

/// A size of which the ranks have equal parts, and what part of it each has.
struct Divided {
  const char* name;
  std::int64_t size, parts;
  const char* each;
};

std::array<Divided, 2> divided_sizes(const Operator& op) {
  const std::int64_t n = op.ranks;
  switch (op.kind) {
    case OperatorKind::ag_gemm:
      return {{{"M", op.m, n, "has as many rows"}, {"N", op.n, n, "has as many columns"}}};
    case OperatorKind::gemm_rs:
    case OperatorKind::gemm_ar:
      return {{{"M", op.m, n, "gets as many rows"}, {"K", op.k, n, "sums over as many"}}};
    case OperatorKind::a2a_gemm:
    case OperatorKind::gemm_a2a:
      if (!is_even(op))
        return {{{"M", op.m, n, "has as many tokens"}, {"K", op.k, 1, "has all of it"}}};
      return {{{"M", op.m, n * n, "has as many tokens for every one"},
               {"K", op.k, 1, "has all of it"}}};
  }
  return {};
}

bool is_whole(const Divided& divided) {
  return divided.size % divided.parts == 0;
}

/// Floating-point operations of one GPU that no operator has more of.
const double kMostFlop = std::ldexp(1.0, 60);

/// m of as_busiest(). Rules ask it of every operator: nothing is copied where the load is even.
std::int64_t rows_of_busiest(const Operator& op) {
  if (is_even(op)) return op.m;
  const std::vector<std::int64_t> tokens = tokens_of(op, {});
  return std::int64_t{op.ranks} * op.ranks * *std::ranges::max_element(tokens);
}

}  // namespace

bool is_even(const Operator& op) {
  return op.load == plan::kEvenLoad;
}

std::string_view name_of(OperatorKind kind) {
  return facts_of(kind).name;
}
Collective collective_of(OperatorKind kind) {
  return facts_of(kind).collective;
}
bool communicates_first(OperatorKind kind) {
  return facts_of(kind).communicates_first;
}
bool adds_up(OperatorKind kind) {
  return kind == OperatorKind::gemm_rs || kind == OperatorKind::gemm_ar;
}
std::string_view template_family(OperatorKind kind) {
  return facts_of(kind).family;
}

OperatorKind operator_named(const std::string& name, const SourceLocation& where) {
  std::vector<std::string> names;
  for (const KindFacts& facts : kKinds) {
    if (facts.name == name) return facts.kind;
    names.emplace_back(facts.name);
  }
  throw Failure(fmt::format("'{}' is not an operator", name), where,
                suggest(name, names, "there are: " + joined(names)));
}

void check(const Operator& op, const SourceLocation& where) {
  const auto at_least_one = [&](const char* what, std::int64_t value) {
    if (value < 1) throw Failure(fmt::format("{} = {} is not a size", what, value), where);
  };
  if (template_type(op.type).empty())
    throw Failure(
        fmt::format("no schedule multiplies {}", name_of(op.type)), {.file = "--dtype"},
        fmt::format("for example bf16; there are: {}", fmt::join(template_types(), ", ")));
  at_least_one("M", op.m);
  at_least_one("N", op.n);
  at_least_one("K", op.k);
  if (op.ranks < 2)
    throw Failure("a collective is among 2 ranks at least", where, "choose more with --ranks");
  for (const Divided& one : divided_sizes(op)) {
    if (is_whole(one)) continue;
    const std::int64_t below = one.size / one.parts * one.parts;
    throw Failure(fmt::format("{} = {} does not divide by {}: each of {} ranks {}", one.name,
                              one.size, one.parts, op.ranks, one.each),
                  where,
                  fmt::format("the next ones that do are {}{}",
                              below > 0 ? std::to_string(below) + " and " : std::string(),
                              below + one.parts));
  }
  if (!is_even(op)) tokens_of(op, {.file = "--load"});
  if (local_flop(op) > kMostFlop)
    throw Failure(fmt::format("{} is more than 2^60 floating-point operations of one GPU, which "
                              "takes a quarter of an hour at a PFLOP/s",
                              text_of(op)),
                  where, "are the sizes those of one operator?");
}

void check_load(const Operator& op, const SourceLocation& where) {
  if (!is_even(op) && !is_of_experts(op.kind))
    throw Failure(std::string(name_of(op.kind)) + " has no experts", where,
                  "leave it out, or explore a2a-gemm or gemm-a2a");
}

Operator as_busiest(const Operator& op) {
  Operator busiest = op;
  busiest.m = rows_of_busiest(op);
  busiest.load = plan::kEvenLoad;
  return busiest;
}

bool is_divided(const Operator& op) {
  if (op.m < 1 || op.n < 1 || op.k < 1 || op.ranks < 2 || local_flop(op) > kMostFlop) return false;
  const std::array<Divided, 2> sizes = divided_sizes(op);
  return is_whole(sizes[0]) && is_whole(sizes[1]);
}

void check_gathers_b(OperatorKind kind, const SourceLocation& where) {
  if (kind != OperatorKind::ag_gemm)
    throw Failure(std::string(name_of(kind)) + " gathers nothing", where,
                  "leave it out, or explore ag-gemm");
}

Operator from_local(Operator local, const SourceLocation& where) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  if (local.m > kMost || local.n > kMost || local.k > kMost)
    throw Failure("a size is beyond 2^40", where);
  const std::int64_t n = local.ranks;
  if (is_of_experts(local.kind) || local.gathers_b) local.m *= n;
  if (local.kind == OperatorKind::ag_gemm && !local.gathers_b) local.n *= n;
  if (adds_up(local.kind)) local.k *= n;
  check(local, where);
  return local;
}

machine::GemmShape local_product(const Operator& op) {
  machine::GemmShape shape{.m = rows_of_busiest(op), .n = op.n, .k = op.k, .type = op.type};
  if (is_of_experts(op.kind) || op.gathers_b)
    shape.m /= op.ranks;
  else if (adds_up(op.kind))
    shape.k /= op.ranks;
  else
    shape.n /= op.ranks;
  return shape;
}

double flop_of(const machine::GemmShape& shape) {
  return 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
         static_cast<double>(shape.k);
}

double local_flop(const Operator& op) {
  return flop_of(local_product(op));
}

Bytes collective_size(const Operator& op) {
  const std::int64_t bytes = size_of(op.type);
  switch (op.kind) {
    case OperatorKind::ag_gemm:
      return {(op.gathers_b ? op.n : op.m) * op.k * bytes};
    case OperatorKind::gemm_rs:
    case OperatorKind::gemm_ar:
      return {op.m * op.n * bytes};
    case OperatorKind::a2a_gemm:
      return {rows_of_busiest(op) / op.ranks * op.k * bytes};
    case OperatorKind::gemm_a2a:
      return {rows_of_busiest(op) / op.ranks * op.n * bytes};
  }
  return {};
}

std::vector<std::string> who_holds_what(const Operator& op) {
  const auto tensor = [](const char* name, std::int64_t rows, std::int64_t columns,
                         const std::string& who) {
    return fmt::format("{} [{}, {}]: {}", name, rows, columns, who);
  };
  const std::int64_t n = op.ranks;
  const std::string rows_each = fmt::format("{} rows on each GPU", op.m / n);
  switch (op.kind) {
    case OperatorKind::ag_gemm:
      if (op.gathers_b)
        return {tensor("A", op.m, op.k, rows_each),
                tensor("B", op.k, op.n,
                       fmt::format("{} columns on each GPU; gathered, so that every GPU has all",
                                   op.n / n)),
                tensor("C", op.m, op.n, rows_each)};
      return {tensor("A", op.m, op.k, rows_each + "; gathered, so that every GPU has all"),
              tensor("B", op.k, op.n, fmt::format("{} columns on each GPU", op.n / n)),
              tensor("C", op.m, op.n, fmt::format("{} columns on each GPU", op.n / n))};
    case OperatorKind::gemm_rs:
    case OperatorKind::gemm_ar:
      return {tensor("A", op.m, op.k, fmt::format("{} columns on each GPU", op.k / n)),
              tensor("B", op.k, op.n, fmt::format("{} rows on each GPU", op.k / n)),
              tensor("C", op.m, op.n,
                     op.kind == OperatorKind::gemm_rs
                         ? rows_each + ", summed over all GPUs"
                         : std::string("all of it on every GPU, summed over all"))};
    case OperatorKind::a2a_gemm:
    case OperatorKind::gemm_a2a: {
      const bool first = op.kind == OperatorKind::a2a_gemm;
      const std::string each =
          is_even(op) ? fmt::format("{} tokens on each GPU, {} {} each other", op.m / n,
                                    op.m / n / n, first ? "of them for" : "of them of")
                      : fmt::format("{} tokens on each GPU, {} {} the experts of GPU 0, 1, ...",
                                    op.m / n, fmt::join(tokens_of(op, {}), ", "),
                                    first ? "of them for" : "back from");
      return {tensor("A", op.m, op.k, first ? each : rows_each),
              tensor("B", op.k, op.n, "one of its own on each GPU: its experts' weights"),
              tensor("C", op.m, op.n, first ? rows_each : each)};
    }
  }
  return {};
}

study::Settings template_sizes(const Operator& op) {
  const bool transposed = op.gathers_b;
  study::Settings sizes{{"m", std::to_string(transposed ? op.n : op.m)},
                        {"n", std::to_string(transposed ? op.m : op.n)},
                        {"k", std::to_string(op.k)},
                        {"dtype", std::string(template_type(op.type))}};
  if (!is_even(op)) sizes.emplace_back("load", op.load);
  return sizes;
}

std::string text_of(const Operator& op) {
  return fmt::format("{}{} {} x {} x {} {} on {} GPUs{}", name_of(op.kind),
                     op.gathers_b ? " (B gathered)" : "", op.m, op.n, op.k, name_of(op.type),
                     op.ranks, is_even(op) ? "" : ", load " + op.load);
}

}  // namespace hemiola::explore

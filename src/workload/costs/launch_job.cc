#include "workload/costs/launch_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "core/digest.h"
#include "core/index.h"
#include "core/text.h"
#include "study/laboratory/preparation.h"
#include "workload/costs/fuse.h"

namespace hemiola::workload {
namespace {

/// Share of the matrix units' rate that attention reaches: FlashAttention-2 says 50 to 73 % of an
/// A100 (arXiv:2307.08691, abstract).
constexpr std::int64_t kAttentionPermille = 620;

/// Share of a copy's rate that kernels reach that are known by their bytes: norms, softmax,
/// dropout, optimizers. Fitted, with gemm.sustained_clock of an A100, to measured iterations of
/// training (docs/fidelity.md).
constexpr std::int64_t kKernelPermille = 800;

std::string_view call_noun(const LaunchKind& kind, const Workload& workload) {
  if (kind.kind != NodeKind::collective) return "message";
  return name_of(workload.collectives[index(kind.work)].kind);
}

}  // namespace

Bytes bytes_of_copy(std::int64_t bytes) {
  return {static_cast<std::int64_t>(static_cast<__int128>(bytes) * 1000 / kKernelPermille)};
}

std::int64_t flop_of_units(const Compute& compute) {
  if (compute.kind != Compute::Kind::attention) return compute.flop;
  return static_cast<std::int64_t>(static_cast<__int128>(compute.flop) * 1000 / kAttentionPermille);
}

std::string text_of(const Workload& workload, const LaunchKind& kind) {
  if (!is_kernel(kind.kind)) {
    const Call call = call_of(workload, kind.kind, kind.work);
    const bool is_message = kind.kind != NodeKind::collective;
    return fmt::format("{} of {}{}",
                       kind.kind == NodeKind::receive ? "copy out of a FIFO"
                       : is_message                   ? "message"
                                                      : name_of(call.kind),
                       to_string(Bytes{call.bytes}),
                       has_product(workload, kind.kind, kind.work) ? " with its product" : "");
  }
  const Compute& compute = workload.computes[index(kind.work)];
  if (compute.kind == Compute::Kind::product)
    return fmt::format("product {}x{}x{}", compute.product.m, compute.product.n, compute.product.k);
  return compute.kind == Compute::Kind::attention ? "attention" : "kernel";
}

RunAs run_as(const Workload& workload, NodeKind kind, std::int32_t work) {
  if (kind != NodeKind::collective) return {};
  const CollectiveCall& call = workload.collectives[index(work)];
  return {call.kind, call.type};
}

program::Work LaunchPrograms::work_of(const Compute& compute,
                                      const machine::GpuModel& model) const {
  program::Work work{.read = {compute.read},
                     .written = {compute.written},
                     .flop = compute.flop,
                     .most_steps = kPiecesOfKernel};
  switch (compute.kind) {
    case Compute::Kind::product: {
      if (options_.roofline) break;
      // Of several products at once: as long as the model of products says.
      const machine::GemmEstimate estimate = machine::estimate_gemm(model, compute.product);
      work.flop = 0;
      work.duration = estimate.time - estimate.launch;
      break;
    }
    case Compute::Kind::attention:
      if (!options_.roofline) work.flop = flop_of_units(compute);
      break;
    case Compute::Kind::other:
      if (options_.roofline) break;
      work.read = bytes_of_copy(compute.read);
      work.written = bytes_of_copy(compute.written);
      break;
  }
  return work;
}

/// `number`: of Workload::computes, or one below zero of a kernel that is no node's.
template <class Make>
LaunchPrograms::Made LaunchPrograms::once(std::int64_t number, int rank, const Make& make) {
  const machine::GpuModel& model = machine_->model(rank);
  Made& known = kernels_[{number, &model}];
  if (known.program != nullptr) return known;
  known.program = std::make_shared<const program::Program>(make(model));
  known.options.size = known.program->fixed_size;
  if (known.program->fixed_type) known.options.type = *known.program->fixed_type;
  return known;
}

LaunchPrograms::Made LaunchPrograms::kernel(std::int32_t compute, int rank) {
  return once(compute, rank, [&](const machine::GpuModel& model) {
    const Compute& one = workload_.computes[index(compute)];
    if (one.kind == Compute::Kind::product && one.product.batch == 1 && !options_.roofline)
      return program::product_program({one.product.m, one.product.n, one.product.k},
                                      one.product.type, model);
    return program::work_program(work_of(one, model), model);
  });
}

LaunchPrograms::Made LaunchPrograms::any_kernel(int rank) {
  return once(-1, rank, [](const machine::GpuModel& model) {
    constexpr Bytes kBytes{32 << 20};
    return program::work_program({.read = kBytes, .written = kBytes, .most_steps = kPiecesOfKernel},
                                 model);
  });
}

LaunchPrograms::Made LaunchPrograms::copy(std::int64_t bytes, int rank) {
  return once(-3 - bytes, rank, [&](const machine::GpuModel& model) {
    return program::work_program(
        {.read = {bytes}, .written = {bytes}, .most_steps = kPiecesOfKernel}, model);
  });
}

LaunchPrograms::Made LaunchPrograms::short_kernel(int rank) {
  return once(-2, rank, [](const machine::GpuModel& model) {
    return program::work_program({.duration = Time{1'000'000'000}}, model);
  });
}

std::uint64_t LaunchPrograms::ways_between(const std::vector<int>& ranks) {
  const auto [at, is_new] = ways_.emplace(ranks, 0);
  if (!is_new) return at->second;
  constexpr std::size_t kSmall = 8, kPart = 4;
  if (ranks.size() <= kSmall) return at->second = machine_->ways_between(ranks);
  Digest ways;
  ways.add(static_cast<std::int64_t>(ranks.size()));
  const std::size_t parts = ranks.size() / kPart;
  for (std::size_t p = 0; p < parts; ++p) {
    std::array<int, kPart> near{}, far{};
    for (std::size_t i = 0; i < kPart; ++i) {
      near[i] = ranks[p * kPart + i];
      far[i] = ranks[p + i * parts];
    }
    ways.add(static_cast<std::int64_t>(machine_->ways_between(near)))
        .add(static_cast<std::int64_t>(machine_->ways_between(far)));
  }
  ways.add(static_cast<std::int64_t>(machine_->ways_between(std::span(ranks).last(kPart))));
  return at->second = ways.value();
}

const CollectiveRule* LaunchPrograms::rule_for(Collective kind, int ranks,
                                               std::int64_t bytes) const {
  const CollectiveRule* found = nullptr;
  for (const CollectiveRule& rule : options_.rules)
    if (!rule.is_fused && rule.kind == kind && (rule.ranks == 0 || rule.ranks == ranks) &&
        bytes >= rule.least)
      found = &rule;
  return found;
}

/// Amounts in units so small that rounding them up adds less than a thousandth.
void LaunchPrograms::set_uneven(study::Experiment& experiment, const CollectiveCall& call,
                                std::size_t ranks) const {
  constexpr std::int64_t kUnits = 1 << 16, kLeast = 16;
  const Splits& splits = workload_.splits[index(call.splits)];
  const std::int64_t unit = std::max(kLeast, (call.bytes / kUnits + kLeast - 1) / kLeast * kLeast);
  std::string counts;
  std::int64_t most = 0;
  for (std::size_t from = 0; from < ranks; ++from) {
    std::int64_t sum = 0;
    for (std::size_t to = 0; to < ranks; ++to) {
      const std::int64_t count = (splits[from * ranks + to] + unit - 1) / unit;
      counts += fmt::format("{}{}", to > 0 ? "/" : from > 0 ? ":" : "", count);
      sum += count;
    }
    most = std::max(most, sum);
  }
  experiment.subject = std::string("all-to-all/uneven");
  experiment.parameters = {{"counts", counts}};
  experiment.size = Bytes{most * unit};
}

/// A product with its collective, by the rule that fused them.
LaunchPrograms::Made LaunchPrograms::fused(const CollectiveCall& call,
                                           const std::vector<int>& group,
                                           const machine::SharedMachine& ranks) {
  const auto count = static_cast<int>(group.size());
  const machine::GemmShape& product = workload_.computes[index(call.product)].product;
  const CollectiveRule& rule = *fusing_rule(options_.rules, call.kind, count, product);
  study::Experiment experiment{.machine = {.given = ranks},
                               .subject = rule.program,
                               .parameters = rule.parameters,
                               .type = product.type};
  const machine::GemmShape whole = whole_product(call.kind, count, product);
  if (!is_file(rule.program)) {
    experiment.parameters.emplace_back("m", std::to_string(whole.m));
    experiment.parameters.emplace_back("n", std::to_string(whole.n));
    experiment.parameters.emplace_back("k", std::to_string(whole.k));
    experiment.parameters.emplace_back("dtype", std::string(name_of(product.type)));
  }
  const auto refuse = [&](const std::string& message, const std::string& hint) {
    throw Failure(fmt::format("a product of {}, {}, {} over {} ranks cannot run {}: {}", whole.m,
                              whole.n, whole.k, count, rule.program, message),
                  {.file = workload_.source.empty() ? "--collectives" : workload_.source}, hint);
  };
  Made made;
  try {
    made.program = laboratory_.program(experiment, ranks);
  } catch (const Failure& failure) {
    const Diagnostic& first = failure.diagnostics().items().front();
    refuse(first.message, first.hint);
  }
  made.options.size = made.program->fixed_size;
  made.options.type = made.program->fixed_type.value_or(product.type);
  // Both matrices that a rank multiplies are its inputs.
  const std::int64_t operands = (product.m + product.n) * product.k * size_of(product.type);
  if (made.options.size.count != operands)
    refuse(fmt::format("it has {} B of operands, and the product {} B", made.options.size.count,
                       operands),
           "'gemm' is the product of all ranks, as 'explore --gemm' has it");
  return made;
}

LaunchPrograms::Made LaunchPrograms::call(const LaunchKind& kind, std::int64_t bytes,
                                          const std::vector<int>& group) {
  const auto [collective, type] = run_as(workload_, kind.kind, kind.work);
  machine::SharedMachine& ranks = machines_[group];
  if (ranks == nullptr) ranks = machine::select_ranks(machine_, group);
  const bool is_fused = has_product(workload_, kind.kind, kind.work);
  // In a situation an even call of fewer bytes, and maybe of fewer ranks, stands for it.
  const bool uneven =
      is_uneven(workload_, kind.kind, kind.work) &&
      bytes == workload_.collectives[index(kind.work)].bytes &&
      workload_.splits[index(workload_.collectives[index(kind.work)].splits)].size() ==
          group.size() * group.size();
  Made& known = calls_[{is_fused || uneven                  ? kind.work
                        : kind.kind == NodeKind::collective ? -1
                                                            : -2,
                        collective, type, bytes, ways_between(group)}];
  if (known.program != nullptr) return known;
  if (is_fused) return known = fused(workload_.collectives[index(kind.work)], group, ranks);
  study::Experiment experiment{.machine = {.given = ranks},
                               .subject = std::string("auto/nccl"),
                               .parameters = {{"collective", std::string(name_of(collective))}},
                               .size = Bytes{bytes},
                               .type = type};
  if (const auto* rule = rule_for(collective, static_cast<int>(group.size()), bytes);
      rule != nullptr && kind.kind == NodeKind::collective) {
    experiment.subject = rule->program;
    experiment.parameters = rule->parameters;
  }
  if (uneven) set_uneven(experiment, workload_.collectives[index(kind.work)], group.size());
  try {
    const study::SharedProgram program = laboratory_.program(experiment, ranks);
    known.options = {.size = *experiment.size, .type = type};
    known.options.size = study::round_up(*program, known.options);
    known.program = program;
  } catch (const Failure& failure) {
    const Diagnostic& first = failure.diagnostics().items().front();
    throw Failure(fmt::format("a {} of {} B in groups of {} ranks cannot be run: {}",
                              call_noun(kind, workload_), bytes, group.size(), first.message),
                  {.file = workload_.source}, first.hint);
  }
  return known;
}

}  // namespace hemiola::workload

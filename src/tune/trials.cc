#include "tune/trials.h"

#include <algorithm>
#include <utility>

#include "compile/readback/readback.h"
#include "explore/trials/isolated.h"
#include "machine/devices/gemm_model.h"
#include "study/laboratory/preparation.h"
#include "study/support/digest.h"
#include "tune/database.h"

namespace hemiola::tune {
namespace {

std::string configuration_key(const compile::Configuration& one) {
  std::string text = "warps " + one.warps + " stages " + one.stages;
  for (const auto& [name, value] : one.constants) text += ' ' + name + '=' + value;
  return text;
}

std::string plan_key(const explore::TemplatePlan& plan) {
  return plan.name + ' ' + study::to_text(plan.parameters);
}

}  // namespace

std::string Trials::key_of(const Candidate& candidate) const {
  const std::string key = plan_key(candidate.plan);
  return candidate.is_written ? key + " file " + candidate.file_digest : key;
}

program::Program Trials::program_of(const Candidate& candidate) const {
  return program_of(candidate, plan::make(info_, machine_->ranks(),
                                          space_.plan_parameters(candidate.point), machine_.get()));
}

program::Program Trials::program_of(const Candidate& candidate, const plan::Plan& plan) const {
  const std::string name = request_.kernel.describe.file;
  std::int64_t units = INT64_MAX;
  for (int rank = 0; rank < machine_->ranks(); ++rank)
    units = std::min<std::int64_t>(units, machine_->model(rank).cu_count);
  const compile::TorchFile file =
      fused_of(request_, candidate, plan)
          .write({.file = request_.plan, .command = {}, .version = {}, .movers = candidate.movers},
                 name);
  return compile::read_fused(name, file.text, {.processors = units, .values = false}).program;
}

void Trials::simulate(const Candidate& candidate, explore::Measured& fluid) {
  if (!candidate.is_written) {
    fluid = plans_.simulate(candidate.plan);
    return;
  }
  try {
    fluid = plans_.simulate(candidate.plan, program_of(candidate));
  } catch (const Failure& failure) {
    if (failure.code() == ExitCode::internal) throw;
    fluid.refused = study::error_text(failure);
  }
}

void Trials::simulate(const Candidate& candidate, explore::Confirmed& sampled) {
  sampled = candidate.is_written ? plans_.confirm(candidate.plan, program_of(candidate))
                                 : plans_.confirm(candidate.plan);
}

Trials::Trials(study::Laboratory& laboratory, const Request& request, const Space& space,
               const std::vector<std::string>& tile_parameters, machine::SharedMachine machine,
               const TuneWatch& watch, Bucket& bucket)
    : request_(request),
      space_(space),
      tile_parameters_(tile_parameters),
      machine_(std::move(machine)),
      watch_(watch),
      bucket_(bucket),
      info_(*plan::find_template(request.plan, laboratory.parts())),
      // Plans of elements have types of their own.
      plans_(laboratory, request.options, DataType::float32, machine_, watch.watch.monitor) {
  budget_ = request.method == Method::exhaustive ? INT64_MAX : request.budget;
  reserve_ = request.any_realization && request.method == Method::descent ? 1 : 0;
}

std::optional<std::size_t> Trials::place_of(const Point& point) const {
  const auto found = looked_at_.find(point);
  return found == looked_at_.end() ? std::nullopt : found->second;
}
const Candidate* Trials::candidate_at(const Point& point) const {
  const std::optional<std::size_t> place = place_of(point);
  return place ? &candidates_[*place] : nullptr;
}
Candidate* Trials::candidate_at(const Point& point) {
  const std::optional<std::size_t> place = place_of(point);
  return place ? &candidates_[*place] : nullptr;
}

std::optional<Time> Trials::fluid(const Point& point) const {
  const Candidate* one = candidate_at(point);
  return one != nullptr && one->fluid ? std::optional(one->fluid->fluid) : std::nullopt;
}
namespace {

/// Of a library, which moves its data itself.
bool calls_collectives(const plan::Plan& plan) {
  bool any = false;
  for (const plan::Code& code : plan.codes) {
    for (const plan::Stream& stream : code.streams)
      plan::for_each_transfer(stream, 0, [&](const plan::Transfer& transfer, const Indices&) {
        any = any || transfer.kind == plan::TransferKind::collective;
      });
  }
  return any;
}

}  // namespace

std::optional<Time> Trials::sampled(const Point& point) const {
  const Candidate* one = candidate_at(point);
  return one != nullptr && one->sampled ? std::optional(one->sampled->time) : std::nullopt;
}

void Trials::drop(Dropped why, const Point& point, const std::string& reason) {
  DroppedPoints& dropped = bucket_.dropped[why];
  if (dropped.count++ == 0) dropped.first = space_.text(point) + ": " + reason;
}

const Trials::Fit& Trials::fit_of(const Point& point) {
  const study::Settings parameters = space_.plan_parameters(point);
  const compile::Configuration configuration = space_.configuration(point);
  const std::string key = study::to_text(parameters) + ' ' + configuration_key(configuration);
  const auto known = fits_.find(key);
  if (known != fits_.end()) return known->second;
  return fits_[key] = fit(parameters, configuration);
}

Trials::Fit Trials::fit(const study::Settings& parameters,
                        const compile::Configuration& configuration) {
  Fit made;
  compile::KernelRequest kernel = request_.kernel;
  kernel.configurations = {configuration};
  try {
    const plan::Plan plan = plan::make(info_, machine_->ranks(), parameters, machine_.get());
    made.why = Dropped::fusion;
    const compile::FusedFile file(kernel, plan, request_.plan);
    made.digest = study::digest(
        file.write({.file = request_.plan, .command = {}, .version = {}}, request_.plan).text);
    made.tiles = file.fusion().configs.front().compute_tiles;
    made.realization = compile::emitted_realization(plan);
    made.can_carry = file.can_carry();
    made.takes_movers = file.takes_movers() && !calls_collectives(plan);
    if (file.grids().are_of_launches)
      throw Failure(
          "its computes are launches, and the simulator would take them for such, which "
          "their kernel makes waves of one grid of",
          {.file = request_.plan}, "'hemiola explore' is for launches");
    made.buffers = explore::buffers(plan);
    made.extra_traffic = explore::extra_traffic(plan);
    made.compute = plan.codes.front().computes.front();
    for (std::size_t i = 0; i < made.tiles.size(); ++i)
      if (made.tiles[i] > 0) made.compute.axes[i].tile = made.tiles[i];
    const auto first = static_cast<std::size_t>(made.compute.operands.front().tensor);
    made.type = *plan.tensors[first].type;
  } catch (const Failure& failure) {
    if (failure.code() == ExitCode::internal) throw;
    made.refused = study::error_text(failure);
  }
  return made;
}

std::optional<Candidate> Trials::prepare(const Point& point) {
  Candidate one;
  one.point = point;
  one.text = space_.text(point);
  one.configuration = space_.configuration(point);
  one.plan.name = request_.plan;
  one.plan.parameters = space_.plan_parameters(point);
  const Fit& fit = fit_of(point);
  if (!fit.refused.empty()) {
    drop(fit.why, point, fit.refused);
    return std::nullopt;
  }
  const std::string realization = space_.value(point, "realization");
  const bool is_asked =
      request_.any_realization || request_.parameters.choices.contains("realization");
  const bool moves =
      fit.takes_movers && is_asked && (realization == "load-store" || realization == "bulk");
  one.movers.carried = fit.can_carry && is_asked && realization == "co-located";
  one.is_written =
      realization.empty() || realization == fit.realization || moves || one.movers.carried;
  if (moves)
    one.movers = {.workgroups = static_cast<std::int32_t>(
                      parse_count(space_.value(point, "workgroups")).value_or(16)),
                  .bulk = realization == "bulk"};
  if (!one.is_written && !request_.any_realization) {
    drop(Dropped::realization, point, "the file moves data by " + fit.realization);
    return std::nullopt;
  }
  for (std::size_t i = 0; i < fit.tiles.size() && i < tile_parameters_.size(); ++i)
    if (fit.tiles[i] > 0 && !tile_parameters_[i].empty())
      one.plan.parameters.emplace_back(tile_parameters_[i], std::to_string(fit.tiles[i]));
  const study::Settings lowering = space_.lowering(point);
  one.plan.parameters.insert(one.plan.parameters.end(), lowering.begin(), lowering.end());
  one.workgroups = parse_count(space_.value(point, "workgroups")).value_or(0);
  one.file_digest = fit.digest;
  one.buffers = fit.buffers;
  one.extra_traffic = fit.extra_traffic;
  return one;
}

/// What the matrix units of the compute unit with most tiles take, operands at hand.
Time Trials::product_bound(const Candidate& candidate) {
  const Fit& fit = fit_of(candidate.point);
  if (fit.compute.kernel != "gemm") return {};
  std::int64_t tiles = 1, depth = 1;
  std::vector<int> sizes;
  for (const plan::ComputeAxis& axis : fit.compute.axes) {
    if (axis.reduced) {
      depth *= axis.extent;
      continue;
    }
    tiles *= (axis.extent + axis.tile - 1) / axis.tile;
    sizes.push_back(static_cast<int>(axis.tile));
  }
  if (sizes.size() != 2) return {};
  const std::int64_t units = machine_->model(0).cu_count;
  const Time tile =
      machine::gemm_tile_time(machine_->model(0), {sizes[0], sizes[1]}, depth, fit.type);
  return {(tiles + units - 1) / units * tile.fs};
}

void Trials::find_bounds(std::vector<Candidate>& batch) {
  std::vector<std::string> refused(batch.size());
  explore::for_each(request_.options.threads, batch.size(), [&](std::size_t i) {
    Candidate& one = batch[i];
    const std::string key = plan_key(one.plan);
    const bool is_known = request_.database != nullptr && request_.database->find(key, one.bound);
    try {
      if (!is_known) one.bound = std::max(plans_.bound(one.plan), product_bound(one));
    } catch (const Failure& failure) {
      if (failure.code() == ExitCode::internal) throw;
      refused[i] = study::error_text(failure);
      return;
    }
    if (!is_known && request_.database != nullptr) request_.database->add(key, one.bound);
  });
  std::vector<Candidate> bounded;
  for (std::size_t i = 0; i < batch.size(); ++i)
    if (refused[i].empty())
      bounded.push_back(std::move(batch[i]));
    else
      drop(Dropped::lowering, batch[i].point, refused[i]);
  batch = std::move(bounded);
}

/// Candidates of those that can be written and run and were not asked for before.
void Trials::prepare_all(const std::vector<Point>& points) {
  std::vector<Candidate> batch;
  for (const Point& point : points) {
    if (!looked_at_.try_emplace(point).second) continue;
    if (auto one = prepare(point)) batch.push_back(std::move(*one));
  }
  find_bounds(batch);
  for (Candidate& one : batch) {
    looked_at_[one.point] = candidates_.size();
    candidates_.push_back(std::move(one));
  }
}

/// Those that the database does not have are simulated, together with all other processes.
template <typename Found>
void Trials::find(const std::string& engine, const Wanted& wanted,
                  std::map<std::string, Found>& found) {
  const auto find_one = [&](std::size_t i, Database* keeper) {
    const auto& [key, candidate] = wanted[i];
    Found one;
    const bool is_known = request_.database != nullptr && request_.database->find(key, one);
    if (!is_known) simulate(*candidate, one);
    if (keeper != nullptr && !(is_known && keeper == request_.database)) keeper->add(key, one);
    return one;
  };
  if (request_.parts != nullptr) {
    std::vector<std::string> tasks;
    for (const auto& [key, candidate] : wanted) tasks.push_back(engine + '-' + study::digest(key));
    const Monitor* monitor = watch_.watch.monitor;
    study::make_together(
        *request_.parts, request_.options.threads, tasks,
        [&](std::size_t i) {
          Database one(":memory:", {});
          find_one(i, &one);
          return one.image();
        },
        monitor == nullptr ? nullptr : monitor->stop);
    for (const std::string& task : tasks)
      request_.database->add(request_.parts->part_of_made(task));
  }
  explore::for_each(request_.options.threads, wanted.size(), [&](std::size_t i) {
    found.at(wanted[i].first) = find_one(i, request_.database);
  });
}

std::int64_t Trials::simulate(const std::vector<Point>& points, std::int64_t most) {
  prepare_all(points);
  const bool prunes = request_.method != Method::exhaustive;
  std::vector<Point> chosen;
  Wanted wanted;
  for (const Point& point : points) {
    const Candidate* one = candidate_at(point);
    if (one == nullptr || one->fluid) continue;
    const std::string key = key_of(*one);
    const bool is_new = !measured_.contains(key);
    if (is_new && prunes && best_fluid_ && one->bound >= *best_fluid_) {
      ++bucket_.pruned;
      looked_at_[point].reset();
      continue;
    }
    if (is_new && std::ssize(wanted) >= std::min(most, left())) continue;
    if (measured_.try_emplace(key).second) wanted.emplace_back(key, one);
    chosen.push_back(point);
  }
  find("fluid", wanted, measured_);
  for (const Point& point : chosen) {
    Candidate& one = *candidate_at(point);
    const explore::Measured& measured = measured_.at(key_of(one));
    if (!measured.refused.empty()) {
      drop(Dropped::lowering, point, measured.refused);
      looked_at_[point].reset();
      continue;
    }
    one.fluid = measured;
    best_fluid_ = std::min(best_fluid_.value_or(measured.fluid), measured.fluid);
  }
  bucket_.simulations += std::ssize(wanted);
  tell();
  return std::ssize(wanted);
}

void Trials::sample(const std::vector<Point>& points, bool counts) {
  prepare_all(points);
  Wanted wanted;
  for (const Point& point : points) {
    const Candidate* one = candidate_at(point);
    if (one == nullptr || one->sampled) continue;
    const std::string key = key_of(*one);
    if (confirmed_.contains(key)) continue;
    if (counts && std::ssize(wanted) >= left()) break;
    confirmed_[key];
    wanted.emplace_back(key, one);
  }
  find("sampled", wanted, confirmed_);
  if (counts) bucket_.simulations += std::ssize(wanted);
  for (const Point& point : points) {
    Candidate* one = candidate_at(point);
    if (one == nullptr) continue;
    const auto known = confirmed_.find(key_of(*one));
    if (known != confirmed_.end()) one->sampled = known->second;
  }
  tell();
}

void Trials::simulate_and_sample(const std::vector<Point>& points) {
  simulate(points, INT64_MAX);
  std::vector<Point> simulated;
  for (const Point& point : points)
    if (fluid(point)) simulated.push_back(point);
  sample(simulated, false);
}

/// Where no point that is written was timed by sampled, the one that is fastest by fluid.
void Trials::sample_what_is_written() {
  reserve_ = 0;
  const Candidate* fastest = nullptr;
  for (const Candidate& one : candidates_) {
    if (!one.is_written || !looked_at_.at(one.point)) continue;
    if (one.sampled) return;
    if (one.fluid && (fastest == nullptr || one.fluid->fluid < fastest->fluid->fluid))
      fastest = &one;
  }
  if (fastest != nullptr) sample(Point(fastest->point));
}

/// The same by launches of the fastest point's kernel: a collective and the product one after the
/// other, and products of chunks that wait in front. As files, too, where the kernel goes with
/// them.
void Trials::time_beside() {
  const Candidate* winner = bucket_.winner();
  if (winner == nullptr) return;
  Candidate kernel;
  kernel.configuration = winner->configuration;
  const std::string family = request_.plan.substr(0, request_.plan.find('/'));
  const bool by_sampled = winner->sampled.has_value();
  for (const auto& [name, kind] :
       {std::pair("serial", "/serial"), std::pair("unfused", "/shards")}) {
    const plan::TemplateInfo* info = plan::find_template(family + kind);
    if (info == nullptr) continue;
    explore::TemplatePlan plan{family + kind, {}};
    for (const auto& setting : bucket_.sizes)
      if (info->parameter(setting.first) != nullptr) plan.parameters.push_back(setting);
    std::string what = plan.name;
    try {
      std::optional<program::Program> file;
      try {
        file = program_of(kernel, plans_.plan_of(plan));
      } catch (const Failure& failure) {
        if (failure.code() == ExitCode::internal) throw;
        what += ", as a plan";
      }
      const auto time_of = [&](auto... program) {
        return by_sampled ? plans_.confirm(plan, std::move(program)...).time
                          : plans_.simulate(plan, std::move(program)...).fluid;
      };
      const Time time = file ? time_of(std::move(*file)) : time_of();
      if (time > Time{}) bucket_.beside.push_back({name, what, time});
    } catch (const Failure& failure) {
      if (failure.code() == ExitCode::internal) throw;
    }
  }
}

void Trials::finish() {
  sample_what_is_written();
  for (Candidate& one : candidates_) {
    // What sampled says of a plan holds for all points that are that plan.
    const auto known = confirmed_.find(key_of(one));
    if (known != confirmed_.end()) one.sampled = known->second;
    const bool is_simulated = looked_at_.at(one.point) && (one.fluid || one.sampled);
    if (is_simulated) bucket_.candidates.push_back(std::move(one));
  }
  std::stable_sort(bucket_.candidates.begin(), bucket_.candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return std::pair(!a.sampled, a.time()) < std::pair(!b.sampled, b.time());
                   });
  time_beside();
}

void Trials::tell() const {
  if (watch_.on_progress)
    watch_.on_progress(bucket_.name, bucket_.simulations,
                       request_.method == Method::exhaustive ? bucket_.space : budget_);
}

}  // namespace hemiola::tune

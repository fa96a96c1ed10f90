#include "tune/trials.h"

#include <algorithm>
#include <utility>

#include "machine/gemm_model.h"
#include "study/preparation.h"
#include "tune/database.h"

namespace hemiola::tune {
namespace {

/// Of simulations those by sampled, where nothing is said.
std::int64_t usual_top(std::int64_t budget) {
  return std::min(std::max<std::int64_t>(2, (budget + 5) / 6), (budget + 1) / 2);
}

std::string configuration_key(const compile::Configuration& one) {
  std::string text = "warps " + one.warps;
  for (const auto& [name, value] : one.constants) text += ' ' + name + '=' + value;
  return text;
}

}  // namespace

std::string key_of(const explore::TemplatePlan& plan) {
  return plan.name + ' ' + study::to_text(plan.parameters);
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
      info_(*plan::find_template(request.plan)),
      // Plans of elements have types of their own.
      plans_(laboratory, request.options, DataType::float32, machine_, watch.watch.monitor) {
  const bool all = request.method == Method::exhaustive;
  budget_ = all ? INT64_MAX : request.budget;
  top_ = request.top ? *request.top : all ? 3 : usual_top(budget_);
  fluid_budget_ = all ? INT64_MAX : std::max<std::int64_t>(1, budget_ - top_);
}

std::optional<Time> Trials::time(const Point& point) const {
  const auto found = looked_at_.find(point);
  if (found == looked_at_.end() || !found->second) return std::nullopt;
  return candidates_[*found->second].fluid;
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
    const plan::Plan plan = plan::make(info_.name, machine_->ranks(), parameters, machine_.get());
    made.why = Dropped::fusion;
    const compile::FusedFile file(kernel, plan, request_.plan);
    file.write(plan, {.file = request_.plan, .command = {}, .version = {}}, request_.plan);
    made.tiles = file.fusion().configs.front().compute_tiles;
    made.realization = compile::emitted_realization(plan);
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
  one.is_written = realization.empty() || realization == fit.realization;
  if (!one.is_written && !request_.any_realization) {
    drop(Dropped::realization, point, "the file moves data by " + fit.realization);
    return std::nullopt;
  }
  for (std::size_t i = 0; i < fit.tiles.size() && i < tile_parameters_.size(); ++i) {
    if (fit.tiles[i] > 0 && !tile_parameters_[i].empty())
      one.plan.parameters.emplace_back(tile_parameters_[i], std::to_string(fit.tiles[i]));
  }
  const study::Settings lowering = space_.lowering(point);
  one.plan.parameters.insert(one.plan.parameters.end(), lowering.begin(), lowering.end());
  one.workgroups = parse_count(space_.value(point, "workgroups")).value_or(0);
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
  explore::for_each(request_.options.threads, batch.size(), [&](std::size_t i) {
    Candidate& one = batch[i];
    const std::string key = key_of(one.plan);
    std::optional<Time> known;
    if (request_.database != nullptr) known = request_.database->bound(key);
    try {
      one.bound = known ? *known : std::max(plans_.bound(one.plan), product_bound(one));
    } catch (const Failure& failure) {
      if (failure.code() == ExitCode::internal) throw;
      one.refused = study::error_text(failure);
      return;
    }
    if (!known && request_.database != nullptr) request_.database->add_bound(key, one.bound);
  });
}

explore::Measured Trials::measure(const explore::TemplatePlan& plan) {
  const std::string key = key_of(plan);
  if (request_.database != nullptr) {
    if (const auto known = request_.database->fluid(key)) return *known;
  }
  const explore::Measured measured = plans_.simulate(plan);
  if (request_.database != nullptr) request_.database->add_fluid(key, measured);
  return measured;
}

void Trials::simulate(const std::vector<Point>& points) {
  std::vector<Candidate> batch;
  for (const Point& point : points) {
    if (!looked_at_.try_emplace(point).second) continue;
    if (auto one = prepare(point)) batch.push_back(std::move(*one));
  }
  find_bounds(batch);
  std::vector<Candidate> chosen;
  std::vector<explore::TemplatePlan> to_measure;
  std::map<std::string, std::size_t> place;
  for (Candidate& one : batch) {
    const std::string key = key_of(one.plan);
    if (!one.refused.empty()) {
      drop(Dropped::lowering, one.point, one.refused);
    } else if (measured_.contains(key) || place.contains(key)) {
      chosen.push_back(std::move(one));  // what differs is nothing that the simulator knows of
    } else if (request_.method != Method::exhaustive && one.bound >= best_) {
      ++bucket_.pruned;
    } else if (!has_budget()) {
      looked_at_.erase(one.point);
    } else {
      place[key] = to_measure.size();
      to_measure.push_back(one.plan);
      chosen.push_back(std::move(one));
      ++bucket_.simulations;
    }
  }
  std::vector<explore::Measured> found(to_measure.size());
  explore::for_each(request_.options.threads, found.size(),
                    [&](std::size_t i) { found[i] = measure(to_measure[i]); });
  for (const auto& [key, i] : place) measured_[key] = found[i];
  for (Candidate& one : chosen) {
    static_cast<explore::Measured&>(one) = measured_.at(key_of(one.plan));
    if (!one.refused.empty()) {
      drop(Dropped::lowering, one.point, one.refused);
      continue;
    }
    best_ = std::min(best_, one.fluid);
    looked_at_[one.point] = candidates_.size();
    candidates_.push_back(std::move(one));
  }
  tell();
}

void Trials::confirm(Candidate& candidate) {
  const std::string key = key_of(candidate.plan);
  std::optional<explore::Confirmed> known;
  if (request_.database != nullptr) known = request_.database->sampled(key);
  const explore::Confirmed found = known ? *known : plans_.confirm(candidate.plan);
  if (!known && request_.database != nullptr) request_.database->add_sampled(key, found);
  candidate.confirmed = found.time;
  candidate.confirmed_error = found.error;
}

void Trials::finish() {
  std::vector<Candidate> all = std::move(candidates_);
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.fluid < b.fluid; });
  // The fastest that can be written is among those that are confirmed.
  const auto written =
      std::find_if(all.begin(), all.end(), [](const Candidate& one) { return one.is_written; });
  if (written != all.end() && top_ > 0 && written - all.begin() >= top_)
    std::rotate(all.begin() + top_ - 1, written, written + 1);
  std::map<std::string, std::vector<std::size_t>> chosen;  // by what is simulated
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string key = key_of(all[i].plan);
    if (!chosen.contains(key)) {
      if (std::ssize(keys) == top_) continue;
      keys.push_back(key);
    }
    chosen[key].push_back(i);
  }
  explore::for_each(request_.options.threads, keys.size(), [&](std::size_t i) {
    const std::vector<std::size_t>& alike = chosen.at(keys[i]);
    confirm(all[alike.front()]);
    for (const std::size_t other : alike) {
      all[other].confirmed = all[alike.front()].confirmed;
      all[other].confirmed_error = all[alike.front()].confirmed_error;
    }
  });
  bucket_.simulations += std::ssize(keys);
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return std::pair(!a.confirmed, a.time()) < std::pair(!b.confirmed, b.time());
  });
  bucket_.candidates = std::move(all);
  tell();
}

void Trials::tell() const {
  if (watch_.on_progress)
    watch_.on_progress(bucket_.name, bucket_.simulations,
                       request_.method == Method::exhaustive ? bucket_.space : budget_);
}

}  // namespace hemiola::tune

#include "study/sweep/sweep_point.h"

#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/lenient.h"
#include "core/lists.h"
#include "study/laboratory/preparation.h"

namespace hemiola::study {
namespace {

Experiment experiment_of(const Sweep& sweep, const SweepPoint& point) {
  return {.machine = {.name = sweep.path_of(point.machine),
                      .gpu = sweep.path_of(point.gpu),
                      .settings = point.set,
                      .ranks = point.ranks},
          .subject = sweep.path_of(point.program),
          .parameters = point.parameters,
          .size = point.size,
          .round_size = sweep.round_size,
          .type = point.type,
          .op = point.op};
}

SweepStatus status_of(ExitCode code) {
  switch (code) {
    case ExitCode::bad_input:
      return SweepStatus::refused;
    case ExitCode::wrong_program:
      return SweepStatus::wrong;
    case ExitCode::deadlock:
      return SweepStatus::deadlock;
    default:
      return SweepStatus::internal;
  }
}

void fail(SweepRow& row, SweepStatus status, std::string error) {
  row.status = status;
  row.error = std::move(error);
}

/// What a point throws becomes its row; not what is no fault of the point.
template <typename Action>
void or_say_why(std::span<SweepRow> rows, const Action& action) {
  const auto fail_all = [&](SweepStatus status, const std::string& error) {
    for (SweepRow& row : rows) fail(row, status, error);
  };
  try {
    action();
  } catch (const Failure& failure) {
    fail_all(status_of(failure.code()), error_text(failure));
  } catch (const Interrupted&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    fail_all(SweepStatus::internal, error.what());
  }
}

/// Reason to fs, of the rank that ends last; reasons that took none are left out.
std::string attribution_text(const sim::Result& result) {
  nlohmann::ordered_json reasons = nlohmann::ordered_json::object();
  if (!result.rank_end.empty()) {
    const sim::Attribution& fs = result.attribution[sim::latest_rank(result)];
    for (std::size_t i = 0; i < sim::kReasons; ++i)
      if (fs[i] != 0) reasons[std::string(sim::name_of(static_cast<sim::Reason>(i)))] = fs[i];
  }
  return reasons.dump();
}

}  // namespace

bool same_unit(const SweepPoint& a, const SweepPoint& b) {
  SweepPoint other = b;
  other.engine = a.engine;
  other.launch = a.launch;
  other.skew = a.skew;
  return a == other;
}

SweepRow SweepWorker::start_row(std::int64_t number) const {
  const SweepPoint& point = sweep_.points[index(number)];
  return {.number = number,
          .machine = point.machine,
          .gpu = point.gpu,
          .set = to_text(point.set),
          .ranks = point.ranks,
          .program = point.program,
          .parameters = to_text(point.parameters),
          .dtype = std::string(name_of(point.type)),
          .op = std::string(name_of(point.op)),
          .size = point.size,
          .engine = std::string(sim::name_of(point.engine)),
          .launch = std::string(sim::name_of(point.launch)),
          .skew = point.skew};
}

SweepWorker::Prepared SweepWorker::prepare(const SweepPoint& point, Diagnostics& warnings) {
  const Experiment experiment = experiment_of(sweep_, point);
  const machine::SharedMachine machine = laboratory_.machine(experiment.machine);
  const SharedProgram program = laboratory_.program(experiment, machine, {.monitor = &monitor_});
  monitor_.leave_if_stopping();
  if (strict_) {
    refuse_lenient(machine->warnings);
    refuse_lenient(program->warnings);
  }
  Prepared prepared{laboratory_.bind(experiment, program, machine), "skipped"};
  if (const Bytes size = prepared.bound.size(); size != point.size)
    warnings.warning(rounding_note(point.size, size, program->name));
  warnings.append(machine->warnings);
  warnings.append(program->warnings);
  warnings.append(prepared.bound.warnings());
  if (sweep_.check) {
    const Laboratory::Verdict verdict = laboratory_.verdict(prepared.bound, {.monitor = &monitor_});
    prepared.checked = verdict.checked();
    warnings.append(verdict.proof->warnings);
    for (const std::string& reason : verdict.proof->reasons)
      warnings.warning("checked in part: " + reason);
  }
  monitor_.leave_if_stopping();
  return prepared;
}

void SweepWorker::simulate(const SweepPoint& point, const Prepared& prepared, SweepRow& row) {
  std::vector<Time> skew;
  if (!point.skew.empty()) skew = read_times(point.skew, {});
  check_skew(skew, prepared.bound.ranks(), {});
  const sim::Result result = laboratory_.simulate(prepared.bound,
                                                  {.engine = point.engine,
                                                   .launch = point.launch,
                                                   .warmup = sweep_.warmup,
                                                   .iterations = sweep_.iterations,
                                                   .skew = std::move(skew)},
                                                  {.monitor = &monitor_});
  row.checked = prepared.checked;
  row.bound_program = prepared.bound.name();
  row.count = result.count;
  row.time = result.time;
  row.algbw_GBps = result.algbw_GBps;
  row.busbw_GBps = result.busbw_GBps;
  row.bound_bandwidth = result.bound.bandwidth;
  row.bound_latency = result.bound.latency;
  row.ideal = result.ideal;
  row.line_hops = result.line_hops;
  row.counters = nlohmann::json(result.counters).dump();
  row.attribution = attribution_text(result);
}

SweepWorker::Outcome SweepWorker::run(SweepUnit unit) {
  Outcome outcome;
  std::vector<SweepRow>& rows = outcome.rows;
  for (const std::int64_t number : unit) rows.push_back(start_row(number));
  const auto point = [&](const SweepRow& row) -> const SweepPoint& {
    return sweep_.points[index(row.number)];
  };
  monitor_.begin(0);
  std::optional<Prepared> prepared;
  or_say_why(rows, [&] { prepared = prepare(point(rows.front()), outcome.warnings); });
  if (!prepared) return outcome;
  for (SweepRow& row : rows) row.size = prepared->bound.size();
  for (SweepRow& row : rows) or_say_why({&row, 1}, [&] { simulate(point(row), *prepared, row); });
  return outcome;
}

}  // namespace hemiola::study

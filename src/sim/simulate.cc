#include "sim/simulate.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "sim/bound/lower_bound.h"
#include "sim/fluid/fluid.h"
#include "sim/line/line.h"
#include "sim/reference/reference.h"
#include "sim/replay/recorded_run.h"

namespace hemiola::sim {
namespace {

// Elements as nccl-tests counts them: per rank where a collective gathers or scatters.
std::int64_t element_count(const program::Bound& program) {
  std::int64_t bytes = program.size().count;
  switch (program.collective()) {
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      bytes /= program.ranks();
      break;
    default:
      break;
  }
  return bytes / size_of(program.type());
}

// The collective's ideal: its data over everything a rank can inject, without headers or latency.
Time ideal_time(const machine::Machine& machine, const program::Bound& program) {
  if (program.collective() == Collective::custom || program.ranks() < 2) return {};
  std::set<machine::LinkId> first;
  for (int peer = 1; peer < program.ranks(); ++peer) {
    const machine::Routes& routes = machine.routes(0, peer);
    for (std::int32_t p = 0; p < routes.count; ++p) first.insert(routes.path(p).front());
    if (first.size() > 1024) break;
  }
  std::int64_t rate = 0;
  for (const machine::LinkId link : first) {
    const Rate bandwidth = machine.class_of(link).bandwidth;
    if (bandwidth.is_ideal()) return {};
    rate += bandwidth.bytes_per_second;
  }
  if (rate == 0) return {};
  const std::int64_t n = program.ranks();
  std::int64_t bytes = program.size().count;
  if (program.collective() == Collective::all_reduce) bytes = bytes * 2 * (n - 1) / n;
  if (program.collective() == Collective::all_gather ||
      program.collective() == Collective::reduce_scatter ||
      program.collective() == Collective::all_to_all)
    bytes = bytes * (n - 1) / n;
  return Rate{rate}.time_for(bytes);
}

Result run(const machine::Machine& machine, const program::Bound& program, const Options& options) {
  if (options.engine == Engine::fluid) {
    Result result = run_fluid(machine, program, options);
    if (options.counts && options.bound) result.bound = lower_bound(program, options);
    return result;
  }
  std::string refused;
  const bool watched = options.record != nullptr || options.replay != nullptr;
  if (goes_line_by_line(options.engine) || watched)
    refused = Line::refuses(machine, program, options);
  if (watched && (!refused.empty() || options.engine != Engine::line))
    throw Failure("only the line engine records and replays" +
                      (refused.empty() ? "" : ", which does not take " + refused),
                  {.file = program.source()});
  std::unique_ptr<Cores> engine;
  if (goes_line_by_line(options.engine) && refused.empty())
    engine = std::make_unique<Line>(machine, program, options);
  else
    engine = std::make_unique<Reference>(machine, program, options);
  const int repetitions = options.iterations > 0 ? options.warmup + options.iterations : 1;
  // One rank among others on a timetable may be faster than the program can be.
  const LowerBound least =
      options.replay != nullptr
          ? LowerBound{}
          : lower_bound(machine, program, options, engine->addresses(), engine->fold());
  const std::int64_t moved = least.moved_by(engine->fold().period) * repetitions;
  if (options.monitor != nullptr) options.monitor->begin(moved);
  engine->expect(least.time() * repetitions, moved);
  Result result = engine->run();

  result.bound = least;
  result.reference_because = refused;
  return result;
}

}  // namespace

namespace {

/// Fluid shares out bytes, and the bound counts packets: what is a little below it takes the bound.
/// More than a little is a defect.
void raise_to_bound(Result& result) {
  constexpr double kLittle = 0.98;
  const std::int64_t less = result.bound.time().fs - result.time.fs;
  if (less <= 0 ||
      static_cast<double>(result.time.fs) < kLittle * static_cast<double>(result.bound.time().fs))
    return;
  result.time = result.bound.time();
  for (Attribution& spent : result.attribution) spent[index(Reason::link)] += less;
  for (Time& end : result.rank_end) end.fs += less;
}

// Where nobody said which, answers that do not fit are left out.
Result run_replay(const machine::Machine& machine, const program::Bound& program,
                  const Options& options) {
  std::string because;
  Options chosen = choose_answers(machine, program, options, because);
  Result result;
  try {
    if (options.answers == Answers::automatic && options.trace != nullptr) {
      Options untraced = chosen;  // a trace is of one replay, and this one may not do
      untraced.trace = nullptr;
      run(machine, program, untraced);
    }
    result = run(machine, program, chosen);
  } catch (const AnswersDoNotFit& failure) {
    if (options.answers != Answers::automatic) throw;
    because = failure.diagnostics().items().front().message;
    chosen.answers = Answers::live;
    result = run(machine, program, chosen);
  }
  result.answers = chosen.answers == Answers::live       ? "live"
                   : chosen.answers == Answers::relative ? "relative"
                                                         : "recorded";
  result.live_because = because;
  return result;
}

Result run_any(const machine::Machine& machine, const program::Bound& program,
               const Options& options) {
  if (options.replay != nullptr) return run_replay(machine, program, options);
  Result result = run(machine, program, options);
  if (options.record != nullptr) {
    options.record->recorded = recorded_run(machine, program, options);
    options.record->recorded.rows = digest_of_rows(*options.record);
  }
  return result;
}

}  // namespace

Result simulate(const program::Bound& program, const Options& options) {
  if (options.threads < 1)
    throw Failure("a simulation needs a thread", {.file = program.source()},
                  "set threads to 1 or more");
  if (program.machine() == nullptr)
    throw Failure("a program that is bound without a machine takes no time on any",
                  {.file = program.source()}, "bind it to a machine", ExitCode::internal);
  const machine::Machine& machine = *program.machine();
  if (options.engine == Engine::sampled &&
      (options.trace != nullptr || options.record != nullptr || options.replay != nullptr))
    throw Failure(
        "the engine sampled leaves out most of a run, and so has no trace, recording or "
        "replay of it",
        {.file = program.source()}, "take --engine line");
  const auto begin = std::chrono::steady_clock::now();
  Options alone = options;  // with one worker
  alone.threads = 1;
  Result result;
  try {
    result = run_any(machine, program, options.engine == Engine::sampled ? alone : options);
  } catch (const NeedsOneWorker&) {
    result = run_any(machine, program, alone);
  }
  result.size = program.size();
  result.count = element_count(program);
  result.ideal = ideal_time(machine, program);
  // Ranks go on to the first measured repetition at different times: its bytes may have been under
  // way before the last one has ended those that warm up.
  const std::int64_t repetitions = std::max(1, options.iterations);
  const std::int64_t whole = repetitions - (options.iterations > 0 && options.warmup > 0 ? 1 : 0);
  // An estimate is no proof.
  if (options.engine == Engine::sampled && result.sampled.share < 1 &&
      result.time < result.bound.time())
    result.time = result.bound.time();
  const auto is_below = [&] {
    return result.time.fs * repetitions < result.bound.time().fs * whole;
  };
  if (options.engine == Engine::fluid && is_below()) raise_to_bound(result);
  if (is_below()) {
    throw Failure("internal error: simulated time " + to_string(result.time) +
                      " is below the bound " + to_string(result.bound.time()) + " (" +
                      result.bound.bottleneck + ")",
                  {.file = program.source(), .line = 0, .column = 0, .pointer = {}},
                  "please report this program and machine", ExitCode::internal);
  }
  result.algbw_GBps =
      static_cast<double>(program.size().count) / static_cast<double>(result.time.fs) * 1e6;
  result.busbw_GBps = result.algbw_GBps * bus_factor(program.collective(), program.ranks());
  result.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  result.peak_rss_bytes = usage.ru_maxrss * 1024;
  return result;
}

}  // namespace hemiola::sim

// What a simulation is asked for: the engine, and how it runs a program.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/monitor.h"
#include "core/time.h"

namespace hemiola::sim {

struct Profile;
class TraceSink;

/// `reference` and `line` give the same times and counters; `line` leaves to `reference` what it
/// does not take yet (docs/line_engine.md). `fluid` estimates (docs/fluid.md).
/// `sampled` is `line` in windows, and nearly its times (docs/sampled.md).
enum class Engine : std::uint8_t { reference, line, fluid, sampled };
/// Whether it is `line`, or that where it does not skip.
constexpr bool goes_line_by_line(Engine engine) {
  return engine == Engine::line || engine == Engine::sampled;
}
enum class Launch : std::uint8_t { stream, graph };
std::string_view name_of(Engine engine);  ///< "reference", "line"
std::string_view name_of(Launch launch);  ///< "stream", "graph"

/// What answers the requests of replayed ranks to others: rows of the profile, at their times; or
/// the others, from memory that is never late. Automatic: rows while the replay is the run that was
/// recorded (recorded_run.h), or where that is not known; live where there are no such rows, or
/// they turn out to answer something else. Relative is what live means for programs with multicast
/// groups, whose switches nobody simulates: an answer takes as long as it took in the recording.
enum class Answers : std::uint8_t { automatic, recorded, live, relative };

/// Where writes of a replay wait for their time (docs/replay.md, "Tables").
enum class TableKind : std::uint8_t {
  heap,   ///< asked when its first write is due
  polled  ///< the head is compared in every cycle, as in Eidola's table
};

struct Options {
  Engine engine = Engine::line;
  Launch launch = Launch::stream;
  int warmup = 0;          ///< with iterations: repetitions before the measured ones
  int iterations = 0;      ///< > 0: the time is the period over these; 0: one cold run
  std::vector<Time> skew;  ///< start of rank i; missing ones 0
  /// One host thread calls the library for all ranks in turn (host_calls.h), gives copies to their
  /// engines and sees them complete, where otherwise each rank has its own, and each queue of
  /// copies.
  bool one_host = false;
  TraceSink* trace = nullptr;
  /// One of ranks that behave alike is simulated: the same result (fold.h). Fluid: one member of
  /// each class, the same but for dispatch (classes.h).
  bool fold = true;
  /// Fluid: workgroups of a job that do the same are classes, too, as those of a program alone
  /// always are. A tenth of the CPU time; collectives whose workgroups come apart take up to a
  /// tenth longer.
  bool fold_workgroups = false;
  /// What others do to the GPUs of ranks `watched` as it comes in there, or on links that these
  /// ranks' requests to each other pass, is noted in `record`; with `replay` those ranks alone are
  /// simulated, among others that do what the profile says. Only in the line engine; nothing is
  /// folded.
  Profile* record = nullptr;
  const Profile* replay = nullptr;
  std::vector<int> watched{0};  ///< distinct ranks
  /// record: note what others send where it leaves their ports. replay: that is where rows begin,
  /// to queue on links, whatever the profile says.
  bool at_ports = false;
  Answers answers = Answers::automatic;  ///< replay
  TableKind table = TableKind::heap;     ///< replay: where rows wait for their time
  /// Told how far the run is: `done` of `total` in bytes that its operations move. Null: nobody.
  Monitor* monitor = nullptr;
  /// The fluid engine's: what links carry, counters and `line_hops`, none of which a time depends
  /// on. Who compares many schedules by their time does without: it is a fifth of the work.
  bool counts = true;
  /// The fluid engine's: the bound, if `counts`. A time that is less than 2 % below is raised to
  /// it.
  bool bound = true;
  /// The fluid engine's: bytes that others touch on each GPU before and after, between what the
  /// program touches. With them, the program's own may no longer fit into caches.
  std::int64_t touched = 0;
  /// The line engine's: ranks are divided among them. The result does not depend on it. A record, a
  /// replay, and programs in which ranks wait for what is in memory of others, have one.
  int threads = 1;
};

}  // namespace hemiola::sim

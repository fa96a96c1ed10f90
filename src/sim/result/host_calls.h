// When the host calls the library, where one thread does so for all ranks in turn.
#pragma once

#include <algorithm>
#include <cstdint>

#include "machine/machine.h"
#include "program/bind/bound.h"
#include "sim/result/options.h"

namespace hemiola::sim {

/// From t = 0 to the end of the call for a repetition of a rank, fs: the thread makes the calls of
/// a repetition in the order of ranks, each takes launch.library_interval, and it waits for no
/// kernel. 0 where each rank has a thread of its own, or nothing is called.
inline std::int64_t call_time(const machine::Machine& machine, const program::Bound& program,
                              const Options& options, int rank, int repetition) {
  if (!options.one_host || !program.program().library_call || options.launch != Launch::stream)
    return 0;
  const std::int64_t calls = static_cast<std::int64_t>(repetition) * program.ranks() + rank;
  return calls * machine.model(rank).launch_library_interval.fs;
}

/// From the host's call to a kernel's start, fs.
inline std::int64_t launch_latency(const machine::GpuModel& model, const Options& options) {
  return options.launch == Launch::graph ? model.launch_graph_latency.fs
                                         : model.launch_stream_latency.fs;
}

/// From the start of a kernel to the start of the next one in its stream at the least, fs.
inline std::int64_t launch_interval(const machine::GpuModel& model, const Options& options) {
  return options.launch == Launch::graph ? model.launch_graph_interval.fs
                                         : model.launch_stream_interval.fs;
}

/// How much later a rank is by Options::skew, fs.
inline std::int64_t skew_of(const Options& options, int rank) {
  const auto r = index(rank);
  return r < options.skew.size() ? options.skew[r].fs : 0;
}

/// How much later than the first rank's a rank's first call is, fs: by Options::skew, and by the
/// calls before it.
inline std::int64_t start_delay(const machine::Machine& machine, const program::Bound& program,
                                const Options& options, int rank) {
  return skew_of(options, rank) + call_time(machine, program, options, rank, 0);
}

/// What passes before the first kernel of a rank starts: three times that follow each other, fs.
struct FirstCall {
  std::int64_t skew = 0, called = 0, latency = 1;
  std::int64_t start() const { return skew + called + latency; }
};
inline FirstCall first_call(const machine::Machine& machine, const program::Bound& program,
                            const Options& options, int rank) {
  return {.skew = skew_of(options, rank),
          .called = call_time(machine, program, options, rank, 0),
          .latency = std::max<std::int64_t>(1, launch_latency(machine.model(rank), options))};
}

/// When the kernel of a later repetition can start for the call alone, fs.
inline std::int64_t called_start(const machine::Machine& machine, const program::Bound& program,
                                 const Options& options, int rank, int repetition) {
  const std::int64_t called = call_time(machine, program, options, rank, repetition);
  return called == 0 ? 0 : called + machine.model(rank).launch_stream_latency.fs;
}

/// When the next repetition of a rank starts, fs.
struct NextCall {
  std::int64_t alone = 0;  ///< by what launches need
  std::int64_t start = 0;  ///< not before that: a library's call may take longer
};
/// The one before ended at `now`, and launches need a start at `earliest` or later.
inline NextCall next_call(const machine::Machine& machine, const program::Bound& program,
                          const Options& options, int rank, int repetition, std::int64_t now,
                          std::int64_t earliest) {
  const bool library = program.program().library_call && options.launch == Launch::stream;
  const std::int64_t gap = library ? machine.model(rank).launch_library_interval.fs : 0;
  const std::int64_t alone = std::max(now + 1, earliest);
  const std::int64_t called = called_start(machine, program, options, rank, repetition);
  return {.alone = alone, .start = std::max({alone, now + gap, called})};
}

}  // namespace hemiola::sim

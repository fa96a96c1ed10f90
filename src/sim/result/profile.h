// What other GPUs did to one: requests on a timetable (docs/replay.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"
#include "sim/result/profile_kind.h"

namespace hemiola::sim {

/// One request, or answer: at the ingress of its destination, or where it enters links before that.
struct ProfileRow {
  Time time{};  ///< since the profile's origin; of a row with a dependency the delay behind it
  std::int32_t source = 0, destination = 0;  ///< ranks, different
  ProfileKind kind = ProfileKind::write;
  std::int32_t buffer = -1;  ///< of Profile::buffers, at the destination; -1: none
  std::int64_t offset = 0;   ///< bytes in it
  std::int64_t size = 0;     ///< bytes, at least 1
  std::int64_t value = 0;
  std::int32_t stream = -1;   ///< port at which it comes in; -1: that of the way from the source
  std::int64_t order = 0;     ///< among those of the same time, destination and stream
  std::int64_t request = -1;  ///< answers: to the how-manieth request of the destination to others
  std::int64_t took = -1;     ///< answers: fs since that request has left; -1: not known
  std::int32_t links = 0;     ///< the last ones of its way, which it still passes
  std::int32_t path = -1;     ///< of those between source and destination; -1: that of its line
  /// Closed loop: it comes `time` after another row has come, or after the destination's own signal
  /// has reached the source.
  std::int32_t after_row = -1;     ///< in Profile::rows
  std::int32_t after_buffer = -1;  ///< signal: in this buffer of the source
  std::int64_t after_offset = 0;
  std::int64_t after_value = 0;  ///< ... a value of at least this
  std::string tag{};             ///< whatever the recorder calls it

  // Bursts. A burst without a buffer has no data: it takes room on its way only.
  std::int64_t message = -1;  ///< the how-manieth from source to destination; -1: no NIC sends it
  std::int64_t packets = -1;  ///< the last one of a message says how many it has,
  std::int64_t flag = -1;     ///< ... and where in "@semaphores" 1 is added then; -1: nowhere

  bool is_answer() const {
    return kind == ProfileKind::response || kind == ProfileKind::acknowledgement;
  }
  bool waits() const { return after_row >= 0 || after_buffer >= 0; }
  bool operator==(const ProfileRow&) const = default;
};

/// Names of what a recording writes to: addresses in a rank's memory as the simulator laid it out,
/// and semaphores, 8 B each, by number. Other names are those of the program's buffers.
constexpr std::string_view kWholeMemory = "@memory";
constexpr std::string_view kSemaphores = "@semaphores";

struct ProfileBuffer {
  std::string name;
  std::int64_t bytes = 0;
};

/// Of which run a profile is a recording. Numbers stand for contents (recorded_run.h).
struct RecordedRun {
  std::vector<int> ranks{};  ///< at which it was recorded, ascending; empty: it was not
  std::string words{};       ///< for messages: "all-reduce/ring of 1 MiB on dgx-h100"
  std::string wait{};        ///< gpu.sync.wait of these ranks
  std::uint64_t machine = 0, program = 0, host = 0;
  std::uint64_t rows = 0;  ///< as they were recorded
  bool known() const { return !ranks.empty(); }
};

/// Dependencies have no cycle. What reads, records or adds traffic leaves the rows in_order(); rows
/// of one time are put in as they stand here.
struct Profile {
  std::string file;
  int ranks = 0;
  bool at_ports = false;  ///< rows begin at their source's port and pass the whole way
  std::vector<ProfileBuffer> buffers{};  ///< alike on all ranks
  std::vector<ProfileRow> rows{};
  RecordedRun recorded{};             ///< says nothing of rows that have been changed since
  std::vector<std::string> places{};  ///< of rows in the file: "line 12", "/rows/3"; or empty

  /// For messages: where the row stands, and its tag.
  std::string describe(std::int32_t row) const;
};

/// Sorted by (time, destination, stream, order, all other fields, what it comes after): two files
/// with the same rows in another order give the same profile.
Profile in_order(Profile profile);

/// A write that rank `source` will do: it comes in at rank `destination` at `time` with `bytes`
/// bytes of `value` in `buffer`, at `offset` (bytes); in "@semaphores" it adds. May be called in
/// any order of times, and takes no simulated time. The buffer is added or made larger where
/// needed. Failure: ranks that are not there or equal, a time or offset below 0, no bytes.
void register_write(Profile& profile, int source, int destination, Time time,
                    std::string_view buffer, std::int64_t offset, std::int64_t value,
                    std::int64_t bytes = 8);

/// What rank `source` does comes later by `by`, 0 or more: each of its rows, but for those that
/// come after another one of its own, which takes them along. Leaves the rows in_order().
void delay(Profile& profile, int source, Time by);

}  // namespace hemiola::sim

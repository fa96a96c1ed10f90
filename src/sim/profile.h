// What other GPUs did to one: requests on a timetable (docs/replay.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"

namespace hemiola::sim {

enum class ProfileKind : std::uint8_t {
  write,
  add,             ///< atomic, of `value`
  packet,          ///< a store of data that carry their flag, `value` (LL)
  read,            ///< somebody reads the destination's memory
  response,        ///< data for a load of the destination's own
  acknowledgement  ///< of a store of its own
};

/// One request, or answer, at the ingress of its destination.
struct ProfileRow {
  Time time{};  ///< since the profile's origin; of a row with a dependency the delay behind it
  std::int32_t source = 0, destination = 0;  ///< ranks, different
  ProfileKind kind = ProfileKind::write;
  std::int32_t buffer = -1;  ///< of Profile::buffers, at the destination; -1: an answer
  std::int64_t offset = 0;   ///< bytes in it
  std::int64_t size = 0;     ///< bytes, at least 1
  std::int64_t value = 0;
  std::int32_t stream = -1;   ///< port at which it comes in; -1: that of the way from the source
  std::int64_t order = 0;     ///< among those of the same time, destination and stream
  std::int64_t request = -1;  ///< answers: to the how-manieth request of the destination to others
  /// Closed loop: it comes `time` after another row has come, or after the destination's own signal
  /// has reached the source.
  std::int32_t after_row = -1;     ///< in Profile::rows
  std::int32_t after_buffer = -1;  ///< signal: in this buffer of the source
  std::int64_t after_offset = 0;
  std::int64_t after_value = 0;  ///< ... a value of at least this
  std::string tag{};             ///< whatever the recorder calls it

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

/// Rows are sorted by (time, destination, stream, order, all other fields): their order in a file
/// means nothing. Dependencies have no cycle.
struct Profile {
  std::string file;
  int ranks = 0;
  std::vector<ProfileBuffer> buffers;  ///< alike on all ranks
  std::vector<ProfileRow> rows;
};

std::string_view name_of(ProfileKind kind);

}  // namespace hemiola::sim

// Who has come to which call, and when it can begin. Private to the scheduler.
//
// The n-th call of a class on a lane meets the n-th of the others. A collective begins when all
// have come. A message begins when both sides have; but a send goes into the FIFO of its connection
// if there is room for all of it, and its receive, which comes later, takes it from there.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/units.h"
#include "workload/scheduler/progress.h"

namespace hemiola::workload {

/// Where calls meet: those of a place on one stream, or with one tag.
struct Lane {
  std::int32_t place = 0;
  std::int32_t lane = 0;
  auto operator<=>(const Lane&) const = default;
};

class Meetings {
 public:
  struct Call {
    NodeKind kind = NodeKind::collective;
    Lane lane;
    std::size_t callers = 0;    ///< classes that call it; of a message those that send
    std::size_t receivers = 0;  ///< of a message
    std::int64_t bytes = 0;
  };
  enum class Outcome : std::uint8_t {
    waits,
    begins,     ///< a launch of `members`
    joins,      ///< `members` end together with the send, which is under way
    takes_out,  ///< `members` receive what lies in the FIFO already: no link carries it again
  };
  struct Arrival {
    Outcome outcome = Outcome::waits;
    std::optional<Member> other{};  ///< one that has come before to the same call
    std::vector<Member> members{};  ///< that wait no longer
    Member last{};                  ///< for whom they have waited
  };

  /// `buffer`: what the connection of a message holds; only asked where that matters.
  Arrival arrive(const Call& call, const Member& member, const std::function<Bytes()>& buffer);
  /// A launch of sends is over. The receivers that have joined it are through as well.
  std::vector<Member> end_send(const Member& sender);

  /// At the end: members of calls that never began, by their lanes.
  std::vector<std::pair<Lane, std::vector<Member>>> waiting() const;
  /// Messages in FIFOs that nobody has received.
  std::int64_t unreceived() const;

 private:
  struct Gathering {
    std::vector<Member> members;  ///< once it was sent, its receivers
    std::size_t receivers = 0;    ///< of `members`
    enum : std::uint8_t { gathers, is_under_way, is_sent } state = gathers;
    Member last_sender{};
    std::size_t expected = 0;  ///< receivers
    std::int64_t bytes = 0;
  };
  using Key = std::pair<Lane, std::int64_t>;
  void take(const Key& key, Arrival& arrival);

  std::map<std::tuple<Lane, std::int32_t, NodeKind>, std::int64_t> turns_;
  std::map<Key, Gathering> gatherings_;
  std::map<std::int32_t, std::int64_t> buffered_;  ///< by place: bytes that nobody has received
  std::map<std::pair<std::int32_t, std::uint32_t>, Key> senders_;  ///< under way without receivers
};

}  // namespace hemiola::workload

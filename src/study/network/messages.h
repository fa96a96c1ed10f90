// A plan as messages: what a network has to carry, and after what. Nothing inside GPUs is simulated
// (docs/ns3.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/time.h"
#include "core/units.h"
#include "plan/plan.h"

namespace hemiola::study {

struct Message {
  int from = 0, to = 0;               ///< ranks; equal: a copy, which takes no time
  std::int64_t bytes = 0;             ///< 0: one control packet
  std::vector<std::int32_t> after{};  ///< messages that have arrived before it begins
  std::int32_t behind = -1;           ///< begins no sooner than this one begins; -1: none
};

struct MessageGraph {
  std::string name;
  int ranks = 0;
  std::vector<Message> messages;
};

/// Every transfer is a message from where it reads to where it writes, and begins when what it
/// waits for has arrived. Transfers of a stream begin in order: after a push the next one may begin
/// at once, after a pull or a copy when that is complete. A pull is asked for by a message of 0
/// bytes. Failure: a size that is not whole chunks; multicast, whole collectives and computes,
/// which are no messages; a plan of elements with computes.
MessageGraph messages_of(const plan::Plan& plan, Bytes size);

/// What carries messages. Times are since the start and never go back.
class MessageNetwork {
 public:
  virtual ~MessageNetwork() = default;
  /// Message `number` is there to be sent at `time`, which is not before the last arrival.
  virtual void send(std::int32_t number, Time time, const Message& message) = 0;
  struct Arrival {
    Time time{};
    std::int32_t number = 0;
  };
  /// The next message that arrives whole; nothing when none is under way.
  virtual std::optional<Arrival> next() = 0;
};

struct MessageTimes {
  Time begin{}, end{};
};
struct MessageRun {
  Time time{};  ///< of the last arrival
  std::vector<MessageTimes> messages;
};

/// Gives messages to the network as what they wait for arrives. Failure with ExitCode::deadlock:
/// messages that never begin.
MessageRun run_messages(const MessageGraph& graph, MessageNetwork& network);

}  // namespace hemiola::study

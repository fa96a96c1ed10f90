// Moves of workgroups in the fluid engine: each is a flow with the latency of one request around
// it. Some leave the rest of theirs behind and go on.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/fluid/packets.h"
#include "sim/fluid/traffic.h"

namespace hemiola::sim::fluid {

class Moves {
 public:
  Moves(Run& run, const Streams& streams, Traffic& traffic);

  /// True if the agent goes on; else it is called again.
  bool move(std::int32_t agent);
  /// A flow that its agent did not wait for is over. Whoever goes on now, or -1.
  std::int32_t moved_behind(std::int32_t behind, const Attribution& spent, std::int64_t now);
  /// Results of a class of ranks have left its L2 for memory.
  void written_back(std::int32_t rank, std::int64_t bytes) { written_back_[index(rank)] -= bytes; }

 private:
  /// A move that its agent did not wait for.
  struct Behind {
    std::int32_t agent = 0;
    program::Primitive primitive;
    std::int32_t flow = 0;
    Latency batch{};
  };

  bool begin_move(std::int32_t agent);
  bool end_move(std::int32_t agent);
  /// Whether a move reads what the one before it has read, and from where: MoveState::again.
  void look_again(Walker& walker, const program::Primitive& primitive) const;
  bool runs_ahead(Walker& walker);
  bool leave_behind(std::int32_t agent);
  std::int64_t room_for(const Walker& walker) const;
  std::int64_t ahead_of(const Walker& walker) const;
  bool has_room(std::int32_t agent);
  void stored(Walker& walker, const program::Primitive& primitive, const Moment& issued);
  bool stay_in_l2(const Walker& walker, const program::Primitive& results) const;
  void write_back(const Walker& walker, const program::Primitive& results);

  Run& run_;
  const Streams& streams_;
  Traffic& traffic_;
  Packets packets_;
  Pool<Behind, kFew> behind_;
  std::vector<std::int64_t> written_back_;  ///< by class of ranks: bytes on their way to memory
};

}  // namespace hemiola::sim::fluid

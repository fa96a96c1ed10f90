// Writes a plan down while a program runs: moves as transfers, what workgroups know as
// dependencies.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "lift/packets.h"
#include "plan/plan.h"
#include "program/bind/bound.h"
#include "program/semantics/primitive.h"

namespace hemiola::lift {

/// "These transfers are complete": by (rank, stream) the number of the last one.
using Knowledge = std::map<std::pair<int, std::int32_t>, std::int64_t>;
void join(Knowledge& into, const Knowledge& other);
inline void join(Knowledge& into, const TransferRef& ref) {
  join(into, Knowledge{{{ref.rank, ref.stream}, ref.number}});
}

class Recorder {
 public:
  explicit Recorder(const program::Bound& program);

  /// A new stream of a rank; its index.
  std::int32_t add_stream(int rank, std::string name);

  /// The transfers of one move (or of one proxy request) at the end of a stream. They come after
  /// `known`, which is then empty, because whoever knows of them knows of it.
  void move(int rank, std::int32_t stream, const program::Primitive& primitive, Knowledge& known);

  /// What whoever learns of the stream's progress knows.
  void add_last(int rank, std::int32_t stream, Knowledge& known) const;
  TransferRef last(int rank, std::int32_t stream) const;

  /// Bytes become chunks; the plan is valid.
  plan::Plan finish();

 private:
  /// A piece of memory: a byte range of a tensor. Tensors are the program's buffers, then `transit`
  /// (what a move reduces on its way to one destination) and `staging` (to several).
  struct Place {
    int rank = 0;
    std::int32_t group = -1;  ///< all members' instead
    std::int32_t tensor = 0;
    std::int64_t offset = 0;  ///< data bytes
    bool operator==(const Place&) const = default;
  };
  struct Record {
    plan::TransferKind kind;
    Place source, destination, operand;
    std::int64_t bytes;
    ReduceOp reduce;
    std::vector<TransferRef> after;
  };
  struct StreamRecord {
    std::string name;
    std::vector<Record> records;
    Knowledge joined;           ///< all dependencies so far
    std::int64_t passing = -1;  ///< where its own part of transit and staging begins
    std::int64_t passing_bytes = 0;
  };

  Place place(const program::Span& span) const;
  Place passing(int rank, std::int32_t stream, std::int64_t bytes, bool once);
  void add(int rank, std::int32_t stream, const Place& source, const Place& destination,
           std::int64_t bytes, Knowledge& known, ReduceOp reduce = ReduceOp::none);
  void add(int rank, std::int32_t stream, const Place& source, const Place& destination,
           std::int64_t bytes, Knowledge& known, ReduceOp reduce, const Place& operand);
  std::int64_t unit() const;
  plan::Region region(const Place& place, std::int64_t bytes, std::int64_t unit) const;
  void set_tensors(plan::Plan& plan, std::int64_t unit) const;
  void set_promise(plan::Plan& plan) const;

  const program::Bound& program_;
  std::vector<std::vector<StreamRecord>> streams_;  ///< by rank
  std::vector<std::int64_t> passing_end_;  ///< by rank: bytes of transit and staging in use
};

}  // namespace hemiola::lift

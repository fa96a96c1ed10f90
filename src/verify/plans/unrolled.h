// A plan with its loops unrolled: streams of all ranks numbered through, transfers by number.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/index.h"
#include "plan/area.h"
#include "plan/plan.h"

namespace hemiola::verify {

/// Transfer `number` of stream `stream` (numbered over all ranks).
struct TransferId {
  std::int32_t stream = 0;
  std::int32_t number = 0;
  auto operator<=>(const TransferId&) const = default;
};

/// A collective that the members of a group run together: one transfer of each, in group order.
struct Meeting {
  std::int32_t group = 0;
  std::vector<TransferId> members;  ///< stream -1: this member never comes
};

/// What a transfer does to the memory of one rank: destination = sum of the sources, element by
/// element. All areas have equally many elements.
struct Movement {
  int rank = 0;
  plan::Area destination;
  std::vector<std::pair<int, plan::Area>> sources;  ///< rank and area
};

/// Steps are kept once per code, not per rank. The plan is valid and outlives this.
class Unrolled {
 public:
  explicit Unrolled(const plan::Plan& plan);

  const plan::Plan& plan() const { return plan_; }
  std::int32_t streams() const { return static_cast<std::int32_t>(rank_of_.size()); }
  std::int32_t stream(int rank, std::int32_t number) const { return first_[index(rank)] + number; }
  int rank_of(std::int32_t stream) const { return rank_of_[index(stream)]; }
  /// Among the streams of its rank.
  std::int32_t index_of(std::int32_t stream) const {
    return stream - first_[index(rank_of(stream))];
  }
  std::int32_t transfers(std::int32_t stream) const {
    return static_cast<std::int32_t>(steps_of(stream).size());
  }
  std::int64_t transfers() const;

  const plan::Transfer& transfer(TransferId id) const { return *step(id).transfer; }
  Indices at(TransferId id) const { return {.rank = rank_of(id.stream), .loop = step(id).loop}; }
  /// The transfer that a dependency of a transfer names; not for `computed` ones.
  TransferId target(const plan::Dependency& dependency, const Indices& at) const {
    return {stream(static_cast<int>(dependency.rank(at)), dependency.stream),
            static_cast<std::int32_t>(dependency.transfer(at))};
  }

  /// Calls visit(id) for all transfers, stream by stream.
  template <class Visit>
  void each_transfer(Visit&& visit) const {
    for (std::int32_t s = 0; s < streams(); ++s)
      for (TransferId id{s, 0}; id.number < transfers(s); ++id.number) visit(id);
  }
  /// Calls visit(rank, area, id) for what each of them writes; of a collective its own member.
  template <class Visit>
  void each_arrival(Visit&& visit) const {
    each_transfer([&](TransferId id) {
      if (transfer(id).kind == plan::TransferKind::collective)
        return visit(rank_of(id.stream), evaluate(transfer(id).destination, at(id)), id);
      for (const Movement& movement : movements(id)) visit(movement.rank, movement.destination, id);
    });
  }

  /// Collectives; `meeting_of` is -1 for other transfers.
  const std::vector<Meeting>& meetings() const { return meetings_; }
  std::int32_t meeting_of(TransferId id) const;

  /// Of a transfer that is no collective.
  std::vector<Movement> movements(TransferId id) const;
  /// Of a whole collective. A broadcast goes out from the group's first rank. All members came and
  /// agree (see disagreement).
  std::vector<Movement> movements(const Meeting& meeting) const;
  /// Those of all meetings that take place.
  std::vector<Movement> movements_of_meetings() const;
  /// Why the members of a meeting do not run the same collective; empty: they do.
  std::string disagreement(const Meeting& meeting) const;

  /// By tensor: some transfer writes it (reduces into it).
  std::vector<bool> written_tensors() const;
  std::vector<bool> reduced_tensors() const;

  /// JSON pointer of a transfer in the plan's file form: "/codes/0/streams/0/items/2".
  std::string place(TransferId id) const;

 private:
  struct Step {
    const plan::Transfer* transfer = nullptr;
    std::array<std::int64_t, 2> loop{};
    std::array<std::int32_t, 3> items{-1, -1, -1};  ///< path of item indices
  };
  const std::vector<Step>& steps_of(std::int32_t stream) const {
    return steps_[index(code_steps_[index(stream)])];
  }
  const Step& step(TransferId id) const { return steps_of(id.stream)[index(id.number)]; }
  void unroll(const std::vector<plan::Item>& items, Step& path, std::size_t depth,
              std::vector<Step>& out) const;
  void find_meetings();

  const plan::Plan& plan_;
  std::vector<std::vector<Step>> steps_;  ///< by code and stream, codes after each other
  std::vector<std::int32_t> code_steps_;  ///< by stream
  std::vector<std::int32_t> first_;       ///< by rank: its first stream
  std::vector<int> rank_of_;
  std::vector<Meeting> meetings_;
  std::vector<std::pair<TransferId, std::int32_t>> meeting_of_;  ///< sorted
};

/// Elements [begin, begin + count) of an area, in its order.
plan::Area part(const plan::Area& area, std::int64_t begin, std::int64_t count);

}  // namespace hemiola::verify

// What the tiles of a product find in the L2, tile by tile and not line by line: for the fluid
// engine (docs/fluid.md, "Tiles").
//
// The tiles of a wave go through their operands side by side, so whatever several of them read is
// loaded once; so do those of kernels of other streams that are on the compute units with it. What
// an earlier wave read is still there if little else was touched since then. So waves are gone
// through in order, with the operands in the order in which they were read last.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/random.h"
#include "machine/machine.h"
#include "program/semantics/primitive.h"
#include "sim/alike/classes.h"

namespace hemiola::sim {

class TileReuse {
 public:
  /// `footprint`: bytes that the program of a rank touches, by class of ranks.
  TileReuse(const machine::Machine& machine, const program::Bound& program, const Classes& fold,
            const std::vector<std::int64_t>& footprint);

  /// Of what `tiles` tiles from number `tile` (from 0) on of a class of workgroups read of own
  /// memory in a repetition of the program, the shares that come from behind the L2, times 2^20:
  /// all, and what nothing has touched before. Of a line that several tiles of a wave miss at once
  /// one loads it, but all wait: `waits` is the share of reads that do.
  struct Missed {
    std::int64_t all = 0, cold = 0, waits = 0;
  };
  Missed missed(std::int32_t agents, std::size_t tile, std::size_t tiles, int repetition) const;

 private:
  /// What an operation loads of own memory in all of its iterations: buffer, offset of the first
  /// byte.
  using Operand = std::pair<std::int32_t, std::int64_t>;
  struct Read {
    Operand operand{};
    std::int64_t bytes = 0;
  };
  struct Tile {
    std::int32_t agents = 0;  ///< class of its workgroup
    std::size_t reads = 0;    ///< so many of the wave's, behind those of the tiles before
  };
  struct Wave {
    std::vector<Tile> tiles;
    std::vector<Read> reads;
    std::int64_t stored = 0;
  };
  struct Sum {
    std::int64_t read = 0, missed = 0;
    std::int64_t cold = 0;  ///< of `missed`: what nothing had touched before in a repetition
    std::int64_t waits = 0;
  };

  using KernelsOfStream = std::map<std::int32_t, std::vector<std::size_t>>;  ///< by item: members
  using KernelsOfRank = std::map<std::int32_t, KernelsOfStream>;             ///< by stream
  std::vector<std::vector<std::size_t>> side_by_side(int rank, const KernelsOfRank& streams) const;
  double units_of(std::size_t member, const machine::GpuModel& model) const;
  std::vector<Wave> waves_of(const std::vector<std::size_t>& members) const;
  void go_through(int rank, const Wave& wave, std::size_t number);
  double found_first(int rank, std::int32_t buffer) const;

  /// Bytes by the order in which they were touched last: sums of what was touched after a place,
  /// in the logarithm of what is known (a Fenwick tree).
  class Recency {
   public:
    /// Its place; one more than the last one's.
    std::size_t push(std::int64_t bytes);
    void remove(std::size_t place, std::int64_t bytes) { add(place, -bytes); }
    std::int64_t after(std::size_t place) const { return total_ - up_to(place); }
    void clear();

   private:
    void add(std::size_t place, std::int64_t bytes);
    std::int64_t up_to(std::size_t place) const;
    std::vector<std::int64_t> tree_{0};  ///< place p is number p + 1
    std::int64_t total_ = 0;
  };
  /// Where it was touched last.
  struct Known {
    std::size_t place = 0;
    std::int64_t bytes = 0;
    std::size_t wave = 0;
  };
  double found(int rank, const Known& last, std::int64_t now_touched) const;
  void push(Known& known, std::int64_t bytes, bool again);

  const machine::Machine& machine_;
  const program::Bound& program_;
  const Classes& fold_;
  Recency whole_, halves_;  ///< bytes, and half of each
  struct HashOfOperand {
    std::size_t operator()(const Operand& operand) const {
      return index(splitmix64(static_cast<std::uint64_t>(operand.second) * 64 +
                              static_cast<std::uint64_t>(operand.first)));
    }
  };
  std::unordered_map<Operand, Known, HashOfOperand> known_;
  std::vector<std::pair<Operand, std::uint32_t>> order_;  ///< of a wave's reads
  std::vector<std::uint32_t> use_of_;
  std::vector<std::size_t> end_of_wave_;  ///< last place of each wave of all kernels of a rank
  std::vector<std::vector<Sum>> sums_;    ///< by class of agents, tile
  std::vector<double> warm_;   ///< by class of ranks: share left of the repetition before
  std::vector<bool> written_;  ///< buffers into which the program stores
};

}  // namespace hemiola::sim

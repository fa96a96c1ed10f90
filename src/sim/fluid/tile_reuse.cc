#include "sim/fluid/tile_reuse.h"

#include <algorithm>
#include <utility>

#include "program/semantics/occupancy.h"
#include "program/walk/cursor.h"
#include "sim/support/index.h"

namespace hemiola::sim {
namespace {

constexpr double kFixedPoint = 1 << 20;

/// The share of something that is still in a cache when so many other bytes were touched since.
double share_left(std::int64_t touched, std::int64_t cache) {
  if (cache <= 0) return 0;
  return std::clamp(2 - static_cast<double>(touched) / static_cast<double>(cache), 0.0, 1.0);
}

}  // namespace

TileReuse::TileReuse(const machine::Machine& machine, const program::Bound& program,
                     const Classes& fold, const std::vector<std::int64_t>& footprint)
    : machine_(machine), program_(program), fold_(fold), sums_(fold.agents().size()) {
  std::vector<KernelsOfRank> kernels(index(fold.rank_classes()));
  for (std::size_t m = 0; m < fold.members().size(); ++m) {
    const Agent& agent = fold.members()[m];
    const std::int32_t of = fold.rank_class(agent.rank);
    if (agent.kernel < 0 || fold.first_rank(of) != agent.rank) continue;
    const auto& ops = program.bodies()[index(agent.body)].ops;
    const bool computes = std::ranges::any_of(ops, [](const program::Op& op) {
      return op.kind == program::OpKind::compute && !op.src.empty();
    });
    if (computes) kernels[index(of)][agent.stream][agent.item].push_back(m);
  }
  written_.assign(program.buffers().size(), false);
  // Bodies count buffers as their program does; launches of a job have them elsewhere.
  std::vector<std::pair<std::int32_t, std::int32_t>> used;
  for (const Agent& agent : fold.members()) used.emplace_back(agent.body, agent.frame);
  std::ranges::sort(used);
  used.erase(std::unique(used.begin(), used.end()), used.end());
  for (const auto& [body, frame] : used) {
    for (const program::Op& op : program.bodies()[index(body)].ops) {
      for (const program::Operand& operand : op.dst)
        if (operand.buffer >= 0)
          written_[index(program.frame(frame).buffer_of(operand.buffer))] = true;
    }
  }
  for (std::size_t c = 0; c < kernels.size(); ++c) {
    const int rank = fold.first_rank(static_cast<std::int32_t>(c));
    warm_.push_back(share_left(footprint[c], machine.model(rank).l2_size.count));
    whole_.clear();
    halves_.clear();
    known_.clear();
    end_of_wave_.clear();
    for (const std::vector<std::size_t>& members : side_by_side(rank, kernels[c])) {
      const std::vector<Wave> waves = waves_of(members);
      for (std::size_t w = 0; w < waves.size(); ++w) go_through(rank, waves[w], w);
    }
  }
}

/// Members of kernels that are on the compute units together, in the order in which they come: of
/// each stream the next kernel, as many of these as there is room for.
std::vector<std::vector<std::size_t>> TileReuse::side_by_side(int rank,
                                                              const KernelsOfRank& streams) const {
  const machine::GpuModel& model = machine_.model(rank);
  std::vector<std::vector<std::size_t>> together;
  std::vector<std::pair<std::int32_t, KernelsOfStream::const_iterator>> next;
  for (const auto& [stream, kernels] : streams) next.emplace_back(stream, kernels.begin());
  while (!next.empty()) {
    double room = 0;  // compute units that are left
    for (auto& [stream, kernel] : next) {
      const std::vector<std::size_t>& members = kernel->second;
      const double units = units_of(members.front(), model);
      if (room < units) {
        together.emplace_back();
        room = static_cast<double>(model.cu_count);
      }
      room -= units;
      together.back().insert(together.back().end(), members.begin(), members.end());
      ++kernel;
    }
    std::erase_if(next, [&](const auto& at) { return at.second == streams.at(at.first).end(); });
  }
  return together;
}

/// Compute units that the kernel of a workgroup fills.
double TileReuse::units_of(std::size_t member, const machine::GpuModel& model) const {
  const Agent& agent = fold_.members()[member];
  const program::Kernel& kernel = program_.kernels()[index(agent.kernel)];
  const std::size_t block = kernel.block_of(index(agent.workgroup));
  const std::int64_t each =
      program::blocks_per_unit(program::occupancy_of_block(kernel, block, model), model);
  return static_cast<double>(kernel.block_count()) / static_cast<double>(each);
}

/// The i-th tiles of all workgroups, in the order of dispatch.
std::vector<TileReuse::Wave> TileReuse::waves_of(const std::vector<std::size_t>& members) const {
  std::vector<Wave> waves;
  program::ComputeSteps steps;
  for (const std::size_t member : members) {
    const Agent& agent = fold_.members()[member];
    const std::int32_t agents = fold_.class_of_member(member);
    program::Cursor cursor(program_, agent.rank, agent.body, agent.frame);
    for (std::size_t w = 0; cursor.skip_to_steps(steps); w += index(steps.tiles)) {
      const std::size_t end = w + index(steps.tiles);
      if (end > waves.size()) waves.resize(end);
      for (std::int64_t t = 0; t < steps.tiles; ++t) {
        Wave& wave = waves[w + index(t)];
        const std::size_t first = wave.reads.size();
        for (const program::ComputeSteps::Read& read : steps.reads) {
          if (read.first.rank != agent.rank) continue;
          wave.reads.push_back(
              {{read.first.buffer, read.first.offset + steps.moved(read.places, t)},
               read.bytes * read.times});
        }
        wave.tiles.push_back({agents, wave.reads.size() - first});
        wave.stored += steps.stored;
      }
    }
  }
  return waves;
}

/// Of what has not been read before: inputs come from memory, what kernels and transfers wrote
/// (also into inputs, as gathers in place do) is there unless it is too large.
double TileReuse::found_first(int rank, std::int32_t buffer) const {
  const program::BufferKind kind = program_.buffers()[index(buffer)].kind;
  const bool given = kind == program::BufferKind::input || kind == program::BufferKind::resident;
  if (given && !written_[index(buffer)]) return 0;
  return share_left(program_.memory_bytes(buffer, rank), machine_.model(rank).l2_size.count);
}

/// Bytes of others since it was read: all of the waves between, and half of its own and of this.
double TileReuse::found(int rank, const Known& last, std::int64_t now_touched) const {
  const std::size_t end = end_of_wave_[last.wave];
  const std::int64_t own = halves_.after(last.place) - halves_.after(end);
  return share_left(now_touched / 2 + own + whole_.after(end), machine_.model(rank).l2_size.count);
}

std::size_t TileReuse::Recency::push(std::int64_t bytes) {
  const std::size_t number = tree_.size();
  std::int64_t sum = bytes;  // of the places that this number stands for
  for (std::size_t of = number - 1, least = number & (number - 1); of > least; of &= of - 1)
    sum += tree_[of];
  tree_.push_back(sum);
  total_ += bytes;
  return number - 1;
}

void TileReuse::Recency::add(std::size_t place, std::int64_t bytes) {
  for (std::size_t number = place + 1; number < tree_.size(); number += number & (~number + 1))
    tree_[number] += bytes;
  total_ += bytes;
}

std::int64_t TileReuse::Recency::up_to(std::size_t place) const {
  std::int64_t sum = 0;
  for (std::size_t number = place + 1; number > 0; number &= number - 1) sum += tree_[number];
  return sum;
}

void TileReuse::Recency::clear() {
  tree_.assign(1, 0);
  total_ = 0;
}

void TileReuse::push(Known& known, std::int64_t bytes, bool again) {
  if (again) {
    whole_.remove(known.place, known.bytes);
    halves_.remove(known.place, known.bytes / 2);
  }
  known = {whole_.push(bytes), bytes, end_of_wave_.size()};
  halves_.push(bytes / 2);
}

void TileReuse::go_through(int rank, const Wave& wave, std::size_t number) {
  // Reads of one operand are one use of it; which of them each read is.
  order_.clear();
  for (std::uint32_t i = 0; i < wave.reads.size(); ++i)
    order_.emplace_back(wave.reads[i].operand, i);
  std::ranges::sort(order_);
  struct Use {
    std::pair<const Operand, Known>* operand = nullptr;
    std::int64_t bytes = 0, readers = 0;
    double missed = 0;  ///< share
    bool is_new = false;
  };
  std::vector<Use> here;
  use_of_.resize(order_.size());
  std::int64_t touched = wave.stored;
  for (const auto& [operand, i] : order_) {
    if (here.empty() || here.back().operand->first != operand) {
      const auto [at, is_new] = known_.try_emplace(operand);
      here.push_back({.operand = &*at, .is_new = is_new});
    }
    here.back().bytes = wave.reads[i].bytes;
    ++here.back().readers;
    use_of_[i] = static_cast<std::uint32_t>(here.size() - 1);
  }
  for (const Use& use : here) touched += use.bytes;
  for (Use& use : here) {
    const auto& [operand, known] = *use.operand;
    use.missed = 1 - (use.is_new ? found_first(rank, operand.first) : found(rank, known, touched));
  }
  std::size_t next = 0;
  for (const Tile& tile : wave.tiles) {
    std::vector<Sum>& sums = sums_[index(tile.agents)];
    if (sums.size() <= number) sums.resize(number + 1);
    Sum& sum = sums[number];
    for (const std::size_t end = next + tile.reads; next < end; ++next) {
      const Use& use = here[use_of_[next]];
      const std::int64_t bytes = wave.reads[next].bytes;
      const auto missed = static_cast<std::int64_t>(static_cast<double>(bytes) * use.missed);
      sum.read += bytes;
      sum.missed += missed / use.readers;
      sum.waits += missed;
      if (use.is_new) sum.cold += missed / use.readers;
    }
  }
  for (const Use& use : here) push(use.operand->second, use.bytes, !use.is_new);
  halves_.push(wave.stored / 2);
  end_of_wave_.push_back(whole_.push(wave.stored));
}

TileReuse::Missed TileReuse::missed(std::int32_t agents, std::size_t tile, std::size_t tiles,
                                    int repetition) const {
  const std::vector<Sum>& sums = sums_[index(agents)];
  Sum sum;
  for (std::size_t t = tile; t < std::min(tile + tiles, sums.size()); ++t) {
    sum.read += sums[t].read;
    sum.missed += sums[t].missed;
    sum.cold += sums[t].cold;
    sum.waits += sums[t].waits;
  }
  if (sum.read == 0) return {};
  const double left = warm_[index(fold_.rank_class(fold_.agents()[index(agents)].first.rank))];
  const double cold = static_cast<double>(sum.cold) * (repetition > 0 ? 1 - left : 1);
  const double scale = kFixedPoint / static_cast<double>(sum.read);
  return {static_cast<std::int64_t>(scale * (static_cast<double>(sum.missed - sum.cold) + cold)),
          repetition > 0 ? 0 : static_cast<std::int64_t>(scale * cold),
          static_cast<std::int64_t>(scale * static_cast<double>(sum.waits))};
}

}  // namespace hemiola::sim

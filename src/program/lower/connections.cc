// Any plan in the words of MSCCL XML: what moves between ranks is sent by a thread block of its
// source and received by one of its destination, in the same order on both sides. All memory is
// then touched by its own rank only, so that every dependency is one between steps of a rank.
//
// Movements are written in an order in which none waits for a later one, and every thread block
// keeps to it: the first one that is not complete can always go on, whatever the FIFOs hold.
#include <fmt/format.h>

#include <algorithm>

#include "core/index.h"
#include "program/formats/executor_limits.h"
#include "program/formats/msccl/document.h"
#include "program/lower/ordered.h"
#include "program/lower/parts.h"

namespace hemiola::program {
namespace {

using namespace general;

/// Into how many every movement is divided, each with thread blocks and channels of its own; fewer
/// where the executor has no room for them.
constexpr int kParts = 8;

const msccl::StepType& step_type_of(OpKind kind) {
  const auto types = msccl::step_types();
  return *std::ranges::find(types, kind, &msccl::StepType::kind);
}

class ConnectionLowering {
 public:
  ConnectionLowering(const plan::Plan& plan, const Ordered& list, int parts)
      : plan_(plan), list_(list), parts_(parts) {
    algorithm_.gpus.resize(index(plan.ranks));
  }

  /// Steps of everything, without the head; of less where a rank has more thread blocks than the
  /// executor has room for.
  msccl::Algorithm make() {
    for (const Movement* movement : list_.order) {
      if (full_) break;
      for (const Row& row : list_.rows_of(*movement))
        for (part_ = 0; part_ < parts_; ++part_) add(*movement, row);
    }
    for (std::size_t rank = 0; rank < algorithm_.gpus.size(); ++rank) {
      msccl::Gpu& gpu = algorithm_.gpus[rank];
      gpu.path = fmt::format("/algo/gpu[{}]", rank);
      for (std::size_t b = 0; b < gpu.blocks.size(); ++b)
        gpu.blocks[b].path = fmt::format("{}/tb[{}]", gpu.path, b);
      const auto chunks = [&](BufferKind kind) { return list_.chunks[index(kind)] * parts_; };
      gpu.input_chunks = chunks(BufferKind::input);
      gpu.output_chunks = chunks(BufferKind::output);
      gpu.scratch_chunks = chunks(BufferKind::scratch);
    }
    return std::move(algorithm_);
  }

 private:
  /// A thread block: which of its rank, and its number among all.
  struct Block {
    int rank = 0;
    std::size_t number = 0;
    std::int32_t id = 0;
  };
  struct Connection {
    Block send, receive;
    bool open = false;
  };
  struct Done {
    Block block;
    std::int32_t item = 0;     ///< among the block's steps without its nops
    std::size_t position = 0;  ///< among all its steps
  };

  msccl::ThreadBlock& block(const Block& b) {
    return algorithm_.gpus[index(b.rank)].blocks[b.number];
  }

  Block new_block(int rank, std::int32_t send, std::int32_t receive, std::int32_t channel) {
    auto& blocks = algorithm_.gpus[index(rank)].blocks;
    blocks.push_back(
        {.send = send, .receive = receive, .channel = channel, .steps = {}, .path = {}});
    full_ = full_ || blocks.size() > msccl_limits::kThreadBlocks.most;
    algorithm_.channels = std::max(algorithm_.channels, channel + 1);
    return {rank, blocks.size() - 1, count_++};
  }

  /// Whether a thread block has room for one more step and what it may have to wait for.
  bool has_room(const Block& b) {
    constexpr std::size_t kWaits = 8;
    return block(b).steps.size() + kWaits < msccl_limits::kRcclSteps.most;
  }

  Connection& connection(int from, int to) {
    Connection& found = connections_[{from, to, part_}];
    if (found.open && has_room(found.send) && has_room(found.receive)) return found;
    // A channel has so many peers each way; farther ones begin with the next channel.
    constexpr auto kPeers = static_cast<int>(msccl_limits::kPeers.most);
    const int stride = (plan_.ranks - 2) / kPeers + 1;
    const int distance = (to - from + plan_.ranks) % plan_.ranks;
    const std::int32_t channel = (distance - 1) / kPeers + stride * channels_[{from, to}]++;
    found.send = new_block(from, to, -1, channel);
    found.receive = new_block(to, -1, from, channel);
    found.open = true;
    return found;
  }

  /// Where a step inside the rank stands: behind what it reads, if that has just been received.
  Block local_block(int rank, const std::set<std::int64_t>& before) {
    if (!before.empty()) {
      const Block& last = done_[index(*before.rbegin())].block;
      if (block(last).send < 0 && has_room(last)) return last;
    }
    const auto [at, added] = local_.try_emplace({rank, part_});
    if (added || !has_room(at->second)) at->second = new_block(rank, -1, -1, 0);
    return at->second;
  }

  msccl::Place place_of(const Place& place, std::int64_t chunk) const {
    return {list_.kind_of(place), chunk};
  }

  std::pair<BufferKind, std::int64_t> in_memory(int rank, const msccl::Place& place) const {
    return list_.memory(rank, place.buffer, place.offset, parts_);
  }

  /// A step reads (or not) `source` and writes (or not) `destination`, after all that touched these
  /// chunks before.
  void step(OpKind kind, int rank, const Block* where, const msccl::Place* source,
            const msccl::Place* destination, std::int64_t count) {
    const auto who = std::ssize(done_);
    std::set<std::int64_t> before;
    const bool reads_destination = kind == OpKind::reduce;
    const auto touch = [&](const msccl::Place& place, bool writes) {
      const auto [kind, chunk] = in_memory(rank, place);
      if (writes)
        hazards_.write({rank, kind}, chunk, count, who, before);
      else
        hazards_.read({rank, kind}, chunk, count, who, before);
    };
    if (source != nullptr) touch(*source, false);
    if (reads_destination) touch(*destination, false);
    if (destination != nullptr) touch(*destination, true);
    const Block b = where != nullptr ? *where : local_block(rank, before);
    std::vector<Reduction::ItemOf> items;
    std::map<Reduction::ItemOf, const Done*> awaited;
    for (const std::int64_t other : before) {
      const Done& done = done_[index(other)];
      items.emplace_back(done.block.id, done.item);
      awaited[items.back()] = &done;
    }
    msccl::Step made{.type = &step_type_of(kind),
                     .source = source != nullptr ? *source : *destination,
                     .destination = destination != nullptr ? *destination : *source,
                     .count = count};
    auto& steps = block(b).steps;
    const auto waits = reduction_.next(b.id, items);
    for (std::size_t w = 0; w < waits.size(); ++w) {
      const Done& other = *awaited.at(waits[w]);
      block(other.block).steps[other.position].has_dependents = true;
      made.awaited_block = static_cast<std::int32_t>(other.block.number);
      made.awaited_step = static_cast<std::int32_t>(other.position);
      if (w + 1 == waits.size()) break;
      msccl::Step nop{.type = &msccl::nop_type(), .source = {}, .destination = {}};
      nop.awaited_block = made.awaited_block;
      nop.awaited_step = made.awaited_step;
      steps.push_back(nop);
    }
    steps.push_back(made);
    done_.push_back({b, items_[b.id]++, steps.size() - 1});
  }

  /// Sends `from` to the owner of `to`, who stores it there, with `operand` added if there is one.
  void message(const Place& from, std::int64_t from_chunk, const Place& to, std::int64_t to_chunk,
               const msccl::Place* operand, std::int64_t count) {
    const Connection& way = connection(from.rank, to.rank);
    const msccl::Place source = place_of(from, from_chunk), target = place_of(to, to_chunk);
    step(OpKind::send, from.rank, &way.send, &source, nullptr, count);
    step(operand != nullptr ? OpKind::recv_reduce_copy : OpKind::recv, to.rank, &way.receive,
         operand, &target, count);
  }

  /// This part of a row, in steps of as many chunks as the interpreter takes.
  void add(const Movement& movement, const Row& row) {
    constexpr auto kMost = static_cast<std::int64_t>(msccl_limits::kCount.most);
    for (std::int64_t done = 0; done < row.chunks; done += kMost) {
      const std::int64_t count = std::min(kMost, row.chunks - done);
      std::vector<std::int64_t> chunk;
      for (const std::int64_t first : row.chunk)
        chunk.push_back(first * parts_ + part_ * row.chunks + done);
      add(movement, chunk, count);
    }
  }

  void add(const Movement& movement, const std::vector<std::int64_t>& chunk, std::int64_t count) {
    const std::size_t sources = movement.sources.size();
    for (std::size_t d = 0; d < movement.destinations.size(); ++d) {
      const Place& target = movement.destinations[d];
      if (movement.reduces()) {
        if (d > 0) refuse(movement, "a reduction into several places");
        reduce(movement, chunk, count);
      } else if (movement.sources.front().rank != target.rank) {
        message(movement.sources.front(), chunk[0], target, chunk[sources + d], nullptr, count);
      } else {
        const msccl::Place from = place_of(movement.sources.front(), chunk[0]);
        const msccl::Place to = place_of(target, chunk[sources + d]);
        if (in_memory(target.rank, from) != in_memory(target.rank, to))
          step(OpKind::copy, target.rank, nullptr, &from, &to, count);
      }
    }
  }

  /// Whatever the receiver has is the operand of the first message, or added to the result. What
  /// stands where the result goes comes first, before it is overwritten.
  void reduce(const Movement& movement, const std::vector<std::int64_t>& chunk,
              std::int64_t count) {
    const std::size_t sources = movement.sources.size();
    const Place& target = movement.destinations.front();
    const msccl::Place result = place_of(target, chunk[sources]);
    std::vector<msccl::Place> local;
    std::vector<std::size_t> remote;
    for (std::size_t s = 0; s < sources; ++s)
      if (movement.sources[s].rank == target.rank)
        local.push_back(place_of(movement.sources[s], chunk[s]));
      else
        remote.push_back(s);
    std::stable_partition(local.begin(), local.end(), [&](const msccl::Place& place) {
      return in_memory(target.rank, place) == in_memory(target.rank, result);
    });
    for (std::size_t i = 1; i < local.size(); ++i) {
      const auto [buffer, at] = in_memory(target.rank, local[i]);
      const auto [into, begin] = in_memory(target.rank, result);
      const bool apart = buffer != into || at + count <= begin || begin + count <= at;
      if (!apart) refuse(movement, "it adds up what its result overwrites");
    }
    bool empty = true;  // nothing stands in the result yet
    const auto operand = [&]() -> const msccl::Place* {
      return !empty ? &result : local.empty() ? nullptr : &local.front();
    };
    for (const std::size_t s : remote) {
      message(movement.sources[s], chunk[s], target, chunk[sources], operand(), count);
      empty = false;
    }
    if (empty && in_memory(target.rank, local.front()) != in_memory(target.rank, result))
      step(OpKind::copy, target.rank, nullptr, &local.front(), &result, count);
    for (std::size_t i = 1; i < local.size(); ++i)
      step(OpKind::reduce, target.rank, nullptr, &local[i], &result, count);
  }

  [[noreturn]] void refuse(const Movement& movement, const std::string& why) const {
    throw Failure(fmt::format("MSCCL XML cannot say plan '{}': {}", plan_.name, why),
                  {.pointer = movement.where});
  }

  const plan::Plan& plan_;
  const Ordered& list_;
  std::int64_t parts_;
  std::int64_t part_ = 0;
  msccl::Algorithm algorithm_;
  std::map<std::tuple<int, int, std::int64_t>, Connection> connections_;
  std::map<std::pair<int, int>, std::int32_t> channels_;  // used between two ranks
  std::map<std::pair<int, std::int64_t>, Block> local_;
  std::int32_t count_ = 0;
  bool full_ = false;
  Hazards hazards_;
  std::vector<Done> done_;
  Reduction reduction_;
  std::map<std::int32_t, std::int32_t> items_;
};

bool has_room(const msccl::Algorithm& algorithm) {
  bool fits = algorithm.channels <= static_cast<std::int32_t>(msccl_limits::kChannels.most);
  for (const msccl::Gpu& gpu : algorithm.gpus) {
    fits = fits && gpu.blocks.size() <= msccl_limits::kAwaited.most;
    for (const std::int64_t chunks : {gpu.input_chunks, gpu.output_chunks, gpu.scratch_chunks})
      fits = fits && chunks <= static_cast<std::int64_t>(msccl_limits::kChunks.most);
  }
  return fits;
}

}  // namespace

Program lower_connections(const plan::Plan& plan, const LowerOptions& options, Program program) {
  if (options.realization == Realization::multicast)
    throw Failure(
        fmt::format("plan '{}' lets a switch reduce and multicast (NVLS), for which MSCCL "
                    "XML has no words",
                    plan.name),
        kOption, "--param realization=load-store sends and receives the same data");
  for (const plan::Tensor& tensor : plan.tensors) {
    if (plan.collective == Collective::custom && !plan.of_elements() &&
        tensor.role != plan::Role::scratch && tensor.elements() > plan.chunks_per_size)
      throw Failure(
          fmt::format("plan '{}' with sync=connections: '{}' holds {} chunks, where MSCCL "
                      "XML knows buffers of up to the {} of the size",
                      plan.name, tensor.name, tensor.elements(), plan.chunks_per_size),
          kOption);
  }
  const Ordered list = ordered(plan, options, program);
  int parts = options.workgroups > 0 ? options.workgroups : kParts;
  msccl::Algorithm algorithm = ConnectionLowering(plan, list, parts).make();
  while (options.workgroups == 0 && parts > 1 && !has_room(algorithm)) {
    parts /= 2;
    algorithm = ConnectionLowering(plan, list, parts).make();
  }
  for (std::size_t rank = 0; rank < algorithm.gpus.size(); ++rank)
    check_limit(msccl_limits::kThreadBlocks, fmt::format("rank {}", rank),
                algorithm.gpus[rank].blocks.size(), {.file = plan.name});
  algorithm.name = plan.name;
  algorithm.protocol = options.protocol;
  algorithm.collective = plan.collective;
  algorithm.chunks = program.chunks_per_size * parts;
  algorithm.in_place = program.in_place;
  algorithm.min_size = program.min_size;
  algorithm.max_size = program.max_size;
  Program made = msccl::program_of(algorithm, {.text = {}, .file = plan.name},
                                   find_executor("msccl", "msccl"));
  made.format = program.format;
  made.root = program.root;
  made.fixed_size = program.fixed_size;
  made.fixed_type = program.fixed_type;
  for (Kernel& kernel : made.kernels)
    if (options.threads > 0) kernel.threads = options.threads;
  return made;
}

}  // namespace hemiola::program

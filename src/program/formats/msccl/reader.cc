// Reads MSCCL XML: thread blocks become workgroups, steps become operations on connections.
//
// The meaning is the interpreter's (rccl src/misc/msccl/msccl_parser.cc for what is merged,
// src/device/msccl_kernel_impl.h for what runs; docs/formats.md says it in words).
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/finding.h"
#include "core/text.h"
#include "program/formats/format_reader.h"
#include "program/formats/msccl/document.h"
#include "program/formats/msccl/findings.h"
#include "program/semantics/executor.h"

namespace hemiola::program {
namespace {

using msccl::Algorithm;
using msccl::Gpu;
using msccl::Place;
using msccl::Source;
using msccl::Step;
using msccl::ThreadBlock;

/// The interpreter's MSCCL_MAX_REDUCE_FUSION. It counts all reductions of a thread block, not those
/// of one chain, so only the 16th of a block closes its chain.
constexpr std::int64_t kReductionThatClosesItsChain = 16;

/// What the interpreter runs: a step, with the dependencies of the nops before it and the further
/// sources of reductions into the same place.
struct Transmission {
  std::size_t step = 0;  ///< position of the first step
  std::vector<Place> sources;
  std::vector<std::size_t> waits;  ///< positions of the steps that carry the dependencies
  bool signals = false;
  std::int64_t number = 0;  ///< the step number that its flag shows
};

struct Merged {
  std::vector<Transmission> transmissions;
  std::vector<std::size_t> lost_waits;   ///< of nops with no step after them: never waited for
  std::vector<std::size_t> other_count;  ///< reductions that would join a chain but for their cnt
};

/// Whether the interpreter adds a reduction to the chain that `first` began.
bool continues(const Step& first, const Step& step) {
  return step.type->kind == OpKind::reduce && first.destination == step.destination &&
         first.source.buffer == step.source.buffer && step.awaited_block < 0;
}

/// Follows the interpreter's parser. Throws what it refuses.
Merged merge(const ThreadBlock& block, const Source& source) {
  Merged merged;
  std::vector<std::size_t> waits;
  std::int64_t reductions = 0;
  bool open_chain = false;
  for (std::size_t i = 0; i < block.steps.size(); ++i) {
    const Step& step = block.steps[i];
    if (step.awaited_block >= 0) waits.push_back(i);
    if (step.type->kind == OpKind::sync) continue;
    const bool reduces = step.type->kind == OpKind::reduce;
    reductions += reduces ? 1 : 0;
    const bool joins = open_chain && continues(block.steps[merged.transmissions.back().step], step);
    const bool same_count =
        joins && block.steps[merged.transmissions.back().step].count == step.count;
    if (joins && !same_count) merged.other_count.push_back(i);
    if (same_count) {
      merged.transmissions.back().sources.push_back(step.source);
      merged.transmissions.back().signals = step.has_dependents;
    } else {
      if (!waits.empty() && step.awaited_block < 0) {
        throw Failure("a chain of nops must end with a step that has a dependency of its own",
                      source.at(step.offset, block.step_path(i)),
                      "move the dependency of the last nop to this step");
      }
      merged.transmissions.push_back({i, {step.source}, std::move(waits), step.has_dependents, 0});
      waits.clear();
    }
    open_chain = reduces && !step.has_dependents && reductions != kReductionThatClosesItsChain;
  }
  merged.lost_waits = std::move(waits);
  return merged;
}

/// The interpreter counts steps while it runs: a nop without a dependency is not counted.
void number_steps(Merged& merged) {
  std::int64_t number = 0;
  for (Transmission& transmission : merged.transmissions) {
    number += std::max<std::int64_t>(0, static_cast<std::int64_t>(transmission.waits.size()) - 1);
    number += static_cast<std::int64_t>(transmission.sources.size()) - 1;
    transmission.number = number++;
  }
}

Op make_op(OpKind kind, std::string where) {
  Op op;
  op.kind = kind;
  op.where = std::move(where);
  return op;
}

/// How many chunks the collective's buffers have, by what its name means.
struct Extents {
  std::int64_t input = 0;
  std::int64_t output = 0;
  std::int64_t shard = 0;  ///< chunks of one rank where ranks own shards
};

class Builder {
 public:
  Builder(const Algorithm& algorithm, const Source& source, const Executor& executor)
      : algorithm_(algorithm), source_(source), executor_(executor) {}

  Program build() {
    set_head();
    set_buffers();
    connect();
    for (const Gpu& gpu : algorithm_.gpus) merge_gpu(gpu);
    add_progress_semaphores();
    for (std::size_t rank = 0; rank < algorithm_.gpus.size(); ++rank) add_rank(rank);
    warn();
    warn_of_copies(algorithm_, source_, program_);
    warn_of_reduction(algorithm_, source_, program_);
    program_.finish();
    return std::move(program_);
  }

 private:
  struct Ends {
    ConnectionRef send;
    ConnectionRef receive;
  };
  using BlockId = std::pair<std::size_t, std::size_t>;  // rank, thread block

  const Executor::Protocols& shape() const { return executor_.of(algorithm_.protocol); }
  std::int64_t ranks() const { return static_cast<std::int64_t>(algorithm_.gpus.size()); }
  const ThreadBlock& block(BlockId id) const { return algorithm_.gpus[id.first].blocks[id.second]; }

  void set_head() {
    program_.name = algorithm_.name;
    program_.source = source_.file;
    program_.format = "msccl";
    program_.executed_by.name = executor_.name;
    program_.collective = algorithm_.collective;
    program_.protocol = algorithm_.protocol;
    program_.in_place = algorithm_.in_place;
    program_.ranks = static_cast<int>(ranks());
    program_.fifo = shape().fifo;
    program_.chunks_per_size = algorithm_.chunks;
    program_.alignment = Bytes{1};  // the interpreter takes any number of elements per chunk
    program_.min_size = algorithm_.min_size;
    program_.max_size = algorithm_.max_size;
  }

  Extents extents() const {
    const std::int64_t all = algorithm_.chunks;
    const bool gathers = algorithm_.collective == Collective::all_gather;
    const bool scatters = algorithm_.collective == Collective::reduce_scatter;
    if (!gathers && !scatters) return {all, all, 0};
    if (all % ranks() != 0) {
      throw Failure("nchunksperloop is " + std::to_string(all) + ", not a multiple of the " +
                        std::to_string(ranks()) + " gpus",
                    source_.at(algorithm_.offset, "/algo"),
                    "each gpu owns an equal share of the chunks");
    }
    const std::int64_t shard = all / ranks();
    return gathers ? Extents{shard, all, shard} : Extents{all, shard, shard};
  }

  void set_buffers() {
    const Extents size = extents();
    Buffer input{.name = "input", .kind = BufferKind::input, .chunks = {size.input}};
    Buffer output{.name = "output", .kind = BufferKind::output, .chunks = {size.output}};
    if (algorithm_.in_place) {
      Buffer& part = size.input < size.output ? input : output;
      part.alias = size.input < size.output ? 1 : 0;
      part.alias_chunk = size.shard == 0 ? constant(0) : Affine{.rank = 1, .scale = size.shard};
    }
    Buffer scratch{.name = "scratch", .kind = BufferKind::scratch, .chunks = {}};
    for (const Gpu& gpu : algorithm_.gpus) {
      check_extent(gpu, "i_chunks", gpu.input_chunks, size.input);
      check_extent(gpu, "o_chunks", gpu.output_chunks, size.output);
      scratch.chunks.push_back(gpu.scratch_chunks);
    }
    if (std::ranges::all_of(scratch.chunks,
                            [&](std::int64_t chunks) { return chunks == scratch.chunks.front(); }))
      scratch.chunks.resize(1);
    program_.buffers = {input, output};
    if (*std::ranges::max_element(scratch.chunks) > 0) program_.buffers.push_back(scratch);
  }

  void check_extent(const Gpu& gpu, const char* attribute, std::int64_t chunks,
                    std::int64_t limit) const {
    if (chunks <= limit) return;
    throw Failure(std::string(attribute) + " is " + std::to_string(chunks) + ", but " +
                      std::string(name_of(algorithm_.collective)) + " of " +
                      std::to_string(algorithm_.chunks) + " chunks has only " +
                      std::to_string(limit),
                  source_.at(gpu.offset, gpu.path));
  }

  static bool any_step(const ThreadBlock& block, bool msccl::StepType::*does) {
    return std::ranges::any_of(block.steps, [&](const Step& step) { return step.type->*does; });
  }

  /// Pairs each sending thread block with the one that receives from it on the same channel.
  void connect() {
    using Key = std::tuple<std::int64_t, std::int64_t, std::int32_t>;  // from, to, channel
    std::map<Key, BlockId> senders, receivers;
    Diagnostics errors;
    const auto enter = [&](std::map<Key, BlockId>& ends, const Key& key, BlockId id,
                           const char* verb) {
      const auto [other, added] = ends.try_emplace(key, id);
      if (added) return;
      errors.error("a second thread block of the gpu that " + std::string(verb) + " on channel " +
                       std::to_string(std::get<2>(key)),
                   source_.at(block(id).offset, block(id).path),
                   "the first is at " + block(other->second).path);
    };
    for (std::size_t rank = 0; rank < algorithm_.gpus.size(); ++rank) {
      const std::vector<ThreadBlock>& blocks = algorithm_.gpus[rank].blocks;
      ends_.emplace_back(blocks.size());
      std::int32_t outbound = 0;
      std::int32_t inbound = 0;
      const auto self = static_cast<std::int64_t>(rank);
      for (std::size_t b = 0; b < blocks.size(); ++b) {
        if (any_step(blocks[b], &msccl::StepType::sends)) {
          ends_[rank][b].send = {constant(blocks[b].send), -1, outbound++, blocks[b].channel};
          enter(senders, {self, blocks[b].send, blocks[b].channel}, {rank, b},
                ("sends to gpu " + std::to_string(blocks[b].send)).c_str());
        }
        if (any_step(blocks[b], &msccl::StepType::receives)) {
          ends_[rank][b].receive = {constant(blocks[b].receive), inbound++, -1, blocks[b].channel};
          enter(receivers, {blocks[b].receive, self, blocks[b].channel}, {rank, b},
                ("receives from gpu " + std::to_string(blocks[b].receive)).c_str());
        }
      }
      program_.outbound = std::max(program_.outbound, outbound);
      program_.inbound = std::max(program_.inbound, inbound);
    }
    for (const auto& [key, id] : senders) {
      const auto receiver = receivers.find(key);
      if (receiver == receivers.end()) {
        report_unpaired(errors, id, "sends to gpu ", std::get<1>(key), "receives from gpu ",
                        std::get<0>(key));
        continue;
      }
      ConnectionRef& send = ends_[id.first][id.second].send;
      ConnectionRef& receive = ends_[receiver->second.first][receiver->second.second].receive;
      send.inbound = receive.inbound;
      receive.outbound = send.outbound;
    }
    for (const auto& [key, id] : receivers) {
      if (senders.count(key) == 0) {
        report_unpaired(errors, id, "receives from gpu ", std::get<0>(key), "sends to gpu ",
                        std::get<1>(key));
      }
    }
    if (errors.has_errors()) throw Failure(errors);
  }

  void report_unpaired(Diagnostics& errors, BlockId id, const char* does, std::int64_t peer,
                       const char* counterpart, std::int64_t self) const {
    const Gpu& other = algorithm_.gpus[index(peer)];
    const std::string channel = " on channel " + std::to_string(block(id).channel);
    errors.error("thread block " + std::to_string(id.second) + " of gpu " +
                     std::to_string(id.first) + " " + does + std::to_string(peer) + channel +
                     ", but no thread block there " + counterpart + std::to_string(self) + channel,
                 source_.at(block(id).offset, block(id).path),
                 "gpu " + std::to_string(peer) + " is at " + other.path + " (line " +
                     std::to_string(source_.at(other.offset, "").line) + ")");
  }

  void merge_gpu(const Gpu& gpu) {
    std::vector<Merged>& blocks = merged_.emplace_back();
    for (const ThreadBlock& block : gpu.blocks) {
      Merged& merged = blocks.emplace_back(merge(block, source_));
      number_steps(merged);
      for (const std::size_t step : merged.other_count) {
        other_count_.note(
            "reductions into one chunk with different cnt follow each other: the interpreter "
            "uses the last cnt for all of them, this program the written ones",
            [&] { return source_.at(block.steps[step].offset, block.step_path(step)); });
      }
      for (const std::size_t lost : merged.lost_waits) {
        lost_.note("nothing comes after this nop, so its dependency is never waited for",
                   [&] { return source_.at(block.steps[lost].offset, block.step_path(lost)); });
      }
    }
  }

  /// Progress semaphore w belongs to thread block w of each gpu.
  void add_progress_semaphores() {
    std::size_t count = 0;
    for (std::size_t rank = 0; rank < merged_.size(); ++rank) {
      for (std::size_t b = 0; b < merged_[rank].size(); ++b) {
        const std::vector<Step>& steps = algorithm_.gpus[rank].blocks[b].steps;
        for (const Transmission& transmission : merged_[rank][b].transmissions) {
          if (transmission.signals) count = std::max(count, b + 1);
          for (const std::size_t wait : transmission.waits)
            count = std::max(count, index(steps[wait].awaited_block) + 1);
        }
      }
    }
    for (std::size_t b = 0; b < count; ++b) {
      program_.semaphores.push_back(
          {.name = "progress of workgroup " + std::to_string(b), .local = true});
    }
  }

  void add_rank(std::size_t rank) {
    const Gpu& gpu = algorithm_.gpus[rank];
    Kernel kernel{.name = algorithm_.name,
                  .threads = algorithm_.threads > 0 ? algorithm_.threads : shape().threads,
                  .fills_unit = true,
                  .bodies = {}};
    // Signals that some dependency leads to; the others cost a fence for nothing.
    std::set<std::pair<std::size_t, std::size_t>> used;
    for (std::size_t b = 0; b < gpu.blocks.size(); ++b) {
      kernel.bodies.push_back(static_cast<std::int32_t>(program_.bodies.size()));
      program_.bodies.push_back(body_of(rank, b, used));
    }
    note_unused_signals(rank, used);
    RankCode code;
    if (!kernel.bodies.empty()) {
      code.streams = {{StreamItem{.index = static_cast<std::int32_t>(program_.kernels.size())}}};
      program_.kernels.push_back(std::move(kernel));
    }
    program_.code_of.push_back(static_cast<std::int32_t>(program_.codes.size()));
    program_.codes.push_back(std::move(code));
  }

  Body body_of(std::size_t rank, std::size_t b,
               std::set<std::pair<std::size_t, std::size_t>>& used) {
    const ThreadBlock& block = algorithm_.gpus[rank].blocks[b];
    const Merged& merged = merged_[rank][b];
    Body body;
    if (merged.transmissions.empty()) return body;
    body.ops.push_back(make_op(OpKind::loop, block.path));
    body.ops.back().unit = shape().piece;
    body.ops.back().unit_chunks = 1;
    for (const Transmission& transmission : merged.transmissions) {
      const std::string where = block.step_path(transmission.step);
      for (const std::size_t wait : transmission.waits)
        body.ops.push_back(wait_of(rank, block, wait, used));
      if (!transmission.waits.empty()) body.ops.push_back(make_op(OpKind::sync, where));
      body.ops.push_back(operation_of(rank, b, transmission, where));
      // Sends and receives join the block themselves; local steps do it here.
      const bool local =
          body.ops.back().kind == OpKind::copy || body.ops.back().kind == OpKind::reduce;
      if (local || transmission.signals) body.ops.push_back(make_op(OpKind::sync, where));
      if (transmission.signals) {
        body.ops.push_back(make_op(OpKind::dep_signal, where));
        body.ops.back().semaphores = {{.index = static_cast<std::int32_t>(b)}};
      }
    }
    body.ops.push_back(make_op(OpKind::end_loop, block.path));
    return body;
  }

  /// A flag shows the newest step, so a wait ends at the first signalling step at or behind `deps`;
  /// with none in this piece, at the first signal of the next piece, which the last piece never
  /// gets.
  Op wait_of(std::size_t rank, const ThreadBlock& block, std::size_t index,
             std::set<std::pair<std::size_t, std::size_t>>& used) {
    const Step& step = block.steps[index];
    const auto awaited = static_cast<std::size_t>(step.awaited_block);
    const std::vector<Transmission>& candidates = merged_[rank][awaited].transmissions;
    std::int64_t signals = 0;
    std::int64_t before = 0;
    const Transmission* found = nullptr;
    for (const Transmission& candidate : candidates) {
      if (!candidate.signals) continue;
      ++signals;
      if (candidate.number < step.awaited_step)
        ++before;
      else if (!found)
        found = &candidate;
    }
    if (found) used.emplace(awaited, found->step);
    if (!found || found->number != step.awaited_step) {
      const std::string which = "waits for step " + std::to_string(step.awaited_step) +
                                " of thread block " + std::to_string(awaited) +
                                ", which never announces it: ";
      Finding& finding = found ? late_ : never_;
      finding.note(which + (found ? "the wait ends at step " + std::to_string(found->number)
                                  : std::string("the wait cannot end in the last piece")),
                   [&] { return source_.at(step.offset, block.step_path(index)); });
    }
    Op wait = make_op(OpKind::dep_wait, block.step_path(index));
    wait.semaphores = {{.index = step.awaited_block}};
    wait.target = before + 1;
    wait.count = signals;
    return wait;
  }

  Operand operand(Place place, std::int64_t chunks) const {
    const std::int32_t buffer = place.buffer == BufferKind::input    ? 0
                                : place.buffer == BufferKind::output ? 1
                                                                     : 2;
    return {.buffer = buffer, .chunk = constant(place.offset), .chunks = chunks};
  }

  Op operation_of(std::size_t rank, std::size_t b, const Transmission& transmission,
                  const std::string& where) const {
    const Step& step = algorithm_.gpus[rank].blocks[b].steps[transmission.step];
    Op op = make_op(step.type->kind, where);
    const Operand destination = operand(step.destination, step.count);
    if (msccl::is_reduction(op.kind) && algorithm_.reduction) op.reduce = *algorithm_.reduction;
    // `re` adds its sources to what the destination holds.
    if (op.kind == OpKind::reduce) op.src.push_back(destination);
    if (step.type->reads_source)
      for (const Place source : transmission.sources) op.src.push_back(operand(source, step.count));
    if (step.type->writes_destination) op.dst.push_back(destination);
    if (step.type->sends) op.send_to = ends_[rank][b].send;
    if (step.type->receives) op.recv_from = ends_[rank][b].receive;
    return op;
  }

  void note_unused_signals(std::size_t rank,
                           const std::set<std::pair<std::size_t, std::size_t>>& used) {
    for (std::size_t b = 0; b < merged_[rank].size(); ++b) {
      const ThreadBlock& block = algorithm_.gpus[rank].blocks[b];
      for (const Transmission& transmission : merged_[rank][b].transmissions) {
        if (!transmission.signals || used.count({b, transmission.step}) > 0) continue;
        unused_.note("hasdep is 1, but no thread block waits for this step", [&] {
          return source_.at(block.steps[transmission.step].offset,
                            block.step_path(transmission.step));
        });
      }
    }
  }

  void warn() {
    never_.warn(program_.warnings, "set hasdep=\"1\" on the step that is waited for");
    late_.warn(program_.warnings, "set hasdep=\"1\" on the step that is waited for");
    unused_.warn(program_.warnings, "hasdep=\"0\" saves a fence");
    lost_.warn(program_.warnings, "put the dependency on a step that moves data");
    other_count_.warn(program_.warnings, "put a step of another kind between them");
  }

  const Algorithm& algorithm_;
  const Source& source_;
  const Executor& executor_;
  Program program_;
  std::vector<std::vector<Ends>> ends_;      // by rank and thread block
  std::vector<std::vector<Merged>> merged_;  // the same
  Finding never_, late_, unused_, lost_, other_count_;
};

}  // namespace

Program msccl::program_of(const Algorithm& algorithm, const Source& source,
                          const Executor& executor) {
  return Builder(algorithm, source, executor).build();
}

Program read_msccl(std::string_view xml, const std::string& file, std::string_view executor) {
  const Source source{xml, file};
  const bool is_assumed = executor.empty();
  Program program = msccl::program_of(msccl::parse(source), source,
                                      find_executor(is_assumed ? "msccl" : executor, "msccl"));
  program.executed_by.assumed = is_assumed;
  return program;
}

FormatReader msccl_reader() {
  return {"msccl", "MSCCL algorithms (XML)",
          [](std::string_view content) { return recognise(content) == Format::msccl_xml; },
          read_msccl, "microsoft/msccl, the interpreter of algorithms"};
}

}  // namespace hemiola::program

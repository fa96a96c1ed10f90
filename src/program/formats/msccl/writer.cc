// Writes MSCCL XML: unrolls each workgroup into steps and turns waits back into depid/deps and
// nops.
#include <map>
#include <optional>
#include <pugixml.hpp>
#include <set>
#include <sstream>

#include "program/export.h"
#include "program/formats/executor_limits.h"
#include "program/formats/msccl/document.h"
#include "program/semantics/executor.h"

namespace hemiola::program {
namespace {

using msccl::Place;
using msccl::Step;

constexpr std::size_t kMaxSteps = 1'000'000;  ///< of one file: a loop of a template unrolls

struct WrittenWait {
  const Op* op = nullptr;
  std::int32_t semaphore = 0;
  std::int64_t target = 0;
  std::size_t step = 0;  ///< the step that carries it
};

struct WrittenBlock : msccl::ThreadBlock {
  std::vector<WrittenWait> waits;
};

/// Who advances a progress semaphore of a rank, and with which of its steps.
struct Progress {
  std::size_t block = 0;
  std::vector<std::int32_t> steps;
};

const msccl::StepType* find_step_type(OpKind kind) {
  for (const msccl::StepType& type : msccl::step_types())
    if (type.kind == kind && kind != OpKind::sync) return &type;
  return nullptr;
}

std::string_view letter_of(BufferKind kind) {
  return kind == BufferKind::input ? "i" : kind == BufferKind::output ? "o" : "s";
}

/// Writes the steps of one rank.
class RankWriter {
 public:
  RankWriter(const Program& program, int rank, std::size_t& budget)
      : program_(program), rank_(rank), budget_(budget) {
    at_.rank = rank;
  }

  std::vector<WrittenBlock> blocks(const std::vector<std::int32_t>& bodies) {
    for (const std::int32_t body : bodies) {
      block_ = blocks_.size();
      blocks_.emplace_back();
      pending_.clear();
      const std::vector<Op>& ops = program_.bodies.at(index(body)).ops;
      walk(ops, 0, ops.size(), 0);
      if (!pending_.empty()) refuse(*pending_.front().op, "nothing follows it in its workgroup");
    }
    for (WrittenBlock& block : blocks_) resolve(block);
    return std::move(blocks_);
  }

 private:
  [[noreturn]] void refuse(const Op& op, const std::string& why) const {
    throw Failure("MSCCL XML cannot say operation '" + std::string(name_of(op.kind)) +
                      "' of rank " + std::to_string(rank_) + ", workgroup " +
                      std::to_string(block_) + ": " + why,
                  {.file = program_.source, .pointer = op.where});
  }

  WrittenBlock& block() { return blocks_[block_]; }

  void walk(const std::vector<Op>& ops, std::size_t begin, std::size_t end, std::size_t depth) {
    for (std::size_t i = begin; i < end; ++i) {
      if (ops[i].kind != OpKind::loop) {
        add(ops[i], depth);
        continue;
      }
      const std::size_t close = end_of_loop(ops, i, end);
      repeat(ops, i, close, depth);
      i = close;
    }
  }

  std::size_t end_of_loop(const std::vector<Op>& ops, std::size_t begin, std::size_t end) const {
    int open = 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (ops[i].kind == OpKind::loop) ++open;
      if (ops[i].kind == OpKind::end_loop && --open == 0) return i;
    }
    refuse(ops[begin], "it has no end");
  }

  void repeat(const std::vector<Op>& ops, std::size_t begin, std::size_t close, std::size_t depth) {
    const Op& loop = ops[begin];
    if (depth >= at_.loop.size()) refuse(loop, "loops are nested too deeply");
    if (loop.unit.count > 0) {
      // The format's own piece loop encloses a whole block and is not written.
      const bool whole = depth == 0 && begin == 0 && close + 1 == ops.size();
      if (!whole || loop.pieces != Pieces::of_chunk)
        refuse(loop, "pieces must enclose the whole workgroup");
      piece_depth_ = depth;
      walk(ops, begin + 1, close, depth + 1);
      piece_depth_.reset();
      return;
    }
    for (std::int64_t k = 0; k < loop.count; ++k) {
      at_.loop[depth] = k;
      spend(loop);
      walk(ops, begin + 1, close, depth + 1);
    }
    at_.loop[depth] = 0;
  }

  void spend(const Op& op) {
    if (budget_-- == 0) {
      budget_ = 0;
      refuse(op, "the program unrolls to more than " + std::to_string(kMaxSteps) + " steps");
    }
  }

  std::int64_t value(const Op& op, const Affine& expression) const {
    if (piece_depth_ && expression.loop[*piece_depth_] != 0) refuse(op, "it depends on the piece");
    return expression(at_);
  }

  void add(const Op& op, std::size_t depth) {
    spend(op);
    const bool in_count_loop = depth > (piece_depth_ ? 1U : 0U);
    switch (op.kind) {
      case OpKind::sync:  // steps join their block
      case OpKind::end_loop:
        return;
      case OpKind::dep_wait:
        if (in_count_loop) refuse(op, "dependencies cannot stand inside a loop");
        for (const SemaphoreRef& semaphore : op.semaphores)
          pending_.push_back({&op, semaphore.index, op.target, 0});
        return;
      case OpKind::dep_signal:
        if (in_count_loop) refuse(op, "dependencies cannot stand inside a loop");
        return announce(op);
      default:
        break;
    }
    const msccl::StepType* type = find_step_type(op.kind);
    if (!type) refuse(op, "the format has no such step");
    if (op.slices != 1) refuse(op, "workgroups cannot share an operation");
    if (op.reduce != ReduceOp::none && op.reduce != ReduceOp::sum && program_.format != "msccl")
      refuse(op, "steps do not name a reduction");
    set_peers(op, *type);
    carry_waits(op);
    if (op.kind == OpKind::reduce)
      add_reductions(op, *type);
    else
      add_step(op, *type);
  }

  void set_peers(const Op& op, const msccl::StepType& type) {
    if (!op.more_from.empty() || !op.more_to.empty()) refuse(op, "it has several connections");
    const auto set = [&](std::int32_t& peer, const ConnectionRef& connection, const char* what) {
      const auto wanted = static_cast<std::int32_t>(value(op, connection.peer));
      if (peer >= 0 && peer != wanted)
        refuse(op, std::string("its workgroup has more than one ") + what + " peer");
      if ((block().send >= 0 || block().receive >= 0) && block().channel != connection.channel)
        refuse(op, "its workgroup uses more than one channel");
      peer = wanted;
      block().channel = connection.channel;
    };
    if (type.sends) set(block().send, op.send_to, "send");
    if (type.receives) set(block().receive, op.recv_from, "receive");
  }

  /// A step has one dependency: all but the last wait stand on nops before it.
  void carry_waits(const Op& op) {
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      spend(op);
      pending_[i].step = block().steps.size();
      if (i + 1 < pending_.size())
        block().steps.push_back({.type = &msccl::nop_type(), .source = {}, .destination = {}});
    }
    block().waits.insert(block().waits.end(), pending_.begin(), pending_.end());
    pending_.clear();
  }

  Place place(const Op& op, const Operand& operand) const {
    if (operand.access != Access::plain || operand.run > 0) refuse(op, "operands are plain memory");
    if (value(op, operand.rank) != rank_) refuse(op, "operands are local");
    const BufferKind kind = program_.buffers.at(index(operand.buffer)).kind;
    return {kind, value(op, operand.chunk)};
  }

  void add_step(const Op& op, const msccl::StepType& type) {
    if (op.src.size() != (type.reads_source ? 1 : 0) ||
        op.dst.size() != (type.writes_destination ? 1 : 0))
      refuse(op, "a step has one source and one destination");
    Step step;
    step.type = &type;
    if (!op.src.empty()) step.source = place(op, op.src.front());
    if (!op.dst.empty()) step.destination = place(op, op.dst.front());
    if (op.src.empty()) step.source = step.destination;
    if (op.dst.empty()) step.destination = step.source;
    step.count = op.src.empty() ? op.dst.front().chunks : op.src.front().chunks;
    if (!op.dst.empty() && op.dst.front().chunks != step.count)
      refuse(op, "its operands differ in size");
    block().steps.push_back(step);
  }

  /// `re` adds one source to its destination, so the destination must be the first source.
  void add_reductions(const Op& op, const msccl::StepType& type) {
    if (op.dst.size() != 1 || op.src.size() < 2 || !(op.src.front() == op.dst.front()))
      refuse(op, "a reduction adds to its one destination");
    for (std::size_t i = 1; i < op.src.size(); ++i) {
      spend(op);
      if (op.src[i].chunks != op.dst.front().chunks) refuse(op, "its operands differ in size");
      block().steps.push_back({.type = &type,
                               .source = place(op, op.src[i]),
                               .destination = place(op, op.dst.front()),
                               .count = op.dst.front().chunks});
    }
  }

  void announce(const Op& op) {
    if (op.semaphores.size() != 1) refuse(op, "a step advances its own block's flag only");
    const auto [found, added] =
        progress_.try_emplace(op.semaphores.front().index, Progress{block_, {}});
    if (!added && found->second.block != block_)
      refuse(op, "another workgroup advances this semaphore");
    if (block().steps.empty() || block().steps.back().has_dependents || !pending_.empty())
      refuse(op, "no step stands before it");
    block().steps.back().has_dependents = true;
    found->second.steps.push_back(static_cast<std::int32_t>(block().steps.size()) - 1);
  }

  /// Semaphore values become step numbers. A value that is never reached becomes a step that never
  /// announces itself.
  void resolve(WrittenBlock& block) {
    for (const WrittenWait& wait : block.waits) {
      const auto found = progress_.find(wait.semaphore);
      Step& step = block.steps[wait.step];
      if (found != progress_.end() && wait.target >= 1 &&
          wait.target <= static_cast<std::int64_t>(found->second.steps.size())) {
        step.awaited_block = static_cast<std::int32_t>(found->second.block);
        step.awaited_step = found->second.steps[index(wait.target) - 1];
        continue;
      }
      const std::size_t owner =
          found != progress_.end() ? found->second.block : index(wait.semaphore);
      if (owner >= blocks_.size() || blocks_[owner].steps.empty() ||
          blocks_[owner].steps.back().has_dependents)
        refuse(*wait.op, "no step stands for the value that it waits for");
      step.awaited_block = static_cast<std::int32_t>(owner);
      step.awaited_step = static_cast<std::int32_t>(blocks_[owner].steps.size()) - 1;
    }
  }

  const Program& program_;
  int rank_;
  std::size_t& budget_;
  Indices at_;
  std::optional<std::size_t> piece_depth_;
  std::size_t block_ = 0;
  std::vector<WrittenBlock> blocks_;
  std::vector<WrittenWait> pending_;
  std::map<std::int32_t, Progress> progress_;
};

class MscclWriter {
 public:
  MscclWriter(const Program& program, MscclDialect dialect)
      : program_(program), dialect_(dialect) {}

  std::string write() {
    check_head();
    pugi::xml_document document;
    pugi::xml_node algo = document.append_child("algo");
    set_head(algo);
    std::int32_t channels = 1;
    for (int rank = 0; rank < program_.ranks; ++rank) {
      const std::vector<WrittenBlock> blocks =
          RankWriter(program_, rank, budget_).blocks(bodies_of(rank));
      for (const WrittenBlock& block : blocks) channels = std::max(channels, block.channel + 1);
      add_gpu(algo, rank, blocks);
    }
    check_limit(msccl_limits::kChannels, "the program", index(channels), {.file = program_.source});
    algo.attribute("nchannels").set_value(channels);
    std::ostringstream text;
    document.save(text, "  ", pugi::format_indent | pugi::format_no_declaration);
    return text.str();
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Failure("MSCCL XML cannot say this program: " + why, {.file = program_.source});
  }

  void check_head() const {
    if (msccl::collective_name(program_.collective).empty())
      refuse("the format has no collective '" + std::string(name_of(program_.collective)) + "'");
    if (dialect_ == MscclDialect::rccl && program_.collective == Collective::custom)
      refuse("rccl has no collective 'custom' (microsoft/msccl has)");
    if (program_.root != 0)
      refuse("its root is rank " + std::to_string(program_.root) +
             ", and the format has no word for that but 0");
    std::set<BufferKind> kinds;
    for (const Buffer& buffer : program_.buffers) {
      if (buffer.kind == BufferKind::fifo) continue;
      if (!kinds.insert(buffer.kind).second)
        refuse("it has two buffers of one kind, '" + buffer.name + "' the second");
      if (buffer.packets || buffer.rotation > 1)
        refuse("buffer '" + buffer.name + "' is not plain memory");
    }
  }

  std::vector<std::int32_t> bodies_of(int rank) const {
    const auto code = index(program_.code_of.at(index(rank)));
    const std::vector<Stream>& streams = program_.codes.at(code).streams;
    if (streams.empty()) return {};
    if (streams.size() != 1 || streams.front().size() != 1 ||
        streams.front().front().kind != StreamItem::Kind::kernel)
      refuse("rank " + std::to_string(rank) + " runs more than one kernel");
    return program_.kernels.at(index(streams.front().front().index)).bodies;
  }

  /// What a program of this format names for all its steps; an operation of another format names
  /// its own, for which there is no attribute.
  ReduceOp stated_reduction() const {
    if (program_.format != "msccl") return ReduceOp::none;
    for (const Body& body : program_.bodies) {
      for (const Op& op : body.ops)
        if (op.reduce != ReduceOp::none) return op.reduce;
    }
    return ReduceOp::none;
  }

  /// Threads of its thread blocks, where a file of this format says others than its protocol has.
  int stated_threads() const {
    if (program_.format != "msccl" || program_.kernels.empty()) return 0;
    const int threads = program_.kernels.front().threads;
    return threads == executor_of(program_).of(program_.protocol).threads ? 0 : threads;
  }

  std::string collective_name() const {
    const bool underscore =
        dialect_ == MscclDialect::microsoft && program_.collective == Collective::reduce_scatter;
    return underscore ? "reduce_scatter" : std::string(msccl::collective_name(program_.collective));
  }

  void set_head(pugi::xml_node algo) const {
    const auto set = [&](const char* name, const std::string& value) {
      algo.append_attribute(name).set_value(value.c_str());
    };
    set("name", program_.name);
    set("proto", std::string(msccl::protocol_names()[index(program_.protocol)].name));
    set("nchannels", "1");
    set("nchunksperloop", std::to_string(program_.chunks_per_size));
    set("ngpus", std::to_string(program_.ranks));
    set("coll", collective_name());
    if (const ReduceOp reduction = stated_reduction(); reduction != ReduceOp::none)
      set("redop", std::string(name_of(reduction)));
    set("inplace", program_.in_place ? "1" : "0");
    if (dialect_ != MscclDialect::microsoft) set("outofplace", program_.in_place ? "0" : "1");
    if (const int threads = stated_threads(); threads > 0) set("nthreads", std::to_string(threads));
    set("minBytes", std::to_string(program_.min_size.count));
    set("maxBytes", std::to_string(program_.max_size.count));
  }

  std::int64_t chunks(BufferKind kind, int rank) const {
    for (std::size_t i = 0; i < program_.buffers.size(); ++i)
      if (program_.buffers[i].kind == kind)
        return program_.chunks_of(static_cast<std::int32_t>(i), rank);
    return 0;
  }

  /// microsoft/msccl wants each buffer that is there whole, the rank's share of one for `shared`.
  void check_whole(BufferKind kind, int rank, Collective shared) const {
    const std::int64_t has = chunks(kind, rank);
    const std::int64_t shares = program_.collective == shared ? program_.ranks : 1;
    if (dialect_ != MscclDialect::microsoft || has == 0 || has * shares == program_.chunks_per_size)
      return;
    refuse("microsoft/msccl has no buffer of " + std::to_string(has) + " of the " +
           std::to_string(program_.chunks_per_size) + " chunks of a size");
  }

  void check_limits(int rank, const std::vector<WrittenBlock>& blocks) const {
    namespace limits = msccl_limits;
    const SourceLocation where{.file = program_.source};
    const std::string gpu = "rank " + std::to_string(rank);
    check_limit(limits::kThreadBlocks, gpu, blocks.size(), where);
    check_whole(BufferKind::input, rank, Collective::all_gather);
    check_whole(BufferKind::output, rank, Collective::reduce_scatter);
    for (const BufferKind kind : {BufferKind::input, BufferKind::output, BufferKind::scratch})
      check_limit(limits::kChunks, gpu, index(chunks(kind, rank)), where);
    std::map<std::int64_t, std::size_t> sends, receives;  // by channel
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const std::string who = "thread block " + std::to_string(b) + " of " + gpu;
      check_limit(dialect_ == MscclDialect::rccl ? limits::kRcclSteps : limits::kSteps, who,
                  blocks[b].steps.size(), where);
      if (blocks[b].send >= 0) ++sends[blocks[b].channel];
      if (blocks[b].receive >= 0) ++receives[blocks[b].channel];
      for (const Step& step : blocks[b].steps) {
        check_limit(limits::kCount, "a step of " + who, index(step.count), where);
        check_limit(limits::kAwaited, gpu, index(step.awaited_block + 1), where);
      }
    }
    for (const auto* peers : {&sends, &receives})
      for (const auto& [channel, count] : *peers) check_limit(limits::kPeers, gpu, count, where);
  }

  void add_gpu(pugi::xml_node algo, int rank, const std::vector<WrittenBlock>& blocks) const {
    check_limits(rank, blocks);
    pugi::xml_node gpu = algo.append_child("gpu");
    const auto set = [](pugi::xml_node node, const char* name, std::int64_t value) {
      node.append_attribute(name).set_value(static_cast<long long>(value));
    };
    set(gpu, "id", rank);
    set(gpu, "i_chunks", chunks(BufferKind::input, rank));
    set(gpu, "o_chunks", chunks(BufferKind::output, rank));
    set(gpu, "s_chunks", chunks(BufferKind::scratch, rank));
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      pugi::xml_node tb = gpu.append_child("tb");
      set(tb, "id", static_cast<std::int64_t>(b));
      set(tb, "send", blocks[b].send);
      set(tb, "recv", blocks[b].receive);
      set(tb, "chan", blocks[b].channel);
      for (std::size_t s = 0; s < blocks[b].steps.size(); ++s) add_step(tb, s, blocks[b].steps[s]);
    }
  }

  static void add_step(pugi::xml_node tb, std::size_t number, const Step& written) {
    pugi::xml_node step = tb.append_child("step");
    const auto set = [&](const char* name, std::int64_t value) {
      step.append_attribute(name).set_value(static_cast<long long>(value));
    };
    const auto set_place = [&](const char* buffer, const char* offset, Place place) {
      step.append_attribute(buffer).set_value(std::string(letter_of(place.buffer)).c_str());
      set(offset, place.offset);
    };
    set("s", static_cast<std::int64_t>(number));
    step.append_attribute("type").set_value(std::string(written.type->name).c_str());
    set_place("srcbuf", "srcoff", written.source);
    set_place("dstbuf", "dstoff", written.destination);
    set("cnt", written.count);
    set("depid", written.awaited_block);
    set("deps", written.awaited_step);
    set("hasdep", written.has_dependents ? 1 : 0);
  }

  const Program& program_;
  MscclDialect dialect_;
  std::size_t budget_ = kMaxSteps;
};

}  // namespace

std::string write_msccl(const Program& program) {
  return write_msccl(program, MscclDialect::common);
}

std::string write_msccl(const Program& program, MscclDialect dialect) {
  return MscclWriter(program, dialect).write();
}

}  // namespace hemiola::program

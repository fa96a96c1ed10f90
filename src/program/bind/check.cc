#include "program/bind/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "machine/machine.h"

namespace hemiola::program {
namespace {

using machine::Reach;

constexpr std::size_t kMostErrors = 12;
constexpr int kFewRanks = 4;

/// The loop indices at which the affine expressions of a loop level take all their distinct
/// extremes: both ends of a linear one, every residue of a modular one.
struct Extent {
  std::int64_t count = 1;
  std::int64_t distinct = 1;  ///< the first so many indices, then the last one
  template <class F>
  void each(F&& visit) const {
    for (std::int64_t i = 0; i < std::min(count, distinct); ++i) visit(i);
    if (count > distinct) visit(count - 1);
  }
};

class Checker {
 public:
  explicit Checker(const Bound& bound) : bound_(bound), program_(bound.program()) {}

  void check_all() {
    check_buffers();
    check_codes();
    stop_if_wrong();
    const bool all_reach = program_.ranks > kFewRanks && all_reach_each_other(bound_);
    for (std::size_t body = 0; body < ranks_of_.size(); ++body) {
      // Of 4,096 ranks that name 4,095 peers each one speaks for all.
      const std::vector<Op>& ops = program_.bodies[body].ops;
      const std::vector<bool> alike =
          all_reach ? alike_in(bound_, ops) : std::vector<bool>(ops.size(), false);
      const auto is_same = [&](const Op& op) {
        return alike[index(&op - ops.data())] || op.kind == OpKind::loop ||
               op.kind == OpKind::end_loop;
      };
      const bool one_is_all = all_reach && std::ranges::all_of(ops, is_same);
      for (const int rank : ranks_of_[body]) {
        const bool first = rank == ranks_of_[body].front();
        if (first || !one_is_all) check_ops(rank, ops, alike, first);
      }
    }
    stop_if_wrong();
  }

 private:
  void stop_if_wrong() const {
    if (found_.has_errors()) throw Failure(found_);
  }

  void error(const std::string& message, const std::string& hint = {}) {
    if (found_.items().size() < kMostErrors) found_.error(message, {.file = program_.source}, hint);
  }

  /// An error at the operation under inspection.
  void op_error(const std::string& message, const std::string& hint = {}) {
    if (found_.items().size() >= kMostErrors) return;
    if (!reported_.insert({op_, message}).second) return;
    found_.error(fmt::format("{} of rank {}: {}", name_of(op_->kind), at_.rank, message),
                 {.file = program_.source, .pointer = op_->where}, hint);
  }

  void check_buffers() {
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
      const Buffer& buffer = program_.buffers[i];
      if (buffer.alias >= static_cast<std::int32_t>(program_.buffers.size()))
        error(
            fmt::format("buffer {} shares the memory of a buffer that is not there", buffer.name));
      else if (buffer.alias >= 0 && program_.buffers[index(buffer.alias)].alias >= 0)
        error(fmt::format("buffer {} shares the memory of a buffer that itself shares another's",
                          buffer.name));
      if (buffer.chunks.size() > 1 && buffer.chunks.size() != index(program_.ranks))
        error(fmt::format("buffer {} has sizes for {} ranks of {}", buffer.name,
                          buffer.chunks.size(), program_.ranks));
    }
    stop_if_wrong();
    for (std::size_t i = 0; i < program_.buffers.size(); ++i)
      check_alias(static_cast<std::int32_t>(i));
  }

  void check_alias(std::int32_t index) {
    const Buffer& buffer = program_.buffers[static_cast<std::size_t>(index)];
    if (buffer.alias < 0) return;
    for (int rank = 0; rank < program_.ranks; ++rank) {
      const std::int64_t begin = buffer.alias_chunk({.rank = rank});
      if (begin < 0 ||
          begin + program_.chunks_of(index, rank) > program_.chunks_of(buffer.alias, rank)) {
        error(fmt::format("in place, {} of rank {} does not fit into {}", buffer.name, rank,
                          program_.buffers[static_cast<std::size_t>(buffer.alias)].name));
        return;
      }
    }
  }

  void check_codes() {
    if (program_.ranks <= 0) error("the program has no ranks");
    if (program_.code_of.size() != index(program_.ranks))
      error(fmt::format("the program has code for {} ranks of {}", program_.code_of.size(),
                        program_.ranks));
    stop_if_wrong();
    ranks_of_.resize(program_.bodies.size());
    for (int rank = 0; rank < program_.ranks; ++rank) {
      const auto code = program_.code_of[index(rank)];
      if (!in_range(code, program_.codes.size()))
        return error(fmt::format("rank {} has no code", rank));
      for (const Stream& stream : program_.codes[index(code)].streams)
        for (const StreamItem& item : stream) collect_bodies(rank, item);
    }
  }

  void collect_bodies(int rank, const StreamItem& item) {
    if (item.kind == StreamItem::Kind::engine) {
      if (!in_range(item.index, program_.bodies.size()))
        return error(fmt::format("rank {} gives its copy engines a body that is not there", rank));
      check_engine(rank, program_.bodies[index(item.index)]);
      runs(rank, item.index);
    }
    if (item.kind != StreamItem::Kind::kernel) return;
    if (!in_range(item.index, program_.kernels.size()))
      return error(fmt::format("rank {} starts a kernel that is not there", rank));
    for (std::int32_t body : program_.kernels[index(item.index)].bodies) {
      if (!in_range(body, program_.bodies.size()))
        return error(fmt::format("rank {} has a workgroup without a body", rank));
      runs(rank, body);
    }
  }

  /// Ranks come in order.
  void runs(int rank, std::int32_t body) {
    std::vector<int>& ranks = ranks_of_[index(body)];
    if (ranks.empty() || ranks.back() != rank) ranks.push_back(rank);
  }

  /// Copy engines copy; they neither reduce nor compute.
  void check_engine(int rank, const Body& body) {
    at_ = {};
    at_.rank = rank;
    for (const Op& op : body.ops) {
      op_ = &op;
      switch (op.kind) {
        case OpKind::put:
        case OpKind::get:
        case OpKind::copy:
        case OpKind::swap:
          check_command(op);
          break;
        case OpKind::sync:
        case OpKind::signal:
        case OpKind::relaxed_signal:
        case OpKind::dep_signal:
        case OpKind::wait:
        case OpKind::relaxed_wait:
        case OpKind::dep_wait:
        case OpKind::flush:
        case OpKind::loop:
        case OpKind::end_loop:
          break;
        default:
          op_error("a copy engine can only copy, wait and signal",
                   "reductions need workgroups: choose realization=load-store or bulk");
      }
    }
  }

  /// A copy engine's copy goes from one place to one other, or to two; a swap has two places.
  void check_command(const Op& op) {
    if (op.kind == OpKind::copy && (op.src.size() != 1 || op.dst.empty() || op.dst.size() > 2))
      op_error("a copy engine copies from one place to one or two others");
    if (op.kind == OpKind::swap && !(op.src.size() == 2 && op.dst.size() == 2 &&
                                     op.src[0] == op.dst[1] && op.src[1] == op.dst[0]))
      op_error("a swap does not say which two places it is of");
    if (bound_.machine() == nullptr || program_.ranks > bound_.machine()->ranks()) return;
    const bool asks = op.dst.size() > 1 || !has_engines();
    if (!asks) return;
    const bool is_local = std::ranges::all_of(
        op.dst, [&](const Operand& operand) { return !is_network(operand.rank(at_)); });
    if (op.dst.size() > 1 && !is_local)
      op_error("a copy engine does not reach beyond a NIC",
               "broadcasts and swaps are for the GPUs of a node: choose command=copy");
    if (is_local) require_copy_engines(*bound_.machine(), static_cast<int>(at_.rank));
  }

  bool has_engines() const {
    return bound_.machine()->model(static_cast<int>(at_.rank)).dma_engines > 0;
  }

  bool is_network(std::int64_t peer) const {
    return peer >= 0 && peer < program_.ranks && peer != at_.rank &&
           bound_.machine()->reach(static_cast<int>(at_.rank), static_cast<int>(peer)) ==
               Reach::network;
  }

  /// Operations that are alike need their look on the first rank only.
  void check_ops(int rank, const std::vector<Op>& ops, const std::vector<bool>& alike, bool first) {
    at_ = {};
    at_.rank = rank;
    std::vector<const Op*> loops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      op_ = &ops[i];
      if (op_->kind == OpKind::loop) {
        loops.push_back(op_);
        if (loops.size() > 2) return op_error("loops are nested more than two deep");
        if (!check_places(loops.size())) return;
      } else if (op_->kind == OpKind::end_loop) {
        if (loops.empty()) return op_error("there is no loop to end");
        loops.pop_back();
      } else if (!alike[i]) {
        check_everywhere(loops);
      } else if (first) {
        check_shape(loops);
        check_here();
      }
    }
    if (!loops.empty()) {
      op_ = loops.back();
      op_error("the loop has no end");
    }
  }

  /// Tables are of outermost loops that count, a row for each iteration.
  bool check_places(std::size_t depth) {
    if (depth == 1) table_ = nullptr;
    if (op_->places.empty()) return true;
    const bool whole = depth == 1 && op_->unit.count == 0 && op_->count > 0 &&
                       std::ssize(op_->places) % op_->count == 0;
    if (!whole) op_error("the places of a loop are not a row for each of its iterations");
    table_ = op_;
    return whole;
  }

  /// The operation at all loop indices that matter.
  void check_everywhere(const std::vector<const Op*>& loops) {
    check_shape(loops);
    if (is_alike_in_loops(program_, *op_, at_)) {
      check_here();
      return;
    }
    std::array<Extent, 2> extents;
    for (std::size_t level = 0; level < loops.size(); ++level)
      extents[level] = extent(*loops[level], level);
    extents[0].each([&](std::int64_t i) {
      extents[1].each([&](std::int64_t j) {
        at_.loop = {i, j};
        check_here();
      });
    });
    at_.loop = {};
  }

  Extent extent(const Op& loop, std::size_t level) const {
    Extent out{iterations_of(bound_, loop), 1};
    bool used = false;
    const auto widen = [&](const Affine& value) {
      if (value.loop[level] == 0) return;
      used = true;
      out.distinct = std::max(out.distinct, value.modulus);
    };
    for (const Operand& operand : op_->src) widen(operand.rank), widen(operand.chunk);
    for (const Operand& operand : op_->dst) widen(operand.rank), widen(operand.chunk);
    for (const SemaphoreRef& ref : op_->semaphores) widen(ref.rank);
    widen(op_->send_to.peer);
    widen(op_->recv_from.peer);
    for (const ConnectionRef& more : op_->more_to) widen(more.peer);
    for (const ConnectionRef& more : op_->more_from) widen(more.peer);
    if (!used) out.count = std::min<std::int64_t>(out.count, 1);
    return out;
  }

  /// What does not depend on the loop indices.
  void check_shape(const std::vector<const Op*>& loops) {
    if (op_->slices < 1 || op_->slice < 0 || op_->slice >= op_->slices)
      op_error(fmt::format("slice {} of {} is not there", op_->slice, op_->slices));
    if (op_->kind == OpKind::barrier) {
      if (op_->barrier_id < 0 || op_->barrier_id >= program_.barriers)
        op_error(fmt::format("barrier {} is not there", op_->barrier_id));
      const int present = program_.workgroups(static_cast<int>(at_.rank));
      if (op_->workgroups < 1 || op_->workgroups > present)
        op_error(
            fmt::format("a barrier of {} workgroups on a rank of {}", op_->workgroups, present));
    }
    const std::int64_t chunks = !op_->src.empty()   ? op_->src.front().chunks
                                : !op_->dst.empty() ? op_->dst.front().chunks
                                                    : 0;
    for (const std::vector<Operand>* side : {&op_->src, &op_->dst}) {
      for (const Operand& operand : *side) {
        const bool in_table = !loops.empty() && loops.front() == table_ && table_ != nullptr;
        if (operand.column >= 0 && (!in_table || operand.column >= table_->columns()))
          return op_error("an operand's place is not in the table of its loop");
        if (operand.chunks != chunks && op_->kind != OpKind::compute)
          return op_error("its operands have different sizes");
        if (operand.run != 0 && !is_rows(operand, loops))
          return op_error("an operand of rows is not whole rows of plain memory");
        check_folding(operand, loops);
      }
    }
  }

  static bool is_rows(const Operand& operand, const std::vector<const Op*>& loops) {
    const bool plain = operand.access == Access::plain || operand.access == Access::multicast;
    const bool in_pieces =
        std::ranges::any_of(loops, [](const Op* loop) { return loop->unit.count > 0; });
    return operand.run > 0 && operand.pitch >= operand.run && operand.chunks % operand.run == 0 &&
           plain && !in_pieces;
  }

  /// A folded scratch buffer holds a part of each chunk: only pieces that do not straddle its end
  /// fit.
  void check_folding(const Operand& operand, const std::vector<const Op*>& loops) {
    if (!in_range(operand.buffer, program_.buffers.size())) return;
    const std::int64_t stride = bound_.chunk_stride(operand.buffer);
    if (stride == bound_.chunk_bytes()) return;
    const bool fits = !loops.empty() && loops.back()->unit.count > 0 && operand.chunks == 1 &&
                      op_->slices == 1 && stride % loops.back()->unit.count == 0;
    if (!fits)
      op_error(
          fmt::format(
              "a chunk of {} does not fit into the {} that the reused scratch buffer has for it",
              to_string(Bytes{bound_.chunk_bytes()}), to_string(Bytes{stride})),
          "give a smaller size");
  }

  void check_load() {
    const bool named =
        op_->src.size() == 1 && in_range(op_->src.front().buffer, program_.buffers.size());
    const std::int64_t present =
        named ? program_.buffers[index(op_->src.front().buffer)].bytes.count : 0;
    if (op_->bytes.count < 1 || present / op_->bytes.count < op_->slices)
      op_error(fmt::format("a load of {} for each of {} workgroups from memory of {}",
                           to_string(op_->bytes), op_->slices, to_string(Bytes{present})));
    // So that no load of a chain reaches over the end of the memory.
    const bool chain = op_->count > 1;
    if (chain && (op_->bytes.count < 1 || op_->unit.count < op_->bytes.count ||
                  op_->unit.count % op_->bytes.count != 0 || present % op_->unit.count != 0))
      op_error(fmt::format("a chain of loads of {}, {} from one to the next, in memory of {}",
                           to_string(op_->bytes), to_string(op_->unit), to_string(Bytes{present})),
               "the memory is a multiple of the distance, and that one of a load");
    if (named) check_peer(op_->src.front().rank(at_));
  }

  void check_here() {
    if (op_->kind == OpKind::load) return check_load();
    const bool through_port = op_->channel == Channel::any;
    for (const Operand& operand : op_->src) check_operand(operand, false);
    for (const Operand& operand : op_->dst) check_operand(operand, through_port);
    for (const SemaphoreRef& ref : op_->semaphores) {
      if (!in_range(ref.index, program_.semaphores.size()))
        op_error(fmt::format("semaphore {} is not there", ref.index));
      check_peer(ref.rank(at_), through_port);
    }
    if (op_->send_to.inbound >= 0 || op_->send_to.outbound >= 0) check_connection(op_->send_to);
    if (op_->recv_from.inbound >= 0 || op_->recv_from.outbound >= 0)
      check_connection(op_->recv_from);
    for (const ConnectionRef& more : op_->more_to) check_connection(more);
    for (const ConnectionRef& more : op_->more_from) check_connection(more);
    check_complete();
  }

  void check_complete() {
    const OpKind kind = op_->kind;
    const bool connection = kind >= OpKind::send && kind <= OpKind::recv_reduce_copy_send;
    if (!connection) return;
    const bool sends = kind != OpKind::recv && kind != OpKind::recv_reduce_copy;
    if (sends && op_->send_to.outbound < 0) op_error("it has no connection to send to");
    if (kind != OpKind::send && op_->recv_from.inbound < 0)
      op_error("it has no connection to receive from");
    const bool reduces = kind >= OpKind::recv_reduce_send && kind <= OpKind::recv_reduce_copy_send;
    if (!op_->more_from.empty() && !reduces) op_error("what arrives several times is not reduced");
    if (!op_->more_to.empty() && !sends) op_error("it sends nothing to its further connections");
    if (op_->src.empty() && op_->dst.empty()) op_error("it names no local data");
  }

  void check_operand(const Operand& operand, bool through_port) {
    if (!in_range(operand.buffer, program_.buffers.size()))
      return op_error(fmt::format("buffer {} is not there", operand.buffer));
    if (is_multicast(operand.access)) return check_group(operand);
    const std::int64_t owner = operand.rank(at_);
    if (check_peer(owner, through_port && !is_packet(operand.access)))
      check_chunks(operand, static_cast<int>(owner));
  }

  void check_chunks(const Operand& operand, int owner) {
    std::int64_t begin = operand.chunk(at_);
    if (operand.column >= 0 && (table_ == nullptr || operand.column >= table_->columns())) return;
    std::pair<std::int64_t, std::int64_t> places{};
    if (operand.column >= 0) places = table_->range_of(operand.column);
    begin += places.first;
    const std::int64_t present = program_.chunks_of(operand.buffer, owner);
    const std::int64_t extent =
        operand.run == 0 ? operand.chunks
                         : (operand.chunks / operand.run - 1) * operand.pitch + operand.run;
    if (begin >= 0 && extent >= 0 && extent <= present &&
        begin <= present - extent - (places.second - places.first))
      return;
    op_error(fmt::format("chunks [{}, {}) of {} of rank {}, which has {}", begin, begin + extent,
                         program_.buffers[index(operand.buffer)].name, owner, present));
  }

  void check_group(const Operand& operand) {
    if (!in_range(operand.group, program_.groups.size()))
      return op_error(fmt::format("multicast group {} is not there", operand.group));
    const std::vector<int>& group = program_.groups[index(operand.group)];
    for (int member : group) {
      if (member < 0 || member >= program_.ranks)
        return op_error(fmt::format("rank {} is not there", member));
      check_chunks(operand, member);
      const auto mine = bound_.resolve(operand.buffer, 0, static_cast<int>(at_.rank));
      const auto theirs = bound_.resolve(operand.buffer, 0, member);
      if (mine.buffer != theirs.buffer || mine.offset != theirs.offset)
        return op_error(
            "in place, its buffer starts at different places on the members of the group");
    }
    if (bound_.machine() == nullptr || !multicast_asked_.insert(operand.group).second) return;
    if (bound_.machine()->multicast_switches(group).empty())
      op_error(fmt::format("no switch of the machine can multicast to the ranks {}",
                           fmt::join(group, ", ")),
               "NVLS operations need all ranks on one multicast-capable switch");
  }

  void check_connection(const ConnectionRef& connection) {
    if (connection.inbound < 0 || connection.inbound >= program_.inbound ||
        connection.outbound < 0 || connection.outbound >= program_.outbound)
      op_error(
          fmt::format("connection {} -> {} is not there", connection.outbound, connection.inbound));
    const std::int64_t peer = connection.peer(at_);
    if (peer == at_.rank) op_error("it is connected to its own rank");
    check_peer(peer, /*crosses_nic=*/true);
  }

  /// Whether `peer` is a rank; also that it is reached the way this operation needs.
  bool check_peer(std::int64_t peer, bool crosses_nic = false) {
    if (peer < 0 || peer >= program_.ranks) {
      op_error(fmt::format("rank {} is not there", peer));
      return false;
    }
    if (bound_.machine() == nullptr || peer == at_.rank) return true;
    const Reach reach = bound_.machine()->reach(static_cast<int>(at_.rank), static_cast<int>(peer));
    if (reach == Reach::none) {
      op_error(fmt::format("rank {} cannot be reached on this machine", peer));
    } else if (reach == Reach::network && !crosses_nic && op_->channel != Channel::port) {
      op_error(
          fmt::format("rank {} is only reached through a NIC, which loads and stores cannot cross",
                      peer),
          op_->channel == Channel::any && program_.protocol == Protocol::simple
              ? "between nodes data can only be pushed: choose transfer=push and gather=push"
              : "use port channels between nodes, or a machine with one load/store domain");
    } else if (reach != Reach::network && op_->channel == Channel::port) {
      require_copy_engines(*bound_.machine(), static_cast<int>(at_.rank));
    }
    return true;
  }

  static bool in_range(std::int64_t index, std::size_t size) {
    return index >= 0 && static_cast<std::size_t>(index) < size;
  }

  const Bound& bound_;
  const Program& program_;
  Diagnostics found_;
  Indices at_;
  const Op* op_ = nullptr;
  const Op* table_ = nullptr;               ///< the last loop that had places
  std::vector<std::vector<int>> ranks_of_;  ///< by body
  std::set<std::pair<const Op*, std::string>> reported_;
  std::set<std::int32_t> multicast_asked_;
};

}  // namespace

void require_copy_engines(const machine::Machine& machine, int rank) {
  if (rank >= machine.ranks() || machine.model(rank).dma_engines > 0) return;
  throw Failure(
      fmt::format("the GPUs of {} have no copy engines (gpu.dma.engines is 0)", machine.name),
      kOption, "let workgroups move the data, as --param realization=load-store does");
}

void check_bound(const Bound& bound) {
  Checker(bound).check_all();
}

}  // namespace hemiola::program

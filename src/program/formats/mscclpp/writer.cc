// Writer of MSCCL++ execution plans: every rank's code with all its expressions evaluated.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "program/bind/bound.h"
#include "program/formats/executor_limits.h"
#include "program/formats/mscclpp/channel_ids.h"
#include "program/formats/mscclpp/ops.h"
#include "program/formats/mscclpp/resolve.h"
#include "program/program.h"

namespace hemiola::program {
namespace {

using Json = nlohmann::ordered_json;

bool is_device_semaphore(OpKind kind) {
  return kind == OpKind::sem_acquire || kind == OpKind::sem_release;
}

/// The position of a value in a list that grows by it where it is new.
template <class T>
std::size_t position(std::vector<T>& list, const T& value) {
  const auto found = std::ranges::find(list, value);
  if (found != list.end()) return index(found - list.begin());
  list.push_back(value);
  return list.size() - 1;
}

class MscclppWriter {
 public:
  explicit MscclppWriter(const Program& program) : program_(program) {
    if (program.protocol == Protocol::ll128) refuse(program, "the format has no LL128");
    map_buffers();
    for (std::size_t i = 0; i < program.semaphores.size(); ++i)
      if (program.semaphores[i].local) local_semaphores_.push_back(static_cast<std::int32_t>(i));
    channels_.emplace(program);
  }

  std::string write() {
    Json root;
    root["name"] = program_.name;
    std::string collective{name_of(program_.collective)};
    collective.erase(std::remove(collective.begin(), collective.end(), '-'), collective.end());
    root["collective"] = collective;
    root["protocol"] = program_.protocol == Protocol::ll ? "LL" : "Simple";
    root["inplace"] = program_.in_place;
    const Buffer* scratch = buffer_at(2);
    root["reuse_resources"] = scratch != nullptr && scratch->chunk_limit.count > 0;
    root["gpus"] = Json::array();
    for (rank_ = 0; rank_ < program_.ranks; ++rank_) root["gpus"].push_back(write_gpu());
    root["num_threads_per_block"] = threads_;
    root["use_double_scratch_buffer"] = scratch != nullptr && scratch->rotation == 2;
    root["buffer_alignment"] = program_.alignment.count;
    root["min_message_size"] = program_.min_size.count;
    root["max_message_size"] = program_.max_size.count == INT64_MAX
                                   ? UINT64_MAX
                                   : static_cast<std::uint64_t>(program_.max_size.count);
    return root.dump(2) + "\n";
  }

 private:
  struct Remote {
    int rank;
    std::int32_t buffer;
    Channel access;
    bool operator==(const Remote&) const = default;
  };
  struct Switch {
    std::int32_t buffer;
    std::int32_t group;
    bool operator==(const Switch&) const = default;
  };
  /// What a GPU and a thread block have used so far, in the order of first use.
  struct Used {
    std::vector<Remote> remotes;
    std::vector<std::int32_t> memory, port;
    std::vector<Switch> switches;
  };

  void map_buffers() {
    letters_.assign(program_.buffers.size(), 0);
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
      const auto kind = index(program_.buffers[i].kind);
      if (program_.buffers[i].kind == BufferKind::fifo) continue;
      if (by_kind_.at(kind) >= 0) refuse(program_, "it has more than one buffer of a kind");
      by_kind_.at(kind) = static_cast<std::int32_t>(i);
      letters_[i] = "ios"[kind];
    }
  }

  const Buffer* buffer_at(std::size_t kind) const {
    return by_kind_[kind] < 0 ? nullptr : &program_.buffers[index(by_kind_[kind])];
  }
  std::int64_t chunks(std::size_t kind) const {
    return by_kind_[kind] < 0 ? 0 : program_.chunks_of(by_kind_[kind], rank_);
  }
  std::string letter(std::int32_t buffer) const { return std::string(1, letters_[index(buffer)]); }

  Json write_gpu() {
    const Kernel& kernel = only_kernel(program_, rank_);
    if (threads_ != 0 && kernel.threads != threads_)
      refuse(program_, "its ranks have workgroups of different sizes");
    threads_ = kernel.threads;
    gpu_ = {};
    check_limit(mscclpp_limits::kThreadBlocks, fmt::format("rank {}", rank_), kernel.bodies.size(),
                {.file = program_.source});
    Json blocks = Json::array();
    for (const std::int32_t body : kernel.bodies)
      blocks.push_back(write_block(blocks.size(), program_.bodies[index(body)]));
    Json gpu;
    gpu["id"] = rank_;
    gpu["input_chunks"] = chunks(0);
    gpu["output_chunks"] = chunks(1);
    gpu["scratch_chunks"] = chunks(2);
    gpu["threadblocks"] = std::move(blocks);
    gpu["channels"] = write_channels();
    gpu["remote_buffers"] = write_remote_buffers();
    gpu["semaphores"] = Json::array();
    for (const std::int32_t index : local_semaphores_)
      gpu["semaphores"].push_back(
          {{"init_value", program_.semaphores[static_cast<std::size_t>(index)].initial}});
    return gpu;
  }

  Json write_channels() const {
    Json out = Json::array();
    for (const auto& [type, name] :
         {std::pair{Channel::memory, "memory"}, std::pair{Channel::port, "port"}}) {
      const auto& peers = channels_->of(type).peers[index(rank_)];
      if (!peers.empty()) out.push_back({{"channel_type", name}, {"connected_to", peers}});
    }
    for (const Switch& used : gpu_.switches) {
      const auto& ranks = program_.groups[index(used.group)];
      out.push_back({{"channel_type", "switch"},
                     {"buffer_type", letter(used.buffer)},
                     {"rank_groups",
                      {{{"size", program_.chunks_of(used.buffer, rank_)}, {"ranks", ranks}}}}});
    }
    return out;
  }

  static std::string_view name_of_access(Channel access) {
    return access == Channel::port ? "port" : "memory";
  }

  /// A buffer that is accessed through both types of channel stands twice.
  Json write_remote_buffers() const {
    Json out = Json::array();
    for (const Remote& remote : gpu_.remotes) {
      out.push_back({{"rank", remote.rank},
                     {"type", letter(remote.buffer)},
                     {"access_channel_types", Json::array({name_of_access(remote.access)})}});
    }
    return out;
  }

  Json write_block(std::size_t id, const Body& body) {
    block_ = {};
    signalled_.clear();
    for_each_op(rank_, body, [&](const Op& op, const Indices& at) {
      if (op.channel != Channel::port || !is_channel_signal(op.kind)) return;
      for (const SemaphoreRef& ref : op.semaphores) {
        const auto owner = static_cast<int>(ref.rank(at));
        signalled_.try_emplace(owner,
                               channels_->signalling(rank_, Channel::port, owner, ref.index));
      }
    });
    Json ops = Json::array();
    Json pipeline;
    bool inside = false;
    for_each_op(rank_, body, [&](const Op& op, const Indices& at) {
      if (op.kind == OpKind::loop) {
        if (inside) refuse(program_, op, rank_, "a pipeline inside a pipeline");
        inside = true;
        check_pieces(op, body);
        pipeline = {
            {"name", "pipeline"},
            {"iter_context", {{"unit_size", op.unit.count}, {"num_chunks", op.unit_chunks}}},
            {"ops", Json::array()}};
      } else if (op.kind == OpKind::end_loop) {
        inside = false;
        ops.push_back(std::move(pipeline));
      } else {
        (inside ? pipeline["ops"] : ops).push_back(write_op(op, at));
      }
    });
    Json block;
    block["id"] = id;
    block["ops"] = std::move(ops);
    block["channels"] = write_block_channels();
    block["remote_buffer_refs"] = write_references();
    check_mscclpp_block(block, rank_, program_.source);
    return block;
  }

  /// Pieces of single chunks are pieces of the region; those of several chunks have no counterpart.
  void check_pieces(const Op& loop, const Body& body) const {
    if (loop.pieces == Pieces::of_region) return;
    for (const Op& op : body.ops) {
      for (const std::vector<Operand>* side : {&op.src, &op.dst}) {
        for (const Operand& operand : *side)
          if (operand.chunks > 1) refuse(program_, op, rank_, "pieces of each of several chunks");
      }
    }
  }

  Json write_block_channels() const {
    Json out = Json::array();
    if (!block_.memory.empty())
      out.push_back({{"channel_type", "memory"}, {"channel_ids", block_.memory}});
    if (!block_.port.empty())
      out.push_back({{"channel_type", "port"}, {"channel_ids", block_.port}});
    if (!block_.switches.empty()) {
      Json ids = Json::array();
      for (const Switch& used : block_.switches)
        ids.push_back(std::ranges::find(gpu_.switches, used) - gpu_.switches.begin());
      out.push_back({{"channel_type", "switch"}, {"channel_ids", std::move(ids)}});
    }
    return out;
  }

  Json write_references() const {
    Json out = Json::array();
    for (const Channel access : {Channel::memory, Channel::port}) {
      Json ids = Json::array();
      for (const Remote& remote : block_.remotes) {
        if (remote.access == access)
          ids.push_back(std::ranges::find(gpu_.remotes, remote) - gpu_.remotes.begin());
      }
      if (!ids.empty())
        out.push_back({{"access_channel_type", name_of_access(access)},
                       {"remote_buffer_ids", std::move(ids)}});
    }
    return out;
  }

  // --- operations --------------------------------------------------------------------------------

  Json write_op(const Op& op, const Indices& at) {
    const MscclppOp* known = find_mscclpp_op(op.kind);
    if (known == nullptr) refuse(program_, op, rank_, "the format has no such operation");
    Json out;
    out["name"] = known->name;
    if (!known->src.accepts(op.src.size()) || !known->dst.accepts(op.dst.size()))
      refuse(program_, op, rank_,
             fmt::format("{} cannot have {} sources and {} destinations", known->name,
                         op.src.size(), op.dst.size()));
    if (!op.src.empty()) out["src_buff"] = write_operands(op, op.src, known->src, at);
    if (!op.dst.empty()) out["dst_buff"] = write_operands(op, op.dst, known->dst, at);
    write_op_channels(op, at, out);
    if (op.kind == OpKind::barrier) {
      out["barrier_id"] = op.barrier_id;
      out["num_threadblocks"] = op.workgroups;
    }
    if (is_device_semaphore(op.kind)) out["semaphore_ids"] = write_semaphores(op, at);
    if (op.reduce != ReduceOp::none) out["reduce_op"] = name_of(op.reduce);
    if (op.slices > 1) out["tbg_info"] = {{"tb_id", op.slice}, {"tbg_size", op.slices}};
    return out;
  }

  void write_op_channels(const Op& op, const Indices& at, Json& out) {
    if (op.channel == Channel::switch_)
      out["channel_type"] = "switch";
    else if (op.channel != Channel::none)
      out["channel_type"] = name_of_access(op.channel);
    else if (is_channel_signal(op.kind) || is_channel_wait(op.kind))
      out["channel_type"] = "memory";
    if (is_channel_signal(op.kind) || is_channel_wait(op.kind)) {
      out["channel_ids"] = Json::array();
      for (const SemaphoreRef& ref : op.semaphores)
        out["channel_ids"].push_back(semaphore_channel(op, at, ref));
    } else if (op.channel == Channel::port && !op.dst.empty()) {
      out["channel_ids"] = Json::array();
      for (const Operand& operand : op.dst) {
        const auto peer = static_cast<int>(operand.rank(at));
        out["channel_ids"].push_back(use_channel(op, Channel::port, port_to(peer)));
      }
    } else if (op.kind == OpKind::flush) {
      out["channel_ids"] = Json::array();
      for (std::size_t i = 0; i < block_.port.size(); ++i) out["channel_ids"].push_back(i);
    }
  }

  /// Data and the signal behind them take the same channel: only then do they stay in order.
  std::int32_t port_to(int peer) const {
    const auto found = signalled_.find(peer);
    return found != signalled_.end() ? found->second
                                     : channels_->of(Channel::port).find(rank_, peer);
  }

  std::size_t semaphore_channel(const Op& op, const Indices& at, const SemaphoreRef& ref) {
    const auto owner = static_cast<int>(ref.rank(at));
    const Channel type = channel_type(op);
    const std::int32_t id = is_channel_wait(op.kind)
                                ? channels_->waiting(rank_, type, ref.index)
                                : channels_->signalling(rank_, type, owner, ref.index);
    return use_channel(op, type, id);
  }

  /// The thread block's own number of a channel of the GPU.
  std::size_t use_channel(const Op& op, Channel type, std::int32_t id) {
    const auto& peers = channels_->of(type).peers[index(rank_)];
    if (id < 0 || index(id) >= peers.size())
      refuse(program_, op, rank_,
             is_channel_wait(op.kind) ? "nobody signals the semaphore that it waits for"
                                      : "no channel leads there");
    return position(type == Channel::port ? block_.port : block_.memory, id);
  }

  Json write_semaphores(const Op& op, const Indices& at) const {
    Json out = Json::array();
    for (const SemaphoreRef& ref : op.semaphores) {
      const auto found = std::ranges::find(local_semaphores_, ref.index);
      if (ref.rank(at) != rank_ || found == local_semaphores_.end())
        refuse(program_, op, rank_, "its semaphore is not local to the rank");
      out.push_back(found - local_semaphores_.begin());
    }
    return out;
  }

  Json write_operands(const Op& op, const std::vector<Operand>& operands, Pattern pattern,
                      const Indices& at) {
    const std::vector<Role> roles = pattern.roles(operands.size());
    Json out = Json::array();
    for (std::size_t i = 0; i < operands.size(); ++i)
      out.push_back(write_operand(op, operands[i], roles[i], at));
    return out;
  }

  Json write_operand(const Op& op, const Operand& operand, Role role, const Indices& at) {
    if (operand.run > 0) refuse(program_, op, rank_, "operands are contiguous");
    if (letters_[index(operand.buffer)] == 0) refuse(program_, op, rank_, "it uses a FIFO");
    const bool grouped = is_multicast(operand.access);
    const auto owner = static_cast<int>(operand.rank(at));
    const bool local = role == Role::local || role == Role::local_packet;
    const bool group = role == Role::group || role == Role::group_packet;
    if (group != grouped || (!group && local != (owner == rank_)))
      refuse(program_, op, rank_,
             fmt::format("one of its operands must be {}", local   ? "local"
                                                           : group ? "a multicast address"
                                                                   : "remote"));
    if (is_packet(role) != is_packet(operand.access))
      refuse(program_, op, rank_,
             is_packet(role) ? "one of its operands must be packets"
                             : "only some operands are packets");
    Json out;
    if (group) {
      const Switch used{operand.buffer, operand.group};
      position(gpu_.switches, used);
      out["switch_channel_id"] = position(block_.switches, used);
    } else if (local) {
      out["type"] = letter(operand.buffer);
    } else {
      out["buffer_id"] = remote_id({owner, operand.buffer, channel_type(op)});
    }
    out["index"] = operand.chunk(at);
    out["size"] = operand.chunks;
    return out;
  }

  /// The thread block's own number of a remote buffer: each type of channel counts its own.
  std::size_t remote_id(const Remote& remote) {
    position(gpu_.remotes, remote);
    position(block_.remotes, remote);
    std::size_t id = 0;
    for (const Remote& each : block_.remotes) {
      if (each == remote) break;
      if (each.access == remote.access) ++id;
    }
    return id;
  }

  const Program& program_;
  std::optional<ChannelIds> channels_;
  std::vector<char> letters_;                        ///< by buffer: i, o, s, or 0 for a FIFO
  std::array<std::int32_t, 3> by_kind_{-1, -1, -1};  ///< the input, output and scratch buffer
  std::vector<std::int32_t> local_semaphores_;
  Used gpu_;
  Used block_;
  std::map<int, std::int32_t> signalled_;  ///< through ports, by a thread block: peer, channel
  int rank_ = 0;
  std::int32_t threads_ = 0;
};

/// What the format implies instead of saying it must be what the program has.
void check_implied(const Program& program, const Program& written) {
  const auto buffers_of = [](const Program& of) {
    Program one;
    one.ranks = of.ranks;
    one.buffers = of.buffers;
    return Frame{.program = std::make_shared<const Program>(std::move(one)), .chunk_bytes = 1};
  };
  const auto place = [](const Frame& one, BufferKind kind, int rank) -> std::int64_t {
    for (std::size_t i = 0; i < one.program->buffers.size(); ++i) {
      if (one.program->buffers[i].kind == kind)
        return one.resolve(static_cast<std::int32_t>(i), 0, rank).offset;
    }
    return 0;
  };
  const Frame own = buffers_of(program), implied = buffers_of(written);
  if (program.chunks_per_size != written.chunks_per_size)
    refuse(program, fmt::format("its size is {} chunks, where the format implies {}",
                                program.chunks_per_size, written.chunks_per_size));
  if (program.root != written.root)
    refuse(program, fmt::format("its root is rank {}, and the format has no word for that but 0",
                                program.root));
  for (int rank = 0; rank < program.ranks; ++rank) {
    for (const BufferKind kind : {BufferKind::input, BufferKind::output})
      if (place(own, kind, rank) != place(implied, kind, rank))
        refuse(program, "input and output do not share memory in the way that the format implies");
  }
}

}  // namespace

std::string write_mscclpp(const Program& program, const machine::Machine* machine) {
  Program plain = with_channel_types(program, machine);
  for (Body& body : plain.bodies) {
    for (Op& op : body.ops)
      if (std::exchange(op.staged, false)) op.dst.erase(op.dst.begin());
  }
  std::string text = MscclppWriter(plain).write();
  check_implied(program, read_mscclpp(text, program.source));
  return text;
}

}  // namespace hemiola::program

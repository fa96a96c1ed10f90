#include "program/formats/mscclpp/op_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/index.h"
#include "program/formats/mscclpp/ops.h"

namespace hemiola::program {
namespace {

/// What the ids of a thread block's operations index.
struct Block {
  std::vector<std::int64_t> memory, port, switches;        ///< channel ids of the GPU
  std::vector<std::int64_t> memory_buffers, port_buffers;  ///< remote buffers of the GPU
};

class OpReader {
 public:
  OpReader(const MscclppDeclarations& declarations, int rank, std::int64_t blocks, Program& program,
           Finding& rank_keys)
      : declarations_(declarations),
        program_(program),
        rank_keys_(rank_keys),
        rank_(rank),
        blocks_(blocks) {}

  Body read(const JsonValue& value) {
    block_ = read_block(value);
    Body body;
    for (const JsonValue& op : value.at("ops").items()) read_op(op, body, false);
    return body;
  }

 private:
  const MscclppGpu& gpu() const { return declarations_.gpus[index(rank_)]; }

  Block read_block(const JsonValue& value) {
    Block block;
    for (const JsonValue& channel : value.items("channels")) {
      channel.allow_keys({"channel_type", "channel_ids", "buff"});
      if (channel.has("buff")) read_buffer_type(channel.at("buff"));
      const Channel type = read_channel_type(channel.at("channel_type"));
      if (type == Channel::none)
        channel.at("channel_type").fail("a channel of type none has no ids");
      auto& ids = type == Channel::memory ? block.memory
                  : type == Channel::port ? block.port
                                          : block.switches;
      const std::size_t present = type == Channel::memory ? gpu().memory_peers.size()
                                  : type == Channel::port ? gpu().port_peers.size()
                                                          : gpu().switches.size();
      for (const JsonValue& id : channel.at("channel_ids").items())
        ids.push_back(read_index(id, present, "channel of this type", "GPU"));
    }
    for (const JsonValue& reference : value.items("remote_buffer_refs")) {
      reference.allow_keys({"access_channel_type", "remote_buffer_ids"});
      const Channel type = read_channel_type(reference.at("access_channel_type"));
      if (type != Channel::memory && type != Channel::port)
        reference.at("access_channel_type")
            .fail("remote buffers are accessed through memory or port channels");
      auto& ids = type == Channel::memory ? block.memory_buffers : block.port_buffers;
      for (const JsonValue& id : reference.at("remote_buffer_ids").items()) {
        ids.push_back(read_index(id, gpu().remotes.size(), "remote buffer", "GPU"));
        const MscclppGpu::Remote& remote = gpu().remotes[index(ids.back())];
        if (type == Channel::memory ? !remote.memory : !remote.port)
          id.fail(
              fmt::format("remote buffer {} is not declared for this type of channel", ids.back()));
      }
    }
    return block;
  }

  void read_op(const JsonValue& value, Body& body, bool nested) {
    value.allow_keys({"name", "src_buff", "dst_buff", "channel_type", "channel_ids", "tbg_info",
                      "barrier_id", "num_threadblocks", "semaphore_ids", "reduce_op",
                      "iter_context", "ops"});
    const std::string name = value.at("name").text();
    const MscclppOp* known = find_mscclpp_op(name);
    if (known == nullptr)
      value.at("name").fail(fmt::format("unknown operation '{}'", name),
                            suggest(name, mscclpp_op_names()));
    if (known->kind == OpKind::loop) return read_pipeline(value, body, nested);
    for (const std::string_view key : {"iter_context", "ops"})
      if (value.has(key)) value.at(key).fail(fmt::format("only a pipeline has '{}'", key));
    Op op{.kind = known->kind};
    op.where = value.pointer();
    read_op_channel(value, *known, op);
    op.src = read_operands(value, "src_buff", known->src, op);
    op.dst = read_operands(value, "dst_buff", known->dst, op);
    check_operands(value, op);
    read_op_synchronisation(value, op);
    if (value.has("reduce_op")) read_reduction(value.at("reduce_op"), op);
    if (value.has("tbg_info")) read_slice(value.at("tbg_info"), op);
    body.ops.push_back(std::move(op));
  }

  void read_pipeline(const JsonValue& value, Body& body, bool nested) {
    if (nested) value.fail("a pipeline inside a pipeline");
    const JsonValue context = value.at("iter_context");
    context.allow_keys({"unit_size", "num_chunks"});
    Op loop{.kind = OpKind::loop};
    loop.unit = {context.integer("unit_size", 1, UINT32_MAX)};
    loop.unit_chunks = context.integer("num_chunks", 1, kMaximumChunks);
    loop.pieces = Pieces::of_region;
    loop.where = value.pointer();
    body.ops.push_back(std::move(loop));
    for (const JsonValue& op : value.at("ops").items()) read_op(op, body, true);
    Op end{.kind = OpKind::end_loop};
    end.where = value.pointer();
    body.ops.push_back(std::move(end));
  }

  void read_op_channel(const JsonValue& value, const MscclppOp& known, Op& op) {
    if (value.has("channel_type")) op.channel = read_channel_type(value.at("channel_type"));
    constexpr std::string_view kLetters = "-mps";
    const char letter = kLetters[index(op.channel)];
    if (op.channel != Channel::none && known.channels.find(letter) == std::string_view::npos)
      value.at("channel_type")
          .fail(fmt::format("{} cannot use a {} channel", known.name,
                            value.at("channel_type").text()));
    const bool needed = !known.channels.empty() && known.channels != "s";
    if (op.channel == Channel::none && needed && has_remote(value, known))
      value.fail(fmt::format("{} needs a channel_type", known.name), "memory or port");
    if (op.channel == Channel::none && known.channels == "s") op.channel = Channel::switch_;
  }

  /// Whether the operation, as it stands, touches a peer.
  static bool has_remote(const JsonValue& value, const MscclppOp& known) {
    if (known.src.letters.empty() && known.dst.letters.empty()) return true;  // signals and waits
    for (const std::string_view key : {"src_buff", "dst_buff"}) {
      for (const JsonValue& operand : value.items(key))
        if (operand.has("buffer_id")) return true;
    }
    return false;
  }

  std::vector<Operand> read_operands(const JsonValue& value, std::string_view key, Pattern pattern,
                                     const Op& op) {
    const std::vector<JsonValue> list = value.items(key);
    const std::string name = value.at("name").text();
    if (!pattern.accepts(list.size()))
      (list.empty() ? value : value.at(key))
          .fail(fmt::format("{} cannot have {} operands in {}", name, list.size(), key));
    const std::vector<Role> roles = pattern.roles(list.size());
    std::vector<Operand> out;
    for (std::size_t i = 0; i < list.size(); ++i) {
      Role role = roles[i];
      // A port copies memory as it is: packets must stand in the source already.
      if (op.kind == OpKind::put_packets && op.channel == Channel::port && role == Role::local)
        role = Role::local_packet;
      out.push_back(read_operand(list[i], role, op));
    }
    return out;
  }

  Operand read_operand(const JsonValue& value, Role role, const Op& op) {
    value.allow_keys({"type", "buffer_id", "switch_channel_id", "index", "size", "rank"});
    if (value.has("rank")) note_rank(value);
    if (value.has("type") + value.has("buffer_id") + value.has("switch_channel_id") != 1)
      value.fail("an operand has exactly one of type, buffer_id and switch_channel_id");
    Operand out;
    out.chunk = constant(value.integer("index", 0, kMaximumChunks));
    out.chunks = value.integer("size", 1, kMaximumChunks);
    if (role == Role::local || role == Role::local_packet) {
      if (!value.has("type"))
        value.fail("a local buffer is needed here", "name it by its type: i, o or s");
      out.buffer = read_buffer_type(value.at("type"));
      check_chunks(value, out, rank_);
    } else if (role == Role::remote || role == Role::remote_packet) {
      if (!value.has("buffer_id"))
        value.fail("a remote buffer is needed here", "name it by its buffer_id");
      const MscclppGpu::Remote& remote = read_remote_reference(value.at("buffer_id"), op.channel);
      out.rank = constant(remote.rank);
      out.buffer = remote.buffer;
      check_chunks(value, out, remote.rank);
    } else {
      if (!value.has("switch_channel_id"))
        value.fail("a switch channel is needed here", "name it by its switch_channel_id");
      read_group(value, out);
    }
    if (is_packet(role)) {
      if (out.buffer != kScratch) value.fail("packets can only stand in scratch (type s)");
      out.access = Access::packet;
    }
    if (role == Role::group) out.access = Access::multicast;
    if (role == Role::group_packet) out.access = Access::multicast_packet;
    return out;
  }

  /// A buffer that is named by its type is the GPU's own, whatever `rank` says: another rank would
  /// mean what no executor does.
  void note_rank(const JsonValue& value) {
    const JsonValue key = value.at("rank");
    if (!value.has("type")) key.fail("only a buffer that is named by its type may name its rank");
    const std::int64_t named = key.integer(0, INT32_MAX);
    if (named != rank_)
      key.fail(fmt::format("names rank {}, but a buffer by its type is that of rank {} itself",
                           named, rank_),
               "remote buffers are named by their buffer_id");
    rank_keys_.note("the key 'rank' of a local operand, which says what is known",
                    [&] { return key.where(); });
  }

  const MscclppGpu::Remote& read_remote_reference(const JsonValue& id, Channel channel) {
    const auto& buffers = channel == Channel::port ? block_.port_buffers : block_.memory_buffers;
    const std::int64_t local = read_index(id, buffers.size(), "remote buffer", "thread block");
    return gpu().remotes[index(buffers[index(local)])];
  }

  void read_group(const JsonValue& value, Operand& out) {
    const std::int64_t local = read_index(value.at("switch_channel_id"), block_.switches.size(),
                                          "switch channel", "thread block");
    const MscclppGpu::Switch& channel = gpu().switches[index(block_.switches[index(local)])];
    const auto found = std::ranges::find(program_.groups, channel.ranks);
    out.group = static_cast<std::int32_t>(found - program_.groups.begin());
    if (found == program_.groups.end()) program_.groups.push_back(channel.ranks);
    out.buffer = channel.buffer;
    for (const int member : channel.ranks) check_chunks(value, out, member);
  }

  void check_chunks(const JsonValue& value, const Operand& operand, int owner) const {
    constexpr std::array<std::string_view, 3> kNames{"input", "output", "scratch"};
    const std::int64_t end = operand.chunk.constant + operand.chunks;
    const std::int64_t present = declarations_.gpus[index(owner)].chunks[index(operand.buffer)];
    if (end > present)
      value.fail(fmt::format("chunks [{}, {}) of {} of rank {}, which has {}",
                             operand.chunk.constant, end, kNames[index(operand.buffer)], owner,
                             present));
  }

  static void check_operands(const JsonValue& value, const Op& op) {
    if (is_paired(op.kind) && op.src.size() != op.dst.size())
      value.fail(fmt::format("{} pairs its operands, but has {} sources and {} destinations",
                             value.at("name").text(), op.src.size(), op.dst.size()));
    const std::int64_t chunks = op.src.empty() ? 0 : op.src.front().chunks;
    for (const std::vector<Operand>* side : {&op.src, &op.dst}) {
      for (const Operand& operand : *side)
        if (operand.chunks != chunks) value.fail("its operands have different sizes");
    }
  }

  void read_op_synchronisation(const JsonValue& value, Op& op) {
    switch (op.kind) {
      case OpKind::signal:
      case OpKind::relaxed_signal:
      case OpKind::wait:
      case OpKind::relaxed_wait:
      case OpKind::put_signal:
      case OpKind::put_signal_flush:
        read_channel_semaphores(value, op);
        break;
      case OpKind::sem_acquire:
      case OpKind::sem_release:
        for (const JsonValue& id : value.at("semaphore_ids").items()) {
          const std::int64_t semaphore =
              read_index(id, gpu().semaphores.size(), "semaphore", "GPU");
          op.semaphores.push_back({own_rank(), declarations_.first_local_semaphore() +
                                                   gpu().semaphores[index(semaphore)]});
        }
        break;
      case OpKind::barrier:
        op.barrier_id = static_cast<std::int32_t>(value.integer("barrier_id", 0, 1 << 16));
        op.workgroups = static_cast<std::int32_t>(value.integer("num_threadblocks", 1, INT32_MAX));
        if (op.workgroups > blocks_)
          value.at("num_threadblocks")
              .fail(fmt::format("a barrier of {} thread blocks on a GPU that has {}", op.workgroups,
                                blocks_));
        program_.barriers = std::max(program_.barriers, op.barrier_id + 1);
        break;
      default:  // puts and gets may name the channels they use
        if (value.has("channel_ids")) read_channel_ids(value, op.channel);
    }
  }

  /// The GPU's channels that an operation names.
  std::vector<std::int64_t> read_channel_ids(const JsonValue& value, Channel type) {
    const auto& ids = type == Channel::port      ? block_.port
                      : type == Channel::switch_ ? block_.switches
                                                 : block_.memory;
    std::vector<std::int64_t> out;
    for (const JsonValue& id : value.at("channel_ids").items())
      out.push_back(ids[index(read_index(id, ids.size(), "channel of this type", "thread block"))]);
    return out;
  }

  void read_channel_semaphores(const JsonValue& value, Op& op) {
    const bool port = op.channel == Channel::port;
    const std::int32_t first = port ? declarations_.first_port_semaphore() : 0;
    const PairedChannels& channels = port ? declarations_.port : declarations_.memory;
    const bool waits = op.kind == OpKind::wait || op.kind == OpKind::relaxed_wait;
    for (const std::int64_t channel : read_channel_ids(value, op.channel)) {
      const int peer = channels.peers[index(rank_)][index(channel)];
      const std::int32_t target = channels.targets[index(rank_)][index(channel)];
      if (waits)
        op.semaphores.push_back({own_rank(), first + static_cast<std::int32_t>(channel)});
      else
        op.semaphores.push_back({constant(peer), first + target});
    }
    if (op.dst.empty()) return;
    if (op.semaphores.size() != op.dst.size())
      value.at("channel_ids")
          .fail(
              fmt::format("{} channels for {} destinations", op.semaphores.size(), op.dst.size()));
    for (std::size_t i = 0; i < op.dst.size(); ++i)
      if (op.semaphores[i].rank != op.dst[i].rank)
        value.at("channel_ids").fail("a channel leads to another rank than its destination is on");
  }

  static void read_reduction(const JsonValue& value, Op& op) {
    const std::string name = value.text();
    const auto reduction = parse_reduce_op(name);
    if (!reduction || *reduction == ReduceOp::none)
      value.fail(fmt::format("unknown reduction '{}'", name),
                 suggest(name, {"sum", "min", "max", "prod"}));
    op.reduce = *reduction;
  }

  static void read_slice(const JsonValue& value, Op& op) {
    value.allow_keys({"tb_id", "tbg_size"});
    op.slices = static_cast<std::int32_t>(value.integer("tbg_size", 1, INT32_MAX));
    op.slice = static_cast<std::int32_t>(value.integer("tb_id", 0, op.slices - 1));
  }

  const MscclppDeclarations& declarations_;
  Program& program_;
  Finding& rank_keys_;
  Block block_;
  int rank_ = 0;
  std::int64_t blocks_ = 0;
};

}  // namespace

Body read_thread_block(const JsonValue& value, const MscclppDeclarations& declarations, int rank,
                       std::int64_t blocks, Program& program, Finding& rank_keys) {
  return OpReader(declarations, rank, blocks, program, rank_keys).read(value);
}

}  // namespace hemiola::program

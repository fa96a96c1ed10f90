#include "program/formats/mscclpp/declarations.h"

#include <fmt/format.h>

#include <algorithm>

namespace hemiola::program {
namespace {

class DeclarationReader {
 public:
  explicit DeclarationReader(const std::vector<JsonValue>& gpus)
      : ranks_(static_cast<int>(gpus.size())) {
    out_.gpus.resize(gpus.size());
    for (const JsonValue& each : gpus) {
      read_gpu(each);
      ++rank_;
    }
    pair_all_channels();
  }

  MscclppDeclarations take() { return std::move(out_); }

 private:
  MscclppGpu& gpu() { return out_.gpus[index(rank_)]; }

  void read_gpu(const JsonValue& value) {
    value.allow_keys({"id", "input_chunks", "output_chunks", "scratch_chunks", "threadblocks",
                      "channels", "remote_buffers", "semaphores"});
    const std::int64_t id = value.integer("id", 0, INT32_MAX);
    if (id != rank_)
      value.at("id").fail(fmt::format("GPU {} stands where GPU {} is needed", id, rank_),
                          "GPUs are numbered 0, 1, ... in order");
    gpu().chunks = {value.integer("input_chunks", 0, kMaximumChunks),
                    value.integer("output_chunks", 0, kMaximumChunks),
                    value.integer("scratch_chunks", 0, kMaximumChunks)};
    for (const JsonValue& channel : value.items("channels")) read_channel(channel);
    for (const JsonValue& remote : value.items("remote_buffers")) read_remote(remote);
    for (const JsonValue& semaphore : value.items("semaphores")) read_semaphore(semaphore);
  }

  int read_rank(const JsonValue& value, bool may_be_own) const {
    const auto peer = static_cast<int>(value.integer(0, INT32_MAX));
    if (peer >= ranks_)
      value.fail(fmt::format("rank {} is not there: the plan has {} GPUs", peer, ranks_));
    if (peer == rank_ && !may_be_own)
      value.fail(fmt::format("rank {} is connected to itself", peer));
    return peer;
  }

  void read_channel(const JsonValue& value) {
    value.allow_keys({"channel_type", "connected_to", "buffer_type", "rank_groups"});
    const Channel type = read_channel_type(value.at("channel_type"));
    if (type == Channel::switch_) {
      read_switch_channel(value);
    } else if (type == Channel::none) {
      value.at("channel_type").fail("a channel of type none cannot be declared");
    } else {
      std::vector<int>& peers = type == Channel::memory ? gpu().memory_peers : gpu().port_peers;
      for (const JsonValue& peer : value.at("connected_to").items())
        peers.push_back(read_rank(peer, false));
    }
  }

  void read_switch_channel(const JsonValue& value) {
    const std::int32_t buffer = read_buffer_type(value.at("buffer_type"));
    for (const JsonValue& group : value.at("rank_groups").items()) {
      group.allow_keys({"size", "ranks"});
      group.integer("size", 0, kMaximumChunks);
      MscclppGpu::Switch channel{buffer, {}};
      for (const JsonValue& rank : group.at("ranks").items()) {
        const int member = read_rank(rank, true);
        if (std::ranges::find(channel.ranks, member) != channel.ranks.end())
          rank.fail(fmt::format("rank {} is twice in its group", member));
        channel.ranks.push_back(member);
      }
      if (channel.ranks.empty()) group.fail("a group needs ranks");
      gpu().switches.push_back(std::move(channel));
    }
  }

  void read_remote(const JsonValue& value) {
    value.allow_keys({"rank", "type", "access_channel_types"});
    MscclppGpu::Remote remote{read_rank(value.at("rank"), true),
                              read_buffer_type(value.at("type"))};
    for (const JsonValue& access : value.items("access_channel_types")) {
      const Channel type = read_channel_type(access);
      remote.memory |= type == Channel::memory;
      remote.port |= type == Channel::port;
    }
    gpu().remotes.push_back(remote);
  }

  /// Semaphores have one initial value on all ranks: those that differ get indices of their own.
  void read_semaphore(const JsonValue& value) {
    value.allow_keys({"init_value"});
    const std::int64_t initial = value.integer("init_value", 0, INT32_MAX);
    const std::pair key{static_cast<std::int64_t>(gpu().semaphores.size()), initial};
    auto found = std::ranges::find(out_.local_semaphores, key);
    if (found == out_.local_semaphores.end()) found = out_.local_semaphores.insert(found, key);
    gpu().semaphores.push_back(static_cast<std::int32_t>(found - out_.local_semaphores.begin()));
  }

  void pair_all_channels() {
    std::vector<std::vector<int>> memory, port;
    for (const MscclppGpu& each : out_.gpus) {
      memory.push_back(each.memory_peers);
      port.push_back(each.port_peers);
    }
    out_.memory = pair_channels(std::move(memory));
    out_.port = pair_channels(std::move(port));
  }

  MscclppDeclarations out_;
  int ranks_ = 0;
  int rank_ = 0;
};

}  // namespace

std::int64_t MscclppDeclarations::most_chunks(std::int32_t buffer) const {
  std::int64_t most = 0;
  for (const MscclppGpu& each : gpus) most = std::max(most, each.chunks[index(buffer)]);
  return most;
}

MscclppDeclarations read_declarations(const std::vector<JsonValue>& gpus) {
  return DeclarationReader(gpus).take();
}

Channel read_channel_type(const JsonValue& value) {
  const std::string name = value.text();
  if (name == "memory") return Channel::memory;
  if (name == "port") return Channel::port;
  if (name == "switch") return Channel::switch_;
  if (name == "none") return Channel::none;
  value.fail(fmt::format("unknown channel type '{}'", name),
             suggest(name, {"memory", "port", "switch", "none"}));
}

std::int32_t read_buffer_type(const JsonValue& value) {
  const std::string name = value.text();
  if (name == "i") return kInput;
  if (name == "o") return kOutput;
  if (name == "s") return kScratch;
  value.fail(fmt::format("unknown buffer type '{}'", name),
             "buffer types are i (input), o (output) and s (scratch)");
}

std::int64_t read_index(const JsonValue& value, std::size_t count, std::string_view what,
                        std::string_view owner) {
  const std::int64_t id = value.integer(0, INT32_MAX);
  if (index(id) >= count)
    value.fail(fmt::format("there is no {} {}: the {} has {}", what, id, owner, count));
  return id;
}

}  // namespace hemiola::program

#include "program/formats/mscclpp/older_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "core/lenient.h"
#include "program/formats/mscclpp/declarations.h"
#include "program/formats/mscclpp/ops.h"

namespace hemiola::program {
namespace {

using nlohmann::json;

struct Renamed {
  std::string_view older;
  std::string_view now;
};
constexpr std::array<Renamed, 4> kGpuKeys{{{"colletive", "collective"},
                                           {"inputChunks", "input_chunks"},
                                           {"outputChunks", "output_chunks"},
                                           {"scratchChunks", "scratch_chunks"}}};
constexpr std::array<Renamed, 4> kChannelKeys{{{"type", "channel_type"},
                                               {"connectedTo", "connected_to"},
                                               {"buff", "buffer_type"},
                                               {"rankGroups", "rank_groups"}}};
constexpr std::array<Renamed, 3> kChannelTypes{
    {{"sm", "memory"}, {"proxy", "port"}, {"nvls", "switch"}}};
/// `cpkt` unpacked and `tpkt` packed (handleCopyPacket, handleTransformToPacket).
constexpr std::array<Renamed, 7> kOpNames{{{"rs", "res"},
                                           {"rrc", "rre"},
                                           {"rrcs", "rres"},
                                           {"rpkt", "repkt"},
                                           {"rspkt", "respkt"},
                                           {"cpkt", "upkt"},
                                           {"tpkt", "cpkt"}}};
constexpr std::array<std::string_view, 18> kOpKeys{
    "name", "i_buff", "i_cids",  "o_buff", "o_cids", "src", "srcs", "srcbuff",        "srcoff",
    "dst",  "dsts",   "dstbuff", "dstoff", "ctype",  "cnt", "deps", "nthread_blocks", "barrier_id"};

template <std::size_t n>
std::string now_called(const std::array<Renamed, n>& names, const std::string& name) {
  for (const Renamed& each : names)
    if (each.older == name) return std::string(each.now);
  return name;
}

/// Whether the object has a key that only the older schema knows.
bool is_older_op(const JsonValue& op) {
  return std::ranges::any_of(kOpKeys, [&](std::string_view key) {
    return key != "name" && key != "barrier_id" && op.has(key);
  });
}

class OlderSchema {
 public:
  OlderSchema(const json& plan, const JsonFile& file) : root_(plan, file), out_(plan) {}

  json convert(Diagnostics& warnings) {
    rename(root_, out_, kGpuKeys);
    const std::vector<JsonValue> gpus = root_.items("gpus");
    for (std::size_t i = 0; i < gpus.size(); ++i) convert_gpu(gpus[i], out_["gpus"][i]);
    if (count_ == 0) return {};
    std::string message = fmt::format(
        "the plan has the schema that MSCCL++ had before August 2025 ('{}' is now '{}', and {} "
        "more)",
        first_.older, first_.now, count_ - 1);
    if (!root_.has("inplace")) {
      out_["inplace"] = false;
      message += ", without 'inplace', which is taken to be false";
    }
    warn_leniently(warnings, Leniency::converted, message, where_,
                   "'hemiola plan convert FILE --to mscclpp' writes today's");
    return std::move(out_);
  }

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // source, destination, type
  using Ids = std::map<Key, std::vector<std::size_t>>;

  void note(const JsonValue& at, std::string_view older, std::string_view now) {
    if (count_++ > 0) return;
    first_ = {older, now};
    where_ = at.where();
  }

  template <std::size_t n>
  void rename(const JsonValue& from, json& to, const std::array<Renamed, n>& names) {
    for (const Renamed& each : names) {
      if (!from.has(each.older)) continue;
      note(from.at(each.older), each.older, each.now);
      const std::string now(each.now), older(each.older);
      if (!from.has(now)) to[now] = std::move(to[older]);
      to.erase(older);
    }
  }

  static std::string channel_type(const JsonValue& value) {
    return now_called(kChannelTypes, value.text());
  }

  void convert_gpu(const JsonValue& gpu, json& out) {
    rename(gpu, out, kGpuKeys);
    if (gpu.has("chunkGroups")) out.erase("chunkGroups");
    ids_.clear();
    remotes_.clear();
    channels_.clear();
    const std::vector<JsonValue> channels = gpu.items("channels");
    for (std::size_t i = 0; i < channels.size(); ++i)
      convert_channel(channels[i], out["channels"][i], out);
    const std::vector<JsonValue> blocks = gpu.items("threadblocks");
    for (std::size_t i = 0; i < blocks.size(); ++i)
      convert_block(blocks[i], out["threadblocks"][i]);
  }

  /// The channels of a GPU are numbered by type, in the order of the file; those of a pair of
  /// buffers have numbers of their own, which thread blocks name.
  void convert_channel(const JsonValue& channel, json& out, json& gpu) {
    rename(channel, out, kChannelKeys);
    if (!channel.has("type")) return;
    const std::string type = channel_type(channel.at("type"));
    out["channel_type"] = type;
    std::size_t& next = channels_[type];
    if (type == "switch") {
      const std::string buffer = channel.at("buff").text();
      const std::size_t groups = channel.at("rankGroups").items().size();
      for (std::size_t i = 0; i < groups; ++i) ids_[{buffer, buffer, type}].push_back(next++);
      return;
    }
    const std::string from = channel.at("srcbuff").text(), to = channel.at("dstbuff").text();
    for (const JsonValue& peer : channel.at("connectedTo").items()) {
      ids_[{from, to, type}].push_back(next++);
      // What a channel leads to is a buffer of its own in today's schema.
      remotes_[type].push_back(gpu["remote_buffers"].size());
      gpu["remote_buffers"].push_back({{"rank", peer.integer(0, INT32_MAX)},
                                       {"type", to},
                                       {"access_channel_types", json::array({type})}});
    }
    out.erase("srcbuff");
    out.erase("dstbuff");
  }

  std::size_t lookup(const Ids& ids, const Key& key, const JsonValue& id) const {
    const auto found = ids.find(key);
    const std::int64_t count = found == ids.end() ? 0 : std::ssize(found->second);
    if (count == 0)
      id.fail(fmt::format("there is no {} channel from buffer '{}' to '{}' here", std::get<2>(key),
                          std::get<0>(key), std::get<1>(key)));
    return found->second[index(id.integer(0, count - 1))];
  }

  void convert_block(const JsonValue& block, json& out) {
    Ids own;
    std::map<std::string, std::size_t> numbers;
    const std::vector<JsonValue> channels = block.items("channels");
    for (std::size_t i = 0; i < channels.size(); ++i) {
      if (!channels[i].has("cids")) continue;
      channels[i].allow_keys({"src", "dst", "ctype", "cids"});
      note(channels[i].at("cids"), "cids", "channel_ids");
      const std::string type = channel_type(channels[i].at("ctype"));
      const Key key{channels[i].at("src").text(), channels[i].at("dst").text(), type};
      json ids = json::array(), buffers = json::array();
      for (const JsonValue& id : channels[i].at("cids").items()) {
        const std::size_t channel = lookup(ids_, key, id);
        own[key].push_back(numbers[type]++);
        ids.push_back(channel);
        if (type != "switch") buffers.push_back(remotes_[type].at(channel));
      }
      out["channels"][i] = {{"channel_type", type}, {"channel_ids", std::move(ids)}};
      if (type != "switch")
        out["remote_buffer_refs"].push_back(
            {{"access_channel_type", type}, {"remote_buffer_ids", std::move(buffers)}});
    }
    const std::vector<JsonValue> ops = block.items("ops");
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (is_older_op(ops[i])) out["ops"][i] = convert_op(ops[i], own);
  }

  json convert_op(const JsonValue& op, const Ids& own) {
    const std::vector<std::string> known_keys(kOpKeys.begin(), kOpKeys.end());
    op.allow_keys(known_keys);
    const std::string name = now_called(kOpNames, op.at("name").text());
    const std::string type = op.has("ctype") ? channel_type(op.at("ctype")) : "none";
    const MscclppOp* known = find_mscclpp_op(name);
    json out{{"name", name}};
    note(op, op.at("name").text(), name);
    if (known != nullptr && !known->channels.empty() && type != "none") out["channel_type"] = type;
    if (op.has("barrier_id")) out["barrier_id"] = op.integer("barrier_id", 0, INT32_MAX);
    if (op.has("nthread_blocks"))
      out["num_threadblocks"] = op.integer("nthread_blocks", 1, INT32_MAX);
    const bool moves =
        known == nullptr || !known->src.letters.empty() || !known->dst.letters.empty();
    json sources = side(op, own, type, {"srcbuff", "srcoff", "srcs", "i_cids", "i_buff"}, moves);
    json destinations =
        side(op, own, type, {"dstbuff", "dstoff", "dsts", "o_cids", "o_buff"}, moves);
    if (name == "rppkt") join_sources(op, sources);
    const bool signals = !moves || name == "pws" || name == "pwsf";
    for (const json& each : signals ? (destinations.empty() ? sources : destinations) : json())
      if (each.contains("buffer_id")) out["channel_ids"].push_back(each["buffer_id"]);
    if (!moves) return out;
    if (!sources.empty()) out["src_buff"] = std::move(sources);
    if (!destinations.empty()) out["dst_buff"] = std::move(destinations);
    return out;
  }

  struct SideKeys {
    const char *buffer, *offset, *list, *channels, *buffers;
  };

  /// One side's operands: the one own buffer, own buffers of a list, what channels lead to.
  json side(const JsonValue& op, const Ids& own, const std::string& type, const SideKeys& keys,
            bool moves) const {
    json out = json::array();
    const auto add = [&](const char* how, json what, std::int64_t offset) {
      json operand{{how, std::move(what)}};
      if (moves) {
        operand["index"] = offset;
        operand["size"] = op.integer("cnt", 1, kMaximumChunks);
      }
      out.push_back(std::move(operand));
    };
    const auto chunk = [](const JsonValue& of, const char* key) {
      return of.integer(key, 0, kMaximumChunks);
    };
    const std::vector<JsonValue> channels = op.items(keys.channels);
    if (type == "switch" && !channels.empty()) {
      const std::string buffer = op.at(keys.buffer).text();
      add("switch_channel_id", lookup(own, {buffer, buffer, type}, channels.front().at("id")),
          chunk(op, keys.offset));
      return out;
    }
    if (op.has(keys.buffer)) add("type", op.at(keys.buffer).text(), chunk(op, keys.offset));
    for (const JsonValue& each : op.items(keys.list))
      add("type", each.at("buff").text(), chunk(each, "off"));
    for (const JsonValue& each : channels) {
      const JsonValue buffers = op.at(keys.buffers);
      const Key key{buffers.at("src").text(), buffers.at("dst").text(), type};
      // Thread blocks have as many buffers of a type as channels, in the same order.
      add("buffer_id", lookup(own, key, each.at("id")), moves ? chunk(each, "off") : 0);
    }
    return out;
  }

  /// The older rppkt named its source once for each destination.
  static void join_sources(const JsonValue& op, json& sources) {
    if (!std::ranges::all_of(sources, [&](const json& each) { return each == sources.front(); }))
      op.fail("rppkt reads different packets for its destinations, which today's MSCCL++ cannot",
              "write an operation for each");
    if (sources.size() > 1) sources = json::array({sources.front()});
  }

  JsonValue root_;
  json out_;
  std::int64_t count_ = 0;  ///< keys and operations converted
  Renamed first_{};
  SourceLocation where_;
  Ids ids_;  ///< channels of the GPU, by key
  std::map<std::string, std::vector<std::size_t>>
      remotes_;                                  ///< remote buffers, by type and channel
  std::map<std::string, std::size_t> channels_;  ///< how many, by type
};

}  // namespace

json convert_older_schema(const json& plan, const JsonFile& file, Diagnostics& warnings) {
  return OlderSchema(plan, file).convert(warnings);
}

}  // namespace hemiola::program

#include <fmt/format.h>

#include <limits>

#include "core/checked.h"
#include "core/json.h"
#include "core/lenient.h"
#include "core/units.h"
#include "study/support/yaml_file.h"
#include "workload/astra/configuration.h"

namespace hemiola::workload {
namespace {

constexpr std::int64_t kMostNpus = 1'000'000;

class NetworkReader : study::YamlFile {
 public:
  explicit NetworkReader(const std::string& file) : YamlFile(file) {}

  AstraNetwork read(std::string_view text) {
    const YAML::Node root = load(text);
    allow_keys(root, {"topology", "npus_count", "bandwidth", "latency"});
    const YAML::Node topologies = list(root, "topology");
    AstraNetwork network;
    network.dimensions.resize(topologies.size());
    for (const char* key : {"npus_count", "bandwidth", "latency"}) {
      if (list(root, key).size() != topologies.size())
        fail(root[key], fmt::format("'{}' has {} values for {} dimensions", key, root[key].size(),
                                    topologies.size()));
    }
    for (std::size_t d = 0; d < topologies.size(); ++d) {
      AstraNetwork::Dimension& dimension = network.dimensions[d];
      dimension.topology = topology(topologies[d]);
      dimension.npus = static_cast<std::int32_t>(number(root, "npus_count", d));
      if (dimension.npus != number(root, "npus_count", d) || dimension.npus < 2)
        fail(root["npus_count"][d], "a dimension has at least 2 NPUs");
      dimension.bandwidth = number(root, "bandwidth", d);
      if (dimension.bandwidth <= 0) fail(root["bandwidth"][d], "a bandwidth must be above 0");
      dimension.latency_ns = number(root, "latency", d);
      if (dimension.latency_ns < 0) fail(root["latency"][d], "a latency must not be below 0");
    }
    if (network.npus() > kMostNpus)
      fail(root["npus_count"], fmt::format("the network has more than {} NPUs", kMostNpus));
    return network;
  }

 private:
  YAML::Node list(const YAML::Node& root, const std::string& key) const {
    const YAML::Node value = member(root, key);
    if (!value.IsSequence() || value.size() == 0)
      fail(value, fmt::format("'{}' is a list with a value for each dimension", key));
    return value;
  }

  AstraNetwork::Topology topology(const YAML::Node& node) const {
    using enum AstraNetwork::Topology;
    const std::string word = node.IsScalar() ? node.Scalar() : "";
    if (word == "Ring") return ring;
    if (word == "FullyConnected") return fully_connected;
    if (word == "Switch") return switched;
    fail(node, fmt::format("there is no topology '{}'", word),
         suggest(word, {"Ring", "FullyConnected", "Switch"}));
  }

  double number(const YAML::Node& root, const std::string& key, std::size_t dimension) const {
    const YAML::Node node = root[key][dimension];
    const std::string word = node.IsScalar() ? node.Scalar() : "";
    const std::optional<double> value = finite_number(word);
    if (!value || *value > 1e15)
      fail(node, fmt::format("a number is needed in '{}', not '{}'", key, word),
           "without a unit: bandwidth counts in 2^30 B/s, latency in ns");
    return *value;
  }
};

}  // namespace

std::int64_t AstraNetwork::npus() const {
  std::int64_t all = 1;
  for (const Dimension& dimension : dimensions) {
    all *= dimension.npus;
    if (all > kMostNpus) break;
  }
  return all;
}

AstraNetwork read_astra_network(std::string_view text, const std::string& file) {
  return NetworkReader(file).read(text);
}

AstraMemory read_astra_memory(std::string_view text, const std::string& file,
                              Diagnostics& notices) {
  const JsonText json(text, file);
  const JsonValue root = json.root();
  root.allow_keys(
      {"memory-type", "num-nodes", "num-npus-per-node", "remote-mem-latency", "remote-mem-bw"});
  AstraMemory memory;
  const std::string kind = root.at("memory-type")
                               .one_of({"NO_MEMORY_EXPANSION", "PER_NODE_MEMORY_EXPANSION",
                                        "PER_NPU_MEMORY_EXPANSION", "MEMORY_POOL"});
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (kind == "PER_NODE_MEMORY_EXPANSION") {
    memory.kind = AstraMemory::Kind::per_node;
    memory.nodes = root.integer("num-nodes", 1, kMost);
    memory.npus_per_node = root.integer("num-npus-per-node", 1, kMost);
  } else {
    for (const char* key : {"num-nodes", "num-npus-per-node"}) {
      if (const auto value = root.find(key))
        warn_leniently(notices, Leniency::ignored,
                       fmt::format("'{}', which is of PER_NODE_MEMORY_EXPANSION", key),
                       value->where());
    }
  }
  if (kind == "PER_NPU_MEMORY_EXPANSION") memory.kind = AstraMemory::Kind::per_npu;
  if (kind == "MEMORY_POOL") memory.kind = AstraMemory::Kind::pool;
  memory.latency_ns = root.integer_or("remote-mem-latency", 0, 0, kMost);
  if (const auto value = root.find("remote-mem-bw")) memory.bandwidth = value->positive();
  if (memory.kind != AstraMemory::Kind::none && memory.bandwidth == 0)
    root.fail("the key 'remote-mem-bw' is missing");
  return memory;
}

}  // namespace hemiola::workload

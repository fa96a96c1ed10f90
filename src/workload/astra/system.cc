#include <fmt/format.h>

#include <limits>

#include "core/json.h"
#include "core/lenient.h"
#include "core/lists.h"
#include "core/units.h"
#include "workload/astra/configuration.h"

namespace hemiola::workload {
namespace {

using Kind = AstraAlgorithm::Kind;

constexpr std::array<std::string_view, 4> kAlgorithmKeys{
    "all-reduce-implementation", "all-gather-implementation", "reduce-scatter-implementation",
    "all-to-all-implementation"};

/// ASTRA-sim does not read these, or reads them and does nothing with them.
constexpr std::array<std::string_view, 3> kIgnoredKeys{"boost-mode", "intra-dimension-scheduling",
                                                       "inter-dimension-scheduling"};
/// These make ASTRA-sim write something that we do not write.
constexpr std::array<std::string_view, 3> kOutputKeys{"trace-enabled", "track-local-mem",
                                                      "local-mem-trace-filename"};
/// Of the model of a shared memory bus, which is off in all configurations that ASTRA-sim ships.
constexpr std::array<std::string_view, 5> kBusKeys{"L", "o", "g", "G", "local-reduction-delay"};

AstraAlgorithm algorithm_of(const JsonValue& value) {
  struct Word {
    std::string_view text;
    Kind kind;
    bool over_all;
    bool with_window;
  };
  static constexpr std::array<Word, 7> kWords{
      {{"ring", Kind::ring, false, false},
       {"oneRing", Kind::ring, true, false},
       {"direct", Kind::direct, false, true},
       {"oneDirect", Kind::direct, true, true},
       {"doubleBinaryTree", Kind::double_binary_tree, false, false},
       {"halvingDoubling", Kind::halving_doubling, false, false},
       {"oneHalvingDoubling", Kind::halving_doubling, true, false}}};
  const std::string text = value.text();
  for (const Word& word : kWords) {
    if (!text.starts_with(word.text)) continue;
    const std::string_view rest = std::string_view(text).substr(word.text.size());
    AstraAlgorithm algorithm{.kind = word.kind, .over_all = word.over_all};
    if (rest.empty()) return algorithm;
    const auto window = parse_count(rest);
    if (!word.with_window || !window) continue;
    if (*window < 1 || *window > std::numeric_limits<std::int32_t>::max())
      value.fail(fmt::format("the window of '{}' is not a number of messages", text),
                 "a number of at least 1, or none for a message to every other rank");
    algorithm.window = static_cast<std::int32_t>(*window);
    return algorithm;
  }
  const std::vector<std::string> known = names_of(kWords, &Word::text);
  value.fail(fmt::format("there is no algorithm '{}'", text), suggest(text, known));
}

class SystemReader {
 public:
  SystemReader(const JsonValue& root, Diagnostics& notices) : root_(root), notices_(notices) {}

  AstraSystem read() {
    root_.allow_keys(all_keys());
    read_order();
    read_algorithms();
    if (const auto value = root_.find("collective-optimization"))
      system_.local_bandwidth_aware = value->one_of({"baseline", "localBWAware"}) == "localBWAware";
    system_.chunks = root_.integer_or("preferred-dataset-splits", 1, 1, kMostChunks);
    system_.active_chunks = root_.integer_or("active-chunks-per-dimension", 1, 1, kMost);
    system_.endpoint_delay_ns = root_.integer_or("endpoint-delay", 10, 0, kMost);
    if (const auto value = root_.find("local-mem-bw"))
      system_.local_memory_bandwidth = value->positive();
    if (const auto value = root_.find("peak-perf")) system_.peak_tflops = value->positive();
    system_.roofline = flag("roofline-enabled");
    system_.replay = flag("replay-only");
    if (system_.roofline) need_roofline();
    read_others();
    return std::move(system_);
  }

 private:
  static std::vector<std::string> all_keys() {
    std::vector<std::string> keys{"scheduling-policy",
                                  "collective-optimization",
                                  "preferred-dataset-splits",
                                  "active-chunks-per-dimension",
                                  "endpoint-delay",
                                  "local-mem-bw",
                                  "peak-perf",
                                  "roofline-enabled",
                                  "replay-only",
                                  "model-shared-bus",
                                  "per-node-custom-implementation"};
    for (const std::string_view key : kAlgorithmKeys) {
      keys.emplace_back(key);
      keys.push_back(std::string(key) + "-custom");
    }
    keys.insert(keys.end(), kIgnoredKeys.begin(), kIgnoredKeys.end());
    keys.insert(keys.end(), kOutputKeys.begin(), kOutputKeys.end());
    keys.insert(keys.end(), kBusKeys.begin(), kBusKeys.end());
    return keys;
  }

  void read_order() {
    const auto value = root_.find("scheduling-policy");
    // ASTRA-sim has no default: what it does then is not defined.
    if (!value) return;
    const std::string word = value->one_of({"LIFO", "FIFO", "EXPLICIT"});
    if (word == "FIFO") system_.order = AstraSystem::Order::first_first;
    if (word != "EXPLICIT") return;
    system_.order = AstraSystem::Order::given;
    notices_.warning("a workload has no priorities: all collectives have the same", value->where());
  }

  void read_algorithms() {
    for (std::size_t c = 0; c < kAlgorithmKeys.size(); ++c) {
      const std::string key(kAlgorithmKeys[c]);
      for (const JsonValue& item : root_.items(key))
        system_.algorithms[c].push_back(algorithm_of(item));
      if (const auto value = root_.find(key + "-custom"))
        warn_leniently(notices_, Leniency::ignored,
                       "an algorithm that an execution trace describes", value->where(),
                       fmt::format("the collective is done as '{}' says", key));
    }
    if (const auto value = root_.find("per-node-custom-implementation"))
      warn_leniently(notices_, Leniency::ignored, "algorithms that execution traces describe",
                     value->where());
  }

  /// ASTRA-sim takes whatever is not the number 0 as true, also `false`.
  bool flag(const std::string& key) const {
    const auto value = root_.find(key);
    if (!value) return false;
    if (!value->json().is_boolean()) return value->integer(0, kMost) != 0;
    if (!value->boolean())
      value->fail(fmt::format("ASTRA-sim reads '{}': false as true", key), "write 0");
    return true;
  }

  void need_roofline() const {
    if (system_.local_memory_bandwidth > 0 && system_.peak_tflops > 0) return;
    root_.fail("'roofline-enabled' needs 'local-mem-bw' and 'peak-perf'");
  }

  void read_others() {
    if (root_.integer_or("model-shared-bus", 0, 0, kMost) == 1)
      root_.at("model-shared-bus")
          .fail("the shared memory bus of ASTRA-sim has no counterpart here",
                "without it, 'endpoint-delay' is the time between memory and network");
    const auto ignore = [&](std::string_view key, const char* why) {
      if (const auto value = root_.find(key))
        warn_leniently(notices_, Leniency::ignored, fmt::format("'{}', {}", key, why),
                       value->where());
    };
    for (const std::string_view key : kIgnoredKeys) ignore(key, "which ASTRA-sim ignores too");
    for (const std::string_view key : kBusKeys)
      ignore(key, "which means something with a shared memory bus only");
    for (const std::string_view key : kOutputKeys) ignore(key, "an output of ASTRA-sim");
  }

  static constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  static constexpr std::int64_t kMostChunks = 1'000'000;
  JsonValue root_;
  Diagnostics& notices_;
  AstraSystem system_;
};

}  // namespace

AstraSystem read_astra_system(std::string_view text, const std::string& file,
                              Diagnostics& notices) {
  const JsonText json(text, file);
  return SystemReader(json.root(), notices).read();
}

}  // namespace hemiola::workload

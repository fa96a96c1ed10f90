// Traffic that nobody recorded: files, and the writes of peers.
#include "study/profiles/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "core/lists.h"
#include "core/random.h"
#include "core/units.h"
#include "study/support/yaml_file.h"

namespace hemiola::study {
namespace {

struct PatternName {
  TrafficPattern pattern;
  std::string_view name;
};
constexpr PatternName kPatterns[] = {
    {TrafficPattern::constant, "constant"}, {TrafficPattern::burst, "burst"},
    {TrafficPattern::poisson, "poisson"},   {TrafficPattern::jitter, "jitter"},
    {TrafficPattern::incast, "incast"},     {TrafficPattern::straggler, "straggler"}};
constexpr std::int64_t kMostWrites = 10'000'000;  // of one flow

// --- Files.

class TrafficReader : YamlFile {
 public:
  TrafficReader(std::string file, int ranks) : YamlFile(std::move(file)), ranks_(ranks) {}

  Traffic read(std::string_view text) {
    const YAML::Node root = load(text);
    allow_keys(root, {"seed", "traffic"});
    traffic_.seed = static_cast<std::uint64_t>(count(root, "seed", 1, 0, INT64_MAX));
    const YAML::Node flows = member(root, "traffic");
    if (!flows.IsSequence() || flows.size() == 0) fail(flows, "'traffic' must be a list of flows");
    for (std::size_t f = 0; f < flows.size(); ++f) {
      number_ = f;
      node_.reset(flows[f]);
      traffic_.flows.push_back(read_flow());
    }
    return std::move(traffic_);
  }

 private:
  [[noreturn]] void refuse(const std::string& key, const std::string& message,
                           const std::string& hint = {}) const {
    const YAML::Node place = node_[key] ? node_[key] : node_;
    SourceLocation where = at(place);
    where.pointer = fmt::format("/traffic/{}", number_) + (node_[key] ? "/" + key : "");
    throw Failure(message, where, hint);
  }
  template <typename Value, typename Parse>
  Value value(const std::string& key, Value otherwise, const char* example, Parse parse) const {
    if (!node_[key]) return otherwise;
    const auto read = node_[key].IsScalar() ? parse(node_[key].Scalar()) : std::nullopt;
    if (!read)
      refuse(key, fmt::format("'{}' is not as it should be", key),
             fmt::format("as in {}", example));
    return *read;
  }
  Time time(const std::string& key) const { return value(key, Time{}, "500 ns", parse_time); }
  std::int64_t number(const std::string& key, std::int64_t otherwise, std::int64_t least,
                      std::int64_t most) const {
    const auto parse = [&](const std::string& text) -> std::optional<std::int64_t> {
      const auto count = parse_count(text);
      return count && *count >= least && *count <= most ? std::optional<std::int64_t>(*count)
                                                        : std::nullopt;
    };
    if (!node_[key]) return otherwise;
    const auto read = node_[key].IsScalar() ? parse(node_[key].Scalar()) : std::nullopt;
    if (!read) refuse(key, fmt::format("'{}' must be a number from {} to {}", key, least, most));
    return *read;
  }
  std::int64_t bytes(const std::string& key, std::int64_t otherwise, std::int64_t least) const {
    const Bytes read = value(key, Bytes{otherwise}, "4 KiB", [](const std::string& text) {
      return parse_bytes(parse_count(text) ? text + " B" : text);
    });
    if (read.count < least) refuse(key, fmt::format("'{}' must be at least {} B", key, least));
    return read.count;
  }

  TrafficFlow read_flow() const {
    allow_keys(node_, {"peer", "peers", "to", "pattern", "interval", "rate", "start", "count",
                       "burst", "jitter", "delay", "size", "buffer", "offset", "span", "value"});
    TrafficFlow flow;
    flow.to = static_cast<int>(number("to", 0, 0, ranks_ - 1));
    flow.peers = read_peers(flow.to);
    const std::string pattern = text(node_, "pattern", "constant");
    const auto* const known = std::ranges::find(kPatterns, pattern, &PatternName::name);
    if (known == std::end(kPatterns)) {
      const std::vector<std::string> names = names_of(kPatterns);
      refuse("pattern", fmt::format("there is no pattern '{}'", pattern),
             suggest(pattern, names, "one of " + joined(names)));
    }
    flow.pattern = known->pattern;
    flow.size = bytes("size", 128, 1);
    flow.burst = number("burst", flow.pattern == TrafficPattern::burst ? 16 : 1, 1, kMostWrites);
    flow.count = number("count", 1, 1, kMostWrites);
    flow.start = time("start");
    flow.jitter = time("jitter");
    flow.delay = time("delay");
    read_interval(flow);
    belongs(flow, "burst", TrafficPattern::burst, flow.burst > 1);
    belongs(flow, "jitter", TrafficPattern::jitter, flow.jitter.fs > 0);
    belongs(flow, "delay", TrafficPattern::straggler, flow.delay.fs > 0);
    flow.buffer = text(node_, "buffer", std::string(sim::kWholeMemory));
    flow.offset = bytes("offset", 0, 0);
    flow.span = bytes("span", flow.size, 1);
    flow.value = number("value", 1, 0, INT64_MAX);
    if (flow.span < flow.size) refuse("span", "the writes go round in less than one of them");
    const __int128 last = static_cast<__int128>(flow.start.fs) +
                          static_cast<__int128>(flow.interval.fs) * 64 * flow.count;
    if (last > INT64_MAX / 8) refuse("count", "these writes end too late", "within 20 s");
    return flow;
  }

  void belongs(const TrafficFlow& flow, const char* key, TrafficPattern pattern, bool given) const {
    if (given == (flow.pattern == pattern)) return;
    if (given)
      refuse(key, fmt::format("'{}' belongs to another pattern", key),
             fmt::format("pattern: {}", name_of(pattern)));
    refuse("pattern", fmt::format("this pattern needs '{}'", key));
  }
  static std::string_view name_of(TrafficPattern pattern) {
    return std::ranges::find(kPatterns, pattern, &PatternName::pattern)->name;
  }

  void read_interval(TrafficFlow& flow) const {
    if (node_["interval"] && node_["rate"]) refuse("rate", "'interval' says that, too");
    if (node_["rate"]) {
      const Rate rate = value("rate", Rate{}, "10 GB/s", parse_rate);
      if (rate.is_ideal() || rate.bytes_per_second < 1) refuse("rate", "this is no rate of writes");
      flow.interval = rate.time_for(flow.size * flow.burst);
    } else {
      flow.interval = time("interval");
    }
    if (flow.count > 1 && flow.interval.fs < 1)
      refuse("interval", "several writes need an interval, or a rate", "interval: 100 ns");
  }

  std::vector<int> read_peers(int to) const {
    if (node_["peer"] && node_["peers"]) refuse("peers", "'peer' says that, too");
    std::vector<int> peers;
    if (node_["peer"]) {
      peers = {static_cast<int>(number("peer", 0, 0, ranks_ - 1))};
    } else if (text(node_, "peers", "all") == "all") {
      for (int rank = 0; rank < ranks_; ++rank)
        if (rank != to) peers.push_back(rank);
    } else if (parse_count(text(node_, "peers", ""))) {
      peers = {static_cast<int>(number("peers", 0, 0, ranks_ - 1))};
    } else {
      const std::string list = text(node_, "peers", "");
      try {
        peers = read_ranks(list, at(node_["peers"]));
      } catch (const Failure&) {
        refuse("peers", fmt::format("'{}' is no list of ranks", list), "1,2,5-7, or all");
      }
    }
    std::ranges::sort(peers);
    const std::string key = node_["peer"] ? "peer" : "peers";
    for (std::size_t p = 0; p < peers.size(); ++p)
      if (peers[p] >= ranks_ || peers[p] == to || (p > 0 && peers[p] == peers[p - 1]))
        refuse(key, fmt::format("rank {} does not write to rank {} of {}", peers[p], to, ranks_));
    if (peers.empty()) refuse(key, "no peer writes");
    return peers;
  }

  const int ranks_;
  std::size_t number_ = 0;
  YAML::Node node_;
  Traffic traffic_;
};

// --- Writes.

/// Integers only, so that all hosts draw the same.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    const std::uint64_t drawn = splitmix64(state_);
    state_ += kSplitMixStep;
    return drawn;
  }
  /// Uniform in [0, below); 0 if that is empty.
  std::int64_t below(std::int64_t below) {
    if (below < 1) return 0;
    return static_cast<std::int64_t>(
        static_cast<unsigned __int128>(next()) * static_cast<std::uint64_t>(below) >> 64);
  }
  /// Exponential of that mean, by comparing uniform numbers (von Neumann 1951): no logarithm whose
  /// last digit depends on a library. At most 64 means.
  std::int64_t exponential(std::int64_t mean) {
    for (std::int64_t whole = 0; whole < 63; ++whole) {
      const std::uint64_t first = next();
      std::uint64_t previous = first;
      int length = 1;
      for (std::uint64_t drawn = next(); drawn < previous; drawn = next()) {
        previous = drawn;
        ++length;
      }
      if (length % 2 == 0) continue;
      return whole * mean +
             static_cast<std::int64_t>(
                 static_cast<unsigned __int128>(first) * static_cast<std::uint64_t>(mean) >> 64);
    }
    return 63 * mean;
  }

 private:
  std::uint64_t state_;
};

std::uint64_t mixed(std::uint64_t seed, std::uint64_t flow, std::uint64_t peer) {
  Random first(seed);
  Random second(first.next() ^ flow);
  Random third(second.next() ^ peer);
  return third.next();
}

void add_flow(sim::Profile& profile, const Traffic& traffic, std::size_t number, int peer) {
  const TrafficFlow& flow = traffic.flows[number];
  Random random(mixed(traffic.seed, number, static_cast<std::uint64_t>(peer)));
  Random late(mixed(traffic.seed, number, UINT64_MAX));  // the same for all peers
  Time at = flow.start;
  const bool together =
      flow.pattern == TrafficPattern::incast || flow.pattern == TrafficPattern::straggler;
  if (!together && flow.pattern != TrafficPattern::poisson) at.fs += random.below(flow.interval.fs);
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < flow.count; ++i) {
    Time time = at;
    if (flow.pattern == TrafficPattern::poisson) {
      at.fs += random.exponential(flow.interval.fs);
      time = at;
    } else {
      at += flow.interval;
    }
    if (flow.pattern == TrafficPattern::jitter) time.fs += random.below(flow.jitter.fs);
    if (flow.pattern == TrafficPattern::straggler &&
        flow.peers[static_cast<std::size_t>(late.below(std::ssize(flow.peers)))] == peer)
      time += flow.delay;
    for (std::int64_t b = 0; b < flow.burst; ++b) {
      sim::register_write(profile, peer, flow.to, time, flow.buffer, flow.offset + offset,
                          flow.value, flow.size);
      offset += flow.size;
      if (offset + flow.size > flow.span) offset = 0;
    }
  }
}

}  // namespace

Traffic read_traffic(std::string_view text, const std::string& file, int ranks) {
  return TrafficReader(file, ranks).read(text);
}

std::vector<int> peers_of(const Traffic& traffic) {
  std::set<int> peers;
  for (const TrafficFlow& flow : traffic.flows) peers.insert(flow.peers.begin(), flow.peers.end());
  return {peers.begin(), peers.end()};
}

void add_traffic(sim::Profile& profile, const Traffic& traffic, int peer) {
  for (std::size_t f = 0; f < traffic.flows.size(); ++f) {
    for (const int p : traffic.flows[f].peers)
      if (peer < 0 || p == peer) add_flow(profile, traffic, f, p);
  }
  // What was read from a file comes first, and knows its places.
  if (!profile.places.empty()) profile.places.resize(profile.rows.size(), "a flow of traffic");
  profile = sim::in_order(std::move(profile));
}

}  // namespace hemiola::study

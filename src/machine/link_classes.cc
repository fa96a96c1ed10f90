#include "machine/link_classes.h"

#include <algorithm>
#include <unordered_map>

#include "core/lists.h"
#include "machine/fabric_parameters.h"

namespace hemiola::machine {
namespace {

/// For each draft the most links that leave one xpu; 0 where none does.
std::vector<std::int64_t> links_per_gpu(const std::vector<DraftClass>& drafts,
                                        const Machine& machine) {
  std::vector<std::int64_t> most(drafts.size(), 0);
  std::unordered_map<std::uint64_t, std::int64_t> count;
  for (const Link& link : machine.links) {
    if (machine.nodes[index(link.from)].kind != NodeKind::xpu) continue;
    const auto draft = index(link.link_class);
    const std::uint64_t key =
        (static_cast<std::uint64_t>(draft) << 32) | static_cast<std::uint32_t>(link.from);
    most[draft] = std::max(most[draft], ++count[key]);
  }
  return most;
}

void complete_one(DraftClass& draft, std::int64_t per_gpu, Diagnostics& warnings) {
  const bool has_format = draft.has_max_payload && draft.has_header;
  LinkClass& link = draft.link_class;
  if (draft.has_bandwidth && draft.has_latency && has_format) {
    if (link.assumed) {
      warnings.warning("the numbers of link '" + link.name + "' are assumed, not given",
                       draft.where);
    }
    return;
  }
  const LinkDefault& kind = link_default(link.name, draft.description);
  std::vector<std::string> missing, taken;
  const auto add = [&](const std::string& what, const std::string& value) {
    missing.push_back(what);
    taken.push_back(value);
  };
  if (!draft.has_bandwidth) {
    const bool shared = kind.per_gpu && per_gpu > 1;
    link.bandwidth = shared ? Rate{kind.bandwidth.bytes_per_second / per_gpu} : kind.bandwidth;
    add("bandwidth",
        to_string(link.bandwidth) + (shared ? " (" + to_string(kind.bandwidth) + " per GPU over " +
                                                  std::to_string(per_gpu) + " links)"
                                            : ""));
  }
  if (!draft.has_latency) {
    link.latency = kind.latency;
    add("latency", to_string(link.latency));
  }
  link.assumed = link.assumed || !draft.has_bandwidth || !draft.has_latency;
  if (!draft.has_max_payload) link.max_payload = kind.max_payload;
  if (!draft.has_header) link.header = kind.header;
  if (!has_format) {
    add("packet format", "packets of " + to_string(link.max_payload) + " with " +
                             to_string(link.header) + " of headers");
  }
  warnings.warning("link '" + link.name + "' gives no " + joined(missing) + ": taken as " +
                       std::string(kind.name) + ", " + joined(taken),
                   draft.where,
                   "give 'physical' values or annotate hemiola.bandwidth, hemiola.latency, "
                   "hemiola.max_payload and hemiola.header" +
                       (draft.has_bandwidth ? std::string()
                                            : "; source of the rate: " + std::string(kind.source)));
}

}  // namespace

void DraftClass::annotate(const std::string& key, const std::string& value,
                          const SourceLocation& at) {
  if (key == "link_bandwidth_gbps") {
    link_class.bandwidth = rate_in(value, "Gb/s", at);
    has_bandwidth = true;
  } else if (key == "link_latency_ms") {
    link_class.latency = time_in(value, "ms", at);
    has_latency = true;
  } else if (key == "hemiola.assumed") {
    if (value != "true" && value != "false")
      throw Failure("'" + value + "' is no value for hemiola.assumed", at, "true or false");
    link_class.assumed = value == "true";
  } else if (key == "hemiola.route_latency") {
    const auto latency = parse_time(value);
    if (!latency) throw Failure("'" + value + "' is no latency", at, "a time such as 500 ns");
    link_class.route_latency = *latency;
  } else if (key.starts_with("hemiola.")) {
    const std::string name = key.substr(8);
    set_fabric_parameter(link_class, name, value, "hemiola.", at);
    has_bandwidth = has_bandwidth || name == "bandwidth";
    has_latency = has_latency || name == "latency";
    has_max_payload = has_max_payload || name == "max_payload";
    has_header = has_header || name == "header";
  } else {
    link_class.attributes[key] = value;
  }
}

void complete(std::vector<DraftClass>& drafts, Machine& machine) {
  const std::vector<std::int64_t> per_gpu = links_per_gpu(drafts, machine);
  for (std::size_t i = 0; i < drafts.size(); ++i)
    complete_one(drafts[i], per_gpu[i], machine.warnings);
}

std::string unused_name(const std::vector<DraftClass>& drafts, const std::string& base) {
  const auto taken = [&](const std::string& name) {
    return std::ranges::any_of(
        drafts, [&](const DraftClass& draft) { return draft.link_class.name == name; });
  };
  std::string name = base;
  for (int i = 2; taken(name); ++i) name = base + "-" + std::to_string(i);
  return name;
}

void install(const std::vector<DraftClass>& drafts, Machine& machine) {
  std::vector<std::int32_t> number(drafts.size(), -1);
  std::unordered_map<std::uint64_t, std::int32_t> lanes;
  machine.link_classes.clear();
  for (Link& link : machine.links) {
    std::int32_t& index = number[static_cast<std::size_t>(link.link_class)];
    if (index < 0) {
      index = static_cast<std::int32_t>(machine.link_classes.size());
      machine.link_classes.push_back(drafts[static_cast<std::size_t>(link.link_class)].link_class);
    }
    link.link_class = index;
    const std::uint64_t pair =
        (static_cast<std::uint64_t>(static_cast<std::uint32_t>(link.from)) << 32) |
        static_cast<std::uint32_t>(link.to);
    link.lane = lanes[pair]++;
  }
}

}  // namespace hemiola::machine

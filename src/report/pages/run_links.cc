// Of a run's page: links.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "report/pages/run_blocks.h"
#include "report/values/node_names.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

constexpr std::size_t kMapNodes = 64, kTableLinks = 24;

/// All links from one node to another.
struct PairUse {
  Time busy{};
  std::int64_t lanes = 0, wire_bytes = 0;
};

/// Those with the most bytes where there are too many. Nodes of one kind stand together, in the
/// order of `kinds`.
std::vector<std::string> most_used(std::vector<std::pair<std::string, std::int64_t>> all,
                                   const std::map<std::string, std::size_t>& kinds) {
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.second > b.second; });
  all.resize(std::min(all.size(), kMapNodes));
  std::vector<std::string> names;
  for (const auto& [name, bytes] : all) names.push_back(name);
  const auto place = [&](const std::string& name) {
    auto [kind, numbers] = parts_of_name(name);
    return std::pair(kinds.at(kind), std::move(numbers));
  };
  std::ranges::stable_sort(
      names, [&](const std::string& a, const std::string& b) { return place(a) < place(b); });
  return names;
}

void count_bytes(std::vector<std::pair<std::string, std::int64_t>>& all,
                 std::map<std::string, std::size_t>& places, const std::string& name,
                 std::int64_t bytes) {
  const auto [found, is_new] = places.emplace(name, all.size());
  if (is_new) all.emplace_back(name, 0);
  all[found->second].second += bytes;
}

double share(Time busy, std::int64_t lanes, const sim::Result& result, int repetitions) {
  const double whole = result.time.ns() * static_cast<double>(lanes) * repetitions;
  return whole > 0 ? std::min(100.0, 100 * busy.ns() / whole) : 0;
}

page::HeatMap busy_map(const sim::Result& result, int repetitions, std::size_t prefix) {
  std::vector<std::pair<std::string, std::int64_t>> froms, tos;
  std::map<std::string, std::size_t> from_places, to_places;
  std::map<std::pair<std::string, std::string>, PairUse> pairs;
  std::map<std::string, std::size_t> kinds;
  for (const sim::LinkUse& link : result.links) {
    for (const std::string* name : {&link.from, &link.to})
      kinds.emplace(parts_of_name(*name).first, kinds.size());
    count_bytes(froms, from_places, link.from, link.wire_bytes);
    count_bytes(tos, to_places, link.to, link.wire_bytes);
    PairUse& pair = pairs[{link.from, link.to}];
    pair.busy += link.busy;
    pair.wire_bytes += link.wire_bytes;
    ++pair.lanes;
  }
  page::HeatMap map{"How busy the links are",
                    "Share of the time in which a link sends; parallel links that carried "
                    "something in the mean. Empty: no such link, or it carried nothing.",
                    "from",
                    "to",
                    "%",
                    most_used(froms, kinds),
                    most_used(tos, kinds),
                    {}};
  if (froms.size() > kMapNodes || tos.size() > kMapNodes)
    map.note += fmt::format(" Of {} and {} nodes, the {} that send or receive most.", froms.size(),
                            tos.size(), kMapNodes);
  for (const std::string& from : map.rows) {
    std::vector<std::optional<double>>& row = map.values.emplace_back();
    for (const std::string& to : map.columns) {
      const auto found = pairs.find({from, to});
      if (found == pairs.end())
        row.emplace_back();
      else
        row.emplace_back(share(found->second.busy, found->second.lanes, result, repetitions));
    }
  }
  for (std::vector<std::string>* names : {&map.rows, &map.columns})
    for (std::string& name : *names) name = name.substr(prefix);
  return map;
}

page::Table busiest_links(const sim::Result& result, int repetitions, std::size_t prefix) {
  std::vector<const sim::LinkUse*> order;
  for (const sim::LinkUse& link : result.links) order.push_back(&link);
  std::ranges::stable_sort(
      order, [](const sim::LinkUse* a, const sim::LinkUse* b) { return a->busy > b->busy; });
  page::Table table{"The busiest links",
                    fmt::format("{} of {} that carried something.",
                                std::min(kTableLinks, order.size()), order.size()),
                    {{"from"},
                     {"to"},
                     {"lane", true},
                     {"class"},
                     {"payload (B)", true},
                     {"on the wire (B)", true},
                     {"busy (us)", true},
                     {"busy (%)", true},
                     {"longest queue", true}},
                    {}};
  if (repetitions > 1)
    table.note += fmt::format(" Bytes and times are those of {} repetitions.", repetitions);
  order.resize(std::min(kTableLinks, order.size()));
  for (const sim::LinkUse* link : order) {
    table.rows.push_back(
        {link->from.substr(prefix), link->to.substr(prefix), std::to_string(link->lane),
         link->link_class, std::to_string(link->payload_bytes), std::to_string(link->wire_bytes),
         table_us(link->busy), fmt::format("{:.1f}", share(link->busy, 1, result, repetitions)),
         std::to_string(link->max_queue)});
  }
  return table;
}

}  // namespace

std::vector<page::Block> link_blocks(const sim::Result& result, int repetitions) {
  if (result.links.empty()) return {};
  std::vector<std::string> names;
  for (const sim::LinkUse& link : result.links) {
    names.push_back(link.from);
    names.push_back(link.to);
  }
  const std::size_t prefix = common_prefix(names);
  return {busy_map(result, repetitions, prefix), busiest_links(result, repetitions, prefix)};
}

}  // namespace hemiola::report

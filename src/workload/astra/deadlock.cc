// What ranks wait for in the ASTRA-sim model when nothing can happen any more.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/index.h"
#include "core/units.h"
#include "workload/astra/ranks.h"

namespace hemiola::workload::astra {
namespace {

/// More waits than this are counted, not listed.
constexpr std::size_t kListed = 10;

/// "rank 3", "ranks 0-2, 4": of rising numbers.
std::string ranks_text(const std::vector<int>& ranks) {
  std::string list;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (!list.empty()) list += ", ";
    list += std::to_string(ranks[i]);
    if (end > i + 1) list += fmt::format("{}{}", end == i + 2 ? ", " : "-", ranks[end - 1]);
    i = end;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + list;
}

/// Nodes that wait for each other, by index; each for the next one, the last for the first.
std::vector<std::uint32_t> cycle_in(const Order& order, const std::vector<bool>& over) {
  std::vector<std::vector<std::uint32_t>> needs(over.size());
  for (std::uint32_t n = 0; n < over.size(); ++n) {
    if (over[n]) continue;
    for (const std::uint32_t follower : order.followers.of(n)) needs[follower].push_back(n);
  }
  std::vector<std::uint32_t> way;
  std::vector<bool> seen(over.size());
  std::uint32_t at = 0;
  while (over[at]) ++at;
  while (!seen[at]) {
    seen[at] = true;
    way.push_back(at);
    if (needs[at].empty()) return {};
    at = needs[at].front();
  }
  return {std::ranges::find(way, at), way.end()};
}

}  // namespace

std::string Ranks::where(std::uint32_t rank, std::uint32_t node) const {
  const Node& what = node_of(rank, node);
  return fmt::format("node {} '{}'", what.id, workload_.names[what.name]);
}

void Ranks::fail_deadlock() const {
  std::map<std::pair<std::string, std::string>, std::vector<int>> waits;  // node, why: ranks
  std::vector<int> stuck;
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = ranks_[r];
    if (rank.left == 0) continue;
    stuck.push_back(static_cast<int>(r));
    for (const auto& [node, issued] : rank.under_way) {
      const Node& what = node_of(r, node);
      std::string why;
      if (what.kind == NodeKind::collective) {
        const CollectiveCall& call = workload_.collectives[index(what.work)];
        const Unfinished waiting = collectives_.unfinished(r, what.work);
        why = waiting.absent.empty()
                  ? "the ranks of its group have their chunks in different orders"
                  : fmt::format("{} {} not join this {} of {}", ranks_text(waiting.absent),
                                waiting.absent.size() == 1 ? "does" : "do", name_of(call.kind),
                                to_string(Bytes{call.bytes}));
      } else if (what.kind == NodeKind::receive) {
        const Message& message = workload_.messages[index(what.work)];
        why = fmt::format("rank {} sends it no message of {} with tag {}",
                          peer_of(r, message, false), to_string(Bytes{message.bytes}), message.tag);
      }
      waits[{where(r, node), why}].push_back(static_cast<int>(r));
    }
    if (!rank.under_way.empty()) continue;
    std::vector<bool> over(rank.waiting.size());
    for (std::size_t n = 0; n < over.size(); ++n) over[n] = rank.waiting[n] == ~std::uint32_t{0};
    const std::vector<std::uint32_t> cycle = cycle_in(*rank.order, over);
    if (cycle.empty()) continue;
    std::string names;
    for (std::size_t i = 1; i < cycle.size(); ++i)
      names += fmt::format("{}{}", i > 1 ? ", that for " : "", where(r, cycle[i]));
    waits[{where(r, cycle.front()), fmt::format("it waits for {}, and that for it", names)}]
        .push_back(static_cast<int>(r));
  }
  Diagnostics list;
  for (const auto& [what, ranks] : waits) {
    if (list.items().size() == kListed) {
      list.error(fmt::format("{} other waits do not end", waits.size() - kListed));
      break;
    }
    list.error(fmt::format("{} {} for ever in {}: {}", ranks_text(ranks),
                           ranks.size() == 1 ? "waits" : "wait", what.first, what.second),
               {.file = workload_.source});
  }
  if (list.empty())
    list.error(fmt::format("{} of the ASTRA-sim model {} not finish", ranks_text(stuck),
                           stuck.size() == 1 ? "does" : "do"),
               {.file = workload_.source});
  throw Failure(std::move(list), ExitCode::deadlock);
}

}  // namespace hemiola::workload::astra

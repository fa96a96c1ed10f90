#include "plan/waves.h"

#include <algorithm>
#include <map>

#include "core/index.h"

namespace hemiola::plan {
Timeline::Timeline(const Plan& plan) {
  // Transfers are nodes, in the order of ranks, streams and numbers; edges come from dependencies.
  std::size_t count = 0;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    std::vector<std::size_t>& firsts = first_.emplace_back();
    for (const Stream& stream : plan.code(rank).streams) {
      firsts.push_back(count);
      count += index(count_transfers(stream));
    }
  }
  struct Edge {
    std::size_t from, to;
  };
  std::vector<Edge> edges;
  std::vector<std::int32_t> waits_for(count, 0);
  std::vector<std::size_t> next(count, SIZE_MAX);  // in its stream
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const std::vector<Stream>& streams = plan.code(rank).streams;
    for (std::size_t s = 0; s < streams.size(); ++s) {
      const std::size_t first = first_[index(rank)][s];
      std::size_t node = first;
      for_each_transfer(streams[s], rank, [&](const Transfer& transfer, const Indices& at) {
        if (node > first) {
          next[node - 1] = node;
          ++waits_for[node];
        }
        for (const Dependency& dependency : transfer.after) {
          if (!dependency.on_transfer()) continue;
          const std::size_t from = first_[index(dependency.rank(at))][index(dependency.stream)] +
                                   index(dependency.transfer(at));
          edges.push_back({from, node});
          ++waits_for[node];
        }
        ++node;
      });
    }
  }
  // Edges by their origin.
  std::vector<std::size_t> begin(count + 1, 0), targets(edges.size());
  for (const Edge& edge : edges) ++begin[edge.from + 1];
  for (std::size_t node = 0; node < count; ++node) begin[node + 1] += begin[node];
  std::vector<std::size_t> fill(begin.begin(), begin.end() - 1);
  for (const Edge& edge : edges) targets[fill[edge.from]++] = edge.to;

  start_.assign(count, 0);
  std::vector<std::size_t> ready;
  for (std::size_t node = 0; node < count; ++node)
    if (waits_for[node] == 0) ready.push_back(node);
  std::size_t done = 0;
  while (!ready.empty()) {
    const std::size_t node = ready.back();
    ready.pop_back();
    ++done;
    const auto release = [&](std::size_t other) {
      start_[other] = std::max(start_[other], start_[node] + 1);
      if (--waits_for[other] == 0) ready.push_back(other);
    };
    if (next[node] != SIZE_MAX) release(next[node]);
    for (std::size_t e = begin[node]; e < begin[node + 1]; ++e) release(targets[e]);
  }
  if (done == count) return;

  // Going back from any transfer that never started to one it waits for, again and again, ends in a
  // circle.
  const auto before = [&](std::size_t node) {
    if (node > 0 && next[node - 1] == node && waits_for[node - 1] > 0) return node - 1;
    for (const Edge& edge : edges) {
      if (edge.to == node && waits_for[edge.from] > 0) return edge.from;
    }
    return node;
  };
  std::size_t at = 0;
  while (waits_for[at] == 0) ++at;
  std::map<std::size_t, std::size_t> seen;
  std::vector<std::size_t> way;
  while (seen.emplace(at, way.size()).second) {
    way.push_back(at);
    at = before(at);
  }
  std::string circle;
  for (std::size_t i = seen[at]; i < way.size(); ++i) {
    for (int rank = 0; rank < plan.ranks; ++rank) {
      for (std::size_t s = first_[index(rank)].size(); s-- > 0;) {
        const std::size_t first = first_[index(rank)][s];
        if (way[i] < first || way[i] >= first + index(count_transfers(plan.code(rank).streams[s])))
          continue;
        circle += (circle.empty() ? "" : ", which waits for ") + std::string("transfer ") +
                  std::to_string(way[i] - first) + " of stream " + std::to_string(s) + " of rank " +
                  std::to_string(rank);
      }
    }
  }
  throw Failure("plan '" + plan.name + "': transfers wait for each other: " + circle +
                    ", which waits for the first of these",
                {}, "leave out one of the dependencies", ExitCode::deadlock);
}

std::vector<Wave> waves(const Plan& plan, const Timeline& timeline, int rank, std::int32_t tensor) {
  std::map<std::int64_t, std::vector<Touch>> written, read;
  for (int other = 0; other < plan.ranks; ++other) {
    const std::vector<Stream>& streams = plan.code(other).streams;
    for (std::size_t s = 0; s < streams.size(); ++s) {
      std::int64_t number = 0;
      for_each_transfer(streams[s], other, [&](const Transfer& transfer, const Indices& at) {
        const auto stream = static_cast<std::int32_t>(s);
        const std::int64_t step = timeline.start(other, stream, number) + 1;
        const auto member = [&] {
          const std::vector<int>& group = plan.groups[index(transfer.group)];
          return std::ranges::find(group, rank) != group.end();
        };
        const bool grouped = transfer.group >= 0 && transfer.kind != TransferKind::collective;
        const bool from_peer = transfer.kind == TransferKind::pull;
        const bool to_peer = transfer.kind == TransferKind::push;
        const auto is_here = [&](bool at_peer) {
          if (!at_peer) return other == rank;
          return grouped ? member() : transfer.peer(at) == rank;
        };
        if (transfer.destination.tensor == tensor && is_here(to_peer))
          written[step].push_back({evaluate(transfer.destination, at), other, stream, number});
        if (transfer.source.tensor == tensor && is_here(from_peer))
          read[step].push_back({evaluate(transfer.source, at), other, stream, number});
        ++number;
      });
    }
  }
  std::vector<Wave> result;
  if (!written.empty()) {
    Wave first;
    for (Area& area : residents(plan, rank))
      if (area.tensor == tensor) first.touches.push_back({std::move(area), rank, 0, -1});
    if (!first.touches.empty()) result.push_back(std::move(first));
    for (auto& [step, touches] : written) result.push_back({step, std::move(touches)});
    return result;
  }
  Area seen{tensor, {}};
  for (auto& [step, touches] : read) {
    Wave wave{step, {}};
    for (Touch& touch : touches) {
      touch.area = difference(touch.area, seen);
      if (touch.area.rects.empty()) continue;
      seen.rects.insert(seen.rects.end(), touch.area.rects.begin(), touch.area.rects.end());
      wave.touches.push_back(std::move(touch));
    }
    if (!wave.touches.empty()) result.push_back(std::move(wave));
  }
  return result;
}

}  // namespace hemiola::plan

// Requests counted without time: how many of which size, and by path.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "machine/machine.h"
#include "sim/alike/classes.h"
#include "sim/support/index.h"

namespace hemiola::sim {

/// Requests of one size on a link.
struct RequestSize {
  std::int64_t payload = 0;
  std::int64_t packet = 0;  ///< payload of a packet on the wire; 0: the link's own
  bool operator==(const RequestSize&) const = default;
};
class RequestHistogram {
 public:
  void add(RequestSize size, std::int64_t count) {
    for (auto& [known, total] : counts_) {
      if (known == size) {
        total += count;
        return;
      }
    }
    counts_.emplace_back(size, count);
  }
  const std::vector<std::pair<RequestSize, std::int64_t>>& counts() const { return counts_; }

 private:
  std::vector<std::pair<RequestSize, std::int64_t>> counts_;
};

/// How many of the lines [begin, begin + count) take each of `paths` paths.
inline std::vector<std::int64_t> spread(std::int64_t begin, std::int64_t count,
                                        std::int64_t paths) {
  constexpr std::int64_t kBlock = 512;  // select_path() permutes the lines of such a block
  std::vector<std::int64_t> lines(index(paths), 0);
  const std::int64_t end = begin + count;
  for (std::int64_t line = begin; line < end;) {
    if (line % kBlock != 0 || end - line < kBlock) {
      ++lines[index(machine::select_path(line, paths))];
      ++line;
      continue;
    }
    const std::int64_t high = line / kBlock;
    const std::int64_t first = (high ^ (high >> 9) ^ (high >> 18)) * kBlock % paths;
    for (std::int64_t p = 0; p < paths; ++p) lines[index(p)] += kBlock / paths;
    for (std::int64_t rest = 0; rest < kBlock % paths; ++rest)
      ++lines[index((first + rest) % paths)];
    line += kBlock;
  }
  return lines;
}

/// spread(), with what was asked for last kept: a rank sends to each peer in turn from one place.
class Spreads {
 public:
  const std::vector<std::int64_t>& of(std::int64_t begin, std::int64_t count, std::int64_t paths) {
    const auto hash = static_cast<std::uint64_t>(begin) * 0x9E3779B97F4A7C15U +
                      static_cast<std::uint64_t>(count) * 0xC2B2AE3D27D4EB4FU;
    Known& known = known_[index(hash >> 32) % known_.size()];
    if (known.begin != begin || known.count != count || known.paths != paths)
      known = {begin, count, paths, spread(begin, count, paths)};
    return known.lines;
  }

 private:
  struct Known {
    std::int64_t begin = -1, count = 0, paths = 0;
    std::vector<std::int64_t> lines{};
  };
  std::vector<Known> known_{4096};
};

/// What an agent sends from one rank to another, by path.
struct PairRequests {
  /// Requests of one size and their answers, and how many took each path.
  struct Sent {
    RequestSize there, back;
    std::vector<std::int64_t> by_path;
  };
  int from = 0, to = 0;
  PathChoice choice;
  std::vector<Sent> sent{};

  std::vector<std::int64_t>& by_path(RequestSize there, RequestSize back) {
    for (Sent& known : sent)
      if (known.there == there && known.back == back) return known.by_path;
    sent.push_back({there, back, std::vector<std::int64_t>(index(choice.count), 0)});
    return sent.back().by_path;
  }

  /// Of so many lines from this one on.
  void add(std::int64_t line, std::int64_t requests, RequestSize there, RequestSize back,
           Spreads& spreads) {
    std::vector<std::int64_t>& counts = by_path(there, back);
    if (choice.count == 1) {
      counts[0] += requests;
    } else if (requests == 1) {
      ++counts[index(machine::select_path(line, choice.count))];
    } else {
      const std::vector<std::int64_t>& lines = spreads.of(line, requests, choice.count);
      for (std::size_t path = 0; path < lines.size(); ++path) counts[path] += lines[path];
    }
  }

  using Sizes = std::pair<RequestSize, RequestSize>;  ///< of requests and answers
  /// Of instructions that begin inside every `stride`-th line from `first` on: the rest of that
  /// line, whole lines, and the beginning of the line in which the next one begins.
  void add_shifted(std::int64_t first, std::int64_t stride, std::int64_t instructions,
                   const std::array<Sizes, 3>& head_whole_tail, Spreads& spreads) {
    // By path: the lines in which instructions begin, but for the first and behind the last one.
    std::vector<std::int64_t> between(index(choice.count), 0);
    if (choice.count == 1) between[0] = instructions - 1;
    for (std::int64_t i = 1; choice.count > 1 && i < instructions; ++i)
      ++between[index(machine::select_path(first + i * stride, choice.count))];
    const auto add_between = [&](const Sizes& sizes, std::int64_t times) {
      std::vector<std::int64_t>& counts = by_path(sizes.first, sizes.second);
      for (std::size_t path = 0; path < counts.size(); ++path)
        counts[path] += times * between[path];
    };
    const auto& [head, whole, tail] = head_whole_tail;
    add_between(head, 1);
    add(first, 1, head.first, head.second, spreads);
    add_between(tail, 1);
    add(first + instructions * stride, 1, tail.first, tail.second, spreads);
    if (stride == 1) return;
    add(first + 1, instructions * stride - 1, whole.first, whole.second, spreads);
    add_between(whole, -1);
  }
};

}  // namespace hemiola::sim

// An all-to-all in which every pair of ranks exchanges another amount (MPI_Alltoallv), as tokens
// that a router sends to experts do.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostics.h"
#include "core/index.h"
#include "core/lists.h"
#include "core/random.h"
#include "core/units.h"
#include "hemiola/parts/build_plan.h"
#include "plan/templates/families.h"

namespace hemiola::plan {
namespace {

/// How many chunks go from whom to whom, and where they lie: a rank's input is ordered by
/// destination, its output by source, without gaps.
class Counts {
 public:
  /// `count_of(from, to)`: at least 0.
  template <typename CountOf>
  Counts(std::int64_t ranks, const CountOf& count_of)
      : sent_(index(ranks), std::vector<std::int64_t>(index(ranks + 1))), received_(sent_) {
    for (std::size_t from = 0; from < sent_.size(); ++from) {
      for (std::size_t to = 0; to < sent_.size(); ++to) {
        const std::int64_t count = count_of(from, to);
        sent_[from][to + 1] = sent_[from][to] + count;
        received_[to][from + 1] = received_[to][from] + count;
      }
    }
  }

  std::int64_t from_to(std::int64_t from, std::int64_t to) const {
    return sent_before(from, to + 1) - sent_before(from, to);
  }
  /// Chunks in the input of `rank` before those to `destination`; `ranks` for all.
  std::int64_t sent_before(std::int64_t rank, std::int64_t destination) const {
    return sent_[index(rank)][index(destination)];
  }
  /// Chunks in the output of `rank` before those from `source`; `ranks` for all.
  std::int64_t received_before(std::int64_t rank, std::int64_t source) const {
    return received_[index(rank)][index(source)];
  }

 private:
  std::vector<std::vector<std::int64_t>> sent_, received_;  ///< by rank and peer: sums before it
};

Code code_of(const Counts& counts, std::int64_t ranks, std::int64_t rank, bool is_push) {
  constexpr std::int32_t kInput = 0, kOutput = 1;
  const auto sent = [&](std::int64_t from, std::int64_t to) {
    return chunks_of(kInput, constant(counts.sent_before(from, to)), counts.from_to(from, to));
  };
  const auto received = [&](std::int64_t from, std::int64_t to) {
    return chunks_of(kOutput, constant(counts.received_before(to, from)), counts.from_to(from, to));
  };
  Code code;
  Stream stream{"exchange", {}};
  for (std::int64_t distance = 1; distance <= ranks; ++distance) {
    const std::int64_t peer = (rank + distance) % ranks;
    const std::int64_t from = is_push ? rank : peer, to = is_push ? peer : rank;
    if (counts.from_to(from, to) == 0) continue;
    const Region source = sent(from, to), destination = received(from, to);
    stream.items.push_back(peer == rank ? copy(source, destination)
                           : is_push    ? push(constant(peer), source, destination)
                                        : pull(constant(peer), source, destination));
  }
  code.streams.push_back(std::move(stream));
  code.resident.emplace();
  if (const std::int64_t all = counts.sent_before(rank, ranks); all > 0)
    code.resident->push_back(chunks_of(kInput, {}, all));
  for (std::int64_t from = 0; from < ranks; ++from) {
    if (counts.from_to(from, rank) == 0) continue;
    code.expected.push_back(
        {.region = received(from, rank), .of = sent(from, rank), .holder = constant(from)});
  }
  return code;
}

/// From 0 to 2 `mean` chunks for each pair, the own one too, all equally likely.
Counts drawn_counts(const TemplateArguments& arguments) {
  constexpr std::int64_t kMost = 1'000;
  const std::int64_t ranks = arguments.ranks, mean = arguments.number("mean", 1, kMost);
  const std::uint64_t start = splitmix64(static_cast<std::uint64_t>(arguments.number("seed")));
  return {ranks, [&](std::size_t from, std::size_t to) {
            const std::uint64_t drawn =
                splitmix64(start + (from * index(ranks) + to) * kSplitMixStep);
            return static_cast<std::int64_t>(drawn % static_cast<std::uint64_t>(2 * mean + 1));
          }};
}

constexpr std::string_view kDrawn = "drawn";

/// "4/2/1/1": what every rank sends to itself, to the next rank, and so on; or a row for each rank,
/// by destination, with ':' between rows.
Counts given_counts(const TemplateArguments& arguments, const std::string& text) {
  constexpr std::int64_t kMost = 1 << 20;
  const auto fail = [&](const std::string& problem) {
    throw Failure("parameter 'counts' of '" + arguments.name + "' " + problem, kOption,
                  "a row is as 4/2/1/1 and has a number for each rank; with ':' between them there "
                  "is one for each rank");
  };
  const std::size_t ranks = index(arguments.ranks);
  std::vector<std::vector<std::int64_t>> rows;
  for (const std::string& line : split(text, ':')) {
    std::vector<std::int64_t>& row = rows.emplace_back();
    for (const std::string& word : split(line, '/')) {
      const std::optional<std::int64_t> count = parse_count(word);
      if (!count || *count < 0 || *count > kMost)
        fail("has '" + word + "', which is no number of chunks up to " + std::to_string(kMost));
      row.push_back(*count);
    }
    if (row.size() != ranks)
      fail("has a row of " + std::to_string(row.size()) + " numbers for " + std::to_string(ranks) +
           " ranks");
  }
  if (rows.size() != 1 && rows.size() != ranks)
    fail("has " + std::to_string(rows.size()) + " rows for " + std::to_string(ranks) + " ranks");
  return {arguments.ranks, [&](std::size_t from, std::size_t to) {
            return rows.size() == 1 ? rows[0][(to + ranks - from) % ranks] : rows[from][to];
          }};
}

Plan make_all_to_all_uneven(const TemplateArguments& arguments) {
  const std::int64_t ranks = arguments.ranks;
  const std::string& given = arguments.word("counts");
  const bool is_drawn = given == kDrawn;
  const Counts counts = is_drawn ? drawn_counts(arguments) : given_counts(arguments, given);
  std::int64_t most_sent = 1, most_received = 1;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    most_sent = std::max(most_sent, counts.sent_before(rank, ranks));
    most_received = std::max(most_received, counts.received_before(rank, ranks));
  }
  // Of given counts the size is what the rank that sends most has; of drawn ones the mean.
  Plan plan = start_plan(arguments, is_drawn ? ranks * arguments.number("mean") : most_sent);
  plan.tensors = {{"input", Role::input, most_sent}, {"output", Role::output, most_received}};
  std::vector<Code> codes;
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    codes.push_back(code_of(counts, ranks, rank, arguments.word("transfer") == "push"));
  run_codes(plan, std::move(codes));
  return plan;
}

}  // namespace

// Their result is not that of nccl-tests' all-to-all: ranks expect what was drawn for them.
std::vector<TemplateInfo> uneven_templates() {
  return {{"all-to-all/uneven",
           "every pair of ranks exchanges another number of chunks, drawn at random or given",
           {transfer_parameter("push"),
            {"counts",
             std::string(kDrawn),
             {},
             "chunks from whom to whom: 4/2/1/1, or a row for each rank"},
            {"mean", "8", {}, "chunks that a rank sends to another on average: 0 to twice as many"},
            {"seed", "1", {}, "of the numbers of chunks"}},
           make_all_to_all_uneven}};
}

}  // namespace hemiola::plan

#include "study/results/difference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/lists.h"

namespace hemiola::study {
namespace {

std::int64_t magnitude(std::int64_t value) {
  return value < 0 ? -value : value;
}

std::vector<FigureChange> changes(const Figures& a, const Figures& b) {
  std::map<std::string, FigureChange> all;
  for (const auto& [name, value] : a) all[name].a = value;
  for (const auto& [name, value] : b) all[name].b = value;
  std::vector<FigureChange> list;
  for (auto& [name, change] : all) {
    change.name = name;
    list.push_back(change);
  }
  return list;
}

RankChange rank_change(const StoredRank& a, const StoredRank& b) {
  RankChange change{a.rank, b.rank, changes(a.fs, b.fs)};
  std::ranges::stable_sort(change.reasons, [](const FigureChange& x, const FigureChange& y) {
    return magnitude(x.difference()) > magnitude(y.difference());
  });
  return change;
}

/// How much time went elsewhere; double, because it is a sum of up to as many as there are reasons.
double moved(const RankChange& change) {
  return std::accumulate(change.reasons.begin(), change.reasons.end(), 0.0,
                         [](double sum, const FigureChange& reason) {
                           return sum + static_cast<double>(magnitude(reason.difference()));
                         });
}

std::vector<RankChange> rank_changes(const StoredResult& a, const StoredResult& b) {
  std::vector<RankChange> list;
  auto other = b.ranks.begin();
  for (const StoredRank& rank : a.ranks) {  // both in order of their numbers
    while (other != b.ranks.end() && other->rank < rank.rank) ++other;
    if (other == b.ranks.end() || other->rank != rank.rank) continue;
    RankChange change = rank_change(rank, *other);
    if (moved(change) > 0) list.push_back(std::move(change));
  }
  std::ranges::stable_sort(
      list, [](const RankChange& x, const RankChange& y) { return moved(x) > moved(y); });
  return list;
}

std::int64_t time_after(const StoredRank& rank) {
  const auto found = rank.fs.find("finished");
  return found == rank.fs.end() ? 0 : found->second;
}

/// Those that end last, by number.
std::vector<const StoredRank*> latest_ranks(const StoredResult& result) {
  std::int64_t least = INT64_MAX;
  for (const StoredRank& rank : result.ranks) least = std::min(least, time_after(rank));
  std::vector<const StoredRank*> latest;
  for (const StoredRank& rank : result.ranks)
    if (time_after(rank) == least) latest.push_back(&rank);
  return latest;
}

std::optional<RankChange> latest_change(const StoredResult& a, const StoredResult& b) {
  if (a.ranks.empty() || b.ranks.empty()) return std::nullopt;
  const std::vector<const StoredRank*> of_a = latest_ranks(a), of_b = latest_ranks(b);
  for (const StoredRank* rank : of_a) {
    for (const StoredRank* other : of_b)
      if (rank->rank == other->rank) return rank_change(*rank, *other);
  }
  return rank_change(*of_a.front(), *of_b.front());
}

std::vector<LinkChange> link_changes(const StoredResult& a, const StoredResult& b) {
  std::map<std::tuple<std::string, std::string, int>, LinkChange> all;
  const auto at = [&](const StoredLink& link) -> LinkChange& {
    LinkChange& change = all[{link.from, link.to, link.lane}];
    std::tie(change.from, change.to, change.lane) = std::tie(link.from, link.to, link.lane);
    return change;
  };
  for (const StoredLink& link : a.links) {
    at(link).a_busy = link.busy;
    at(link).a_wire_bytes = link.wire_bytes;
  }
  for (const StoredLink& link : b.links) {
    at(link).b_busy = link.busy;
    at(link).b_wire_bytes = link.wire_bytes;
  }
  const auto key = [](const LinkChange& link) {
    return std::pair(magnitude(link.b_busy.fs - link.a_busy.fs),
                     magnitude(link.b_wire_bytes - link.a_wire_bytes));
  };
  std::vector<LinkChange> list;
  for (auto& [name, link] : all)
    if (key(link) != std::pair<std::int64_t, std::int64_t>()) list.push_back(std::move(link));
  std::ranges::stable_sort(
      list, [&](const LinkChange& x, const LinkChange& y) { return key(x) > key(y); });
  return list;
}

std::vector<FigureChange> counter_changes(const StoredResult& a, const StoredResult& b) {
  std::vector<FigureChange> list = changes(a.counters, b.counters);
  std::erase_if(list, [](const FigureChange& change) { return change.difference() == 0; });
  const auto key = [](const FigureChange& change) {
    return std::pair(share(change), magnitude(change.difference()));
  };
  std::ranges::stable_sort(
      list, [&](const FigureChange& x, const FigureChange& y) { return key(x) > key(y); });
  return list;
}

ResultChange change_of(const StoredResult& a, const StoredResult& b) {
  return {.size = a.size,
          .a_settings = a.settings,
          .b_settings = b.settings,
          .a = a.time,
          .b = b.time,
          .a_checked = a.checked,
          .b_checked = b.checked,
          .a_ranks = a.ranks.size(),
          .b_ranks = b.ranks.size(),
          .latest = latest_change(a, b),
          .ranks = rank_changes(a, b),
          .links = link_changes(a, b),
          .counters = counter_changes(a, b)};
}

/// Which result of B stands beside each of A.
class Matches {
 public:
  Matches(const std::vector<StoredResult>& a, const std::vector<StoredResult>& b)
      : a_(a), b_(b), of_a_(a.size()), taken_(b.size()) {
    in_order();
    if_alone([](const StoredResult& result) {
      std::map<std::string, std::string> settings = result.settings;
      settings.erase("program");
      return std::pair(result.size, settings);
    });
    if_alone([](const StoredResult& result) { return result.size; });
  }

  std::optional<std::size_t> of_a(std::size_t i) const { return of_a_[i]; }
  bool taken(std::size_t j) const { return taken_[j]; }

 private:
  void take(std::size_t i, std::size_t j) {
    of_a_[i] = j;
    taken_[j] = true;
  }

  void in_order() {
    using Key = std::pair<Bytes, std::map<std::string, std::string>>;
    std::map<Key, std::vector<std::size_t>> waiting;
    for (std::size_t j = b_.size(); j-- > 0;) waiting[{b_[j].size, b_[j].settings}].push_back(j);
    for (std::size_t i = 0; i < a_.size(); ++i) {
      const auto found = waiting.find({a_[i].size, a_[i].settings});
      if (found == waiting.end() || found->second.empty()) continue;
      take(i, found->second.back());
      found->second.pop_back();
    }
  }

  /// Results whose key nobody else of their file has, whether that one is taken or not: of two
  /// settings against two others nobody says which belongs to which.
  template <typename KeyOf>
  void if_alone(KeyOf key_of) {
    using Key = decltype(key_of(a_.front()));
    std::map<Key, std::pair<std::vector<std::size_t>, std::vector<std::size_t>>> all;
    for (std::size_t i = 0; i < a_.size(); ++i) all[key_of(a_[i])].first.push_back(i);
    for (std::size_t j = 0; j < b_.size(); ++j) all[key_of(b_[j])].second.push_back(j);
    for (const auto& [key, both] : all) {
      if (both.first.size() != 1 || both.second.size() != 1) continue;
      const std::size_t i = both.first.front(), j = both.second.front();
      if (!of_a_[i] && !taken_[j]) take(i, j);
    }
  }

  const std::vector<StoredResult>& a_;
  const std::vector<StoredResult>& b_;
  std::vector<std::optional<std::size_t>> of_a_;
  std::vector<bool> taken_;
};

std::string listed(const std::vector<StoredResult>& results) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> texts;
  for (const StoredResult& result : results) {
    texts.push_back(texts.size() < kMost ? to_text({result.size, result.settings}) : "...");
    if (texts.size() > kMost) break;
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace

std::optional<double> ResultChange::relative() const {
  if (a.fs == 0) return std::nullopt;
  return static_cast<double>(difference().fs) / static_cast<double>(a.fs);
}

bool ResultChange::same() const {
  return difference() == Time{} && ranks.empty() && links.empty() && counters.empty();
}

std::vector<std::string> Difference::unlike() const {
  std::vector<std::string> names;
  if (a.models != b.models) names.emplace_back("models");
  if (a.machine != b.machine) names.emplace_back("machine");
  if (a.program != b.program) names.emplace_back("program");
  if (a.engine != b.engine) names.emplace_back("engine");
  const auto differ = [](const ResultChange& one) { return one.other_ranks(); };
  if (std::ranges::any_of(results, differ)) names.emplace_back("ranks");
  return names;
}

std::string to_text(const std::map<std::string, std::string>& settings) {
  return joined(
      settings, [](const auto& one) { return one.first + '=' + one.second; }, " ");
}

std::string to_text(const Unmatched& one) {
  return to_string(one.size) + (one.settings.empty() ? "" : ", " + to_text(one.settings));
}

double share(const FigureChange& change) {
  const std::int64_t larger = std::max(magnitude(change.a), magnitude(change.b));
  if (larger == 0) return 0;
  return static_cast<double>(magnitude(change.difference())) / static_cast<double>(larger);
}

Difference compare(ResultFile a, ResultFile b) {
  Difference difference;
  const Matches matches(a.results, b.results);
  for (std::size_t i = 0; i < a.results.size(); ++i)
    if (const auto j = matches.of_a(i))
      difference.results.push_back(change_of(a.results[i], b.results[*j]));
    else
      difference.only_a.push_back({a.results[i].size, a.results[i].settings});
  for (std::size_t j = 0; j < b.results.size(); ++j)
    if (!matches.taken(j)) difference.only_b.push_back({b.results[j].size, b.results[j].settings});
  if (difference.results.empty())
    throw Failure(fmt::format("no result has a counterpart in '{}'", b.file), {.file = a.file},
                  fmt::format("results meet by size and settings: here {} | there {}",
                              listed(a.results), listed(b.results)));
  difference.a = std::move(a);
  difference.b = std::move(b);
  difference.a.results.clear();
  difference.b.results.clear();
  return difference;
}

bool Limit::exceeded_by(const ResultChange& change) const {
  constexpr __int128 kWhole = 100'000'000;  // millionths of a percent
  return change.difference().fs * kWhole > static_cast<__int128>(change.a.fs) * millionths;
}

Limit read_limit(std::string_view text, const SourceLocation& where) {
  const auto fail = [&](const std::string& what) {
    throw Failure(fmt::format("'{}' {}", text, what), where, "a limit looks like 2% or 0.5%");
  };
  constexpr int kDecimals = 6;
  constexpr std::int64_t kMost = 1'000'000;  // percent
  std::string digits(text);
  if (digits.empty() || digits.back() != '%') fail("is not a share in percent");
  digits.pop_back();
  while (!digits.empty() && digits.back() == ' ') digits.pop_back();
  if (digits.starts_with('-')) fail("is negative: B may take longer by nothing or more");
  const std::size_t point = std::min(digits.find('.'), digits.size());
  std::string decimals = point < digits.size() ? digits.substr(point + 1) : "0";
  if (decimals.size() > kDecimals) fail("has more than six decimals");
  const auto all_digits = [](const std::string& part) {
    return !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
  };
  const std::string whole = digits.substr(0, point);
  if (!all_digits(whole) || !all_digits(decimals)) fail("is not a share in percent");
  const auto percent = parse_count(whole);
  if (!percent || *percent > kMost) fail(fmt::format("is more than {} %", kMost));
  decimals.resize(kDecimals, '0');
  return {std::string(text), *percent * 1'000'000 + *parse_count(decimals)};
}

}  // namespace hemiola::study

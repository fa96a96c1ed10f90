#include "verify/plans/contributions.h"

#include <algorithm>

namespace hemiola::verify {
namespace {

constexpr std::int32_t kMost = 1 << 30;

void append(std::vector<Contribution>& runs, const Contribution& run) {
  if (!runs.empty()) {
    Contribution& last = runs.back();
    if (last.source == run.source && last.count == run.count &&
        last.first + last.ranks == run.first) {
      last.ranks += run.ranks;
      return;
    }
  }
  runs.push_back(run);
}

/// The rest of a list of runs; `now` is what is left of its first.
struct Rest {
  const std::vector<Contribution>& runs;
  std::size_t next = 0;
  Contribution now{};

  explicit Rest(const std::vector<Contribution>& list) : runs(list) { advance(); }
  bool empty() const { return now.ranks == 0; }
  void advance() { now = next < runs.size() ? runs[next++] : Contribution{}; }
  void drop(std::int32_t ranks) {
    now.first += ranks;
    now.ranks -= ranks;
    if (now.ranks == 0) advance();
  }
};

}  // namespace

std::vector<Contribution> Contributions::runs() const {
  if (many_ != nullptr) return *many_;
  return only_.ranks > 0 ? std::vector<Contribution>{only_} : std::vector<Contribution>{};
}

Contributions Contributions::sum(const Contributions& x, const Contributions& y) {
  const std::vector<Contribution> x_runs = x.runs(), y_runs = y.runs();
  std::vector<Contribution> result;
  Rest a(x_runs), b(y_runs);
  while (!a.empty() && !b.empty()) {
    Rest& low =
        a.now.source < b.now.source || (a.now.source == b.now.source && a.now.first <= b.now.first)
            ? a
            : b;
    Rest& high = &low == &a ? b : a;
    Contribution run = low.now;
    if (low.now.source == high.now.source) {
      if (low.now.first == high.now.first) {
        run.ranks = std::min(low.now.ranks, high.now.ranks);
        run.count = std::min(kMost, low.now.count + high.now.count);
        append(result, run);
        low.drop(run.ranks);
        high.drop(run.ranks);
        continue;
      }
      run.ranks = std::min(low.now.ranks, high.now.first - low.now.first);
    }
    append(result, run);
    low.drop(run.ranks);
  }
  for (Rest* rest : {&a, &b})
    for (; !rest->empty(); rest->advance()) append(result, rest->now);
  if (result.size() == 1) return Contributions(result.front());
  Contributions sum;
  sum.many_ = std::make_shared<const std::vector<Contribution>>(std::move(result));
  return sum;
}

}  // namespace hemiola::verify

#include "plan/launches.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/index.h"
#include "plan/area.h"
#include "plan/tiles.h"

namespace hemiola::plan {

LaunchOrder::LaunchOrder(const Code& code)
    : before_(code.computes.size()), done_(code.computes.size()) {
  find_streams(code);
  for (std::size_t c = 0; c < code.computes.size(); ++c) {
    for (const Dependency& dependency : code.computes[c].after) {
      if (!dependency.compute) continue;
      const std::int64_t other = (*dependency.compute)({});
      if (other >= 0 && other < std::ssize(code.computes))
        before_[c].push_back(static_cast<std::int32_t>(other));
    }
    std::ranges::sort(before_[c]);
    before_[c].erase(std::unique(before_[c].begin(), before_[c].end()), before_[c].end());
  }
  std::vector<std::int32_t> path;
  for (std::size_t c = 0; c < code.computes.size() && circle_.empty(); ++c)
    if (code.computes[c].is_launch()) visit(static_cast<std::int32_t>(c), path);
}

void LaunchOrder::find_streams(const Code& code) {
  std::map<std::string, std::size_t> named;
  for (std::size_t c = 0; c < code.computes.size(); ++c) {
    const Compute& compute = code.computes[c];
    if (!compute.is_launch()) continue;
    std::size_t stream = streams_.size();
    if (!compute.stream.empty()) stream = named.try_emplace(compute.stream, stream).first->second;
    if (stream == streams_.size()) streams_.emplace_back();
    if (!streams_[stream].empty()) before_[c].push_back(streams_[stream].back());
    streams_[stream].push_back(static_cast<std::int32_t>(c));
  }
}

void LaunchOrder::visit(std::int32_t launch, std::vector<std::int32_t>& path) {
  if (done_[index(launch)] != 0 || !circle_.empty()) return;
  const auto again = std::ranges::find(path, launch);
  if (again != path.end()) {
    circle_.assign(again, path.end());
    return;
  }
  path.push_back(launch);
  for (const std::int32_t other : before_[index(launch)]) visit(other, path);
  path.pop_back();
  done_[index(launch)] = 1;
  sorted_.push_back(launch);
}

bool LaunchOrder::is_before(std::int32_t earlier, std::int32_t later) const {
  std::vector<std::int32_t> open{later};
  std::set<std::int32_t> seen;
  while (!open.empty()) {
    const std::int32_t launch = open.back();
    open.pop_back();
    for (const std::int32_t other : before_[index(launch)]) {
      if (other == earlier) return true;
      if (seen.insert(other).second) open.push_back(other);
    }
  }
  return false;
}

bool has_launches(const Plan& plan) {
  return std::ranges::any_of(plan.codes, [](const Code& code) {
    return std::ranges::any_of(code.computes,
                               [](const Compute& compute) { return compute.is_launch(); });
  });
}

namespace {

class LaunchValidator {
 public:
  LaunchValidator(const Plan& plan, int rank, const std::string& source, const std::string& at,
                  const std::vector<std::vector<std::int64_t>>& counts)
      : plan_(plan),
        code_(plan.code(rank)),
        rank_(rank),
        source_(source),
        at_(at),
        counts_(counts),
        order_(code_) {}

  void run() const {
    for (std::size_t c = 0; c < code_.computes.size(); ++c) {
      const std::vector<Dependency>& after = code_.computes[c].after;
      for (std::size_t d = 0; d < after.size(); ++d)
        check_dependency(c, after[d], place(c) + "/after/" + std::to_string(d));
    }
    if (!order_.circle().empty()) fail_with_circle();
    for (std::size_t c = 0; c < code_.computes.size(); ++c) check_additions(c);
  }

 private:
  [[noreturn]] void fail(const std::string& pointer, const std::string& what,
                         const std::string& hint) const {
    throw Failure("plan '" + plan_.name + "': " + what,
                  {.file = source_, .line = 0, .column = 0, .pointer = pointer}, hint);
  }
  std::string place(std::size_t compute) const {
    return at_ + "/computes/" + std::to_string(compute);
  }
  std::string name(std::size_t compute) const {
    return "compute '" + code_.computes[compute].name + "'";
  }

  void check_dependency(std::size_t c, const Dependency& dependency, const std::string& at) const {
    if (dependency.computed)
      fail(at, name(c) + " waits for a region that is computed",
           "name the computes that make it, or the transfers that bring it");
    const Indices here{.rank = rank_};
    const std::int64_t rank = dependency.rank(here);
    if (rank < 0 || rank >= plan_.ranks)
      fail(at + "/rank", name(c) + " depends on rank " + std::to_string(rank),
           "ranks are 0 to " + std::to_string(plan_.ranks - 1));
    if (dependency.compute) {
      check_named(c, (*dependency.compute)(here), rank, at + "/compute");
      return;
    }
    const std::int64_t transfer = dependency.transfer(here);
    const auto& streams = counts_[index(plan_.code_of[index(rank)])];
    if (dependency.stream < 0 || index(dependency.stream) >= streams.size() || transfer < 0 ||
        transfer >= streams[index(dependency.stream)])
      fail(at,
           name(c) + " depends on transfer " + std::to_string(transfer) + " of stream " +
               std::to_string(dependency.stream) + " of rank " + std::to_string(rank) +
               ", which does not exist",
           "streams and transfers are numbered from 0, loops unrolled");
  }

  void check_named(std::size_t c, std::int64_t other, std::int64_t rank,
                   const std::string& at) const {
    if (rank != rank_)
      fail(at,
           name(c) + " of rank " + std::to_string(rank_) + " comes after one of rank " +
               std::to_string(rank),
           "a transfer in between says what comes from another rank");
    if (other < 0 || other >= std::ssize(code_.computes))
      fail(at, name(c) + " comes after compute " + std::to_string(other) + ", which does not exist",
           "the code has " + std::to_string(code_.computes.size()) + ", numbered from 0");
    if (!code_.computes[index(other)].is_launch())
      fail(at, name(c) + " comes after " + name(index(other)) + ", which is no launch of its own",
           "give it a stream: \"stream\": \"compute\"");
  }

  [[noreturn]] void fail_with_circle() const {
    std::string circle;
    for (const std::int32_t launch : order_.circle())
      circle += (circle.empty() ? "" : ", which comes after ") + name(index(launch));
    fail(place(index(order_.circle().front())),
         "computes wait for each other: " + circle + ", which comes after the first of these",
         "those of one stream go in the order of the file; leave out one of their dependencies");
  }

  /// Whoever adds is ordered with all that make some of the same elements.
  void check_additions(std::size_t c) const {
    const Compute& adder = code_.computes[c];
    for (std::size_t o = 0; o < adder.operands.size(); ++o) {
      if (adder.operands[o].use != Use::add) continue;
      for (std::size_t other = 0; other < code_.computes.size(); ++other) {
        if (other == c || !make_the_same(adder, adder.operands[o], code_.computes[other])) continue;
        const auto a = static_cast<std::int32_t>(other), b = static_cast<std::int32_t>(c);
        if (order_.is_before(a, b) || order_.is_before(b, a)) continue;
        fail(place(c) + "/operands/" + std::to_string(o),
             name(c) + " adds to tensor '" + plan_.tensors[index(adder.operands[o].tensor)].name +
                 "' where " + name(other) + " writes, and nothing orders the two",
             "put both on one stream, or name the earlier one in `after`");
      }
    }
  }

  bool make_the_same(const Compute& adder, const ComputeOperand& sum, const Compute& other) const {
    const Area area = operand_area(plan_, sum, whole_box(adder), rank_);
    return std::ranges::any_of(other.operands, [&](const ComputeOperand& operand) {
      return operand.tensor == sum.tensor && makes(operand.use) &&
             overlap(area, operand_area(plan_, operand, whole_box(other), rank_));
    });
  }

  const Plan& plan_;
  const Code& code_;
  int rank_;
  const std::string& source_;
  const std::string& at_;
  const std::vector<std::vector<std::int64_t>>& counts_;
  LaunchOrder order_;
};

}  // namespace

void validate_launches(const Plan& plan, int rank, const std::string& source, const std::string& at,
                       const std::vector<std::vector<std::int64_t>>& counts) {
  LaunchValidator(plan, rank, source, at, counts).run();
}

}  // namespace hemiola::plan

#include "verify/programs/check_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/index.h"
#include "machine/machine.h"
#include "program/jobs/job.h"
#include "program/semantics/occupancy.h"

namespace hemiola::verify {
namespace {

using program::Bound;
using program::JobPart;
using program::Launch;

/// Compute units that a launch's workgroups need to be resident together; 0: those that it has wait
/// for nobody, and end by themselves.
std::int64_t units_needed(const Bound& bound, int own, const machine::GpuModel& model) {
  if (bound.ranks() < 2) return 0;
  std::int64_t most = 0;
  for (const program::Stream& stream : bound.code(own).streams) {
    for (const program::StreamItem& item : stream) {
      if (item.kind != program::StreamItem::Kind::kernel) continue;
      const program::Kernel& kernel = bound.kernels()[index(item.index)];
      if (kernel.bodies.empty()) continue;
      const std::int64_t each =
          program::blocks_per_unit(program::occupancy_of_block(kernel, 0, model), model);
      most = std::max(most, (kernel.block_count() + each - 1) / each);
    }
  }
  return most;
}

class JobCheck {
 public:
  JobCheck(const Bound& bound, const CheckOptions& options)
      : bound_(bound),
        job_(*bound.linked()->job),
        parts_(*bound.linked()->parts),
        options_(options),
        order_(job_, bound.ranks()),
        part_of_(part_of_launches(parts_, job_.launches.size())) {}

  Proof run() {
    for (const JobPart& part : parts_)
      if (!check_part(part)) return std::move(proof_);
    if (!check_residency() || !check_memory()) return std::move(proof_);
    proof_.proven.push_back(
        fmt::format("each of {} launches, {} distinct programs, is right whenever it is called",
                    job_.launches.size(), parts_.size()));
    proof_.proven.emplace_back(
        "launches that wait for peers and may be under way together have room beside each other");
    proof_.proven.emplace_back("launches that share memory of the job come one after the other");
    proof_.summary = fmt::format("{}: {} launches", name_of(proof_.verdict), job_.launches.size());
    return std::move(proof_);
  }

 private:
  const Launch& launch(std::int32_t number) const { return job_.launches[index(number)]; }
  const Bound& bound_of(std::int32_t number) const {
    return parts_[index(part_of_[index(number)])].bound;
  }

  bool check_part(const JobPart& part) {
    const Launch& first = launch(part.launches.front());
    const std::string of = "launch '" + first.name + "'";
    Proof proof = check(part.bound, options_);
    proof_.operations += proof.operations;
    proof_.calls = std::max(proof_.calls, proof.calls);
    proof_.by_place = proof_.by_place || proof.by_place;
    for (const std::string& reason : proof.reasons) proof_.reasons.push_back(of + ": " + reason);
    proof_.warnings.append(proof.warnings);
    if (proof.verdict == Verdict::proven) return true;
    proof_.verdict = proof.verdict;
    if (proof.verdict == Verdict::partial) return true;
    proof_.summary = of + ": " + proof.summary;
    proof_.counterexample = std::move(proof.counterexample);
    return false;
  }

  bool wrong(Verdict verdict, std::string summary, int rank, std::vector<std::int32_t> launches,
             const std::string& text) {
    proof_.verdict = verdict;
    proof_.summary = std::move(summary);
    for (const std::int32_t number : launches) {
      const Launch& of = launch(number);
      proof_.counterexample.push_back({.rank = rank,
                                       .workgroup = -1,
                                       .operation = "launch '" + of.name + "'",
                                       .where = of.where.pointer,
                                       .text = text});
    }
    return false;
  }

  // Workgroups that wait for peers keep their compute units until these have come. If two launches
  // get theirs in another order on another rank, each waits for the other, unless both fit.
  bool check_residency() {
    std::set<std::vector<std::int32_t>> seen;  // ranks that run the same launches
    for (int rank = 0; rank < bound_.ranks(); ++rank) {
      if (!seen.insert(order_.of_rank(rank)).second) continue;
      if (!check_residency_on(rank)) return false;
    }
    return true;
  }

  struct Demand {
    std::int32_t launch;
    std::int64_t units;
    std::int64_t first, last;  ///< units that its stream may use
  };

  std::vector<Demand> demands_on(int rank) const {
    const machine::GpuModel& model = bound_.machine()->model(rank);
    std::vector<Demand> demands;
    for (const std::int32_t number : order_.of_rank(rank)) {
      const Launch& of = launch(number);
      const auto own =
          of.alone ? 0 : static_cast<int>(std::ranges::find(of.ranks, rank) - of.ranks.begin());
      const std::int64_t units = units_needed(bound_of(number), own, model);
      if (units == 0) continue;
      const auto stream = job_.streams.find(of.stream);
      Demand demand{number, units, 0, model.cu_count};
      if (stream != job_.streams.end() && stream->second.units > 0) {
        demand.first = stream->second.first_unit;
        demand.last = demand.first + stream->second.units;
      }
      demands.push_back(demand);
    }
    return demands;
  }

  bool check_residency_on(int rank) {
    const std::vector<Demand> demands = demands_on(rank);
    for (const Demand& demand : demands) {
      if (demand.units > demand.last - demand.first)
        return wrong(
            Verdict::deadlock,
            fmt::format("launch '{}' waits for peers and needs {} compute units at once; "
                        "its stream has {}",
                        launch(demand.launch).name, demand.units, demand.last - demand.first),
            rank, {demand.launch}, "has no room for all of its workgroups");
      // Of every other stream the largest that may be beside it, where they share units.
      std::map<std::string, const Demand*> beside;
      for (const Demand& other : demands) {
        if (other.launch == demand.launch || other.last <= demand.first ||
            demand.last <= other.first || order_.is_before_on(rank, other.launch, demand.launch) ||
            order_.is_before_on(rank, demand.launch, other.launch))
          continue;
        const Demand*& most = beside[launch(other.launch).stream];
        if (most == nullptr || most->units < other.units) most = &other;
      }
      std::int64_t needed = demand.units, first = demand.first, last = demand.last;
      std::vector<std::int32_t> together{demand.launch};
      std::string names = "'" + launch(demand.launch).name + "'";
      for (const auto& [stream, other] : beside) {
        needed += other->units;
        first = std::min(first, other->first);
        last = std::max(last, other->last);
        together.push_back(other->launch);
        names += ", '" + launch(other->launch).name + "'";
      }
      if (needed <= last - first) continue;
      return wrong(
          Verdict::deadlock,
          fmt::format("launches {} may be under way together and wait for peers, and need {} "
                      "compute units of the {} that they share: where ranks start them in another "
                      "order they wait for each other for ever",
                      names, needed, last - first),
          rank, std::move(together), "keeps its compute units until its peers have come");
    }
    return true;
  }

  // Memory with a name in the job: who writes it is alone with it.
  bool check_memory() {
    struct User {
      std::int32_t launch;
      bool writes;
    };
    std::map<std::string, std::vector<User>> users;
    for (std::size_t l = 0; l < job_.launches.size(); ++l) {
      for (const auto& [buffer, name] : job_.launches[l].memory) {
        const auto number = static_cast<std::int32_t>(l);
        for (const program::Buffer& known : bound_of(number).buffers())
          if (known.name == buffer)
            users[name].push_back({number, known.kind == program::BufferKind::output});
      }
    }
    for (const auto& [name, all] : users) {
      for (std::size_t a = 0; a < all.size(); ++a) {
        for (std::size_t b = a + 1; b < all.size(); ++b) {
          if (!(all[a].writes || all[b].writes) || !check_pair(name, all[a].launch, all[b].launch))
            continue;
          return false;
        }
      }
    }
    return true;
  }

  /// Whether they may meet in the memory: true where that was found.
  bool check_pair(const std::string& name, std::int32_t a, std::int32_t b) {
    if (a == b) return false;
    for (const int rank : launch(a).ranks) {
      const std::vector<int>& there = launch(b).ranks;
      if (std::ranges::find(there, rank) == there.end() || order_.is_before_on(rank, a, b) ||
          order_.is_before_on(rank, b, a))
        continue;
      wrong(
          Verdict::wrong,
          fmt::format("launches '{}' and '{}' use the memory '{}' of rank {} in no order, and one "
                      "of them writes it",
                      launch(a).name, launch(b).name, name, rank),
          rank, {a, b}, "uses '" + name + "'; 'after', or a stream in common, orders them");
      return true;
    }
    return false;
  }

  const Bound& bound_;
  const program::Job& job_;
  const std::vector<JobPart>& parts_;
  const CheckOptions& options_;
  program::JobOrder order_;
  std::vector<std::int32_t> part_of_;  ///< by launch
  Proof proof_;
};

}  // namespace

Proof check_job(const program::Bound& job, const CheckOptions& options) {
  return JobCheck(job, options).run();
}

}  // namespace hemiola::verify

#include "study/laboratory/verdicts.h"

#include <algorithm>
#include <utility>

namespace hemiola::study {
namespace {

constexpr std::size_t kMostFamilies = 256;
constexpr std::size_t kMostSizes = 1024;  ///< of a family

/// What it says holds, word by word, at every size of its class.
bool says_no_size(const verify::Proof& proof) {
  return proof.verdict == verify::Verdict::proven && proof.warnings.empty() &&
         proof.reasons.empty();
}

}  // namespace

Verdicts::Family Verdicts::family_of(const program::Bound& bound,
                                     const verify::CheckOptions& options) {
  const auto known = identities_.get(&bound.program(), [&] {
    return std::make_shared<const Known>(bound, identity_of(bound.program()));
  });
  return {known->identity, proof_facts(bound.machine()), bound.type(), bound.op(), options.calls,
          options.fold};
}

Verdicts::Members& Verdicts::members_of(const Family& family) {
  const auto [at, is_new] = families_.try_emplace(family);
  if (!is_new) {
    order_.splice(order_.begin(), order_, at->second.place);
    return at->second;
  }
  order_.push_front(family);
  at->second.place = order_.begin();
  if (families_.size() > kMostFamilies) {
    families_.erase(order_.back());
    order_.pop_back();
  }
  return at->second;
}

// A job is not looked for among those that are known: it is mostly asked about once.
Verdicts::Proof Verdicts::of_job(const program::Bound& bound, const verify::CheckOptions& options) {
  return std::make_shared<const verify::Proof>(verify::check(bound, options));
}

Verdicts::Proof Verdicts::of_size(const program::Bound& bound,
                                  const verify::CheckOptions& options) {
  if (bound.linked() != nullptr) return of_job(bound, options);
  const Family family = family_of(bound, options);
  {
    const Lock lock(mutex_);
    const Members& members = members_of(family);
    if (const auto at = members.by_size.find(bound.size()); at != members.by_size.end())
      return at->second;
  }
  return prove(family, bound, options);
}

Verdicts::Found Verdicts::of_class(const program::Bound& bound,
                                   const verify::CheckOptions& options) {
  if (bound.linked() != nullptr) return {of_job(bound, options), bound.size()};
  const Family family = family_of(bound, options);
  {
    const Lock lock(mutex_);
    const Members& members = members_of(family);
    if (const auto at = members.by_size.find(bound.size()); at != members.by_size.end())
      return {at->second, bound.size()};
  }
  if (const auto found = in_a_class(family, bound.size())) return *found;
  work_out_a_class(family);
  if (const auto found = in_a_class(family, bound.size())) return *found;
  return {prove(family, bound, options), bound.size()};
}

std::optional<Verdicts::Found> Verdicts::in_a_class(const Family& family, Bytes size) {
  const Lock lock(mutex_);
  Members& members = members_of(family);
  const auto holds = [&](const Members::Class& c) { return c.sizes.contains(size); };
  const auto at = std::ranges::find_if(members.classes, holds);
  if (at == members.classes.end()) return std::nullopt;
  ++members.served;
  return at->found;
}

/// Of the size that was proven last: no sooner than another size is asked for, and only as long as
/// classes have saved proofs, since a class may take as long to work out as a proof.
void Verdicts::work_out_a_class(const Family& family) {
  constexpr int kInAdvance = 2;
  std::optional<program::Bound> bound;
  Proof proof;
  {
    const Lock lock(mutex_);
    Members& members = members_of(family);
    if (!members.latest || members.asked >= members.served + kInAdvance) return;
    bound = std::exchange(members.latest, std::nullopt);
    proof = members.by_size.at(bound->size());
    ++members.asked;
  }
  verify::SizeClass sizes = verify::size_class(bound->program(), *bound, *proof);
  const Lock lock(mutex_);
  members_of(family).classes.push_back({std::move(sizes), {proof, bound->size()}});
}

Verdicts::Proof Verdicts::prove(const Family& family, const program::Bound& bound,
                                const verify::CheckOptions& options) {
  auto proof = std::make_shared<const verify::Proof>(verify::check(bound, options));
  const Lock lock(mutex_);
  ++proofs_;
  Members& members = members_of(family);
  if (members.by_size.size() >= kMostSizes) {
    members.by_size.clear();
    members.latest.reset();
  }
  members.by_size.insert_or_assign(bound.size(), proof);
  if (says_no_size(*proof)) members.latest = bound;
  return proof;
}

std::int64_t Verdicts::proofs() const {
  const Lock lock(mutex_);
  return proofs_;
}

void Verdicts::clear() {
  identities_.clear();
  const Lock lock(mutex_);
  families_.clear();
  order_.clear();
}

}  // namespace hemiola::study

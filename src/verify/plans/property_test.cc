// Properties on random inputs: sums of contributions, parts of areas, and verdicts on plans drawn
// transfer by transfer.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "verify/execute.h"
#include "verify/plans/data.h"
#include "verify/testing/interleave.h"
#include "verify/testing/plans.h"
#include "verify/values.h"

namespace hemiola::verify {
namespace {

using plan::Role;
using plan::Transfer;

using Counts = std::map<std::pair<std::int64_t, std::int32_t>, std::int64_t>;  // atom, rank

void count(const std::vector<Term>& terms, Counts& counts) {
  for (const Term& term : terms)
    for (std::int32_t rank = term.source; rank < term.source + term.sources; ++rank)
      counts[{term.delta, rank}] += term.count;
}

RC_GTEST_PROP(ValueTable, sums_count_every_contribution_and_have_one_form, ()) {
  ValueTable values;
  Counts counts, expected;
  std::vector<Value> parts;
  for (int i = *rc::gen::inRange(1, 12); i > 0; --i) {
    const Term term{*rc::gen::inRange(0, 8), *rc::gen::inRange(1, 5), *rc::gen::inRange(0, 3),
                    *rc::gen::inRange(1, 3)};
    parts.push_back(values.of({term}));
    count({term}, expected);
  }
  Value sum = kUndefined, reversed = kUndefined;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    sum = values.sum(sum, parts[i]);
    reversed = values.sum(reversed, parts[parts.size() - 1 - i]);
  }
  count(values.terms(sum), counts);
  RC_ASSERT(counts == expected);
  RC_ASSERT(sum == reversed);
}

RC_GTEST_PROP(Unrolled, parts_of_an_area_are_its_elements_in_order, ()) {
  plan::Plan plan = test::start("parts", 1);
  std::vector<std::int64_t> shape;
  plan::Rect rect;
  for (int axes = *rc::gen::inRange(1, 4); axes > 0; --axes) {
    shape.push_back(*rc::gen::inRange<std::int64_t>(1, 5));
    rect.begin.push_back(*rc::gen::inRange<std::int64_t>(0, shape.back()));
    rect.end.push_back(*rc::gen::inRange<std::int64_t>(rect.begin.back() + 1, shape.back() + 1));
  }
  plan.tensors = {{"x", Role::input, shape, DataType::float32}};
  const plan::Area area{0, {rect}};
  const std::vector<std::int64_t> all = elements(plan, area);
  const auto size = static_cast<std::int64_t>(all.size());
  const auto begin = *rc::gen::inRange<std::int64_t>(0, size + 1);
  const auto count = *rc::gen::inRange<std::int64_t>(0, size - begin + 1);
  const std::vector<std::int64_t> wanted(all.begin() + begin, all.begin() + begin + count);
  RC_ASSERT(elements(plan, part(area, begin, count)) == wanted);
}

plan::Region any_region(std::int32_t tensor, std::int64_t size) {
  const std::int64_t first = *rc::gen::inRange<std::int64_t>(0, 5 - size);
  return plan::chunks_of(tensor, constant(first), size);
}

Transfer any_transfer(int ranks, int rank) {
  const std::int64_t size = *rc::gen::inRange<std::int64_t>(1, 3);
  const auto tensor = [] { return *rc::gen::inRange<std::int32_t>(0, 3); };
  const Affine peer = constant((rank + *rc::gen::inRange(1, ranks)) % ranks);
  const plan::Region from =
      any_region(*rc::gen::weightedElement<std::int32_t>({{4, 0}, {1, 1}}), size);
  const plan::Region to = any_region(tensor(), size);
  Transfer transfer = plan::copy(from, to);
  transfer.kind = *rc::gen::element(plan::TransferKind::push, plan::TransferKind::pull,
                                    plan::TransferKind::copy);
  transfer.peer = transfer.kind == plan::TransferKind::copy ? own_rank() : peer;
  if (*rc::gen::inRange(0, 4) == 0)
    transfer = plan::reducing(transfer, any_region(*rc::gen::inRange<std::int32_t>(0, 2), size));
  return transfer;
}

/// Chunks of an input, an output and a scratch tensor; every rank has a code of its own.
plan::Plan any_plan() {
  const int ranks = *rc::gen::inRange(2, 4);
  plan::Plan plan = test::start("random", ranks);
  plan.tensors = {
      {"input", Role::input, 4},
      {"output", Role::output, 4},
      {"slots", *rc::gen::weightedElement<Role>({{3, Role::scratch}, {1, Role::transit}}), 4}};
  std::vector<std::pair<int, std::int32_t>> streams;
  for (int rank = 0; rank < ranks; ++rank) {
    plan::Code& code = plan.codes.emplace_back();
    plan.code_of.push_back(rank);
    for (int s = *rc::gen::inRange(1, 3); s > 0; --s) {
      plan::Stream& stream = code.streams.emplace_back();
      for (int t = *rc::gen::inRange(0, 4); t > 0; --t)
        stream.items.emplace_back(any_transfer(ranks, rank));
    }
  }
  for (int rank = 0; rank < ranks; ++rank) {
    for (plan::Stream& stream : plan.codes[static_cast<std::size_t>(rank)].streams) {
      for (plan::Item& item : stream.items) {
        for (int d = *rc::gen::inRange(0, 3); d > 0; --d) {
          const int other = *rc::gen::inRange(0, ranks);
          const auto& theirs = plan.codes[static_cast<std::size_t>(other)].streams;
          const auto index = *rc::gen::inRange<std::size_t>(0, theirs.size());
          const auto count = count_transfers(theirs[index]);
          if (count == 0) continue;
          std::get<Transfer>(item).after.push_back(
              {constant(other),
               static_cast<std::int32_t>(index),
               constant(*rc::gen::inRange<std::int64_t>(0, count)),
               {}});
        }
      }
    }
  }
  return plan;
}

TEST(PlanProperty, verdicts_on_random_plans_are_what_happens) {
  std::map<Outcome, int> seen;
  EXPECT_TRUE(rc::check("random plans", [&] {
    const plan::Plan plan = any_plan();
    try {
      validate(plan);
    } catch (const Failure&) {
      RC_DISCARD("not valid");
    }
    const Verdict verdict = check(plan).verdict;
    const Execution one = interleave(plan, *rc::gen::arbitrary<std::uint64_t>());
    ++seen[one.outcome];
    // What is promised is not known, so values are not compared.
    const bool accepted = verdict == Verdict::partial;
    RC_ASSERT(accepted == (one.outcome == Outcome::right));
    if (accepted) RC_ASSERT(execute(plan, {.rounds = 1}).outcome == Outcome::right);
  }));
  for (const Outcome outcome : {Outcome::right, Outcome::race})
    EXPECT_GT(seen[outcome], 0) << name_of(outcome);
}

}  // namespace
}  // namespace hemiola::verify

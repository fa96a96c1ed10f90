// Blocks of a transformer as chains of steps: proven, right on data, and with no wait too many.
#include <gtest/gtest.h>

#include "plan/template.h"
#include "plan/testing/small_sizes.h"
#include "program/lower/lower.h"
#include "verify/execute.h"
#include "verify/testing/programs.h"
#include "verify/verify.h"

namespace hemiola::verify {
namespace {

plan::Plan block_plan(const char* name, int ranks, const plan::Parameters& more = {}) {
  plan::Parameters parameters = plan::small_sizes(*plan::find_template(name), ranks);
  parameters.insert(parameters.end(), more.begin(), more.end());
  return plan::make(name, ranks, parameters);
}

/// Names with the parameters that make a difference to who waits for whom.
std::vector<std::pair<const char*, plan::Parameters>> block_variants() {
  std::vector<std::pair<const char*, plan::Parameters>> all{
      {"block-mlp/serial", {}},
      {"block-attention/serial", {}},
      {"block-mlp/sequence", {{"activation", "gelu"}}},
      {"block-attention/sequence", {{"sequences", "2"}, {"degree", "2"}}},
      {"block-attention/sequence", {{"sequences", "2"}, {"degree", "4"}, {"steps", "hetero"}}}};
  for (const char* name : {"block-mlp/sequence", "block-attention/sequence"}) {
    for (const char* steps : {"uniform", "hetero"})
      for (const auto& [gather, scatter] :
           {std::pair("pull", "push"), std::pair("push", "pull"), std::pair("push", "push")})
        all.push_back({name, {{"steps", steps}, {"gather", gather}, {"scatter", scatter}}});
  }
  return all;
}

TEST(BlockPlans, are_proven_and_right_on_data_for_4_and_8_ranks) {
  for (const auto& [name, parameters] : block_variants()) {
    for (const int ranks : {2, 4, 8}) {
      const plan::Plan plan = block_plan(name, ranks, parameters);
      const Proof proof = check(plan);
      EXPECT_EQ(proof.verdict, Verdict::proven) << name << ": " << proof.summary;
      const Execution execution = execute(plan, {.rounds = 1});
      EXPECT_EQ(execution.outcome, Outcome::right) << name << ": " << execution.summary;
      EXPECT_GT(execution.compared, 0);
    }
  }
}

/// All lists of dependencies of the plan, loops included.
void collect_waits(std::vector<plan::Item>& items,
                   std::vector<std::vector<plan::Dependency>*>& waits) {
  for (plan::Item& item : items)
    if (auto* loop = std::get_if<plan::Loop>(&item))
      collect_waits(loop->items, waits);
    else
      waits.push_back(&std::get<plan::Transfer>(item).after);
}
std::vector<std::vector<plan::Dependency>*> waits_of(plan::Plan& plan) {
  std::vector<std::vector<plan::Dependency>*> waits;
  for (plan::Compute& compute : plan.codes.front().computes) waits.push_back(&compute.after);
  for (plan::Stream& stream : plan.codes.front().streams) collect_waits(stream.items, waits);
  return waits;
}

TEST(BlockPlans, without_any_one_of_their_waits_are_races) {
  for (const char* name : {"block-mlp/sequence", "block-attention/sequence"}) {
    for (const char* steps : {"uniform", "hetero"}) {
      const plan::Plan plan = block_plan(name, 3, {{"steps", steps}});
      plan::Plan counted = plan;
      const std::size_t lists = waits_of(counted).size();
      std::size_t left_out = 0;
      for (std::size_t i = 0; i < lists; ++i) {
        for (std::size_t d = 0; d < waits_of(counted)[i]->size(); ++d) {
          plan::Plan less = plan;
          std::vector<plan::Dependency>& list = *waits_of(less)[i];
          list.erase(list.begin() + static_cast<std::ptrdiff_t>(d));
          EXPECT_NE(check(less).verdict, Verdict::proven) << name << " " << i << " " << d;
          ++left_out;
        }
      }
      EXPECT_GE(left_out, 8U);
    }
  }
}

TEST(BlockPlans, lowered_are_right_with_any_realization) {
  for (const char* name : {"block-mlp/sequence", "block-attention/sequence"}) {
    for (const program::Realization realization :
         {program::Realization::load_store, program::Realization::copy_engine}) {
      const program::Program lowered =
          program::lower(block_plan(name, 4, {{"steps", "hetero"}}),
                         {.workgroups = 14, .compute_workgroups = 4, .realization = realization});
      const Proof proof = check(
          program::bind(lowered, nullptr, {.size = lowered.fixed_size, .type = DataType::float32}));
      EXPECT_TRUE(test::is_right(proof)) << name << ": " << proof.summary;
    }
  }
}

}  // namespace
}  // namespace hemiola::verify

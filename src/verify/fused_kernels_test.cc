// Fused kernels and their counterparts: proven, right on real data, and wrong once something is
// taken away.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/machine.h"
#include "verify/execute.h"
#include "verify/testing/programs.h"
#include "verify/verify.h"

namespace hemiola::verify {
namespace {

using Parameters = std::vector<std::pair<std::string, std::string>>;
using testing::HasSubstr;

program::Bound made(const std::string& name, int ranks, Parameters parameters,
                    const machine::SharedMachine& machine = nullptr) {
  parameters.emplace_back("dtype", "float32");
  const program::Program kernel =
      program::load(name, {.ranks = ranks, .parameters = parameters, .machine = machine});
  return program::bind(kernel, machine, {.size = kernel.fixed_size});
}

void expect_kernel_right(const std::string& name, int ranks, const Parameters& parameters) {
  const program::Bound bound = made(name, ranks, parameters);
  std::string what = fmt::format("{} of {} ranks", name, ranks);
  for (const auto& [parameter, value] : parameters) what += ", " + parameter + "=" + value;
  const Proof proof = check(bound);
  EXPECT_EQ(proof.verdict, Verdict::proven) << what << ": " << proof.summary;
  EXPECT_TRUE(proof.warnings.items().empty())
      << what << ": " << proof.warnings.items().front().message;
  const Execution run = execute(bound, {.rounds = 2});
  EXPECT_EQ(run.outcome, Outcome::right) << what << ": " << run.summary;
}

/// Few and many tiles for the workgroups, some of them with none.
const std::vector<Parameters> kGemv{
    {{"m", "64"}, {"k", "64"}, {"tile_m", "4"}, {"workgroups", "3"}},
    {{"m", "64"}, {"k", "32"}, {"tile_m", "8"}, {"n", "4"}, {"workgroups", "7"}},
    {{"m", "32"}, {"k", "32"}, {"tile_m", "4"}, {"workgroups", "40"}, {"flags", "padded"}}};
const std::vector<Parameters> kGemm{{{"m", "64"},
                                     {"n", "32"},
                                     {"k", "32"},
                                     {"tile_m", "4"},
                                     {"tile_n", "8"},
                                     {"tile_k", "8"},
                                     {"workgroups", "5"}},
                                    {{"m", "32"},
                                     {"n", "16"},
                                     {"k", "8"},
                                     {"tile_m", "4"},
                                     {"tile_n", "16"},
                                     {"tile_k", "8"},
                                     {"workgroups", "9"}}};
const std::vector<Parameters> kEmbedding{{{"batch", "32"},
                                          {"tables", "2"},
                                          {"rows", "50"},
                                          {"dim", "8"},
                                          {"lookups", "5"},
                                          {"tile", "2"},
                                          {"slice", "4"},
                                          {"workgroups", "3"}},
                                         {{"batch", "32"},
                                          {"tables", "1"},
                                          {"rows", "9"},
                                          {"dim", "4"},
                                          {"lookups", "1"},
                                          {"tile", "1"},
                                          {"slice", "1"},
                                          {"workgroups", "11"}},
                                         {{"batch", "16"},
                                          {"tables", "4"},
                                          {"rows", "20"},
                                          {"dim", "8"},
                                          {"lookups", "20"},
                                          {"tile", "1"},
                                          {"slice", "4"},
                                          {"workgroups", "6"}}};

void expect_all_right(const std::string& operation, const std::vector<Parameters>& all) {
  for (const int ranks : {2, 4, 8}) {
    for (const Parameters& parameters : all) {
      for (const std::string kind : {"fused", "own-first", "spread", "unfused"}) {
        if (kind == "spread" && operation == "embedding-a2a") continue;
        Parameters given = parameters;
        if (kind == "own-first" || kind == "spread") given.emplace_back("order", kind);
        expect_kernel_right(operation + (kind == "unfused" ? "/unfused" : "/fused"), ranks, given);
      }
    }
  }
}

TEST(FusedKernels, gemv_and_all_reduce_are_right) {
  expect_all_right("gemv-ar", kGemv);
}

TEST(FusedKernels, gemm_and_all_to_all_are_right) {
  expect_all_right("gemm-a2a", kGemm);
}

TEST(FusedKernels, embedding_and_all_to_all_are_right) {
  expect_all_right("embedding-a2a", kEmbedding);
}

TEST(FusedKernels, an_odd_number_of_ranks_is_right_and_so_are_ranks_that_start_late) {
  expect_kernel_right("gemv-ar/fused", 3,
                      {{"m", "24"}, {"k", "24"}, {"tile_m", "4"}, {"workgroups", "4"}});
  expect_kernel_right("gemv-ar/fused", 4,
                      {{"m", "32"},
                       {"k", "32"},
                       {"tile_m", "4"},
                       {"workgroups", "4"},
                       {"skew", "5us"},
                       {"late", "linear"}});
}

/// Without its k-th operation of a kind in any body, the program is not accepted.
void expect_every_one_is_needed(const program::Bound& good, program::OpKind kind) {
  int tried = 0;
  for (std::size_t b = 0; b < good.bodies().size(); ++b) {
    for (std::size_t o = 0; o < good.bodies()[b].ops.size(); ++o) {
      if (good.bodies()[b].ops[o].kind != kind) continue;
      const program::Bound broken = program::changed(good, [&](program::Program& p) {
        auto& ops = p.bodies[b].ops;
        ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(o));
      });
      const Proof proof = check(broken);
      EXPECT_TRUE(proof.verdict == Verdict::wrong || proof.verdict == Verdict::deadlock ||
                  !proof.warnings.items().empty())
          << "without " << name_of(kind) << " " << o << " of body " << b << ": " << proof.summary;
      ++tried;
    }
  }
  EXPECT_GT(tried, 0);
}

TEST(FusedKernels, every_signal_wait_and_compute_is_needed) {
  for (const program::OpKind kind :
       {program::OpKind::signal, program::OpKind::wait, program::OpKind::compute}) {
    expect_every_one_is_needed(made("gemv-ar/fused", 2, kGemv[1]), kind);
    expect_every_one_is_needed(made("gemm-a2a/fused", 2, kGemm[1]), kind);
    expect_every_one_is_needed(made("embedding-a2a/fused", 2, kEmbedding[2]), kind);
  }
}

TEST(FusedKernels, the_last_tile_of_a_slice_waits_for_the_others) {
  const program::Bound broken =
      program::changed(made("embedding-a2a/fused", 2, kEmbedding[2]), [](program::Program& p) {
        for (program::Body& body : p.bodies)
          std::erase_if(body.ops,
                        [](const program::Op& op) { return op.kind == program::OpKind::dep_wait; });
      });
  EXPECT_EQ(check(broken).verdict, Verdict::wrong);
}

TEST(FusedKernels, a_tile_that_is_stored_in_the_wrong_place_is_found_by_the_proof_and_by_the_data) {
  for (const std::string name : {"gemv-ar/fused", "gemm-a2a/fused", "embedding-a2a/unfused"}) {
    const bool pools = name.starts_with("embedding");
    const program::Bound good = made(name, 2,
                                     pools                         ? kEmbedding[1]
                                     : name.starts_with("gemv-ar") ? kGemv[1]
                                                                   : kGemm[1]);
    // Two tiles change places: nothing is missing, no access conflicts.
    const program::Bound broken = program::changed(good, [](program::Program& p) {
      std::vector<program::Op*> stores;
      for (program::Body& body : p.bodies) {
        for (program::Op& op : body.ops)
          if (op.kind == program::OpKind::compute && !op.dst.empty()) stores.push_back(&op);
      }
      std::swap(stores.at(0)->dst, stores.at(1)->dst);
    });
    EXPECT_EQ(check(broken).verdict, Verdict::wrong) << name;
    EXPECT_EQ(execute(broken, {.rounds = 1}).outcome, Outcome::wrong) << name;
  }
}

TEST(FusedKernels, a_tile_that_reads_the_wrong_rows_is_found_by_the_data) {
  const program::Bound broken =
      program::changed(made("gemv-ar/fused", 2, kGemv[1]), [](program::Program& p) {
        for (program::Body& body : p.bodies) {
          for (program::Op& op : body.ops)
            if (op.kind == program::OpKind::compute) op.src.front().chunk.constant += 1;
        }
      });
  EXPECT_EQ(execute(broken, {.rounds = 1}).outcome, Outcome::wrong);
}

TEST(FusedKernels, workgroups_that_find_no_room_and_wait_for_each_other_are_a_deadlock) {
  const machine::Machine machine =
      machine::load("ring:4", {.set = {{"gpu.cu.count", "1"}, {"gpu.cu.max_workgroups", "1"}}});
  // One at a time: the first one waits for flags of peers' later workgroups.
  const program::Bound bound = made("gemm-a2a/fused", 4,
                                    {{"m", "32"},
                                     {"n", "16"},
                                     {"k", "8"},
                                     {"tile_m", "4"},
                                     {"tile_n", "8"},
                                     {"tile_k", "8"},
                                     {"workgroups", "5"}},
                                    machine::share(machine));
  EXPECT_EQ(check(bound).verdict, Verdict::deadlock);
}

}  // namespace
}  // namespace hemiola::verify

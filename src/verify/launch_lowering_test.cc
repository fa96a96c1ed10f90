// Launches of plans, lowered: what orders them is there, and needed.
#include <gtest/gtest.h>

#include <algorithm>

#include "machine/machine.h"
#include "program/lower/lower.h"
#include "verify/testing/plans.h"
#include "verify/testing/programs.h"
#include "verify/verify.h"

namespace hemiola::verify {
namespace {

using program::lower;
using program::Program;
using program::Realization;
using program::StreamItem;

Proof check_lowered(const Program& program, machine::SharedMachine machine = nullptr) {
  return check(program::bind(program, std::move(machine),
                             {.size = program.fixed_size, .type = DataType::float32}));
}

plan::Plan sequence(int ranks, const char* axis, const char* transfer) {
  plan::Parameters parameters = plan::small_sizes(*plan::find_template("ag-gemm/sequence"), ranks);
  parameters.emplace_back("axis", axis);
  parameters.emplace_back("transfer", transfer);
  return plan::make("ag-gemm/sequence", ranks, parameters);
}

TEST(LaunchLowering, of_a_sequence_is_right_with_any_realization) {
  for (const Realization realization :
       {Realization::load_store, Realization::bulk, Realization::copy_engine}) {
    for (const char* axis : {"m", "k"}) {
      for (const char* transfer : {"push", "pull"}) {
        const plan::Plan plan = sequence(3, axis, transfer);
        const Proof proof =
            check_lowered(lower(plan, {.compute_workgroups = 4, .realization = realization}));
        EXPECT_TRUE(test::is_right(proof))
            << name_of(realization) << " " << axis << " " << transfer << ": " << proof.summary;
      }
    }
  }
}

TEST(LaunchLowering, of_products_before_communication_is_right_with_any_realization) {
  for (const Realization realization :
       {Realization::load_store, Realization::bulk, Realization::copy_engine}) {
    for (const char* name : {"gemm-rs/sequence", "gemm-rs/shards", "gemm-ar/sequence",
                             "gemm-combine/sequence", "gemm-combine/shards"}) {
      for (const char* transfer : {"push", "pull"}) {
        for (const char* steps : {"uniform", "hetero"}) {
          const plan::TemplateInfo& info = *plan::find_template(name);
          plan::Parameters parameters = plan::small_sizes(info, 3);
          parameters.emplace_back("transfer", transfer);
          if (info.name.ends_with("/sequence"))
            parameters.insert(parameters.end(), {{"steps", steps}, {"axis", "n"}});
          const plan::Plan plan = plan::make(name, 3, parameters);
          const Proof proof = check_lowered(
              lower(plan, {.workgroups = 4, .compute_workgroups = 4, .realization = realization}));
          EXPECT_TRUE(test::is_right(proof)) << name << " " << name_of(realization) << " "
                                             << transfer << " " << steps << ": " << proof.summary;
        }
      }
    }
  }
}

// What crosses NICs is sent as messages, whose waits are not those of copies.
TEST(LaunchLowering, over_two_nodes_is_right) {
  const machine::SharedMachine machine = machine::share(machine::load("clos:2x1x2"));
  for (const char* name : {"ag-gemm/sequence", "ag-gemm/serial", "ag-gemm/shards",
                           "gemm-rs/sequence", "gemm-combine/sequence"}) {
    for (const char* transfer : {"push", "pull"}) {
      plan::Parameters parameters = plan::small_sizes(*plan::find_template(name), 4);
      parameters.emplace_back("transfer", transfer);
      const plan::Plan plan = plan::make(name, 4, parameters, machine.get());
      const Proof proof = check_lowered(
          lower(plan, {.workgroups = 4, .compute_workgroups = 4, .machine = machine.get()}),
          machine);
      EXPECT_TRUE(test::is_right(proof)) << name << " " << transfer << ": " << proof.summary;
    }
  }
}

TEST(LaunchLowering, of_streams_that_wait_for_each_other_is_right) {
  for (const Realization realization : {Realization::load_store, Realization::bulk}) {
    const Proof proof = check_lowered(
        lower(test::launch_and_scatter(3),
              {.workgroups = 4, .compute_workgroups = 3, .realization = realization}));
    EXPECT_TRUE(test::is_right(proof)) << name_of(realization) << ": " << proof.summary;
  }
}

// Persistent kernels that wait would starve each other where few workgroups fit; launches that wait
// in front of their kernels do not.
TEST(LaunchLowering, ends_where_one_workgroup_fits_beside_communication) {
  const machine::SharedMachine machine = machine::share(
      machine::load("dgx-h100", {.set = {{"gpu.cu.count", "4"}, {"gpu.cu.max_workgroups", "1"}}}));
  machine::Machine placed = *machine;
  placed.place(std::vector<int>{0, 1, 2});
  const Program program =
      lower(sequence(3, "k", "pull"), {.workgroups = 2, .compute_workgroups = 8});
  const Proof proof = check_lowered(program, machine::share(placed));
  EXPECT_TRUE(test::is_right(proof)) << proof.summary;
}

/// All lists of dependencies of a code, those in loops too.
std::vector<std::vector<plan::Dependency>*> all_dependencies(plan::Code& code) {
  std::vector<std::vector<plan::Dependency>*> all;
  const auto add = [&](auto& self, std::vector<plan::Item>& items) -> void {
    for (plan::Item& item : items) {
      if (auto* loop = std::get_if<plan::Loop>(&item)) self(self, loop->items);
      if (auto* transfer = std::get_if<plan::Transfer>(&item)) all.push_back(&transfer->after);
    }
  };
  for (plan::Stream& stream : code.streams) add(add, stream.items);
  for (plan::Compute& compute : code.computes) all.push_back(&compute.after);
  return all;
}

TEST(LaunchLowering, needs_every_dependency_of_products_before_communication) {
  for (const char* name : {"gemm-rs/sequence", "gemm-rs/shards", "gemm-ar/sequence",
                           "gemm-combine/sequence", "gemm-combine/shards"}) {
    const plan::Plan right = plan::make(name, 3, plan::small_sizes(*plan::find_template(name), 3));
    EXPECT_EQ(check(right).verdict, Verdict::proven) << name;
    plan::Plan wrong = right;
    for (std::vector<plan::Dependency>* after : all_dependencies(wrong.codes[0])) {
      for (std::size_t i = 0; i < after->size(); ++i) {
        const std::vector<plan::Dependency> kept = *after;
        after->erase(after->begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_EQ(check(wrong).verdict, Verdict::wrong) << name;
        *after = kept;
      }
    }
  }
}

/// Leaves out the items of compute streams that `which` says.
template <class Which>
Program without(Program program, const Which& which) {
  for (program::RankCode& code : program.codes) {
    for (program::Stream& stream : code.streams) {
      if (std::none_of(stream.begin(), stream.end(), [](const StreamItem& item) {
            return item.kind == StreamItem::Kind::kernel;
          }))
        continue;
      std::erase_if(stream, which);
    }
  }
  return program;
}

TEST(LaunchLowering, without_gates_or_events_is_found_wrong) {
  const auto gate = [](const StreamItem& item) { return item.kind == StreamItem::Kind::engine; };
  const auto event = [](const StreamItem& item) {
    return item.kind == StreamItem::Kind::event_wait;
  };
  EXPECT_EQ(check_lowered(without(lower(sequence(3, "m", "push"), {}), gate)).verdict,
            Verdict::wrong);
  const Program scattered = lower(test::launch_and_scatter(2), {.workgroups = 2});
  EXPECT_EQ(check_lowered(without(scattered, event)).verdict, Verdict::wrong);
  EXPECT_EQ(check_lowered(without(scattered, gate)).verdict, Verdict::deadlock)
      << "nobody rings for the transfers";
}

}  // namespace
}  // namespace hemiola::verify

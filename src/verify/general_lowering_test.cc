// Whatever the general lowering makes of a valid plan is right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "machine/machine.h"
#include "plan/template.h"
#include "plan/testing/small_sizes.h"
#include "program/lower/lower.h"
#include "program/testing/plan_fixtures.h"
#include "verify/testing/programs.h"
#include "verify/verify.h"

namespace hemiola::verify {
namespace {

using namespace program::fixtures;
using program::lower;
using program::LowerOptions;
using program::Realization;
using test::is_right;

program::Bound bound(const program::Program& program, machine::SharedMachine machine = nullptr) {
  const Bytes size = program.fixed_size.count > 0
                         ? program.fixed_size
                         : program.next_legal_size({1000}, DataType::float32);
  return program::bind(program, std::move(machine), {.size = size, .type = DataType::float32});
}

std::string text(const Proof& proof) {
  std::string text = proof.summary;
  for (const std::string& reason : proof.reasons) text += "\n  " + reason;
  for (const Witness& step : proof.counterexample) {
    text += "\n  rank " + std::to_string(step.rank) + " workgroup " +
            std::to_string(step.workgroup) + " " + step.operation + " " + step.where + " " +
            step.text;
  }
  for (const Diagnostic& warning : proof.warnings.items()) text += "\n  " + warning.message;
  return text;
}

TEST(GeneralLowering, of_any_plan_of_transfers_is_free_of_races_and_ends) {
  EXPECT_TRUE(rc::check([] {
    const plan::Plan plan = RandomPlan(*rc::gen::arbitrary<unsigned>()).make();
    plan::validate(plan);
    LowerOptions options;
    options.realization = *rc::gen::element(Realization::load_store, Realization::bulk);
    options.workgroups = *rc::gen::inRange(1, 7);
    options.protocol = *rc::gen::element(program::Protocol::simple, program::Protocol::ll);
    const Proof proof = check(bound(lower(plan, options)));
    if (!is_right(proof)) RC_FAIL(text(proof));
  }));
}

/// Every rank runs the same transfers of single chunks; each writes a chunk of its own and waits
/// for the writer of what it reads.
plan::Plan symmetric_plan(int ranks, int transfers) {
  plan::Plan plan;
  plan.name = "symmetric";
  plan.ranks = ranks;
  plan.tensors = {{"input", plan::Role::input, 1}, {"work", plan::Role::scratch, transfers}};
  plan::Stream stream{.name = "all", .items = {}};
  std::vector<int> pushed(static_cast<std::size_t>(transfers), 0);  // how far; 0: own memory
  for (int i = 0; i < transfers; ++i) {
    const auto kind = static_cast<plan::TransferKind>(*rc::gen::inRange(0, 3));
    const int distance =
        kind == plan::TransferKind::copy ? 0 : *rc::gen::inRange(1, std::max(2, ranks));
    const int source = *rc::gen::inRange(-1, i);
    plan::Transfer transfer{.kind = kind, .peer = plan::around(ranks, distance)};
    if (distance == 0) transfer.peer = own_rank();
    transfer.source = source < 0 ? plan::chunk_of(0) : plan::chunk_of(1, constant(source));
    transfer.destination = plan::chunk_of(1, constant(i));
    const int owner = kind == plan::TransferKind::pull ? distance : 0;
    const int back = source < 0 ? 0 : pushed[static_cast<std::size_t>(source)];
    if (source >= 0 && (owner != 0 || back != 0))
      transfer = plan::after(transfer, plan::around(ranks, owner - back + ranks), constant(source));
    pushed[static_cast<std::size_t>(i)] = kind == plan::TransferKind::push ? distance : 0;
    stream.items.emplace_back(transfer);
  }
  plan::run_everywhere(plan, stream);
  return plan;
}

TEST(GeneralLowering, leaves_to_exchanges_and_chains_only_what_they_do_right) {
  int exchanges = 0;
  EXPECT_TRUE(rc::check([&] {
    const plan::Plan plan = symmetric_plan(*rc::gen::inRange(2, 5), *rc::gen::inRange(1, 8));
    plan::validate(plan);
    exchanges += program::is_exchange(plan) ? 1 : 0;
    const Proof proof = check(bound(lower(plan, {.workgroups = 2})));
    if (!is_right(proof)) RC_FAIL(text(proof));
  }));
  EXPECT_GT(exchanges, 20);
}

// The property above can fail: random plans do depend on the waits of their programs.
TEST(GeneralLowering, without_its_waits_is_found_wrong) {
  int wrong = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    program::Program program = lower(RandomPlan(seed).make(), {.workgroups = 4});
    for (program::Body& body : program.bodies) {
      std::erase_if(body.ops,
                    [](const program::Op& op) { return op.kind == program::OpKind::dep_wait; });
    }
    wrong += check(bound(program)).verdict == Verdict::wrong ? 1 : 0;
  }
  EXPECT_GT(wrong, 10);
}

TEST(GeneralLowering, by_copy_engines_of_any_plan_without_reductions_is_right) {
  EXPECT_TRUE(rc::check([] {
    const plan::Plan plan =
        RandomPlan(*rc::gen::arbitrary<unsigned>(), RandomPlan::Form::copies).make();
    const Proof proof = check(bound(lower(plan, {.realization = Realization::copy_engine})));
    if (!is_right(proof)) RC_FAIL(text(proof));
  }));
}

/// Two ranks in each of two nodes.
machine::Machine two_nodes() {
  machine::Machine machine = machine::load("dgx-h100:2", {});
  machine.place(std::vector<int>{6, 7, 8, 9});
  return machine;
}

TEST(GeneralLowering, of_any_plan_of_pushes_is_right_across_nics) {
  const machine::Machine machine = two_nodes();
  EXPECT_TRUE(rc::check([&] {
    const plan::Plan plan =
        RandomPlan(*rc::gen::arbitrary<unsigned>(), RandomPlan::Form::pushes).make();
    LowerOptions options;
    options.realization = *rc::gen::element(Realization::load_store, Realization::copy_engine);
    if (options.realization == Realization::load_store)
      options.workgroups = *rc::gen::inRange(1, 7);
    const bool reduces = std::any_of(plan.codes.begin(), plan.codes.end(), [](const auto& code) {
      return std::any_of(code.streams.begin(), code.streams.end(), [](const auto& stream) {
        return std::any_of(stream.items.begin(), stream.items.end(), [](const auto& item) {
          return std::get<plan::Transfer>(item).reduce != ReduceOp::none;
        });
      });
    });
    RC_PRE(!reduces || options.realization == Realization::load_store);
    const Proof proof = check(bound(lower(plan, options), machine::share(machine)));
    if (!is_right(proof)) RC_FAIL(text(proof));
  }));
}

TEST(GeneralLowering, for_a_machine_of_any_plan_is_right_across_nics) {
  const machine::Machine machine = two_nodes();
  EXPECT_TRUE(rc::check([&] {
    const plan::Plan plan = RandomPlan(*rc::gen::arbitrary<unsigned>()).make();
    LowerOptions options{.machine = &machine};
    options.realization = *rc::gen::element(Realization::load_store, Realization::bulk);
    options.workgroups = *rc::gen::inRange(1, 7);
    const Proof proof = check(bound(lower(plan, options), machine::share(machine)));
    if (!is_right(proof)) RC_FAIL(text(proof));
  }));
}

TEST(GeneralLowering, for_a_machine_every_template_gives_its_result_across_nics) {
  const machine::Machine machine = two_nodes();
  for (const plan::TemplateInfo& info : plan::templates()) {
    SCOPED_TRACE(info.name);
    const plan::Plan plan = plan::make(info.name, 4, plan::small_sizes(info, 4), &machine);
    const Proof proof =
        check(bound(lower(plan, {.workgroups = 3, .machine = &machine}), machine::share(machine)));
    const bool known = plan.collective != Collective::custom;
    EXPECT_TRUE(is_right(proof) && (!known || proof.verdict == Verdict::proven)) << text(proof);
  }
}

// What a third rank is told of a push through a NIC has arrived.
TEST(GeneralLowering, of_a_push_across_a_nic_that_a_third_rank_waits_for_is_right) {
  const machine::Machine machine = two_nodes();
  plan::Plan plan;
  plan.name = "third";
  plan.ranks = 4;
  plan.tensors = {{"input", plan::Role::input, 1}, {"work", plan::Role::scratch, 2}};
  const plan::Region here = plan::chunk_of(1), there = plan::chunk_of(1, constant(1));
  plan.codes.resize(4);
  plan.codes[0].streams = {
      {.name = "send", .items = {plan::push(constant(2), plan::chunk_of(0), here)}}};
  plan.codes[3].streams = {
      {.name = "read",
       .items = {plan::after(plan::pull(constant(2), here, there), constant(0), constant(0))}}};
  plan.code_of = {0, 1, 2, 3};
  plan::validate(plan);
  const Proof proof = check(bound(lower(plan, {.workgroups = 2}), machine::share(machine)));
  EXPECT_TRUE(is_right(proof)) << text(proof);
}

TEST(GeneralLowering, exchanges_that_push_run_across_nics) {
  const machine::Machine machine = two_nodes();
  const std::vector<std::pair<std::string, plan::Parameters>> exchanges = {
      {"all-gather/direct", {}},
      {"all-to-all/direct", {}},
      {"reduce-scatter/direct", {{"transfer", "push"}}},
      {"all-reduce/one-shot", {{"transfer", "push"}}},
      {"all-reduce/two-shot", {{"transfer", "push"}, {"gather", "push"}}}};
  for (const auto& [name, parameters] : exchanges) {
    const plan::Plan plan = plan::make(name, 4, parameters);
    ASSERT_TRUE(program::is_exchange(plan)) << name;
    const Proof proof = check(bound(lower(plan, {.workgroups = 3}), machine::share(machine)));
    EXPECT_EQ(proof.verdict, Verdict::proven) << name << ": " << text(proof);
    EXPECT_TRUE(proof.warnings.items().empty()) << name << ": " << text(proof);
  }
}

TEST(GeneralLowering, of_every_built_in_algorithm_computes_its_collective) {
  for (const plan::TemplateInfo& info : plan::templates()) {
    if (!info.in_chunks) continue;
    for (const int ranks : {2, 3, 5}) {
      const machine::Machine ring = machine::load("ring:" + std::to_string(ranks));
      const plan::Plan plan =
          plan::make(info.name, ranks, {}, info.needs_machine ? &ring : nullptr);
      const Proof proof =
          check(bound(lower(plan, {.workgroups = 3, .realization = Realization::bulk})));
      EXPECT_EQ(proof.verdict, Verdict::proven) << info.name << ": " << text(proof);
      EXPECT_TRUE(proof.warnings.items().empty()) << info.name << ": " << text(proof);
      const Proof packets = check(bound(lower(
          plan,
          {.protocol = program::Protocol::ll, .workgroups = 3, .realization = Realization::bulk})));
      EXPECT_EQ(packets.verdict, Verdict::proven) << info.name << " ll: " << text(packets);
      EXPECT_TRUE(packets.warnings.items().empty()) << info.name << " ll: " << text(packets);
    }
  }
}

TEST(GeneralLowering, of_gathers_by_copy_engines_computes_their_collective) {
  for (const char* name : {"all-gather/direct", "all-gather/ring", "all-to-all/direct"}) {
    const Proof proof =
        check(bound(lower(plan::make(name, 4), {.realization = Realization::copy_engine})));
    EXPECT_EQ(proof.verdict, Verdict::proven) << name << ": " << text(proof);
  }
}

TEST(GeneralLowering, copy_engines_cannot_reduce) {
  const program::Program program =
      lower(plan::make("all-reduce/ring", 3), {.realization = Realization::copy_engine});
  EXPECT_THROW(bound(program), Failure);
}

/// One collective of all ranks, left to the lowering.
plan::Plan collective_plan(Collective collective, int ranks, std::int64_t from, std::int64_t to,
                           ReduceOp reduce) {
  plan::Plan plan;
  plan.name = "collective";
  plan.collective = collective;
  plan.ranks = ranks;
  plan.tensors = {{"input", plan::Role::input, from}, {"output", plan::Role::output, to}};
  plan.chunks_per_size = std::max(from, to);
  plan.groups.emplace_back();
  for (int rank = 0; rank < ranks; ++rank) plan.groups[0].push_back(rank);
  plan::Transfer transfer{.kind = plan::TransferKind::collective,
                          .source = plan::chunks_of(0, constant(0), from),
                          .destination = plan::chunks_of(1, constant(0), to),
                          .reduce = reduce,
                          .group = 0,
                          .collective = collective};
  plan::run_everywhere(plan, {.name = "library", .items = {transfer}});
  return plan;
}

TEST(GeneralLowering, of_collectives_makes_exchanges_that_compute_them) {
  const plan::Plan plans[] = {collective_plan(Collective::all_reduce, 4, 6, 6, ReduceOp::sum),
                              collective_plan(Collective::all_gather, 4, 2, 8, ReduceOp::none),
                              collective_plan(Collective::reduce_scatter, 4, 8, 2, ReduceOp::sum),
                              collective_plan(Collective::all_to_all, 4, 8, 8, ReduceOp::none),
                              collective_plan(Collective::broadcast, 4, 3, 3, ReduceOp::none)};
  for (const plan::Plan& plan : plans) {
    plan::validate(plan);
    const Proof proof = check(bound(lower(plan, {.workgroups = 3})));
    EXPECT_EQ(proof.verdict, Verdict::proven) << name_of(plan.collective) << ": " << text(proof);
    EXPECT_TRUE(proof.warnings.items().empty()) << text(proof);
  }
}

TEST(GeneralLowering, of_collectives_goes_through_the_switch_where_places_are_alike) {
  const machine::Machine machine = machine::load("dgx-h100", {});
  const plan::Plan plans[] = {collective_plan(Collective::all_reduce, 8, 12, 12, ReduceOp::sum),
                              collective_plan(Collective::all_gather, 8, 2, 16, ReduceOp::none),
                              collective_plan(Collective::reduce_scatter, 8, 16, 2, ReduceOp::sum),
                              collective_plan(Collective::broadcast, 8, 3, 3, ReduceOp::none)};
  for (const plan::Plan& plan : plans) {
    const program::Program program =
        lower(plan, {.workgroups = 2, .realization = Realization::multicast});
    const Proof proof = check(bound(program, machine::share(machine)));
    EXPECT_EQ(proof.verdict, Verdict::proven) << name_of(plan.collective) << ": " << text(proof);
    EXPECT_TRUE(proof.warnings.items().empty()) << text(proof);
    const bool switched =
        std::any_of(program.bodies.front().ops.begin(), program.bodies.front().ops.end(),
                    [](const program::Op& op) { return op.channel == program::Channel::switch_; });
    EXPECT_TRUE(switched) << name_of(plan.collective);
  }
}

/// Rank r reduces chunk r over the group and stores the result on all: both ways through a group.
plan::Plan group_plan(int ranks) {
  plan::Plan plan = collective_plan(Collective::all_reduce, ranks, ranks, ranks, ReduceOp::sum);
  plan::Transfer reduce{.kind = plan::TransferKind::pull,
                        .source = plan::chunk_of(0, own_rank()),
                        .destination = plan::chunk_of(2),
                        .reduce = ReduceOp::sum,
                        .group = 0};
  plan::Transfer store{.kind = plan::TransferKind::push,
                       .source = plan::chunk_of(2),
                       .destination = plan::chunk_of(1, own_rank()),
                       .group = 0};
  plan.tensors.push_back({"result", plan::Role::scratch, 1});
  plan::run_everywhere(plan, {.name = "switch", .items = {reduce, store}});
  return plan;
}

TEST(GeneralLowering, of_groups_goes_to_every_member_or_through_the_switch) {
  const machine::Machine machine = machine::load("dgx-h100", {});
  for (const Realization realization : {Realization::load_store, Realization::multicast}) {
    const plan::Plan plan = group_plan(8);
    plan::validate(plan);
    const Proof proof = check(
        bound(lower(plan, {.workgroups = 2, .realization = realization}), machine::share(machine)));
    EXPECT_EQ(proof.verdict, Verdict::proven) << text(proof);
  }
}

TEST(GeneralLowering, of_a_gathered_matrix_product_is_right_with_each_realization) {
  for (const bool pulls : {false, true}) {
    for (const Realization realization : {Realization::load_store, Realization::bulk,
                                          Realization::copy_engine, Realization::co_located}) {
      const plan::Plan plan = ag_gemm({.pulls = pulls});
      plan::validate(plan);
      const Proof proof = check(bound(
          lower(plan, {.workgroups = 4, .compute_workgroups = 8, .realization = realization})));
      EXPECT_TRUE(is_right(proof)) << name_of(realization) << ": " << text(proof);
    }
  }
}

TEST(GeneralLowering, of_a_scattered_matrix_product_is_right) {
  for (const Realization realization :
       {Realization::load_store, Realization::bulk, Realization::co_located}) {
    const plan::Plan plan = gemm_rs(4);
    plan::validate(plan);
    const Proof proof = check(
        bound(lower(plan, {.workgroups = 3, .compute_workgroups = 5, .realization = realization})));
    EXPECT_TRUE(is_right(proof)) << name_of(realization) << ": " << text(proof);
  }
}

TEST(GeneralLowering, a_transfer_that_does_not_wait_for_its_tiles_is_found) {
  plan::Plan plan = gemm_rs(4);
  auto& send =
      std::get<plan::Transfer>(std::get<plan::Loop>(plan.codes[0].streams[0].items[0]).items[0]);
  send.after.clear();
  EXPECT_EQ(check(bound(lower(plan, {.workgroups = 3, .compute_workgroups = 5}))).verdict,
            Verdict::wrong);
}

TEST(GeneralLowering, a_tile_that_does_not_wait_for_its_operands_is_found) {
  program::Program program = lower(ag_gemm({}), {.workgroups = 4, .compute_workgroups = 8});
  for (program::Body& body : program.bodies) {
    const bool computes = std::any_of(body.ops.begin(), body.ops.end(), [](const program::Op& op) {
      return op.kind == program::OpKind::compute;
    });
    if (computes)
      std::erase_if(body.ops,
                    [](const program::Op& op) { return op.kind == program::OpKind::dep_wait; });
  }
  EXPECT_EQ(check(bound(program)).verdict, Verdict::wrong);
}

TEST(GeneralLowering, of_a_plan_of_elements_has_one_size) {
  const program::Program program = lower(ag_gemm({}));
  EXPECT_EQ(program.fixed_size.count, (128 * 256 + 256 * 128) * 2);
  EXPECT_EQ(bound(program).type(), DataType::bfloat16);
  try {
    program::bind(program, nullptr, {.size = MiB(1)});
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), testing::HasSubstr("has the size 128 KiB in itself"));
  }
}

TEST(ChainLowering, of_several_rings_computes_the_collective_also_across_nodes) {
  for (const char* name : {"ring:2", "ring:5", "torus:3x3", "dgx1-v100", "dgx-h100:2"}) {
    const machine::Machine machine = machine::load(name);
    for (const char* algorithm : {"all-reduce/ring", "all-gather/ring", "reduce-scatter/ring",
                                  "broadcast/ring", "reduce/ring"}) {
      const plan::Plan plan = plan::make(algorithm, machine.ranks(), {}, &machine);
      EXPECT_TRUE(program::is_chain(plan)) << algorithm << " on " << name;
      for (const bool in_place : {false, true}) {
        const program::Program made = lower(plan, {.workgroups = 6, .in_place = in_place});
        // As small as it gets, where most slices are empty, and cut unevenly.
        for (const std::int64_t size : {1, 20000}) {
          const Bytes legal = made.next_legal_size({size}, DataType::float32);
          const Proof proof = check(program::bind(made, machine::share(machine), {.size = legal}));
          EXPECT_EQ(proof.verdict, Verdict::proven) << algorithm << " on " << name << text(proof);
        }
      }
    }
  }
}

TEST(ChainLowering, takes_no_stream_that_moves_parts_of_another) {
  const machine::Machine machine = machine::load("ring:4");
  plan::Plan plan = plan::make("all-gather/ring", 4, {}, &machine);
  ASSERT_TRUE(program::is_chain(plan));
  for (plan::Code& code : plan.codes) std::swap(code.streams[0], code.streams[1]);
  EXPECT_FALSE(program::is_chain(plan));
}

}  // namespace
}  // namespace hemiola::verify

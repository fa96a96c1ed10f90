#include "explore/search/explorer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/testing/failure.h"
#include "explore/trials/isolated.h"
#include "plan/template.h"
#include "verify/verify.h"

namespace hemiola::explore {
namespace {

using ::testing::HasSubstr;

Request request_of(const Operator& op, const char* machine, const char* ranks = "") {
  Request request{.op = op, .machine = {.name = machine, .ranks = ranks}};
  request.limits.degrees = {2, 4};
  request.top = 0;
  return request;
}

const Operator kGather{.m = 1024, .n = 2048, .k = 1024};

TEST(Space, has_copies_in_time_and_prelaunched_or_what_is_asked_for) {
  const machine::Machine machine = machine::load("mi300x-8");
  const Operator op{.kind = OperatorKind::ag_gemm, .ranks = 8, .m = 1024, .n = 1024, .k = 512};
  const auto count = [&](const SpaceLimits& limits, bool prelaunch) {
    const std::vector<Schedule> all = space_of(op, machine, limits);
    return std::count_if(all.begin(), all.end(), [&](const Schedule& schedule) {
      return schedule.realization == "copy-engine" && schedule.prelaunch == prelaunch;
    });
  };
  EXPECT_GT(count({}, true), 0);
  EXPECT_EQ(count({}, true), count({}, false));
  EXPECT_EQ(count({.copies = {"in-time"}}, true), 0);
  EXPECT_EQ(count({.copies = {"prelaunched"}}, false), 0);
}

TEST(Explorer, explores_experts_whose_load_is_uneven) {
  Operator op{.kind = OperatorKind::gemm_a2a, .m = 2048, .n = 512, .k = 512};
  study::Laboratory laboratory;
  Request request = request_of(op, "dgx-h100", "0-3");
  request.fluid = 8;
  request.losses = LossesOf::all;
  const Exploration even = explore(laboratory, request);
  request.op.load = "1/1/5/1";
  const Exploration uneven = explore(laboratory, request);
  ASSERT_GT(uneven.candidates.size(), 4U);
  EXPECT_GT(uneven.serial.time, even.serial.time) << "rank 2 has 2.5 times the tokens";
  EXPECT_GT(uneven.best(), even.best());
  for (const Candidate& candidate : uneven.candidates) {
    EXPECT_GE(candidate.fluid, candidate.bound.time) << candidate.schedule.text();
    EXPECT_EQ(candidate.parameters[4].first, "load");
    const plan::Plan plan =
        plan::make(template_of(op, candidate.schedule), 4,
                   {{"m", "2048"}, {"n", "512"}, {"k", "512"}, {"load", "1/1/5/1"}});
    EXPECT_EQ(KernelTimes(plan).rank(), 2) << "which computes most";
  }
}

TEST(Space, has_no_copies_by_engines_where_there_are_none) {
  machine::Machine machine = machine::load("mi300x-8");
  for (machine::GpuModel& model : machine.models) model.dma_engines = 0;
  const Operator op{.kind = OperatorKind::ag_gemm, .ranks = 8, .m = 1024, .n = 1024, .k = 512};
  for (const Schedule& schedule : space_of(op, machine, {}))
    EXPECT_NE(schedule.realization, "copy-engine") << schedule.text();
  EXPECT_NE(test::message_of([&] {
              space_of(op, machine, {.realizations = {"copy-engine"}});
            }).find("have no copy engines"),
            std::string::npos);
}

TEST(Space, every_schedule_is_a_plan_with_the_launches_it_says) {
  const machine::Machine machine = machine::load("mi300x-8");
  for (const OperatorKind kind : {OperatorKind::ag_gemm, OperatorKind::a2a_gemm}) {
    const Operator op{.kind = kind, .ranks = 8, .m = 1024, .n = 1024, .k = 512};
    std::set<Family> seen;
    for (const Schedule& schedule : space_of(op, machine, {})) {
      study::Settings of_template = parameters_of(op, schedule, machine);
      std::erase_if(of_template, [](const auto& setting) {
        return setting.first == "realization" || setting.first == "workgroups" ||
               setting.first == "prelaunch" || setting.first == "compute_workgroups";
      });
      const plan::Plan plan = plan::make(template_of(op, schedule), 8, of_template, &machine);
      seen.insert(schedule.family);
      if (schedule.family.division == Division::kernel) continue;
      std::int64_t launches = 0, points = 0, said = 0;
      for (const Launch& launch : launches_of(op, schedule)) {
        launches += launch.count;
        said += launch.count * launch.shape.m * launch.shape.n * launch.shape.k;
      }
      for (const plan::Compute& compute : plan.code(0).computes) {
        std::int64_t product = 1;
        for (const plan::ComputeAxis& axis : compute.axes) product *= axis.extent;
        points += product;
      }
      EXPECT_EQ(std::ssize(plan.code(0).computes), launches) << schedule.text();
      const machine::GemmShape whole = local_product(op);
      EXPECT_EQ(points, whole.m * whole.n * whole.k) << schedule.text();
      EXPECT_GE(said, points) << schedule.text();  // padded to whole tiles
    }
    EXPECT_EQ(seen.size(), kind == OperatorKind::ag_gemm ? 10U : 9U) << name_of(kind);
  }
}

TEST(Space, what_a_machine_does_not_have_is_refused) {
  const machine::Machine mesh = machine::load("mi300x-8");
  const Operator op{.ranks = 8, .m = 1024, .n = 1024, .k = 512};
  EXPECT_THAT(test::message_of([&] { space_of(op, mesh, {.realizations = {"multicast"}}); }),
              HasSubstr("no switch"));
  EXPECT_THAT(test::message_of([&] { space_of(op, mesh, {.places = {"nowhere"}}); }),
              HasSubstr("nothing is left to explore"));
}

TEST(Explore, bounds_hold_and_losses_sum_to_what_is_lost) {
  study::Laboratory laboratory;
  for (const char* machine : {"mi300x-8", "dgx-h100"}) {
    Request request = request_of(kGather, machine);
    request.losses = LossesOf::all;
    const Exploration found = explore(laboratory, request);
    ASSERT_FALSE(found.candidates.empty());
    EXPECT_TRUE(found.refused.empty()) << found.refused.front().refused;
    EXPECT_GT(found.serial.time, found.ideal.time);
    for (const Candidate& candidate : found.candidates) {
      EXPECT_LE(candidate.bound.time, candidate.fluid) << candidate.schedule.text();
      ASSERT_TRUE(candidate.losses);
      std::int64_t sum = 0;
      for (const std::int64_t part : candidate.losses->parts) {
        EXPECT_GE(part, 0) << candidate.schedule.text();
        sum += part;
      }
      EXPECT_EQ(sum, (candidate.fluid - found.ideal.time).fs) << candidate.schedule.text();
    }
    std::int64_t counted = 1 + std::ssize(found.candidates) + found.left_out;
    for (const auto& [by, count] : found.pruned) counted += count;
    EXPECT_EQ(counted, found.space);
  }
}

TEST(Explore, finds_what_exhaustive_search_finds) {
  study::Laboratory laboratory;
  for (const Operator& op : {kGather, Operator{.m = 256, .n = 4096, .k = 2048}}) {
    Request request = request_of(op, "mi300x-8", "4");
    request.limits.degrees = {2};
    request.losses = LossesOf::none;
    const Exploration quick = explore(laboratory, request);
    request.exhaustive = true;
    const Exploration all = explore(laboratory, request);
    EXPECT_EQ(std::ssize(all.candidates) + 1, all.space);
    EXPECT_LT(quick.candidates.size(), all.candidates.size());
    EXPECT_LE(static_cast<double>(quick.best().fs), 1.001 * static_cast<double>(all.best().fs))
        << quick.candidates.front().schedule.text() << " against "
        << all.candidates.front().schedule.text();
  }
}

TEST(Explore, ranks_may_be_any_of_the_machines) {
  study::Laboratory laboratory;
  const auto found = [&](const char* ranks) {
    Request request = request_of({.m = 256, .n = 512, .k = 256}, "mi300x-8", ranks);
    request.limits.degrees = {2};
    request.losses = LossesOf::none;
    return explore(laboratory, request);
  };
  const Exploration first = found("4"), every_other = found("0,2,4,6");
  // All GPUs of a full mesh reach each other alike.
  EXPECT_EQ(every_other.serial.time, first.serial.time);
  EXPECT_EQ(every_other.best(), first.best());
}

TEST(Explore, is_the_same_with_several_threads) {
  study::Laboratory one, other;
  Request request = request_of(kGather, "mi300x-8", "4");
  const Exploration first = explore(one, request);
  request.options.threads = 3;
  const Exploration second = explore(other, request);
  ASSERT_EQ(first.candidates.size(), second.candidates.size());
  for (std::size_t i = 0; i < first.candidates.size(); ++i) {
    EXPECT_EQ(first.candidates[i].schedule, second.candidates[i].schedule);
    EXPECT_EQ(first.candidates[i].fluid, second.candidates[i].fluid);
    EXPECT_EQ(first.candidates[i].losses.has_value(), second.candidates[i].losses.has_value());
  }
}

TEST(Explore, confirms_by_sampled_when_asked) {
  study::Laboratory laboratory;
  Request request = request_of({.m = 256, .n = 512, .k = 256}, "mi300x-8", "4");
  request.top = 2;
  const Exploration found = explore(laboratory, request);
  ASSERT_TRUE(found.serial.confirmed);
  EXPECT_TRUE(found.candidates[0].confirmed && found.candidates[1].confirmed);
  EXPECT_LE(found.candidates[0].time(), found.candidates[1].time());
  EXPECT_FALSE(found.candidates[2].confirmed);
}

TEST(Explore, what_software_takes_is_in_the_times_of_schedules_and_not_in_that_of_serial) {
  study::Laboratory laboratory;
  Request request = request_of(kGather, "dgx-h100");
  request.losses = LossesOf::best;
  request.exhaustive = false;
  request.fluid = 8;
  const Exploration found = explore(laboratory, request);
  ASSERT_NE(found.winner(), nullptr);
  request.software = found.serial.time;
  const Exploration slower = explore(laboratory, request);
  EXPECT_EQ(slower.serial.time, found.serial.time);
  EXPECT_EQ(slower.winner(), nullptr);
  ASSERT_FALSE(slower.candidates.empty());
  for (const Candidate& candidate : slower.candidates) {
    EXPECT_GT(candidate.fluid, request.software) << candidate.schedule.text();
    EXPECT_GE(candidate.fluid, candidate.bound.time) << candidate.schedule.text();
    EXPECT_LT(slower.speedup(candidate), 1) << candidate.schedule.text();
    if (!candidate.losses) continue;
    std::int64_t sum = 0;
    for (const std::int64_t part : candidate.losses->parts) sum += part;
    EXPECT_EQ(sum, (candidate.fluid - slower.ideal.time).fs) << candidate.schedule.text();
  }
}

// Blocks that go to every GPU of the other node by themselves take its NICs eight times.
TEST(Explore, over_several_nodes_blocks_cross_once_and_are_spread_inside) {
  study::Laboratory laboratory;
  for (const OperatorKind kind :
       {OperatorKind::ag_gemm, OperatorKind::gemm_rs, OperatorKind::gemm_ar}) {
    const Operator op = kind == OperatorKind::ag_gemm
                            ? Operator{.kind = kind, .m = 4096, .n = 16384, .k = 4096}
                            : Operator{.kind = kind, .m = 4096, .n = 4096, .k = 16384};
    Request request{.op = op, .machine = {.name = "dgx-h100:2"}};
    request.top = 0;
    request.fluid = kind == OperatorKind::gemm_rs ? 4 : 12;  // kernels first, as they promise most
    request.limits.degrees = {2};
    request.losses = LossesOf::none;
    const Exploration found = explore(laboratory, request);
    // What NCCL adds up in the switches of both nodes, no schedule here comes up to.
    if (kind == OperatorKind::gemm_ar) {
      EXPECT_EQ(found.winner(), nullptr);
    }
    const Candidate* const best =
        kind == OperatorKind::gemm_ar ? &found.candidates.front() : found.winner();
    ASSERT_NE(best, nullptr);
    EXPECT_EQ(best->schedule.inner, 8);
    for (const Candidate& candidate : found.candidates) {
      EXPECT_GE(candidate.fluid, candidate.bound.time) << candidate.schedule.text();
      if (candidate.schedule.inner == 0) continue;
      const double ratio =
          static_cast<double>(candidate.estimate.fs) / static_cast<double>(candidate.fluid.fs);
      EXPECT_NEAR(ratio, 1, 0.3) << candidate.schedule.text();
    }
    for (const RulePick& pick : found.picks) {
      if (pick.rule != "analytic") continue;
      EXPECT_EQ(pick.pick.family, best->schedule.family);
    }
  }
}

/// The winner is proven and right on real data, as what it is and as what it is lowered to.
TEST(Explore, the_winner_is_a_plan_that_is_proven) {
  study::Laboratory laboratory;
  const Request request = request_of({.m = 128, .n = 256, .k = 128}, "mi300x-8", "4");
  const Exploration found = explore(laboratory, request);
  const plan::Plan plan = plan_of(laboratory, request, found.candidates.front().schedule);
  study::Experiment experiment{.machine = request.machine,
                               .subject = std::make_shared<const plan::Plan>(plan),
                               .type = DataType::bfloat16};
  experiment.options.engine = sim::Engine::fluid;
  EXPECT_EQ(laboratory.run(experiment).result.checked, "full");
}

TEST(Isolated, products_and_transfers_are_the_plan_without_the_other) {
  const plan::Plan plan =
      plan::make("ag-gemm/sequence", 4,
                 {{"m", "64"}, {"n", "64"}, {"k", "64"}, {"degree", "2"}, {"axis", "k"}});
  const plan::Plan products = only_computes(plan), transfers = only_transfers(plan);
  EXPECT_EQ(products.code(0).computes.size(), plan.code(0).computes.size());
  for (const plan::Stream& stream : products.code(0).streams) EXPECT_TRUE(stream.items.empty());
  EXPECT_TRUE(transfers.code(0).computes.empty());
  EXPECT_EQ(plan::count_transfers(transfers.stream(0, 0)),
            plan::count_transfers(plan.stream(0, 0)));
  plan::validate(products);
  plan::validate(transfers);
  // The second step reads c and writes it again: 64 x 16 elements of 2 B.
  EXPECT_EQ(extra_traffic(plan).count, 2 * 64 * 16 * 2);
  EXPECT_EQ(buffers(plan).count, 0);
}

}  // namespace
}  // namespace hemiola::explore

#include "study/laboratory/experiment.h"
#include "machine/devices/parameters.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <thread>

#include "plan/template.h"
#include "program/built_in.h"
#include "program/kernels/kernel.h"
#include "study/laboratory/identity.h"

namespace hemiola::study {
namespace {

Experiment ring_of(const std::string& machine, Bytes size) {
  return {.machine = {.name = machine}, .subject = "all-reduce/ring", .size = size};
}

/// A ring whose first workgroup does not wait once.
SharedProgram hasty_ring(int ranks) {
  auto program =
      std::make_shared<program::Program>(program::load("all-gather/direct", {.ranks = ranks}));
  for (program::Body& body : program->bodies) {
    const auto wait = std::find_if(body.ops.begin(), body.ops.end(), [](const program::Op& op) {
      return op.kind == program::OpKind::wait || op.kind == program::OpKind::relaxed_wait;
    });
    if (wait != body.ops.end()) body.ops.erase(wait);
  }
  return program;
}

TEST(Laboratory, gives_what_its_steps_give_by_hand) {
  Experiment experiment = ring_of("ring:4", KiB(64));
  experiment.machine.settings = {{"gpu.l2.latency", "300ns"}};
  experiment.parameters = {{"protocol", "ll"}};
  const Outcome outcome = Laboratory().run(experiment);

  const machine::SharedMachine machine =
      machine::share(machine::load("ring:4", {.set = {{"gpu.l2.latency", "300ns"}}}));
  const program::Bound bound = program::bind(
      program::load("all-reduce/ring",
                    {.ranks = 4, .parameters = {{"protocol", "ll"}}, .machine = machine}),
      machine, {.size = KiB(64)});
  EXPECT_EQ(outcome.result.time, sim::simulate(bound).time);
  EXPECT_EQ(outcome.result.line_hops, sim::simulate(bound).line_hops);
  EXPECT_EQ(outcome.result.checked, "full");
  ASSERT_NE(outcome.proof, nullptr);
  EXPECT_EQ(outcome.proof->operations, verify::check(bound).operations);
  EXPECT_EQ(outcome.proven_at, KiB(64));
  EXPECT_EQ(outcome.bound.size(), KiB(64));
}

TEST(Laboratory, takes_plans_programs_and_what_is_bound_as_it_takes_names) {
  Laboratory laboratory;
  Experiment experiment = ring_of("ring:4", KiB(64));
  const Outcome by_name = laboratory.run(experiment);
  const machine::SharedMachine machine = laboratory.machine({.name = "ring:4"});
  experiment.machine = {.given = machine};
  experiment.subject =
      std::make_shared<const plan::Plan>(plan::make("all-reduce/ring", 4, {}, machine.get()));
  EXPECT_EQ(laboratory.run(experiment).result.time, by_name.result.time);
  experiment.subject = std::make_shared<const program::Program>(
      program::load("all-reduce/ring", {.ranks = 4, .machine = machine}));
  EXPECT_EQ(laboratory.run(experiment).result.time, by_name.result.time);
  experiment.subject = by_name.bound;
  EXPECT_EQ(laboratory.run(experiment).result.time, by_name.result.time);
  EXPECT_EQ(laboratory.made().proofs, 1);  // they are the same
}

TEST(Laboratory, proves_once_what_differs_in_nothing_that_a_proof_asks_for) {
  Laboratory laboratory;
  for (const char* latency : {"100ns", "200ns", "300ns", "400ns"}) {
    Experiment experiment = ring_of("ring:4", KiB(16));
    experiment.machine.settings = {{"gpu.l2.latency", latency}};
    laboratory.run(experiment);
  }
  EXPECT_EQ(laboratory.made().machines, 4);
  EXPECT_EQ(laboratory.made().proofs, 1);
  Experiment experiment = ring_of("ring:4", KiB(16));
  experiment.machine.settings = {{"gpu.cu.max_workgroups", "31"}};
  laboratory.run(experiment);
  EXPECT_EQ(laboratory.made().proofs, 2);
  experiment.op = ReduceOp::max;
  laboratory.run(experiment);
  EXPECT_EQ(laboratory.made().proofs, 3);
}

TEST(Laboratory, makes_programs_and_bindings_once_for_other_options) {
  Laboratory laboratory;
  Experiment experiment = ring_of("ring:4", KiB(16));
  for (const sim::Engine engine : {sim::Engine::line, sim::Engine::reference, sim::Engine::fluid}) {
    experiment.options.engine = engine;
    laboratory.run(experiment);
  }
  const Laboratory::Made made = laboratory.made();
  EXPECT_EQ(made.machines, 1);
  EXPECT_EQ(made.programs, 1);
  EXPECT_EQ(made.bindings, 1);
  EXPECT_EQ(made.proofs, 1);
  EXPECT_EQ(made.simulations, 3);
  laboratory.forget();
  laboratory.run(experiment);
  EXPECT_EQ(laboratory.made().proofs, 2);
}

TEST(Laboratory, takes_the_proof_of_another_size_of_the_class) {
  Laboratory laboratory;
  const auto proven_at = [&](Bytes size) {
    Experiment experiment{
        .machine = {.name = "ring:4"}, .subject = "all-gather/direct", .size = size};
    experiment.options.engine = sim::Engine::fluid;
    return laboratory.run(experiment).proven_at;
  };
  EXPECT_EQ(proven_at(KiB(16)), KiB(16));
  for (int i = 2; i < 8; ++i) EXPECT_EQ(proven_at(KiB(16 * i)), KiB(16));
  EXPECT_EQ(laboratory.made().proofs, 1);
}

TEST(Laboratory, does_not_simulate_what_is_wrong_unless_it_is_not_to_check) {
  Laboratory laboratory;
  Experiment experiment{.machine = {.name = "ring:4"}, .subject = hasty_ring(4), .size = KiB(16)};
  for (int i = 0; i < 2; ++i) {  // a wrong one is not forgotten
    try {
      laboratory.run(experiment);
      FAIL() << "it is wrong";
    } catch (const WrongProgram& wrong) {
      EXPECT_EQ(wrong.code(), ExitCode::wrong_program);
      EXPECT_FALSE(wrong.proof().counterexample.empty());
    }
  }
  EXPECT_EQ(laboratory.made().proofs, 1);
  EXPECT_EQ(laboratory.made().simulations, 0);
  experiment.check = false;
  const Outcome outcome = laboratory.run(experiment);
  EXPECT_EQ(outcome.result.checked, "skipped");
  EXPECT_EQ(outcome.proof, nullptr);
}

TEST(Laboratory, tells_what_begins_and_each_notice_once) {
  std::string steps;
  std::size_t notices = 0;
  Experiment experiment = ring_of("ring:4", Bytes{1000});
  experiment.round_size = true;
  const Outcome outcome = Laboratory().run(
      experiment, {.on_step = [&](const Step& step) { steps += step.text() + "; "; },
                   .on_notices = [&](const Notices& found) { notices += found.size(); }});
  EXPECT_EQ(steps,
            "making all-reduce/ring; checking all-reduce/ring at 1 KiB on ring:4; simulating "
            "all-reduce/ring at 1 KiB on ring:4; ");
  EXPECT_EQ(notices, outcome.notices.size());
  EXPECT_TRUE(std::any_of(outcome.notices.begin(), outcome.notices.end(), [](const auto& notice) {
    return notice.message == "1000 B is run as 1 KiB, the next size that all-reduce/ring takes";
  }));
}

TEST(Laboratory, refuses_ranks_and_machines_that_are_not_there) {
  Laboratory laboratory;
  EXPECT_EQ(laboratory.machine({}), nullptr);
  EXPECT_EQ(laboratory.machine({.name = "ring:4", .ranks = "2"})->ranks(), 2);
  EXPECT_EQ(laboratory.machine({.name = "ring:4", .ranks = "3,1"})->ranks(), 2);
  EXPECT_THROW(laboratory.machine({.name = "ring:4", .ranks = "5"}), Failure);
  EXPECT_THROW(laboratory.machine({.name = "ring:4", .ranks = "1,9"}), Failure);
  EXPECT_THROW(laboratory.machine({.name = "rong:4"}), Failure);
  Experiment experiment = ring_of("ring:4", KiB(16));
  experiment.options.skew.resize(5);
  EXPECT_THROW(laboratory.run(experiment), Failure);
}

TEST(Laboratory, serves_several_threads_with_what_one_of_them_made) {
  Laboratory laboratory;
  std::vector<Time> times(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < times.size(); ++i) {
    threads.emplace_back([&, i] {
      times[i] = laboratory.run(ring_of("ring:4", KiB(i % 2 == 0 ? 16 : 32))).result.time;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < times.size(); ++i) EXPECT_EQ(times[i], times[i % 2]);
  EXPECT_LT(times[0], times[1]);
  EXPECT_EQ(laboratory.made().machines, 1);
  EXPECT_EQ(laboratory.made().bindings, 2);
}

TEST(Identity, is_that_of_the_contents) {
  const program::Program one = program::load("all-reduce/ring", {.ranks = 4});
  EXPECT_EQ(identity_of(one), identity_of(program::load("all-reduce/ring", {.ranks = 4})));
  std::vector<Identity> seen{identity_of(one)};
  const auto differs = [&](const auto& change) {
    program::Program other = one;
    change(other);
    seen.push_back(identity_of(other));
  };
  using P = program::Program;
  differs([](P& p) { p.name += "x"; });
  differs([](P& p) { p.bodies.front().ops.pop_back(); });
  differs([](P& p) { p.bodies.front().ops.back().where = "elsewhere"; });
  differs([](P& p) { p.bodies.front().ops.back().reduce = ReduceOp::max; });
  differs([](P& p) { p.bodies.front().ops.front().target += 1; });
  differs([](P& p) { p.kernels.front().threads += 32; });
  differs([](P& p) { p.semaphores.front().initial += 1; });
  differs([](P& p) { p.buffers.front().rotation += 1; });
  differs([](P& p) { p.fifo.slots += 1; });
  differs([](P& p) { p.codes.push_back(p.codes.front()); });
  differs([](P& p) { p.fixed_type = DataType::float16; });
  differs([](P& p) { p.warnings.warning("beware"); });
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
}

TEST(Identity, of_a_machine_is_what_a_proof_asks_for) {
  const auto facts = [](const std::string& name, const Settings& set) {
    const machine::Machine machine = machine::load(name, {.set = set});
    return proof_facts(&machine);
  };
  const Identity one = facts("dgx-h100", {});
  EXPECT_EQ(one, facts("dgx-h100", {{"gpu.l2.size", "25 MiB"}, {"link.*.latency", "1 us"}}));
  EXPECT_NE(one, proof_facts(nullptr));
  for (const auto& [name, value] : Settings{{"gpu.cu.count", "100"},
                                            {"gpu.cu.max_threads", "1024"},
                                            {"gpu.cu.max_workgroups", "16"},
                                            {"gpu.sync.wait", "syncmon"}})
    EXPECT_NE(one, facts("dgx-h100", {{name, value}})) << name;
  EXPECT_NE(one, facts("dgx-h100:4", {}));
  EXPECT_NE(facts("dgx-h100:2", {}), facts("dgx-h100:2", {{"gpu.fabric.forwards", "true"}}));
}

/// "300 ns" as "600 ns".
std::string doubled(const std::string& text) {
  std::size_t end = 0;
  const double number = std::stod(text, &end);
  return fmt::format("{}{}", number * 2, text.substr(end));
}

/// With every parameter changed that making a program is not to ask for.
machine::Machine changed_in_what_making_does_not_ask(machine::Machine machine) {
  const std::set<std::string_view> asked{"cu.count", "noc.io_rate", "noc.io_link",
                                         "fabric.forwards"};
  int changed = 0;
  for (const machine::Parameter& parameter : machine::gpu_parameters()) {
    if (asked.contains(parameter.name) || parameter.kind == "choice") continue;
    const std::string now = parameter.get(machine.model(0));
    if (parameter.kind != "flag" && (now.empty() || !std::isdigit(now.front()))) continue;
    const std::string next =
        parameter.kind == "flag" ? (now == "true" ? "false" : "true") : doubled(now);
    try {
      machine.set("gpu." + std::string(parameter.name), next);
      ++changed;
    } catch (const Failure&) {  // does not go with the others
    }
  }
  EXPECT_GT(changed, 60);
  return machine;
}

TEST(Identity, making_asks_nothing_of_a_machine_but_its_facts) {
  const auto one = machine::share(machine::load("dgx-h100:4"));
  const auto other = machine::share(changed_in_what_making_does_not_ask(*one));
  EXPECT_EQ(making_facts(one.get()), making_facts(other.get()));
  std::vector<std::string> names = program::built_in_names();
  for (const program::KernelInfo& info : program::kernels()) names.push_back(info.name);
  int compared = 0;
  for (const std::string& name : names) {
    const plan::TemplateInfo* info = plan::find_template(name);
    if (info != nullptr && (info->needs_machine || !info->in_chunks)) continue;
    const auto made = [&](const machine::SharedMachine& machine) -> std::optional<Identity> {
      try {
        const program::Program program =
            program::load(name, {.ranks = machine->ranks(), .machine = machine});
        return identity_of(program.sized({.size = KiB(64)}));
      } catch (const Failure&) {
        return std::nullopt;
      }
    };
    EXPECT_EQ(made(one), made(other)) << name;
    if (made(one)) ++compared;
  }
  EXPECT_GT(compared, 20);
}

TEST(Identity, of_a_machine_for_making_knows_its_graph) {
  const auto facts = [](const Settings& set) {
    const machine::Machine machine = machine::load("dgx-h100:2", {.set = set});
    return making_facts(&machine);
  };
  EXPECT_EQ(facts({}), facts({{"gpu.l2.latency", "1 us"}}));
  for (const auto& [name, value] : Settings{{"gpu.cu.count", "100"},
                                            {"gpu.noc.io_rate", "11 GB/s"},
                                            {"link.*.bandwidth", "10 GB/s"},
                                            {"switch.multicast", "false"},
                                            {"nic.rate", "1 GB/s"}})
    EXPECT_NE(facts({}), facts({{name, value}})) << name;
}

// A member of Program that identity_of() does not know would make two programs one.
TEST(Identity, knows_every_member_of_a_program) {
  struct Known {
    std::string texts[3];
    program::ExecutedBy executed_by;
    Collective collective;
    program::Protocol protocol;
    bool flags[2];
    int ranks;
    std::vector<int> before[2];
    std::int32_t connections[2];
    program::Fifo fifo;
    std::vector<int> lists[6];
    std::int32_t barriers;
    std::int64_t numbers[2];
    Bytes sizes[4];
    std::optional<DataType> fixed_type;
    Diagnostics warnings;
    std::shared_ptr<int> pointers[3];
    program::Program::Maker maker;
    std::int32_t derived[4];
  };
  EXPECT_EQ(sizeof(program::Program), sizeof(Known));
}

}  // namespace
}  // namespace hemiola::study

#include "program/built_in.h"
#include "program/bind/bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "machine/machine.h"

namespace hemiola::program {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

std::string built_in_failure(const std::string& name, int ranks,
                             const plan::Parameters& parameters) {
  try {
    make_built_in(name, {ranks, parameters});
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::bad_input);
    return failure.what();
  }
  return "no failure";
}

TEST(BuiltIn, a_name_that_is_no_template_gives_nothing) {
  EXPECT_FALSE(make_built_in("all-reduce", {8, {}}).has_value());
  EXPECT_FALSE(make_built_in("plan.json", {8, {}}).has_value());
}

TEST(BuiltIn, algorithms_are_listed_by_collective) {
  EXPECT_THAT(algorithms_of(Collective::send_recv), ElementsAre("send-recv/direct"));
  EXPECT_THAT(algorithms_of(Collective::all_reduce),
              IsSupersetOf({"all-reduce/ring", "all-reduce/two-shot", "all-reduce/nvls",
                            "all-reduce/nccl"}));
  EXPECT_TRUE(algorithms_of(Collective::custom).empty());
  for (const std::string& name : algorithms_of(Collective::all_gather))
    EXPECT_TRUE(is_built_in(name)) << name;
}

TEST(BuiltIn, parameters_reach_the_program) {
  const Program program =
      make_built_in("all-reduce/ring",
                    {4, {{"channels", "3"}, {"threads", "256"}, {"protocol", "ll"}}})
          .value();
  EXPECT_EQ(program.kernels[0].bodies.size(), 3u);
  EXPECT_EQ(program.kernels[0].threads, 256);
  EXPECT_EQ(program.protocol, Protocol::ll);
  EXPECT_EQ(program.ranks, 4);
  EXPECT_EQ(program.collective, Collective::all_reduce);
}

/// Channels of a ring program at a size.
int channels(const Program& program, Bytes size) {
  return bind(program, nullptr, {.size = program.next_legal_size(size, DataType::float32)})
      .workgroups(0);
}

TEST(BuiltIn, rings_take_as_many_channels_as_the_size_feeds) {
  const auto ring = [](int ranks, const plan::Parameters& parameters = {}) {
    return make_built_in("all-reduce/ring", {ranks, parameters}).value();
  };
  EXPECT_EQ(ring(8).workgroups(0), 24);  // without a size
  // 512 threads of 8 B in each of 8 chunks are 32 KiB for a channel.
  EXPECT_EQ(channels(ring(8), KiB(4)), 1);
  EXPECT_EQ(channels(ring(8), KiB(64)), 2);
  EXPECT_EQ(channels(ring(8), KiB(767)), 23);
  EXPECT_EQ(channels(ring(8), KiB(768)), 24);
  EXPECT_EQ(channels(ring(8), GiB(1)), 24);
  EXPECT_EQ(channels(ring(1024), MiB(1)), 1);
  EXPECT_EQ(channels(ring(1024), MiB(96)), 24);
  EXPECT_EQ(channels(ring(2), KiB(64)), 8);
  EXPECT_EQ(channels(ring(2, {{"protocol", "ll"}}), KiB(64)), 8);
  EXPECT_EQ(channels(ring(8, {{"threads", "256"}}), KiB(64)), 4);
  EXPECT_EQ(channels(ring(8, {{"channels", "7"}}), KiB(4)), 7);
  EXPECT_EQ(channels(ring(8, {{"channels", "30"}}), GiB(1)), 30);
}

TEST(BuiltIn, several_rings_keep_a_channel_each_while_it_feeds_three_warps) {
  const machine::Machine machine = machine::load("dgx1-v100");  // six rings
  const Program ring =
      make_built_in("all-gather/ring", {.ranks = 8, .machine = machine::share(machine)}).value();
  EXPECT_EQ(ring.workgroups(0), 24);
  EXPECT_EQ(channels(ring, KiB(1)), 1);
  EXPECT_EQ(channels(ring, KiB(12)), 2);
  EXPECT_EQ(channels(ring, KiB(36)), 6);
  EXPECT_EQ(channels(ring, KiB(256)), 6);  // not 8: rings share evenly
  EXPECT_EQ(channels(ring, KiB(384)), 12);
  EXPECT_EQ(channels(ring, MiB(1)), 24);
}

TEST(BuiltIn, templates_of_nvls_go_through_the_switch) {
  const auto by_switch = [](const Program& program) {
    return std::any_of(program.bodies.begin(), program.bodies.end(), [](const Body& body) {
      return std::any_of(body.ops.begin(), body.ops.end(),
                         [](const Op& op) { return op.channel == Channel::switch_; });
    });
  };
  const plan::Parameters small = {{"m", "256"}, {"n", "256"}, {"k", "256"}};
  const machine::Machine without = machine::load("dgx-a100"), with = machine::load("dgx-h100");
  for (const std::string name : {"all-reduce/nvls", "gemm-ar/nvls"}) {
    const plan::Parameters sizes = name == "gemm-ar/nvls" ? small : plan::Parameters{};
    EXPECT_TRUE(by_switch(make_built_in(name, {8, sizes}).value())) << name;
    EXPECT_TRUE(by_switch(make_built_in(name, {8, sizes, machine::share(with)}).value())) << name;
    plan::Parameters stated = sizes;
    stated.emplace_back("realization", "load-store");
    EXPECT_FALSE(by_switch(make_built_in(name, {8, stated, machine::share(without)}).value()))
        << name;
    try {
      make_built_in(name, {8, sizes, machine::share(without)});
      ADD_FAILURE() << name << " on a machine whose switches do not multicast";
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), ExitCode::bad_input);
      EXPECT_THAT(failure.what(), HasSubstr("'dgx-a100' has none"));
      EXPECT_THAT(failure.what(), HasSubstr("realization=load-store"));
    }
    const std::vector<plan::ParameterInfo> parameters = parameters_of(name);
    const auto realization =
        std::find_if(parameters.begin(), parameters.end(),
                     [](const plan::ParameterInfo& p) { return p.name == "realization"; });
    ASSERT_NE(realization, parameters.end());
    EXPECT_EQ(realization->default_value, "multicast") << name;
  }
}

TEST(BuiltIn, every_parameter_is_declared_with_a_description) {
  for (const std::string& name : built_in_names()) {
    for (const plan::ParameterInfo& parameter : parameters_of(name)) {
      EXPECT_FALSE(parameter.description.empty()) << name << " " << parameter.name;
      EXPECT_FALSE(parameter.default_value.empty()) << name << " " << parameter.name;
    }
  }
}

TEST(BuiltIn, defaults_written_out_change_nothing) {
  for (const std::string& name : built_in_names()) {
    plan::Parameters written;
    const plan::TemplateInfo& info = *plan::find_template(name);
    for (const plan::ParameterInfo& parameter : parameters_of(name)) {
      // Defaults that are not values, but rules.
      const bool is_rule = parameter.default_value.find(' ') != std::string::npos;
      if (!is_rule) written.emplace_back(parameter.name, parameter.default_value);
    }
    if (!info.in_chunks) continue;  // their defaults are large products: no time for them here
    const int ranks = 5;
    const machine::Machine ring = machine::load("ring:" + std::to_string(ranks));
    const machine::SharedMachine machine = info.needs_machine ? machine::share(ring) : nullptr;
    const Program implied = make_built_in(name, {ranks, {}, machine}).value();
    const Program stated = make_built_in(name, {ranks, written, machine}).value();
    ASSERT_EQ(implied.bodies.size(), stated.bodies.size()) << name;
    for (std::size_t i = 0; i < implied.bodies.size(); ++i)
      EXPECT_EQ(implied.bodies[i].ops, stated.bodies[i].ops) << name;
    EXPECT_EQ(implied.kernels[0].threads, stated.kernels[0].threads) << name;
  }
}

TEST(BuiltIn, bad_parameters_are_refused_with_a_suggestion) {
  EXPECT_THAT(built_in_failure("all-reduce/ring", 4, {{"chanels", "3"}}),
              HasSubstr("did you mean 'channels'?"));
  EXPECT_THAT(built_in_failure("all-reduce/ring", 4, {{"workgroups", "3"}}),
              HasSubstr("'all-reduce/ring' has no parameter 'workgroups'"));
  EXPECT_THAT(built_in_failure("all-reduce/ring", 4, {{"channels", "0"}}),
              HasSubstr("it is a number from 1 to 4096"));
  EXPECT_THAT(built_in_failure("all-reduce/ring", 4, {{"channels", "two"}}),
              HasSubstr("parameter 'channels' cannot be 'two'"));
  EXPECT_THAT(built_in_failure("all-reduce/ring", 4, {{"protocol", "ll12"}}),
              HasSubstr("did you mean 'll128'?"));
  EXPECT_THAT(built_in_failure("all-reduce/ring", 4, {{"piece", "12"}}),
              HasSubstr("it is a size such as 512KiB"));
  EXPECT_THAT(built_in_failure("all-gather/direct", 4, {{"barrier", "yes"}}),
              HasSubstr("it is 0, 1"));
  EXPECT_THAT(built_in_failure("all-gather/direct", 4, {{"transfer", "pul"}}),
              HasSubstr("did you mean 'pull'?"));
  EXPECT_THAT(built_in_failure("all-gather/direct", 0, {}), HasSubstr("needs at least 2 ranks"));
  EXPECT_THAT(built_in_failure("all-to-all/uneven", 4, {{"mean", "0"}}),
              HasSubstr("parameter 'mean' of 'all-to-all/uneven' cannot be 0"));
}

TEST(BuiltIn, packets_are_pushed_unless_told_otherwise) {
  EXPECT_NO_THROW(make_built_in("all-reduce/two-shot", {4, {{"protocol", "ll"}}}));
  EXPECT_THAT(built_in_failure("all-reduce/two-shot", 4, {{"protocol", "ll"}, {"gather", "pull"}}),
              HasSubstr("packets can only be pushed"));
  // Nor may a template be chosen that pulls: one-shot, which is the best of three with short links.
  const machine::Machine machine = machine::load("ring:3");
  EXPECT_NO_THROW(
      make_built_in("all-reduce/synth", {.ranks = 3,
                                         .parameters = {{"protocol", "ll"}, {"size", "256"}},
                                         .machine = machine::share(machine)}));
}

}  // namespace
}  // namespace hemiola::program

// What answers a replayed rank: rows of the recording while the replay is the run that was
// recorded, else the others, by themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "program/testing/bound.h"
#include "sim/replay/recorded_run.h"
#include "sim/result/profile.h"
#include "sim/simulate.h"
#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

program::Bound bound_at(const char* name, const machine::Machine& machine, Bytes size,
                        std::vector<std::pair<std::string, std::string>> parameters = {}) {
  const program::Program loaded = program::load(name, {.ranks = machine.ranks(),
                                                       .parameters = std::move(parameters),
                                                       .machine = machine::share(machine)});
  return program::bind(
      loaded, machine::share(machine),
      {.size = loaded.fixed_size.count > 0 ? loaded.fixed_size
                                           : loaded.next_legal_size(size, DataType::float32)});
}

/// A run of a few microseconds, and what came in at rank 0.
struct RecordedRun {
  machine::Machine machine = machine::load("dgx-h100");
  program::Bound program = bound_at("all-reduce/two-shot", machine, KiB(64));
  Profile profile;
  Result full = simulate(program, {.record = &profile});

  Result replay(Options options = {}) const { return replay(profile, options); }
  Result replay(const Profile& other, Options options = {}) const {
    options.replay = &other;
    return simulate(program, options);
  }
  /// Where the GPUs wait in another way.
  Result with_wait(const char* policy, Answers answers = Answers::automatic) const {
    const machine::Machine other = machine::load("dgx-h100", {.set = {{"gpu.sync.wait", policy}}});
    const program::Bound same = bound_at("all-reduce/two-shot", other, KiB(64));
    return simulate(same, {.replay = &profile, .answers = answers});
  }
};

TEST(ReplayAnswers, are_those_of_the_recording_while_this_is_the_recorded_run) {
  const RecordedRun recorded;
  const Result alone = recorded.replay();
  EXPECT_EQ(alone.answers, "recorded");
  EXPECT_THAT(alone.live_because, IsEmpty());
  EXPECT_EQ(alone.rank_end[0], recorded.full.rank_end[0]);
  EXPECT_THAT(recorded.full.answers, IsEmpty()) << "no replay";
  // What is set to what it is anyway changes nothing.
  EXPECT_EQ(recorded.with_wait("spin").answers, "recorded");
  EXPECT_EQ(recorded.with_wait("spin").time, recorded.full.rank_end[0]);
}

TEST(ReplayAnswers, are_live_with_another_way_to_wait) {
  const RecordedRun recorded;
  for (const char* policy : {"backoff", "monitor", "syncmon"}) {
    const Result other = recorded.with_wait(policy);
    EXPECT_EQ(other.answers, "live");
    EXPECT_EQ(other.live_because,
              std::string("gpu.sync.wait is ") + policy + ", and was spin when it was recorded");
    EXPECT_GT(other.time, Time{});
  }
  EXPECT_EQ(recorded.replay({.answers = Answers::live}).answers, "live");
  EXPECT_THAT(recorded.replay({.answers = Answers::live}).live_because, IsEmpty()) << "asked for";
}

TEST(ReplayAnswers, are_live_on_another_machine_or_launch_and_of_another_program) {
  const RecordedRun recorded;
  const machine::Machine slow = machine::load("dgx-h100", {.set = {{"gpu.hbm.latency", "700ns"}}});
  const auto because = [&](const program::Bound& program, Options options = {}) {
    options.replay = &recorded.profile;
    const Result result = simulate(program, options);
    EXPECT_EQ(result.answers, "live");
    return result.live_because;
  };
  EXPECT_THAT(because(bound_at("all-reduce/two-shot", slow, KiB(64))), HasSubstr("parameters"));
  EXPECT_THAT(because(recorded.program, {.launch = Launch::graph}), HasSubstr("launch"));
  program::Bound fewer = recorded.program;
  fewer = program::changed(fewer, [](auto& p) { p.kernels[0].unroll = 1; });
  EXPECT_THAT(because(fewer),
              HasSubstr("the program is not the recorded one, which was all-reduce/two-shot of 64 "
                        "KiB on dgx-h100"));
}

TEST(ReplayAnswers, of_edited_recordings_are_recorded_until_a_row_says_something_else) {
  const RecordedRun recorded;
  Profile edited = recorded.profile;
  std::reverse(edited.rows.begin(), edited.rows.end());
  edited = in_order(std::move(edited));
  for (ProfileRow& row : edited.rows) row.tag = "seen";
  const Result same = recorded.replay(edited);
  EXPECT_EQ(same.answers, "recorded");
  EXPECT_EQ(same.rank_end[0], recorded.full.rank_end[0]);
  edited.rows[100].time.fs += 1;
  edited = in_order(std::move(edited));
  const Result live = recorded.replay(edited);
  EXPECT_EQ(live.answers, "live");
  EXPECT_THAT(live.live_because, HasSubstr("rows are not those that were recorded"));
  // A femtosecond at a row of data changes nothing, whoever answers.
  EXPECT_EQ(live.time, recorded.replay({.answers = Answers::live}).time);
  EXPECT_EQ(recorded.replay(edited, {.answers = Answers::recorded}).time, same.time);
}

TEST(ReplayAnswers, that_are_forced_and_do_not_fit_are_refused) {
  const RecordedRun recorded;
  try {
    recorded.with_wait("monitor", Answers::recorded);
    ADD_FAILURE() << "monitors send other requests";
  } catch (const AnswersDoNotFit& failure) {
    EXPECT_EQ(failure.code(), ExitCode::bad_input);
    EXPECT_THAT(failure.diagnostics().items().front().hint, HasSubstr("--answers live"));
  }
  Profile no_answers = recorded.profile;
  std::erase_if(no_answers.rows, [](const ProfileRow& row) { return row.is_answer(); });
  EXPECT_THROW(recorded.replay(no_answers, {.answers = Answers::recorded}), Failure);
  EXPECT_THROW(recorded.replay({.at_ports = true, .answers = Answers::recorded}), Failure);
  EXPECT_EQ(recorded.replay(no_answers).answers, "live");
  EXPECT_THAT(recorded.replay(no_answers).live_because, IsEmpty()) << "there are no others";
}

TEST(ReplayAnswers,
     of_a_profile_that_does_not_say_where_it_is_from_are_left_out_if_they_do_not_fit) {
  RecordedRun recorded;
  recorded.profile.recorded = {};
  EXPECT_EQ(recorded.replay().answers, "recorded");
  EXPECT_EQ(recorded.replay().rank_end[0], recorded.full.rank_end[0]);
  const Result other = recorded.with_wait("monitor");
  EXPECT_EQ(other.answers, "live");
  EXPECT_THAT(other.live_because, HasSubstr("request"));
}

TEST(ReplayAnswers, of_another_rank_are_refused_with_the_rank_that_was_recorded) {
  const RecordedRun recorded;
  const auto message = [&](std::vector<int> ranks) {
    try {
      recorded.replay({.watched = std::move(ranks)});
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), ExitCode::bad_input);
      return std::string(failure.what());
    }
    return std::string("nothing");
  };
  EXPECT_THAT(message({3}), HasSubstr("was recorded at rank 0, not at rank 3"));
  EXPECT_THAT(message({0, 3}), HasSubstr("was recorded at rank 0, not at ranks 0,3"));
}

// Nobody simulates the switches of multicast groups, and what all members answer them.
TEST(ReplayAnswers, of_programs_with_multicast_groups_take_as_long_as_they_took) {
  const auto nvls = [](const char* policy) {
    return machine::load("dgx-h100", {.set = {{"gpu.sync.wait", policy}}});
  };
  const auto program = [](const machine::Machine& machine) {
    return bound_at("all-reduce/nvls", machine, KiB(64), {{"realization", "multicast"}});
  };
  const machine::Machine machine = nvls("spin");
  Profile profile;
  const Result full = simulate(program(machine), {.record = &profile, .watched = {1}});
  Options options{.replay = &profile, .watched = {1}};
  EXPECT_EQ(simulate(program(machine), options).answers, "recorded");
  options.answers = Answers::live;
  const Result live = simulate(program(machine), options);
  EXPECT_EQ(live.answers, "relative");
  EXPECT_EQ(live.rank_end[1], full.rank_end[1]) << "it asks the same at the same times";
  options.answers = Answers::automatic;
  for (const char* policy : {"backoff", "monitor", "syncmon"}) {
    const machine::Machine other = nvls(policy);
    const Result result = simulate(program(other), options);
    EXPECT_EQ(result.answers, "relative");
    EXPECT_THAT(result.live_because, HasSubstr(std::string("gpu.sync.wait is ") + policy));
    // Flags come as they came; what a way to wait changes are fractions of a microsecond.
    EXPECT_GT(result.time, full.time - Time::from_us(1));
    EXPECT_LT(result.time, full.time + Time::from_us(2));
  }
  delay(profile, 3, Time::from_us(20));
  const Result late = simulate(program(machine), options);
  EXPECT_GT(late.time, full.time + Time::from_us(19));
  EXPECT_LT(late.time, full.time + Time::from_us(21));
}

struct AnswerCase {
  const char* program;
  const char* machine;
  Bytes size;
  std::vector<std::pair<std::string, std::string>> parameters{};
};

class LiveAnswers : public testing::TestWithParam<AnswerCase> {};

// From ports all links are as they were, and an answer takes what it took where its GPU's memory
// has nothing else to do.
TEST_P(LiveAnswers, to_a_recording_at_ports_give_the_recorded_run) {
  const machine::Machine machine = machine::load(GetParam().machine);
  const program::Bound program =
      bound_at(GetParam().program, machine, GetParam().size, GetParam().parameters);
  for (const int rank : {0, machine.ranks() - 1}) {
    Profile profile;
    const Result full =
        simulate(program, {.record = &profile, .watched = {rank}, .at_ports = true});
    for (const Answers answers : {Answers::recorded, Answers::live}) {
      const Result alone =
          simulate(program, {.replay = &profile, .watched = {rank}, .answers = answers});
      EXPECT_EQ(alone.rank_end.at(static_cast<std::size_t>(rank)),
                full.rank_end.at(static_cast<std::size_t>(rank)))
          << "rank " << rank << ", " << alone.answers;
    }
  }
}

// An edited recording: where nobody waits for the others before it sends, a peer whose rows are
// late is one that starts late.
TEST(ReplayAnswers, to_a_recording_with_a_late_peer_give_the_run_in_which_it_starts_late) {
  for (const auto& [name, where, size] : {std::tuple("all-to-all/direct", "mi300x-8", KiB(64)),
                                          std::tuple("all-gather/direct", "dgx-h100", KiB(16))}) {
    const machine::Machine machine = machine::load(where);
    const program::Bound program = bound_at(name, machine, size);
    Profile profile;
    simulate(program, {.record = &profile, .at_ports = true});
    const Time late = Time::from_us(5);
    delay(profile, 3, late);
    const Result alone = simulate(program, {.replay = &profile});
    EXPECT_EQ(alone.answers, "live");
    const Result full = simulate(program, {.skew = {{}, {}, {}, late}});
    EXPECT_EQ(alone.rank_end[0], full.rank_end[0]) << name;
    EXPECT_EQ(alone.peer_waits.front().peer, 3);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Programs, LiveAnswers,
    testing::Values(AnswerCase{"all-reduce/ring", "dgx-h100", KiB(4)},
                    AnswerCase{"all-reduce/nccl", "dgx-h100", KiB(64)},
                    AnswerCase{"all-to-all/direct", "mi300x-8", KiB(64)},
                    AnswerCase{"gemv-ar/fused", "dgx-h100", {}, {{"m", "1024"}, {"k", "1024"}}},
                    AnswerCase{"gemv-ar/unfused", "switch:4", {}, {{"m", "512"}, {"k", "512"}}}),
    [](const testing::TestParamInfo<AnswerCase>& info) {
      return test::name_of_case(info.param.program, info.param.machine, info.index);
    });

}  // namespace
}  // namespace hemiola::sim

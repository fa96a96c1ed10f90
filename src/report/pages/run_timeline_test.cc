// What a page shows of a simulation, and what it leaves out.
#include "report/run_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "machine/machine.h"
#include "report/page.h"

namespace hemiola::report {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::size_t spans_of(const RunTimeline::Panels& panels) {
  std::size_t count = 0;
  for (const page::Timelines::Panel& panel : panels.panels)
    for (const page::Timelines::Track& track : panel.tracks) count += track.spans.size();
  return count;
}

std::string text_of(const RunTimeline::Panels& panels) {
  return page::to_json({.title = "", .blocks = {page::Timelines{"", "", panels.panels}}});
}

TEST(RunTimeline, shows_streams_engines_operations_and_links) {
  const machine::Machine machine = machine::load("ring:2");
  RunTimeline timeline(machine);
  timeline.stream(0, 0, "launch", {}, Time::from_us(1));
  timeline.stream(0, 0, "ring", Time::from_us(1), Time::from_us(9));
  timeline.engine(1, "DMA engine 0", "copy", Time::from_us(2), Time::from_us(3), {});
  timeline.workgroup(0, 0, 3, Time::from_us(1), Time::from_us(9));
  timeline.operation(0, 3, "put: move", Time::from_us(2), Time::from_us(4), {});
  timeline.operation(1, 3, "put: move", Time::from_us(2), Time::from_us(4), {});
  timeline.link(0, 1000, 1, Time::from_us(2), Time::from_us(3));
  const RunTimeline::Panels made = timeline.panels();
  ASSERT_EQ(made.panels.size(), 4U);
  const page::Timelines::Track& stream = made.panels[0].tracks[0];
  EXPECT_EQ(stream.name, "rank 0: stream 0");
  EXPECT_EQ(stream.spans[0].kind, "launch");
  EXPECT_EQ(stream.spans[1].kind, "kernel");
  EXPECT_EQ(stream.spans[1].end, Time::from_us(9));
  EXPECT_EQ(made.panels[1].tracks[0].name, "rank 1: DMA engine 0");
  ASSERT_EQ(made.panels[2].tracks.size(), 1U);  // of rank 0
  EXPECT_EQ(made.panels[2].tracks[0].spans[0].kind, "move");
  ASSERT_EQ(made.panels[3].tracks.size(), 1U);
  const page::Timelines::Span& link = made.panels[3].tracks[0].spans[0];
  EXPECT_LE(link.begin, Time::from_us(2));
  EXPECT_GE(link.end, Time::from_us(3));
  EXPECT_THAT(link.detail, HasSubstr("GB/s"));
}

TEST(RunTimeline, of_too_many_spans_the_longest_stay_and_it_says_so) {
  RunTimeline timeline(machine::load("ring:2"));
  constexpr int kMany = 20'000;
  for (int i = 0; i < kMany; ++i)
    timeline.operation(0, 0, "wait", {1000 * i}, {1000 * i + 1 + i % 500}, {});
  const RunTimeline::Panels made = timeline.panels();
  EXPECT_EQ(spans_of(made), RunTimeline::kSpans);
  std::string left_out;
  for (const std::string& sentence : made.left_out) left_out += sentence;
  EXPECT_THAT(left_out, HasSubstr("Operations: the 5000 longest of 20000 spans."));
  for (const page::Timelines::Span& span : made.panels[0].tracks[0].spans)
    EXPECT_GE((span.end - span.begin).fs, 375);
}

TEST(RunTimeline, workgroups_of_every_stream_are_shown) {
  RunTimeline timeline(machine::load("ring:2"));
  for (int group = 0; group < 100; ++group) {
    timeline.workgroup(0, group < 50 ? 0 : 1, group, {}, {10});
    timeline.operation(0, group, "compute", {1}, {2}, {});
  }
  const RunTimeline::Panels made = timeline.panels();
  ASSERT_EQ(made.panels.at(0).tracks.size(), RunTimeline::kWorkgroups);
  EXPECT_EQ(made.panels[0].tracks.back().name, "rank 0: stream 1, workgroup 57");
}

TEST(RunTimeline, does_not_depend_on_the_order_of_the_calls) {
  const machine::Machine machine = machine::load("ring:3");
  RunTimeline forth(machine), back(machine);
  constexpr int kCalls = 300;
  const auto call = [](RunTimeline& timeline, int i) {
    timeline.stream(i % 3, 0, i % 2 ? "a" : "b", {100 * i}, {100 * i + 50});
    timeline.operation(0, i % 5, i % 2 ? "put: move" : "wait", {70 * i}, {70 * i + 60}, {});
    timeline.link(i % 3, 64, 0, {1'000'000 * i}, {1'000'000 * i + 500'000});
  };
  for (int i = 0; i < kCalls; ++i) {
    call(forth, i);
    call(back, kCalls - 1 - i);
  }
  EXPECT_EQ(text_of(forth.panels()), text_of(back.panels()));
}

TEST(RunTimeline, of_nothing_has_nothing) {
  EXPECT_THAT(RunTimeline(machine::load("ring:2")).panels().panels, IsEmpty());
}

}  // namespace
}  // namespace hemiola::report

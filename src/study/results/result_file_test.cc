#include "study/results/result_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/diagnostics.h"

namespace hemiola::study {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

/// As report::to_json() writes it, with a key of some later version.
const std::string kText = R"({
  "schema": "hemiola/1",
  "command": "hemiola run all-reduce/ring --machine ring:2",
  "machine": "ring:2",
  "program": "all-reduce/ring",
  "engine": "line",
  "results": [
    {
      "size_bytes": 1024,
      "settings": {"gpu.l2.size": "25MiB"},
      "time_fs": 12345678901,
      "time_ns": 12345.678901,
      "later": [1, {"x": 2.5}],
      "checked": "full",
      "counters": {"l2.hits": 7, "poll.requests": 11},
      "links": [
        {"from": "a", "to": "b", "payload_bytes": 8, "wire_bytes": 9, "busy_fs": 10, "max_queue": 1},
        {"from": "a", "to": "b", "payload_bytes": 8, "wire_bytes": 9, "busy_fs": 20, "max_queue": 1}
      ],
      "attribution": [
        {"rank": 1, "fs": {"launch": 12345678902, "link": -1, "finished": 0}},
        {"rank": 0, "fs": {"launch": 345678901, "finished": 12000000000}}
      ]
    }
  ]
})";

std::string results_failure(const std::string& text) {
  try {
    read_results(text, "r.json");
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::bad_input);
    return failure.what();
  }
  return "no failure";
}

std::string failure_with(const std::string& from, const std::string& to) {
  std::string text = kText;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return results_failure(text.replace(at, from.size(), to));
}

TEST(ResultFile, holds_what_a_run_wrote) {
  const ResultFile file = read_results(kText, "r.json");
  EXPECT_EQ(file.machine, "ring:2");
  EXPECT_EQ(file.engine, "line");
  ASSERT_EQ(file.results.size(), 1u);
  const StoredResult& result = file.results.front();
  EXPECT_EQ(result.size, KiB(1));
  EXPECT_EQ(result.time.fs, 12'345'678'901);
  EXPECT_EQ(result.checked, "full");
  EXPECT_THAT(result.settings, UnorderedElementsAre(Pair("gpu.l2.size", "25MiB")));
  EXPECT_THAT(result.counters, UnorderedElementsAre(Pair("l2.hits", 7), Pair("poll.requests", 11)));
  ASSERT_EQ(result.links.size(), 2u);
  EXPECT_EQ(result.links[1].lane, 1) << "parallel links are entries of their own";
  EXPECT_EQ(result.links[1].busy.fs, 20);
  ASSERT_EQ(result.ranks.size(), 2u);
  EXPECT_EQ(result.ranks[0].rank, 0) << "in the order of their numbers";
  EXPECT_EQ(result.ranks[1].fs.at("link"), -1);
}

TEST(ResultFile, refuses_what_is_no_result) {
  EXPECT_THAT(results_failure("size,time\n1,2\n"),
              AllOf(HasSubstr("r.json"), HasSubstr("not the JSON")));
  EXPECT_THAT(results_failure("[1]"), HasSubstr("not the JSON of a result"));
  EXPECT_THAT(results_failure(R"({"name": "x"})"), HasSubstr("not the JSON of a result"));
  EXPECT_THAT(results_failure(kText.substr(0, kText.size() / 2)), HasSubstr("truncated"));
  EXPECT_THAT(failure_with("hemiola/1", "hemiola/2"),
              AllOf(HasSubstr("r.json:2"), HasSubstr("'hemiola/2'"), HasSubstr("'hemiola/1'")));
  EXPECT_THAT(failure_with("hemiola run", "hemiola validate"),
              HasSubstr("`hemiola validate` wrote"));
  EXPECT_THAT(
      results_failure(R"({"schema": "hemiola/1", "command": "hemiola sweep x", "points": []})"),
      HasSubstr("`hemiola sweep` wrote"));
  EXPECT_THAT(
      results_failure(R"({"schema": "hemiola/1", "command": "hemiola run x", "results": []})"),
      HasSubstr("no results"));
}

TEST(ResultFile, refuses_figures_that_cannot_be) {
  EXPECT_THAT(failure_with("12345678901,", "1.5,"),
              AllOf(HasSubstr("r.json:11"), HasSubstr("whole number")));
  EXPECT_THAT(failure_with("12345678901,", "9000000000000000000,"), HasSubstr("range"));
  EXPECT_THAT(failure_with("12345678901,", "-1,"), HasSubstr("range"));
  EXPECT_THAT(failure_with("345678901, ", "345678902, "),
              AllOf(HasSubstr("rank 0 does not sum to the time"), HasSubstr("attribution/1")));
  EXPECT_THAT(failure_with("\"rank\": 0", "\"rank\": 1"), HasSubstr("rank 1 stands twice"));
  EXPECT_THAT(failure_with("\"size_bytes\"", "\"sise_bytes\""), HasSubstr("'size_bytes'"));
}

}  // namespace
}  // namespace hemiola::study

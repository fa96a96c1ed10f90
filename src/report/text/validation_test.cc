#include "report/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

namespace hemiola::report {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

/// Two rows of 1 KiB, simulated 25 % too long and exactly, and one of 1 GiB.
study::Judgement judgement() {
  const auto row = [](int line, Bytes size, double measured_us, Time simulated, double error) {
    return study::RowResult{.measured = {.line = line, .size = size, .time_us = measured_us},
                            .ranks = 2,
                            .collective = Collective::all_reduce,
                            .program = "all-reduce/ring",
                            .simulated_size = size,
                            .simulated = simulated,
                            .errors = {error, -0.5}};
  };
  study::Judgement made{.name = "an entry",
                        .kind = study::Kind::check,
                        .table = "a,b.csv",
                        .machine = "ring:2",
                        .program = "all-reduce/ring",
                        .options = {.warmup = 1, .iterations = 2},
                        .marks = study::Marks{study::Mark{0.1, 0.2}}};
  made.validation.trivial = {.latency_us = 2, .us_per_byte = 1e-5, .fitted_to = "c", .rows = 4};
  made.validation.checked = "full";
  made.validation.rows = {row(3, KiB(1), 4, Time::from_us(5), 0.25),
                          row(4, KiB(1), 5, Time::from_us(5), 0), row(5, GiB(1), 4000, {}, 0)};
  made.validation.rows[1].simulated_size = Bytes{1536};
  made.validation.rows[2].skipped = "larger than 16 MiB";
  made.summaries = study::summarise_regimes(made.validation.rows);
  return made;
}

TEST(ValidationJson, has_the_keys_of_the_design) {
  const auto json = nlohmann::json::parse(validation_json("hemiola validate x", {judgement()}));
  for (const char* key : {"schema", "command", "machine", "program", "engine", "rows", "summary"})
    EXPECT_TRUE(json.contains(key)) << key;
  ASSERT_EQ(json["rows"].size(), 3u);
  EXPECT_EQ(json["rows"][0]["size_bytes"], 1024);
  EXPECT_EQ(json["rows"][0]["measured_us"], 4.0);
  EXPECT_EQ(json["rows"][0]["simulated_us"], 5.0);
  EXPECT_EQ(json["rows"][0]["error"], 0.25);
  EXPECT_EQ(json["rows"][0]["trivial_error"], -0.5);
  EXPECT_TRUE(json["rows"][2]["simulated_us"].is_null());
  EXPECT_EQ(json["rows"][2]["not_simulated"], "larger than 16 MiB");
  for (const char* regime : {"<1MB", "1-64MB", "64-128MB", ">=128MB"})
    for (const char* key : {"n", "bias", "median", "worst", "geomean", "trivial_median"})
      EXPECT_TRUE(json["summary"][regime].contains(key)) << regime << ' ' << key;
  EXPECT_EQ(json["summary"]["<1MB"]["n"], 2);
  EXPECT_EQ(json["summary"]["<1MB"]["median"], 0.125);
  EXPECT_NEAR(json["summary"]["<1MB"]["bias"].get<double>(), std::sqrt(1.25) - 1, 1e-12);
  EXPECT_EQ(json["summary"][">=128MB"]["n"], 0);
  EXPECT_TRUE(json["summary"][">=128MB"]["bias"].is_null());
  EXPECT_EQ(json["entries"][0]["trivial"]["scale"], "2(n-1)/n x size");
  EXPECT_EQ(json["interrupted"], false);
  EXPECT_EQ(json["entries"][0]["trivial"]["rows"], 4);
  EXPECT_TRUE(json["entries"][0]["software_us"].is_null());
  EXPECT_TRUE(json["comparisons"].empty());
}

TEST(ValidationJson, says_that_it_is_not_all_that_was_asked_for) {
  const auto json = nlohmann::json::parse(validation_json("", {judgement()}, {}, {}, true));
  EXPECT_EQ(json["interrupted"], true);
}

study::MicroResult benchmark() {
  return {
      .name = "micro-x",
      .program = "micro/launch threads=64",
      .machine = "dgx-h100",
      .measured = {.hardware = "H100", .metric = "per launch, \"graph\"", .unit = "us", .value = 2},
      .simulated = 2.5,
      .error = 0.25,
      .checked = "full"};
}

TEST(ValidationJson, has_microbenchmarks) {
  const auto json = nlohmann::json::parse(validation_json("", {}, {}, {benchmark()}));
  ASSERT_EQ(json["micro"].size(), 1u);
  EXPECT_EQ(json["micro"][0]["metric"], "per launch, \"graph\"");
  EXPECT_EQ(json["micro"][0]["measured"], 2.0);
  EXPECT_EQ(json["micro"][0]["simulated"], 2.5);
  EXPECT_EQ(json["micro"][0]["error"], 0.25);
  EXPECT_TRUE(nlohmann::json::parse(validation_json("", {judgement()}))["micro"].empty());
}

TEST(SuitePage, ends_with_microbenchmarks) {
  std::ostringstream out;
  print_suite(out, {}, {}, {benchmark()});
  EXPECT_THAT(out.str(),
              ContainsRegex("micro-x +2 +2.5  us +\\+25.0  dgx-h100 +micro/launch threads=64\n"));
  EXPECT_THAT(out.str(), HasSubstr("# microbenchmarks: 1, median 25.0 %, worst 25.0 %"));
  EXPECT_THAT(out.str(), HasSubstr(", bias +25.0 %"));
  EXPECT_THAT(out.str(), ::testing::Not(HasSubstr("marks met"))) << "no entries were judged";
}

TEST(ValidationJson, has_comparisons) {
  const study::OrderResult order{
      .name = "a or b", .sizes = 5, .decided = 4, .right = 3, .measured_crossover = KiB(64)};
  const auto json = nlohmann::json::parse(validation_json("", {judgement()}, {order}));
  EXPECT_EQ(json["comparisons"][0]["right"], 3);
  EXPECT_EQ(json["comparisons"][0]["measured_crossover_bytes"], 65536);
  EXPECT_TRUE(json["comparisons"][0]["simulated_crossover_bytes"].is_null());
}

TEST(ValidationCsv, has_a_line_for_every_row) {
  EXPECT_EQ(validation_csv({judgement()}),
            "entry,table,line,size_bytes,ranks,dtype,measured_us,simulated_us,error,trivial_error,"
            "program,simulated_size_bytes,not_simulated\n"
            "an entry,\"a,b.csv\",3,1024,2,float,4,5.000000000,0.25,-0.5,all-reduce/ring,1024,\n"
            "an entry,\"a,b.csv\",4,1024,2,float,5,5.000000000,0,-0.5,all-reduce/ring,1536,\n"
            "an entry,\"a,b.csv\",5,1073741824,2,float,4000,,,-0.5,all-reduce/ring,,larger than 16 "
            "MiB\n");
}

TEST(ValidationTable, says_what_was_moved_and_what_was_left_out) {
  std::ostringstream out;
  print_validation(out, judgement());
  EXPECT_THAT(out.str(), HasSubstr("simulated at 1536 B"));
  EXPECT_THAT(out.str(), HasSubstr("not simulated: larger than 16 MiB"));
  EXPECT_THAT(out.str(), HasSubstr("2 of 3 rows: 1 larger than 16 MiB"));
  EXPECT_THAT(out.str(),
              HasSubstr("2.00 us + 2(n-1)/n x size / 100.0 GB/s, fitted to 4 rows of c"));
  EXPECT_THAT(out.str(), HasSubstr("+25.0"));
  EXPECT_THAT(out.str(), ContainsRegex("regime +rows +bias +median")) << out.str();
  EXPECT_THAT(out.str(), ContainsRegex("<1MB +2 +\\+11.8 +12.5")) << "sqrt(1.25) is 1.118";
}

TEST(ValidationTable, names_what_the_trivial_model_scales_with) {
  study::Judgement mixed = judgement();
  mixed.validation.rows[0].collective = Collective::all_gather;
  EXPECT_EQ(trivial_scale(mixed.validation), "(n-1)/n x size or 2(n-1)/n x size");
  for (study::RowResult& row : mixed.validation.rows) row.collective = Collective::send_recv;
  EXPECT_EQ(trivial_scale(mixed.validation), "size");
}

TEST(SuitePage, says_which_marks_are_met) {
  std::ostringstream out;
  study::Judgement good = judgement();
  good.validation.rows[0].errors.simulated = 0.05;
  good.summaries = study::summarise_regimes(good.validation.rows);
  good.validation.software_us = 1.5;
  study::Judgement large{.name = "large", .kind = study::Kind::check, .marks = study::Marks{}};
  large.validation.rows = {judgement().validation.rows[2]};
  print_suite(out, {judgement(), good, large}, {{.name = "a or b", .sizes = 5}});
  EXPECT_THAT(out.str(), HasSubstr("a or b"));
  EXPECT_THAT(out.str(), ContainsRegex("large +check +none +0\n"));
  EXPECT_THAT(out.str(), HasSubstr("missed  median 10, worst 20"));
  EXPECT_THAT(out.str(), HasSubstr("met     median 10, worst 20"));
  EXPECT_THAT(out.str(), HasSubstr("marks met: 1 of 2; simulated 4 of 7 rows"));
}

}  // namespace
}  // namespace hemiola::report

// What a user does first: the verbs with input that is right.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program.h"

namespace hemiola::test {
namespace {

using Json = nlohmann::json;

TEST(Help, every_verb_shows_worked_examples) {
  const Workplace place;
  const std::vector<std::string> verbs{"run",
                                       "check",
                                       "machine",
                                       "plan",
                                       "machine show",
                                       "machine validate",
                                       "machine list",
                                       "machine convert",
                                       "plan make",
                                       "plan show",
                                       "plan convert",
                                       "validate",
                                       "sweep",
                                       "diff",
                                       "tune",
                                       "workload make",
                                       "workload search"};
  for (const std::string& verb : verbs) {
    const Outcome help = place.run(verb + " --help");
    EXPECT_EQ(help.code, 0);
    const std::size_t examples = help.out.find("Examples:");
    ASSERT_NE(examples, std::string::npos) << verb;
    int count = 0;
    for (std::size_t at = examples;
         (at = help.out.find("\n  hemiola ", at + 1)) != std::string::npos;)
      ++count;
    EXPECT_GE(count, 2) << verb;
  }
}

TEST(Help, names_nothing_that_does_not_exist) {
  const Workplace place;
  const std::string help = place.run("--help").out;
  EXPECT_FALSE(contains(help, "later")) << help;
  EXPECT_TRUE(contains(help, "5 a limit that was asked for is exceeded")) << help;
}

TEST(Version, names_build_type_and_compiler) {
  const Outcome version = Workplace().run("--version");
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(contains(version.out, "hemiola ")) << version.out;
  EXPECT_TRUE(contains(version.out, "build type: ")) << version.out;
  EXPECT_TRUE(contains(version.out, "compiler: ")) << version.out;
}

// docs/machines.md, "One link only".
TEST(Machine, one_slow_link_is_an_edge_annotated_in_a_file) {
  const Workplace place;
  ASSERT_EQ(place.run("machine convert switch:4 --quiet -o slow.yaml").code, 0);
  place.write(
      "slow.yaml",
      place.read("slow.yaml") +
          "  edges:\n  - {ep1: \"gpu[2].xpu[0]\", ep2: \"switch[0].switch[0]\", attributes: "
          "[{attribute: hemiola.bandwidth, value: 45 GB/s}]}\n");
  const auto time_of = [&](const std::string& arguments) {
    const Outcome run =
        place.run("run all-reduce/ring --size 256KiB --no-check --quiet --json r " + arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return Json::parse(place.read("r"))["results"][0]["time_fs"].get<std::int64_t>();
  };
  const std::int64_t even = time_of("--machine switch:4");
  EXPECT_GT(time_of("--machine slow.yaml"), even);
  EXPECT_EQ(time_of("--machine slow.yaml --set link.link-2.bandwidth=450GB/s"), even);
  EXPECT_TRUE(contains(place.run("machine show slow.yaml --quiet").out, "link-2")) << "its class";
  const Outcome run = place.run("run all-reduce/ring --size 4KiB --machine slow.yaml --quiet");
  EXPECT_TRUE(contains(run.out, "all 4 GPUs: ways between ranks differ")) << run.out;
}

TEST(Plan, files_are_made_shown_checked_run_and_lifted) {
  const Workplace place;
  EXPECT_EQ(place.run("plan make all-gather/direct --mesh 2x2 --param transfer=pull -o plan").code,
            0);
  const Outcome shown = place.run("plan show plan --rank 2");
  EXPECT_TRUE(contains(shown.out, "2.0.0  pull  3     input[0]  output[3]")) << shown.out;
  EXPECT_FALSE(contains(shown.out, "rank 1")) << shown.out;
  EXPECT_TRUE(contains(place.run("plan show plan --graph dot").out, "digraph plan {"));
  EXPECT_TRUE(contains(place.run("plan show plan --graph mermaid").out, "flowchart LR"));
  EXPECT_TRUE(contains(place.run("plan show plan --waves output").out, "output[1]"));
  const Outcome check = place.run("check plan --data");
  EXPECT_EQ(check.code, 0) << check.err;
  EXPECT_TRUE(contains(check.out, "check: proven")) << check.out;
  EXPECT_TRUE(contains(check.out, "data: right")) << check.out;
  const Outcome run =
      place.run("run plan --machine ring:4 --size 64KiB --param workgroups=2 --quiet");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "full")) << run.out;
  // What a program does is a plan, and a shape makes a plan of elements.
  place.write("json", fixture("pair.json"));
  EXPECT_EQ(place.run("plan convert json --to plan --size 64KiB -o lifted").code, 0);
  EXPECT_EQ(place.run("check lifted").code, 0);
  EXPECT_EQ(place.run("plan make all-gather/ring --ranks 4 --shape 16x2 -o rows").code, 0);
  EXPECT_TRUE(contains(place.run("plan show rows --rank 1").out, "output[4:8, 0:2]"));
}

TEST(Check, a_plan_on_a_machine_is_proven_with_its_compute_units) {
  const Workplace place;
  const std::string plan =
      "check ag-gemm/ring --machine dgx-h100 --quiet --param m=256 --param n=128 --param k=128";
  const Outcome fits = place.run(plan);
  EXPECT_EQ(fits.code, 0) << fits.out << fits.err;
  EXPECT_TRUE(contains(fits.out, "on dgx-h100\ncheck: proven")) << fits.out;
  // One workgroup at a time: the kernel waits for copies that find no place.
  const Outcome crowded = place.run(plan + " --set gpu.cu.count=1 --set gpu.cu.max_workgroups=1");
  EXPECT_EQ(crowded.code, 4) << crowded.out << crowded.err;
  EXPECT_TRUE(contains(crowded.out, "has not started: there is no room")) << crowded.out;
}

TEST(Plan, one_of_a_machine_follows_its_links) {
  const std::string make =
      "plan make all-gather/synth --machine torus:2x2 --param size=65536 --quiet";
  const Outcome made = Workplace().run(make);
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(contains(made.out, "\"hemiola_plan\": 1")) << made.out;
  EXPECT_TRUE(contains(made.out, "(simulated)")) << made.out;
  const Outcome estimated = Workplace().run(make + " --param judge=estimate");
  EXPECT_EQ(estimated.code, 0) << estimated.err;
  EXPECT_FALSE(contains(estimated.out, "(simulated)")) << estimated.out;
}

TEST(Check, right_programs_of_both_formats_are_right) {
  const Workplace place;
  place.write("json", fixture("pair.json"));
  place.write("xml", fixture("pair.xml"));
  for (const char* file : {"json", "xml"}) {
    const Outcome check = place.run(std::string("check ") + file + " --size 64KiB");
    EXPECT_EQ(check.code, 0) << check.out << check.err;
    EXPECT_FALSE(check.out.empty());
  }
}

TEST(Check, data_runs_the_program_too) {
  const Workplace place;
  place.write("json", fixture("pair.json"));
  const Outcome check = place.run("check json --size 64KiB --data --seed 3 --rounds 2");
  EXPECT_EQ(check.code, 0) << check.out << check.err;
  EXPECT_TRUE(contains(check.out, "data: right: ")) << check.out;
  EXPECT_NE(place.run("check json --size 64KiB --seed 3").code, 0) << "a seed of nothing";
  EXPECT_EQ(place.run("check json --size 64KiB --dtype half --data").code, 2);
}

TEST(Check, writes_json_with_calls_sizes_and_warnings) {
  const Workplace place;
  place.write("json", fixture("pair.json"));
  const Outcome check = place.run("check json --size 64KiB --json proof --calls 2");
  EXPECT_EQ(check.code, 0) << check.out << check.err;
  EXPECT_TRUE(contains(check.out, "\nsizes: ")) << check.out;
  const Json proof = Json::parse(place.read("proof"));
  EXPECT_EQ(proof["schema"], "hemiola/1");
  EXPECT_EQ(proof["verdict"], "proven");
  EXPECT_EQ(proof["calls"], 2);
  EXPECT_LE(proof["sizes"]["min_bytes"], 65536);
  for (const char* key : {"command", "program", "summary", "proven", "reasons", "warnings",
                          "counterexample", "checks"})
    EXPECT_TRUE(proof.contains(key)) << key;
  EXPECT_EQ(place.run("check json --size 64KiB --calls 2 --data --rounds 3").code, 2);
  const int with_warnings = proof["warnings"].empty() ? 0 : 3;
  EXPECT_EQ(place.run("check json --size 64KiB --warnings-as-errors").code, with_warnings);
}

TEST(Check, warnings_are_errors_where_the_user_says_so) {
  const Workplace place;
  place.write("plan", R"({"hemiola_plan": 1, "collective": "broadcast",
    "mesh": [{"axis": "r", "size": 2}],
    "tensors": [{"name": "in", "role": "input", "shape": [1]},
                {"name": "out", "role": "output", "shape": [1]}],
    "codes": [{"ranks": "0", "streams": [{"items": [
      {"op": "copy", "source": {"tensor": "in", "begin": [0]},
       "destination": {"tensor": "out", "begin": [0]}},
      {"op": "push", "peer": 1, "source": {"tensor": "in", "begin": [0]},
       "destination": {"tensor": "in", "begin": [0]}}]}]},
      {"ranks": "1", "streams": [{"items": [
      {"op": "copy", "source": {"tensor": "in", "begin": [0]},
       "destination": {"tensor": "out", "begin": [0]},
       "after": [{"rank": 0, "transfer": 1}]}]}]}]})");
  const Outcome check = place.run("check plan");
  EXPECT_EQ(check.code, 0) << check.out << check.err;
  EXPECT_TRUE(contains(check.out, "overwrites the caller's input")) << check.out;
  EXPECT_EQ(place.run("check plan --warnings-as-errors").code, 3);
}

TEST(Run, writes_all_outputs_and_the_json_has_the_keys_of_the_design) {
  const Workplace place;
  place.write("plan", fixture("pair.json"));
  place.write("machine", fixture("pair.yaml"));
  const Outcome run = place.run(
      "run plan --machine machine --size 64KiB --json r.json --csv r.csv --trace r.trace");
  ASSERT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_EQ(place.files(), "machine plan r.csv r.json r.trace ");
  const Json json = Json::parse(place.read("r.json"));
  for (const char* key : {"schema", "command", "machine", "program", "engine", "results"})
    EXPECT_TRUE(json.contains(key)) << key;
  ASSERT_EQ(json["results"].size(), 1u);
  const Json& result = json["results"][0];
  EXPECT_EQ(result["size_bytes"], 65536);
  EXPECT_EQ(result["checked"], "full");
  for (const Json& rank : result["attribution"]) {
    std::int64_t sum = 0;
    for (const auto& [reason, fs] : rank["fs"].items()) sum += fs.get<std::int64_t>();
    EXPECT_EQ(sum, result["time_fs"]);
  }
}

TEST(Run, is_the_same_twice) {
  const Workplace place;
  const std::string command = "run all-reduce/ring --machine ring:4 --size 64KiB --csv ";
  ASSERT_EQ(place.run(command + "a").code, 0);
  ASSERT_EQ(place.run(command + "b").code, 0);
  EXPECT_EQ(place.read("a"), place.read("b"));
  EXPECT_FALSE(place.read("a").empty());
}

TEST(Run, a_collective_tries_its_built_ins_and_names_the_best) {
  const Outcome run = Workplace().run("run all-reduce --machine dgx-h100 --size 64KiB");
  ASSERT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "is the fastest of")) << run.out;
  EXPECT_TRUE(contains(run.out, "all-reduce/ring")) << run.out;
}

TEST(Run, the_engine_fluid_writes_the_keys_and_link_bytes_of_the_others) {
  const Workplace place;
  const std::string command = "run all-reduce/ring --machine dgx-h100 --size 1MiB --json ";
  ASSERT_EQ(place.run(command + "line --engine line").code, 0);
  ASSERT_EQ(place.run(command + "fluid --engine fluid").code, 0);
  ASSERT_EQ(place.run(command + "unfolded --engine fluid --no-fold").code, 0);
  const Json line = Json::parse(place.read("line")), fluid = Json::parse(place.read("fluid"));
  const Json unfolded = Json::parse(place.read("unfolded"));
  EXPECT_EQ(fluid["engine"], "fluid");
  const Json &a = line["results"][0], &b = fluid["results"][0];
  for (const auto& [key, value] : a.items()) EXPECT_TRUE(b.contains(key)) << key;
  for (const auto& [key, value] : a["counters"].items())
    EXPECT_TRUE(b["counters"].contains(key)) << key;
  ASSERT_EQ(a["links"].size(), b["links"].size());
  for (std::size_t l = 0; l < a["links"].size(); ++l) {
    EXPECT_EQ(a["links"][l]["wire_bytes"], b["links"][l]["wire_bytes"]);
    EXPECT_EQ(a["links"][l]["busy_fs"], b["links"][l]["busy_fs"]);
  }
  EXPECT_NEAR(b["time_fs"].get<double>() / a["time_fs"].get<double>(), 1, 0.1);
  EXPECT_EQ(b["links"], unfolded["results"][0]["links"]);
}

TEST(Run, several_values_of_settings_make_a_table_of_all_combinations) {
  const Workplace place;
  const Outcome run = place.run(
      "run all-reduce/ring --machine ring:4 --size 64KiB --json r "
      "--set gpu.l2.latency=100ns,200ns --set 'link.*.latency=300ns,400ns'");
  ASSERT_EQ(run.code, 0) << run.out << run.err;
  for (const char* row :
       {"gpu.l2.latency=100ns link.*.latency=300ns", "gpu.l2.latency=100ns link.*.latency=400ns",
        "gpu.l2.latency=200ns link.*.latency=300ns", "gpu.l2.latency=200ns link.*.latency=400ns"})
    EXPECT_TRUE(contains(run.out, row)) << run.out;
  EXPECT_EQ(Json::parse(place.read("r"))["results"].size(), 4u);
}

TEST(Run, the_result_says_when_the_program_was_not_checked) {
  const Workplace place;
  ASSERT_EQ(place.run("run all-reduce/ring --machine ring:2 --size 4KiB --no-check --json r").code,
            0);
  EXPECT_EQ(Json::parse(place.read("r"))["results"][0]["checked"], "skipped");
}

TEST(Run, quiet_leaves_standard_error_empty) {
  const Outcome run = Workplace().run("run all-reduce/ring --machine ring:2 --size 4KiB --quiet");
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.err, "");
}

TEST(Run, a_default_size_is_printed) {
  const Outcome run = Workplace().run("run all-reduce/ring --machine ring:2");
  EXPECT_EQ(run.code, 0);
  EXPECT_TRUE(contains(run.err, "no --size is given: 1 MiB")) << run.err;
}

TEST(Validate, a_table_is_compared_row_by_row_and_the_json_has_the_keys_of_the_design) {
  const Workplace place;
  place.write("table",
              "# two machines\nkernel,size_bytes,time_us,gpus\nfast,4096,10,2\n"
              "fast,8192,12,2\nslow,8192,20,2\nfast,33554432,900,2\n");
  place.write("calibration", "kernel,size_bytes,time_us\nfast,4096,8\nfast,8192,8\nslow,1,1\n");
  const std::string command =
      "validate table --machine ring:4 --program all-reduce/ring --launch graph --param channels=1 "
      "--where kernel=fast --where gpus=2 --calibrate calibration --quiet --csv v.csv --json ";
  const Outcome run = place.run(command + "v.json");
  ASSERT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_TRUE(contains(run.out, "not simulated: larger than 16 MiB")) << run.out;
  EXPECT_TRUE(contains(run.out, "2 of 3 rows")) << run.out;
  const Json json = Json::parse(place.read("v.json"));
  EXPECT_EQ(json["schema"], "hemiola/1");
  ASSERT_EQ(json["rows"].size(), 3u);
  const Json& row = json["rows"][1];
  EXPECT_EQ(row["size_bytes"], 8192);
  EXPECT_EQ(row["measured_us"], 12.0);
  EXPECT_NEAR(row["error"], row["simulated_us"].get<double>() / 12 - 1, 1e-9);
  EXPECT_NEAR(row["trivial_error"], 8.0 / 12 - 1, 1e-9) << "fitted to `fast` of the calibration";
  EXPECT_EQ(json["summary"]["<1MB"]["n"], 2);
  EXPECT_EQ(json["entries"][0]["checked"], "full");
  ASSERT_EQ(place.run(command + "again.json").code, 0);
  const std::string again = place.read("again.json");
  EXPECT_EQ(again.substr(again.find("\"machine\"")),
            place.read("v.json").substr(place.read("v.json").find("\"machine\"")));
}

TEST(Validate, sizes_and_rows_to_calibrate_with_can_be_chosen) {
  const Workplace place;
  place.write("table",
              "kernel,size_bytes,time_us,gpus\nfast,4096,10,4\nfast,8192,12,4\n"
              "fast,33554432,900,4\nold,4096,30,2\nold,8192,40,2\n");
  const std::string command =
      "validate table --machine ring:4 --program all-reduce/ring --no-check --where kernel=fast "
      "--json v.json --calibrate table ";
  // Pairs of the old kernel: 20 us and 8192 B in 20 us, of which four ranks send 1.5 times as much.
  const Outcome run = place.run(command + "--calibrate-where kernel=old --size 2KiB:8KiB:x2");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.err, "no row has the size 2 KiB")) << run.err;
  EXPECT_TRUE(contains(run.out, "20.00 us + 2(n-1)/n x size / 0.4 GB/s, fitted to 2 rows of table"))
      << run.out;
  const Json json = Json::parse(place.read("v.json"));
  ASSERT_EQ(json["rows"].size(), 2u);
  EXPECT_NEAR(json["rows"][1]["trivial_error"], (20 + 1.5 * 20) / 12 - 1, 1e-9);
  // What is asked for by its size is simulated, however large.
  const Outcome large = place.run(
      "validate table --machine ring:4 --program all-reduce/ring --no-check --where kernel=fast "
      "--size 32MiB --engine fluid");
  EXPECT_EQ(large.code, 0) << large.err;
  EXPECT_TRUE(contains(large.out, "1 of 1 rows")) << large.out;
}

TEST(Validate, the_output_of_nccl_tests_is_a_table) {
  const Workplace place;
  place.write("log",
              "# nThread 1 nGpus 2 minBytes 1024 maxBytes 1024\n"
              "#  size  count  type  redop  root  time  algbw  busbw #wrong\n"
              "   1024    256  half    sum    -1   7.5   0.10   0.10      0\n"
              "# Avg bus bandwidth    : 0.1\n");
  const Outcome run = place.run("validate log --machine ring:4 --program all-reduce/ring --quiet");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_TRUE(contains(run.out, "1024     2  half     7.500")) << run.out;
  EXPECT_TRUE(contains(run.out, "1 rows of the same table")) << run.out;
}

TEST(Validate, without_a_table_it_runs_entries_of_the_shipped_suite) {
  const Workplace place;
  const Outcome run = place.run("validate --only h100-vllm-4 --json v.json");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "h100-vllm-4  check  <1MB")) << run.out;
  EXPECT_TRUE(contains(run.out, "marks met: ")) << run.out;
  const Json json = Json::parse(place.read("v.json"));
  EXPECT_EQ(json["entries"][0]["trivial"]["fitted_to"], "h100-vllm-2");
}

TEST(Validate, microbenchmarks_are_part_of_the_suite_and_follow_settings) {
  const Workplace place;
  const Outcome run = place.run(
      "validate --only micro-h100-launch --set gpu.launch.graph_interval=2600ns --json v.json");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "# microbenchmarks: 2, median 50.0 %, worst 100.0 %")) << run.out;
  const Json json = Json::parse(place.read("v.json"));
  ASSERT_EQ(json["micro"].size(), 2u);
  EXPECT_EQ(json["micro"][0]["name"], "micro-h100-launch-stream");
  EXPECT_NEAR(json["micro"][0]["error"], 0, 1e-9);
  EXPECT_NEAR(json["micro"][1]["simulated"], 2.6, 1e-9);
  EXPECT_TRUE(json["rows"].empty());
}

TEST(Machine, a_converted_machine_is_valid_and_the_same) {
  const Workplace place;
  ASSERT_EQ(place.run("machine convert dgx-h100 -o a.yaml").code, 0);
  const Outcome validated = place.run("machine validate a.yaml");
  EXPECT_EQ(validated.code, 0) << validated.err;
  EXPECT_TRUE(contains(validated.out, "8 GPUs")) << validated.out;
  ASSERT_EQ(place.run("machine convert a.yaml -o b.yaml").code, 0);
  EXPECT_EQ(place.read("a.yaml"), place.read("b.yaml"));
}

TEST(Machine, the_list_names_machines_and_gpu_models) {
  const Outcome list = Workplace().run("machine list");
  EXPECT_EQ(list.code, 0);
  EXPECT_TRUE(contains(list.out, "dgx-h100")) << list.out;
  EXPECT_TRUE(contains(list.out, "mi300x")) << list.out;
}

TEST(Plan, a_built_in_written_as_a_file_is_still_right) {
  const Workplace place;
  ASSERT_EQ(
      place.run("plan make all-reduce/ring --ranks 4 --param channels=1 --to msccl -o ring.xml")
          .code,
      0);
  const Outcome check = place.run("check ring.xml");
  EXPECT_EQ(check.code, 0) << check.out << check.err;
}

TEST(Plan, a_program_survives_conversion) {
  const Workplace place;
  place.write("plan", fixture("pair.json"));
  ASSERT_EQ(place.run("plan convert plan --to mscclpp -o again").code, 0);
  const Outcome first = place.run("plan show plan");
  const Outcome second = place.run("plan show again");
  EXPECT_EQ(first.code, 0);
  EXPECT_EQ(first.out, second.out);
}

}  // namespace
}  // namespace hemiola::test

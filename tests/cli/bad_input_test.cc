// What goes in wrong: one row per mistake, with the exit code and the words that the message must
// have. A row's content, if any, stands in the file `input`, whose name gives no format away.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "program.h"

namespace hemiola::test {
namespace {

struct BadInput {
  std::string name;  ///< of the test
  std::string arguments;
  std::string content;  ///< of the file `input`; empty: no such file
  int code;
  std::vector<std::string> words;  ///< that the messages contain
};

void PrintTo(const BadInput& row, std::ostream* out) {
  *out << row.arguments;
}

constexpr const char* kCheck = "check input";
constexpr const char* kMachine = "machine validate input";

std::string with_machine(const std::string& program) {
  return "run " + program + " --machine ring:4 ";
}

/// The command line itself.
std::vector<BadInput> usage_rows() {
  const std::string run = with_machine("all-reduce/ring");
  return {
      {"no_verb", "", "", 2, {"Usage", "run", "check"}},
      {"unknown_verb", "chekc x", "", 2, {"unknown verb 'chekc'", "did you mean 'check'"}},
      {"unknown_option", run + "--sise 1MiB", "", 2, {"unknown option '--sise'", "'--size'"}},
      {"unknown_option_of_a_verb_inside",
       "machine show ring:4 --gup x",
       "",
       2,
       {"--gup", "'--gpu'"}},
      {"option_without_value", "run all-reduce/ring --machine", "", 2, {"--machine"}},
      {"argument_too_many", run + "another", "", 2, {"unexpected argument 'another'"}},
      {"no_program", "run --machine ring:4", "", 2, {"no program", "all-reduce/ring"}},
      {"no_machine", "run all-reduce/ring --size 1MiB", "", 2, {"--machine", "machine list"}},
      {"machine_without_verb", "machine", "", 2, {"show, validate, list, convert"}},
      {"verb_of_a_later_version",
       "predict kernel.py --machine ring:4",
       "",
       2,
       {"unknown verb 'predict'", "replay, diff, explore, compile, tune"}},
      {"operator_that_is_none",
       "explore ag-gem --gemm 8,8,8 --machine ring:4",
       "",
       2,
       {"'ag-gem' is not an operator", "ag-gemm"}},
      {"words_of_copy_engines_without_them",
       run + "--param prelaunch=1",
       "",
       2,
       {"'prelaunch' is said of copy engines", "realization=copy-engine"}},
      {"swap_of_what_is_gathered",
       with_machine("all-gather/direct") + "--param realization=copy-engine --param command=swap",
       "",
       2,
       {"command=swap", "all-gather", "all-to-all"}},
      {"swap_that_is_not_in_place",
       with_machine("all-to-all/direct") + "--param realization=copy-engine --param command=swap",
       "",
       2,
       {"command=swap", "in_place=1"}},
      {"broadcast_with_one_destination",
       "run all-gather/direct --machine ring:2 --param realization=copy-engine "
       "--param command=broadcast",
       "",
       2,
       {"command=broadcast has two destinations"}},
      {"copy_engines_that_a_machine_has_not",
       with_machine("all-gather/direct") +
           "--set gpu.dma.engines=0 --param realization=copy-engine",
       "",
       2,
       {"have no copy engines (gpu.dma.engines is 0)", "realization=load-store"}},
      {"copy_engines_to_explore_that_a_machine_has_not",
       "explore ag-gemm --gemm 64,64,64 --machine ring:4 --set gpu.dma.engines=0 "
       "--realization copy-engine",
       "",
       2,
       {"have no copy engines"}},
      {"operator_without_sizes", "explore ag-gemm --machine ring:4", "", 2, {"no sizes are given"}},
      {"sizes_that_do_not_divide",
       "explore ag-gemm --gemm 30,64,64 --machine ring:4",
       "",
       2,
       {"M = 30 does not divide by 4", "28 and 32"}},
      {"type_that_is_not_multiplied",
       "explore ag-gemm --gemm 32,64,64 --machine ring:4 --dtype int32",
       "",
       2,
       {"no schedule multiplies int32", "bf16"}},
      {"two_sizes_of_three",
       "explore ag-gemm --gemm 32,64 --machine ring:4",
       "",
       2,
       {"2 sizes are given, not M, N and K"}},
      {"steps_that_nothing_divides_into",
       "explore ag-gemm --gemm 32,64,64 --machine dgx-h100 --degrees 5 --realization bulk --place "
       "nowhere",
       "",
       2,
       {"'nowhere'"}},
      {"switch_that_is_not_there",
       "explore ag-gemm --gemm 64,64,64 --machine mi300x-8 --realization multicast",
       "",
       2,
       {"no switch of mi300x-8"}},
      {"operator_too_large",
       "explore ag-gemm --gemm 8589934592,8589934592,8589934592 --machine mi300x-8",
       "",
       2,
       {"more than 2^60"}},
      {"unknown_engine", run + "--engine lines", "", 2, {"'lines'", "did you mean 'line'"}},
      {"option_of_a_later_version", run + "--emit x", "", 2, {"unknown option '--emit'"}},
      {"size_with_fraction_of_a_byte", run + "--size 1.5", "", 2, {"'1.5' is not a size"}},
      {"size_beyond_64_bits", run + "--size 99999999999999999999", "", 2, {"is not a size"}},
      {"size_of_zero", run + "--size 0B", "", 2, {"greater than zero"}},
      {"size_with_unknown_unit", run + "--size 5MiBs", "", 2, {"--size", "'5MiBs' is not a size"}},
      {"size_and_sizes", run + "--size 1MiB --size 1MiB:2MiB:x2", "", 2, {"--size", "--size"}},
      {"sizes_that_never_grow", run + "--size 1KiB:1GiB:x1", "", 2, {"factor", "x2"}},
      {"sizes_backwards", run + "--size 1MiB:1KiB:x2", "", 2, {"ends before it starts"}},
      {"unknown_type", run + "--dtype flaot", "", 2, {"'flaot'", "did you mean 'float'"}},
      {"unknown_reduction", run + "--op add", "", 2, {"'add'", "sum"}},
      {"unknown_launch", run + "--launch grpah", "", 2, {"'grpah'", "did you mean 'graph'"}},
      {"negative_count", run + "--iterations -1", "", 2, {"--iterations"}},
      {"warmup_alone", run + "--warmup 2", "", 2, {"--warmup", "--iterations"}},
      {"skew_without_unit", run + "--skew 0,5", "", 2, {"--skew", "'0' is not a time"}},
      {"skew_of_too_many_ranks", run + "--skew 0ns,0ns,0ns,0ns,5us", "", 2, {"--skew", "5", "4"}},
      {"rank_without_record", run + "--record-rank 1", "", 2, {"--record"}},
      {"window_without_trace", run + "--trace-lines 0ns:1us", "", 2, {"--trace"}},
      {"window_backwards",
       run + "--trace t --trace-lines 2us:1us",
       "",
       2,
       {"ends before it starts"}},
      {"recording_of_several_runs",
       run + "--record t --size 1MiB:4MiB:x2",
       "",
       2,
       {"--record", "one"}},
      {"recording_of_no_rank", run + "--record t --record-rank 4", "", 2, {"no rank 4 of 4"}},
      {"trace_of_several_runs", run + "--trace t --size 1MiB:4MiB:x2", "", 2, {"--trace", "one"}},
      {"setting_without_value", run + "--set gpu.l2.size", "", 2, {"--set", "NAME=VALUE"}},
      {"setting_twice",
       run + "--set gpu.l2.size=1MiB --set gpu.l2.size=2MiB",
       "",
       2,
       {"set twice"}},
      {"unknown_setting", run + "--set gpu.l2.sise=1MiB", "", 2, {"l2.sise", "l2.size"}},
      {"setting_with_wrong_unit", run + "--set gpu.l2.size=1GB/s", "", 2, {"l2.size", "1GB/s"}},
      {"setting_of_zero_rate", run + "--set 'link.*.bandwidth=0 GB/s'", "", 2, {"bandwidth"}},
      {"setting_of_negative_rate",
       run + "--set 'link.*.bandwidth=-5 GB/s'",
       "",
       2,
       {"bandwidth", "-5"}},
      {"rank_that_is_not_there", run + "--ranks 0,9", "", 2, {"9"}},
      {"more_ranks_than_gpus", run + "--ranks 5", "", 2, {"--ranks", "4 GPUs"}},
      {"unknown_gpu_model", "machine show ring:4 --gpu h101", "", 2, {"h101", "h100"}},
      {"unknown_machine", "machine show dgx-h10", "", 2, {"dgx-h10", "dgx-h100"}},
      {"unknown_built_in",
       with_machine("all-reduce/rnig"),
       "",
       2,
       {"all-reduce/rnig", "all-reduce/ring"}},
      {"unknown_parameter", run + "--param chanels=2", "", 2, {"chanels", "channels"}},
      {"collective_without_built_in", with_machine("custom"), "", 2, {"custom", "all-reduce/ring"}},
      {"illegal_size", run + "--size 1000001B", "", 2, {"1000001", "legal"}},
      {"output_into_a_missing_folder",
       run + "--size 64KiB --json none/x.json",
       "",
       2,
       {"--json", "none/x.json"}},
  };
}

/// Programs.
std::vector<BadInput> program_rows() {
  return {
      {"missing_program", "check none.json", "", 2, {"none.json", "no file"}},
      {"folder_as_program", "check .", "", 2, {"folder"}},
      {"blank_program", kCheck, " \n\t\n", 2, {"input", "no known kind"}},
      {"binary_program",
       kCheck,
       std::string("\x7f"
                   "ELF\x02\x01\0\0\xff\xfe",
                   10),
       2,
       {"input", "binary"}},
      {"truncated_gzip",
       kCheck,
       std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03\xab", 11),
       2,
       {"input", "ends early"}},
      {"sentence_as_program", kCheck, "a plan, please\n", 2, {"input", "no known kind"}},
      {"truncated_json", kCheck, fixture("pair.json").substr(0, 700), 2, {"input:"}},
      {"malformed_json", kCheck, edited("pair.json", "\"ops\": [", "\"ops\": [,"), 2, {"input:6"}},
      {"json_of_another_kind", kCheck, R"({"plan": 1})", 2, {"input:", "'plan'"}},
      {"unknown_json_key",
       kCheck,
       edited("pair.json", "inplace", "inplaec"),
       2,
       {"inplaec", "inplace"}},
      {"unknown_operation",
       kCheck,
       edited("pair.json", "\"rres\"", "\"rrse\""),
       2,
       {"rrse", "/gpus/0"}},
      {"index_out_of_range",
       kCheck,
       edited("pair.json", "\"index\": 0", "\"index\": 7"),
       2,
       {"/gpus/0"}},
      {"peer_that_is_not_there",
       kCheck,
       edited("pair.json", "\"connected_to\": [1]", "\"connected_to\": [5]"),
       2,
       {"5", "/gpus/0"}},
      {"truncated_xml", kCheck, fixture("pair.xml").substr(0, 500), 2, {"input"}},
      {"malformed_xml", kCheck, edited("pair.xml", "</tb>", "</bt>"), 2, {"input"}},
      {"xml_of_another_kind", kCheck, "<html/>", 2, {"input", "XML"}},
      {"unknown_step",
       kCheck,
       edited("pair.xml", "type=\"rrcs\"", "type=\"rrsc\""),
       2,
       {"rrsc", "gpu"}},
      {"unknown_attribute", kCheck, edited("pair.xml", "chan=", "chann="), 2, {"chann"}},
      {"chunk_out_of_range", kCheck, edited("pair.xml", "srcoff=\"1\"", "srcoff=\"9\""), 2, {"9"}},
      {"dependency_that_is_not_there",
       kCheck,
       edited("pair.xml", "depid=\"-1\" deps=\"-1\"", "depid=\"3\" deps=\"0\""),
       2,
       {"3"}},
      {"machine_as_program", kCheck, fixture("pair.yaml"), 2, {"InfraGraph", "--machine"}},
      {"more_ranks_than_the_machine",
       "run input --machine ring:4 --ranks 1",
       fixture("pair.json"),
       2,
       {"2", "1"}},
      {"illegal_size_of_a_file",
       "check input --size 1000001B",
       fixture("pair.json"),
       2,
       {"1000001", "legal"}},
      {"parameter_of_a_file",
       "check input --param channels=2",
       fixture("pair.json"),
       2,
       {"--param", "built-in"}},
      {"lost_contribution", kCheck, edited("pair.xml", "\"rrcs\"", "\"rcs\""), 3, {}},
      {"wrong_program_is_not_run",
       "run input --machine ring:2 --json x",
       edited("pair.xml", "\"rrcs\"", "\"rcs\""),
       3,
       {"not simulated"}},
      {"missing_signal",
       kCheck,
       edited("pair.json", "\"signal\", \"channel_ids\": [0], \"channel_type\": \"memory\"",
              "\"nop\""),
       4,
       {}},
      {"deadlock_is_not_run",
       "run input --machine ring:2 --csv x",
       edited("pair.xml", "type=\"s\"", "type=\"nop\""),
       4,
       {"not simulated"}},
  };
}

/// Formats that other verbs read.
std::vector<BadInput> other_format_rows() {
  const std::string chakra(
      "\x07\x0a\x05"
      "0.0.4"
      "\x02\x08\x01",
      11);
  const std::string network = "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50.0 ]\n";
  const std::string system = R"({"scheduling-policy": "LIFO", "endpoint-delay": 10})";
  const std::string kineto = R"({"schemaVersion": 1, "traceEvents": []})";
  return {
      {"chakra_program", kCheck, chakra, 2, {"Chakra execution trace", "'hemiola run' takes it"}},
      {"chakra_machine", kMachine, chakra, 2, {"Chakra execution trace"}},
      {"kineto_program", kCheck, kineto, 2, {"Kineto trace", "'hemiola run' takes it"}},
      {"astra_network_program", kCheck, network, 2, {"ASTRA-sim network", "--machine"}},
      {"astra_network_machine", kMachine, network, 2, {"ASTRA-sim network"}},
      {"astra_system_program", kCheck, system, 2, {"ASTRA-sim system", "--machine"}},
      {"astra_system_machine", kMachine, system, 2, {"ASTRA-sim system"}},
  };
}

/// Plans.
std::vector<BadInput> plan_rows() {
  const std::string plan = R"({"hemiola_plan": 1, "mesh": [{"axis": "x", "size": 2}],
 "tensors": [{"name": "input", "role": "input", "shape": [1]}, {"name": "output", "role": "output", "shape": [2]}],
 "collective": "all-gather", "chunks_per_size": 2,
 "codes": [{"ranks": "all", "streams": [{"items": [
  {"op": "push", "peer": "(rank + 1) % 2", "source": {"tensor": "input", "begin": [0]},
   "destination": {"tensor": "output", "begin": ["rank"]}},
  {"op": "copy", "source": {"tensor": "input", "begin": [0]},
   "destination": {"tensor": "output", "begin": ["rank"]}}]}]}]})";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = plan;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  return {
      {"plan_unknown_tensor",
       kCheck,
       with("\"tensor\": \"output\"", "\"tensor\": \"outptu\""),
       2,
       {"input:6", "outptu", "output", "/destination/tensor"}},
      {"plan_outside",
       kCheck,
       with("[\"rank\"]", "[\"rank + 1\"]"),
       2,
       {"input:6", "rank 1", "outside"}},
      {"plan_truncated", kCheck, plan.substr(0, plan.size() / 2), 2, {"input:"}},
      {"plan_wrong", kCheck, with("[\"rank\"]", "[0]"), 3, {}},
      {"plan_waits_for_itself",
       kCheck,
       with("\"op\": \"copy\",",
            "\"op\": \"copy\", \"after\": [{\"rank\": \"(rank + 1) % 2\", \"transfer\": 1}],"),
       4,
       {}},
      {"plan_has_no_such_rank",
       "plan show all-gather/ring --ranks 4 --rank 4",
       "",
       2,
       {"--rank", "3"}},
      {"plan_graph_of_no_kind", "plan show all-gather/ring --graph doot", "", 2, {"doot", "dot"}},
      {"plan_shape_does_not_divide",
       "plan make all-gather/ring --ranks 4 --shape 6x2",
       "",
       2,
       {"multiple of 4"}},
      {"plan_mesh_of_other_size",
       "plan make all-gather/ring --ranks 4 --mesh 2x3",
       "",
       2,
       {"--mesh", "6"}},
      {"plan_settings_of_no_machine",
       "plan make all-gather/ring --set gpu.cu.unroll=1",
       "",
       2,
       {"--machine"}},
      {"plan_without_machine", "plan make all-gather/synth", "", 2, {"--machine"}},
  };
}

/// Tables of measured times.
std::vector<BadInput> table_rows() {
  const std::string table = "size_bytes,time_us,num_gpus,kernel\n4096,10,2,fast\n";
  const std::string validate =
      "validate input --machine ring:2 --program all-reduce/ring --json x --csv y ";
  const auto row = [&](const std::string& name, const std::string& options,
                       const std::string& content, std::vector<std::string> words) {
    return BadInput{name, validate + options, content, 2, std::move(words)};
  };
  return {
      row("table_without_times", "", "size_bytes,num_gpus\n4096,2\n",
          {"input:1", "no column 'time_us'", "--column"}),
      row("table_with_text_for_a_time", "", table + "8192,fast,2,fast\n",
          {"input:3", "'time_us'", "'fast'"}),
      row("table_with_text_for_a_size", "", table + "8 KiB,10,2,fast\n",
          {"input:3", "'size_bytes'", "'8 KiB'"}),
      row("table_with_a_time_of_zero", "", table + "8192,0,2,fast\n",
          {"input:3", "'time_us'", "greater than zero"}),
      row("table_with_a_negative_time", "", table + "8192,-1,2,fast\n", {"input:3", "'-1'"}),
      row("table_with_a_short_row", "", table + "8192,1\n", {"input:3", "2 cells", "4 columns"}),
      row("table_of_more_gpus", "", table + "8192,1,4,fast\n",
          {"input:3", "4 GPUs", "'ring:2' has 2"}),
      row("table_that_is_blank", "", "\n\n", {"input", "no heading"}),
      row("unknown_kernel", "--where kernel=slow", table, {"'slow'", "'kernel'", "fast"}),
      row("unknown_column", "--where kernle=fast", table, {"'kernle'", "did you mean 'kernel'"}),
      row("where_without_value", "--where kernel", table, {"--where", "COLUMN=VALUE"}),
      row("column_that_is_not_there", "--column time_us=us", table, {"'us'", "its columns are"}),
      row("suite_option_with_a_table", "--only h100", table, {"--only", "suite"}),
      row("max_size_without_unit", "--max-size much", table, {"--max-size", "'much'"}),
      row("size_that_no_row_has", "--size 8KiB", table, {"input", "size", "there are 4 KiB"}),
      row("table_sizes_backwards", "--size 8KiB:4KiB:x2", table, {"ends before it starts"}),
      row("calibration_without_a_table", "--calibrate-where kernel=fast", table,
          {"--calibrate-where", "--calibrate FILE"}),
      row("unknown_row_to_calibrate_with", "--calibrate input --calibrate-where kernel=slow", table,
          {"'slow'", "'kernel'", "fast"}),
      row("calibrate_where_without_value", "--calibrate input --calibrate-where kernel", table,
          {"--calibrate-where", "COLUMN=VALUE"}),
      row("calibration_that_is_not_there", "--calibrate none.csv", table, {"none.csv"}),
      row("no_measured_repetitions", "--iterations 0", table, {"--iterations"}),
      {"table_and_unknown_machine",
       "validate input --machine dgx-h10 --program all-reduce/ring",
       table,
       2,
       {"dgx-h10", "dgx-h100"}},
      {"table_and_unknown_program",
       "validate input --machine ring:2 --program all-reduce/rnig",
       table,
       2,
       {"all-reduce/rnig", "all-reduce/ring"}},
      {"table_without_program", "validate input --machine ring:2", table, 2, {"--program"}},
      {"table_without_machine",
       "validate input --program all-reduce/ring",
       table,
       2,
       {"--machine", "machine list"}},
      {"missing_table",
       "validate none.csv --machine ring:2 --program all-reduce/ring",
       "",
       2,
       {"none.csv", "no such file"}},
      {"suite_on_another_machine", "validate --machine ring:2", "", 2, {"--machine", "suite"}},
      {"suite_of_some_sizes", "validate --size 1KiB", "", 2, {"--size", "--only"}},
      {"suite_without_such_an_entry", "validate --only h100-vlm", "", 2, {"h100-vlm"}},
  };
}

/// Machines.
std::vector<BadInput> machine_rows() {
  const auto bad = [](const std::string& name, const std::string& from, const std::string& to,
                      std::vector<std::string> words) {
    return BadInput{name, kMachine, edited("pair.yaml", from, to), 2, std::move(words)};
  };
  return {
      {"missing_machine_file", "machine validate none.yaml", "", 2, {"none.yaml"}},
      {"blank_machine", kMachine, "\n\n", 2, {"input"}},
      {"binary_machine", kMachine, std::string(64, '\x01'), 2, {"input"}},
      {"malformed_yaml", kMachine, "devices:\n- name: x\n   components: [\n", 2, {"input:"}},
      {"malformed_machine_xml", kMachine, "<system version=\"1\"><cpu", 2, {"input"}},
      {"machine_without_gpus",
       "run all-reduce/ring --machine input --size 1KiB",
       edited("pair.yaml", "choice: xpu", "choice: switch")
           .substr(0, fixture("pair.yaml").find("annotations:") + 3),
       2,
       {"input", "no GPU"}},
      {"program_as_machine", kMachine, fixture("pair.json"), 2, {"MSCCL++"}},
      bad("unknown_machine_key",
          "components:", "compnents:", {"input:", "compnents", "components"}),
      bad("unknown_component", "component: fabric_switch", "component: fabric_swtich",
          {"fabric_swtich"}),
      bad("unknown_link", "link: nvlink", "link: nvlinc", {"nvlinc"}),
      bad("unknown_device", "device: box", "device: bocks", {"bocks"}),
      bad("unknown_scheme", "many2many", "many2one", {"many2one"}),
      bad("one2one_of_unequal_lengths", "fabric_switch\n    scheme: many2many",
          "gpu[0:1]\n    scheme: one2one", {"one2one"}),
      bad("negative_bandwidth", "gigabytes_per_second: 100.0", "gigabytes_per_second: -100.0",
          {"bandwidth"}),
      bad("zero_bandwidth", "gigabytes_per_second: 100.0", "gigabytes_per_second: 0",
          {"bandwidth"}),
      bad("negative_latency", "ns: 250.0", "ns: -250.0", {"latency"}),
      bad("absurd_count", "count: 2", "count: 2000000000", {"count"}),
      bad("disconnected_gpu", "gpu[0:2]", "gpu[0]", {"reach"}),
      bad("unknown_device_model", "value: h100", "value: h101", {"h101", "h100"}),
      bad("unknown_annotation", "hemiola.device_model", "hemiola.device_modle",
          {"hemiola.device_modle"}),
  };
}

class BadInputTest : public testing::TestWithParam<BadInput> {};

TEST_P(BadInputTest, is_one_clear_message_with_the_right_exit_code) {
  const BadInput& row = GetParam();
  const Workplace place;
  if (!row.content.empty()) place.write("input", row.content);
  const std::string files = place.files();
  const Outcome outcome = place.run(row.arguments);
  EXPECT_EQ(outcome.code, row.code) << outcome.out << outcome.err;
  for (const std::string& word : row.words) {
    EXPECT_NE(outcome.err.find(word), std::string::npos) << "no '" << word << "' in:\n"
                                                         << outcome.err;
  }
  EXPECT_EQ(outcome.err.find("internal error:"), std::string::npos) << outcome.err;
  EXPECT_EQ(place.files(), files) << "a failed run must leave no files";
  // Only a wrong program has a result: its counterexample.
  EXPECT_EQ(outcome.out.empty(), row.code == 2) << outcome.out;
}

std::string name_of_row(const testing::TestParamInfo<BadInput>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Usage, BadInputTest, testing::ValuesIn(usage_rows()), name_of_row);
INSTANTIATE_TEST_SUITE_P(Program, BadInputTest, testing::ValuesIn(program_rows()), name_of_row);
INSTANTIATE_TEST_SUITE_P(Unread, BadInputTest, testing::ValuesIn(other_format_rows()), name_of_row);
INSTANTIATE_TEST_SUITE_P(Plan, BadInputTest, testing::ValuesIn(plan_rows()), name_of_row);
INSTANTIATE_TEST_SUITE_P(Table, BadInputTest, testing::ValuesIn(table_rows()), name_of_row);
INSTANTIATE_TEST_SUITE_P(Machine, BadInputTest, testing::ValuesIn(machine_rows()), name_of_row);

}  // namespace
}  // namespace hemiola::test

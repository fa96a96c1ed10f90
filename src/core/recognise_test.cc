#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/text.h"

namespace hemiola {
namespace {

namespace fs = std::filesystem;

TEST(Recognise, xml_goes_by_its_root_element) {
  EXPECT_EQ(recognise("<algo name=\"x\">"), Format::msccl_xml);
  EXPECT_EQ(recognise("<?xml version=\"1.0\"?>\n<!-- <algo> -->\n<system version=\"1\">"),
            Format::nccl_topology);
  EXPECT_EQ(recognise("<!DOCTYPE x>\n<graphs/>"), Format::nccl_graph);
  EXPECT_EQ(recognise("<html>"), Format::xml);
  EXPECT_EQ(recognise("<!-- never closed"), Format::xml);
  EXPECT_EQ(recognise("<"), Format::xml);
}

TEST(Recognise, json_goes_by_its_outermost_keys) {
  EXPECT_EQ(recognise(R"({"name": "x", "gpus": []})"), Format::mscclpp_json);
  EXPECT_EQ(recognise(R"({"instances": [], "devices": []})"), Format::infragraph);
  EXPECT_EQ(recognise(R"({"a": {"gpus": []}, "b": "\"gpus\":"})"), Format::json);
  EXPECT_EQ(recognise(R"({"schemaVersion": 1, "traceEvents": []})"), Format::kineto_trace);
  EXPECT_EQ(recognise(R"({"schema": "1.0.1", "nodes": []})"), Format::chakra_et);
  EXPECT_EQ(recognise(R"({"workload_graph": [{"Id": 0}]})"), Format::chakra_json);
  EXPECT_EQ(
      recognise(R"({"version": "0.0.4"}{"id": "1", "name": "x", "type": "COMP_NODE", "attr": []})"),
      Format::chakra_json);
  EXPECT_EQ(recognise(R"({"id": "1", "name": "x", "type": "y"})"), Format::json);
  EXPECT_EQ(recognise(R"({"scheduling-policy": "LIFO"})"), Format::astra_system);
  EXPECT_EQ(recognise("[1, 2"), Format::json);
}

TEST(Recognise, a_json_file_cut_off_after_its_first_keys_is_still_known) {
  EXPECT_EQ(recognise(R"({"name": "x", "gpus": [{"id": 0, "thr)"), Format::mscclpp_json);
}

TEST(Recognise, texts_of_simai_go_by_their_first_line) {
  EXPECT_EQ(recognise("HYBRID_TRANSFORMER model_parallel_NPU_group: 8\n2\n"), Format::astra_text);
  EXPECT_EQ(recognise("MICRO\r\n1\r\n"), Format::astra_text);
  EXPECT_EQ(recognise("DATA mining is fun\n"), Format::unknown);
  EXPECT_EQ(recognise("HYBRID_X: 1\n"), Format::yaml);
  EXPECT_EQ(recognise("comm_type,comm_group,msg_size\n"), Format::aicb_csv);
  EXPECT_EQ(recognise("[rank0 ~ rank127]\ncomm_type,"), Format::aicb_csv);
  EXPECT_EQ(recognise("[ pp_stage0: [rank0, rank1] ]\n"), Format::aicb_csv);
  EXPECT_EQ(recognise("9 8 1 0 8 H100\n8\n"), Format::simai_topology);
  // Of one that is wrong its reader says what is.
  EXPECT_EQ(recognise("9 8 1 0 H100\n8\n"), Format::simai_topology);
  EXPECT_EQ(recognise("9.5 8 -1 0 8 H100\n8\n"), Format::simai_topology);
  EXPECT_NE(recognise("links: 9 8 1 0 8\n"), Format::simai_topology);
  EXPECT_NE(recognise("this is no list of 8 GPUs\n"), Format::simai_topology);
  EXPECT_EQ(recognise("9 8 1 0 8 100\n8\n"), Format::unknown);
  EXPECT_EQ(recognise("Size,1 Node(NVLinkx),2Node\n"), Format::simai_configuration);
  EXPECT_EQ(recognise("test\nTP:\nallreduce,: 300\n"), Format::simai_configuration);
  EXPECT_EQ(recognise("ENABLE_QCN 1\n"), Format::simai_configuration);
}

TEST(Recognise, yaml_goes_by_the_keys_at_its_margin) {
  EXPECT_EQ(recognise("# comment\ndevices:\n- name: x\n"), Format::infragraph);
  EXPECT_EQ(recognise("topology: [ Ring ]\r\nnpus_count: [ 4 ]\r\nbandwidth: [ 50.0 ]\r\n"),
            Format::astra_network);
  EXPECT_EQ(recognise("---\n'name': x\nother:\n  devices: 1\n"), Format::yaml);
  EXPECT_EQ(recognise("HloModule jit_f, is_scheduled=true\n"), Format::hlo);
  EXPECT_EQ(recognise("// a comment\n\n // and another\nHloModule jit_f\n"), Format::hlo);
  EXPECT_EQ(recognise("HloModules: 1\n"), Format::yaml);
  EXPECT_EQ(recognise("// only a comment"), Format::unknown);
  EXPECT_EQ(recognise("module @jit_f attributes {mhlo.num_partitions = 8 : i32} {\n"),
            Format::mlir);
  EXPECT_EQ(recognise("just a sentence: or\ntwo\n"), Format::unknown);
  EXPECT_EQ(recognise("size,time\n1,2\n"), Format::unknown);
}

TEST(Recognise, bytes_that_are_no_text_are_binary_unless_they_frame_messages) {
  EXPECT_EQ(recognise(std::string("\x7f"
                                  "ELF\x02\x01\x01\0\0\0",
                                  10)),
            Format::binary);
  // Length 7: field 1, text "0.0.4"; length 2: field 1, number 1.
  const std::string trace(
      "\x07\x0a\x05"
      "0.0.4"
      "\x02\x08\x01",
      11);
  EXPECT_EQ(recognise(trace), Format::chakra_et);
  EXPECT_EQ(recognise(trace + "\x7f\x0a"), Format::chakra_et) << "cut inside its third message";
  EXPECT_EQ(recognise(std::string(64, '\0')), Format::binary);
}

TEST(Recognise, blank_text_is_of_no_kind) {
  EXPECT_EQ(recognise(""), Format::unknown);
  EXPECT_EQ(recognise(" \n\t"), Format::unknown);
  EXPECT_EQ(recognise("\xef\xbb\xbf{\"gpus\": []}"), Format::mscclpp_json);
}

TEST(Recognise, takes_any_bytes) {
  EXPECT_TRUE(rc::check([] {
    const auto content = *rc::gen::arbitrary<std::string>();
    const auto marks = *rc::gen::container<std::string>(
        rc::gen::elementOf(std::string("<>{}[]\"\\:!-?/ \nab\x01\x08\x0a")));
    RC_ASSERT(!describe(recognise(content)).empty());
    RC_ASSERT(!describe(recognise(marks)).empty());
  }));
}

TEST(Recognise, real_files_are_what_they_are) {
  const fs::path inputs = HEMIOLA_SOURCE_DIR "/../shared/inputs";
  if (!fs::exists(inputs)) GTEST_SKIP() << "NOT TESTED: there is no folder " << inputs;
  const std::map<std::string, std::vector<Format>> kinds{
      {"mscclpp_json", {Format::mscclpp_json}},
      {"msccl_xml", {Format::msccl_xml}},
      {"nccl_topo", {Format::nccl_topology}},
      {"infragraph", {Format::infragraph}},
      {"chakra/all_gather_8npus_1MB", {Format::chakra_et}},
      {"chakra/all_reduce_8npus_1MB", {Format::chakra_et}},
      {"chakra/real_pytorch", {Format::chakra_et}},
      {"kineto", {Format::kineto_trace, Format::binary}},  // one is a tar file
      {"astra_configs", {Format::astra_network, Format::astra_system, Format::unknown}}};
  for (const auto& [folder, formats] : kinds) {
    int seen = 0;
    for (const auto& entry : fs::directory_iterator(inputs / folder)) {
      const std::string path = entry.path().string();
      const Format format = recognise(read_file(path));
      EXPECT_NE(std::find(formats.begin(), formats.end(), format), formats.end())
          << path << " is " << describe(format);
      const bool odd = path.ends_with(".tar.gz") || path.ends_with(".topo");
      EXPECT_EQ(format == Format::binary || format == Format::unknown, odd) << path;
      ++seen;
    }
    EXPECT_GT(seen, 0) << folder;
  }
}

}  // namespace
}  // namespace hemiola

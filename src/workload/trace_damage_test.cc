// Damaged traces end in a Failure or in a workload, and in nothing else.
#include <gtest/gtest.h>

#include "core/random.h"
#include "core/text.h"
#include "workload/trace_test_support.h"

namespace hemiola::workload {
namespace {

using test::ChakraText;
using test::Folder;

struct Draw {
  std::uint64_t state;
  std::uint64_t next(std::uint64_t below) {
    state += kSplitMixStep;
    return splitmix64(state) % below;
  }
};

/// Bytes changed, taken out, put in or repeated, in a few places.
std::string damage(std::string text, Draw& draw) {
  const std::uint64_t places = 1 + draw.next(4);
  for (std::uint64_t i = 0; i < places && !text.empty(); ++i) {
    const std::size_t at = draw.next(text.size());
    const auto byte = static_cast<char>(draw.next(256));
    switch (draw.next(6)) {
      case 0:
        text[at] = byte;
        break;
      case 1:
        text[at] = static_cast<char>(text[at] ^ (1 << draw.next(8)));
        break;
      case 2:
        text.erase(at, 1 + draw.next(8));
        break;
      case 3:
        text.insert(at, 1, byte);
        break;
      case 4:
        text.insert(at, text.substr(at, 1 + draw.next(40)));
        break;
      default:
        text[at] = static_cast<char>('0' + draw.next(10));
    }
  }
  return text;
}

/// How many of the damaged files could still be read.
int read_damaged(const std::string& whole, const std::string& name, int count, std::uint64_t seed) {
  const Folder folder;
  Draw draw{seed};
  int read = 0;
  for (int i = 0; i < count; ++i) {
    std::filesystem::remove(folder / name);  // writing over it waits for the disk
    const std::string path = folder.write(name, damage(whole, draw));
    TraceRequest request{.path = path, .lenient = draw.next(2) == 0};
    if (draw.next(2) == 0) request.replicate = 2;
    try {
      read_workload(request);
      ++read;
    } catch (const Failure& failure) {
      EXPECT_NE(failure.code(), ExitCode::internal);
    }
  }
  return read;
}

std::string small_chakra() {
  ChakraText file;
  chakra::Node& groups = file.add(1, "## process_group:init ##", chakra::METADATA_NODE);
  groups.mutable_inputs()->set_values(R"(['[{"pg_name": "7", "ranks": [0], "group_size": 1}]'])");
  file.collective(2, chakra::ALL_GATHER, 64, "7").add_data_deps(1);
  file.collective(3, chakra::BARRIER, 0).add_ctrl_deps(2);
  file.add(4, "aten::mm", chakra::COMP_NODE).mutable_inputs()->set_shapes("[[2, 3], [3, 4]]");
  file.number("num_ops", 100).number("tensor_size", 50);
  file.add(5, "host", chakra::COMP_NODE).set_duration_micros(12);
  file.attribute("is_cpu_op").set_bool_val(true);
  file.add(6, "load", chakra::MEM_LOAD_NODE).add_data_deps(5);
  file.number("tensor_size", 8);
  return file.str();
}

TEST(TraceDamage, OfChakraFiles) {
  const int read = read_damaged(small_chakra(), "t.0.et", 3000, 1);
  EXPECT_GT(read, 100);
  EXPECT_LT(read, 2900);
}

TEST(TraceDamage, OfKinetoTraces) {
  const std::string whole = R"J({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 2,
 "pg_config": [{"pg_name": "7", "ranks": [0, 1]}]}, "traceEvents": [
 {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "tid": 1, "ts": 1, "dur": 9, "args": {"Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"]}},
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "tid": 1, "ts": 2, "dur": 3, "args": {"correlation": 5}},
 {"ph": "X", "cat": "kernel", "name": "sgemm", "tid": 7, "ts": 9, "dur": 2.5, "args": {"stream": 7, "correlation": 5}},
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamWaitEvent", "tid": 1, "ts": 12, "dur": 1, "args": {}},
 {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce(x)", "tid": 8, "ts": 19, "dur": 2, "args": {"stream": 8,
  "Collective name": "allreduce", "In msg nelems": 4, "Out msg nelems": 4, "dtype": "Float", "Group size": 2,
  "Process Group Name": "7", "Process Group Ranks": "[0, 1]"}},
 {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoH", "tid": 7, "ts": 30, "dur": 2, "args": {"stream": 7, "bytes": 64}}]})J";
  const int read = read_damaged(whole, "k.json", 1000, 2);
  EXPECT_GT(read, 50);
  EXPECT_LT(read, 950);
}

TEST(TraceDamage, OfPyTorchTraces) {
  const std::string whole = R"J({"schema": "1.1.0-chakra.0.0.4", "nodes": [
 {"id": 1, "name": "root", "ctrl_deps": 1, "inputs": {}, "outputs": {}, "attrs": []},
 {"id": 2, "name": "## process_group:init ##", "ctrl_deps": 1, "inputs": {"values": ["[{\"pg_name\": \"3\", \"ranks\": [0, 1]}]"]}, "outputs": {}, "attrs": []},
 {"id": 3, "name": "aten::mm", "ctrl_deps": 1, "inputs": {"values": [[10, 11, 0, 6, 4, "cuda:0"], [12, 13, 0, 12, 4, "cuda:0"]],
  "shapes": [[2, 3], [3, 4]], "types": ["Tensor(float)", "Tensor(float)"]}, "outputs": {"values": [[14, 15, 0, 8, 4, "cuda:0"]]}, "attrs": []},
 {"id": 4, "name": "record_param_comms", "ctrl_deps": 1, "inputs": {"values": [[[14, 15, 0, 8, 4, "cuda:0"]], 5, ["3", "dp"], 0, "allreduce", [], [], 0, 1, 2],
  "types": ["GenericList[Tensor(float)]"]}, "outputs": {"values": [[[14, 15, 0, 8, 4, "cuda:0"]]]}, "attrs": [{"name": "tid", "type": "uint64", "value": 1}]},
 {"id": 5, "name": "aten::relu_", "ctrl_deps": 1, "inputs": {"values": [[14, 15, 0, 8, 4, "cuda:0"]]}, "outputs": {"values": [[14, 15, 0, 8, 4, "cuda:0"]]}, "attrs": []}]})J";
  const int read = read_damaged(whole, "t.json", 1000, 3);
  EXPECT_GT(read, 50);
  EXPECT_LT(read, 950);
}

TEST(TraceDamage, OfOurOwnExtension) {
  chakra::GlobalMetadata metadata;
  const auto add = [&](std::string_view name, std::string_view text) {
    chakra::AttributeProto* attribute = metadata.add_attr();
    attribute->set_name(std::string(name));
    attribute->set_string_val(std::string(text));
  };
  add("hemiola.class", "all");
  add("hemiola.workload",
      R"({"name": "w", "streams": [["a", true], ["b", false]], "families": [], "classes": ["all"]})");
  ChakraText file(metadata);
  file.add(1, "kernel", chakra::COMP_NODE);
  file.number("hemiola.stream", 1).number("hemiola.host_fs", 5).number("hemiola.begin_fs", 7);
  chakra::Int64List* list = file.attribute("hemiola.compute").mutable_int64_list();
  for (const std::int64_t number : {0, 2, 3, 4, 1, 6, -1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0})
    list->add_values(number);
  file.add(2, "nothing", chakra::COMP_NODE);
  file.text("hemiola.kind", "nothing").number("hemiola.stream", 0);
  EXPECT_GT(read_damaged(file.str(), "t.0.et", 1000, 4), 50);
}

}  // namespace
}  // namespace hemiola::workload

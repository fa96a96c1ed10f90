#include "machine/machine.h"
#include "core/testing/failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <vector>

namespace hemiola::machine {
namespace {

using testing::HasSubstr;

using test::message_of;

/// A file that lives as long as the test.
class File {
 public:
  explicit File(const std::string& content)
      : path_(std::filesystem::temp_directory_path() /
              ("hemiola-machine-" +
               std::string(testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~File() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(Machine, set_changes_gpus_links_switches_and_nics) {
  Machine machine = load("dgx-h100");
  machine.set("gpu.l2.size", "25 MiB");
  EXPECT_EQ(machine.model(7).l2_size, MiB(25));
  machine.set("link.nvlink4.bandwidth", "inf");
  machine.set("link.*.latency", "1 us");
  for (const LinkClass& link : machine.link_classes) {
    EXPECT_EQ(link.bandwidth.is_ideal(), link.name == "nvlink4");
    EXPECT_EQ(link.latency, Time::from_us(1));
  }
  machine.set("link.nvlink4.arbitration", "data_first");
  EXPECT_EQ(name_of(machine.link_classes[0].arbitration), "data_first");
  machine.set("switch.latency", "0 ns");
  machine.set("nic.mtu", "1 KiB");
  for (const Node& node : machine.nodes) {
    if (node.kind == NodeKind::switch_) {
      EXPECT_EQ(node.switch_model.latency, Time{0});
    }
    if (node.kind == NodeKind::nic) {
      EXPECT_EQ(node.nic_model.mtu, KiB(1));
    }
  }
}

TEST(Machine, wrong_parameters_are_errors_with_a_suggestion) {
  Machine machine = load("dgx-h100");
  const auto message = [&](const std::string& name, const std::string& value) {
    return message_of([&] { machine.set(name, value); });
  };
  EXPECT_THAT(message("gpu.l2.sise", "25 MiB"), HasSubstr("l2.size"));
  EXPECT_THAT(message("link.nvlink.latency", "1 ns"), HasSubstr("did you mean 'nvlink4'?"));
  EXPECT_THAT(message("link.nvlink4.latencey", "1 ns"),
              HasSubstr("did you mean 'link.nvlink4.latency'?"));
  EXPECT_THAT(message("link.nvlink4.latency", "0 ns"), HasSubstr("is no value for"));
  EXPECT_THAT(message("link.nvlink4.bandwidth", "-1 GB/s"), HasSubstr("is no value for"));
  EXPECT_THAT(message("link.nvlink4.bandwidth", "450"), HasSubstr("450 GB/s"));
  EXPECT_THAT(message("link.latency", "1 ns"), HasSubstr("link.CLASS.NAME"));
  EXPECT_THAT(message("swich.latency", "1 ns"), HasSubstr("did you mean 'switch'?"));
  EXPECT_THAT(message("switch.multicast", "maybe"), HasSubstr("true or false"));
  EXPECT_THAT(message("nic.mut", "4 KiB"), HasSubstr("did you mean 'nic.mtu'?"));
  EXPECT_THAT(message("", "1"), HasSubstr("unknown parameter"));
  EXPECT_THAT(message("gpu", "1"), HasSubstr("unknown parameter"));
}

TEST(Machine, place_keeps_nodes_and_renumbers_ranks) {
  Machine machine = load("dgx-h100");
  const NodeId sixth = machine.gpus[6];
  machine.place(std::vector<int>{6, 1});
  EXPECT_EQ(machine.ranks(), 2);
  EXPECT_EQ(machine.gpus[0], sixth);
  EXPECT_EQ(machine.routes(0, 1).count, 18);
  EXPECT_EQ(machine.nodes.size(), load("dgx-h100").nodes.size());
}

TEST(Machine, wrong_placements_are_errors) {
  Machine machine = load("dgx-h100");
  EXPECT_THAT(message_of([&] { machine.place(std::vector<int>{}); }), HasSubstr("no ranks"));
  EXPECT_THAT(message_of([&] { machine.place(std::vector<int>{8}); }), HasSubstr("no rank 8"));
  EXPECT_THAT(message_of([&] { machine.place(std::vector<int>{-1}); }), HasSubstr("no rank -1"));
  EXPECT_THAT(message_of([&] {
                machine.place(std::vector<int>{0, 0});
              }),
              HasSubstr("listed twice"));
  EXPECT_EQ(machine.ranks(), 8);
}

TEST(Machine, the_nvswitches_of_a_dgx_h100_multicast_to_any_group) {
  const Machine machine = load("dgx-h100");
  EXPECT_EQ(machine.multicast_switches(std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}).size(), 4u);
  EXPECT_EQ(machine.multicast_switches(std::vector<int>{3}).size(), 4u);
  EXPECT_TRUE(machine.multicast_switches(std::vector<int>{}).empty());
  const NodeId first = machine.multicast_switches(std::vector<int>{0, 1})[0];
  EXPECT_EQ(machine.lanes(machine.gpus[0], first).size(), 5u);
  EXPECT_EQ(machine.lanes(first, machine.gpus[0]).size(), 5u);
  EXPECT_TRUE(load("mi300x-8").multicast_switches(std::vector<int>{0, 1}).empty());
}

TEST(Machine, the_smallest_feedback_latency_is_the_least_of_links_and_l2) {
  Machine machine = load("switch:2");
  machine.set("link.*.latency", "7 ns");
  machine.set("gpu.noc.latency", "3 ns");
  machine.set("gpu.l2.latency", "5 ns");
  EXPECT_EQ(machine.smallest_feedback_latency(), Time::from_ns(7));
  machine.set("gpu.l2.latency", "2 ns");
  EXPECT_EQ(machine.smallest_feedback_latency(), Time::from_ns(5));
}

TEST(Machine, copies_share_routes_and_changing_one_leaves_the_other_alone) {
  const Machine machine = load("ring:4");
  const Routes& before = machine.routes(0, 2);
  Machine copy = machine;
  EXPECT_EQ(&copy.routes(0, 2), &before);
  copy.place(std::vector<int>{0, 1});
  EXPECT_EQ(copy.routes(0, 1).hops, 1);
  EXPECT_EQ(&machine.routes(0, 2), &before);
}

TEST(MachineLoad, options_are_applied) {
  const Machine machine =
      load("ring:4", {.gpu = "a100", .set = {{"gpu.l2.latency", "9 ns"}, {"link.*.credits", "5"}}});
  EXPECT_EQ(machine.model(0).name, "a100");
  EXPECT_EQ(machine.model(0).l2_latency, Time::from_ns(9));
  EXPECT_EQ(machine.link_classes[0].credits, 5);
}

TEST(MachineLoad, what_no_node_has_and_what_no_hardware_is_are_refused) {
  const auto with = [](const char* name, const char* value) {
    return message_of([&] { load("ring:4", {.set = {{name, value}}}); });
  };
  EXPECT_THAT(with("switch.latency", "1 us"), HasSubstr("'ring:4' has no switch"));
  EXPECT_THAT(with("nic.rate", "1 GB/s"), HasSubstr("'ring:4' has no NIC"));
  EXPECT_THAT(with("gpu.hbm.rate", "1 B/s"), HasSubstr("a rate from 1 MB/s"));
  EXPECT_THAT(with("link.*.bandwidth", "999 kB/s"), HasSubstr("a rate from 1 MB/s"));
}

TEST(MachineLoad, a_model_that_no_gpu_takes_is_refused) {
  EXPECT_THAT(message_of([] { load("dgx-h100:2", {.gpu = "mi300x", .set = {}}); }),
              HasSubstr("have a model (h100): 'mi300x' would not be used"));
  EXPECT_EQ(load("dgx-h100", {.gpu = "h100", .set = {}}).model(0).name, "h100");
}

TEST(MachineLoad, unknown_names_get_a_suggestion) {
  EXPECT_THAT(message_of([] { load("dgx-h10"); }), HasSubstr("did you mean 'dgx-h100'?"));
  EXPECT_THAT(message_of([] { load("/no/such/file.yaml"); }), HasSubstr("no file named"));
  EXPECT_THAT(message_of([] { load("dgx-h100", {.gpu = "h1000", .set = {}}); }), HasSubstr("h100"));
}

TEST(MachineLoad, files_that_are_no_machine_say_what_they_are) {
  const auto message = [](const std::string& content) {
    const File file(content);
    return message_of([&] { load(file.path()); });
  };
  EXPECT_THAT(message("topology: [Ring]\nnpus_count: [8]\nbandwidth: [50]\nlatency: [500]\n"),
              HasSubstr("an ASTRA-sim network configuration"));
  EXPECT_THAT(
      message(
          R"(<algo name="a" nchannels="1" nchunksperloop="1" ngpus="2" proto="LL" coll="allreduce"/>)"),
      HasSubstr("an MSCCL algorithm"));
  EXPECT_THAT(message("just words"), HasSubstr("must be a map"));
  EXPECT_THAT(message("<other/>"), HasSubstr("describes no machine"));
  EXPECT_THAT(message("name: x\ncolour: red\n"), HasSubstr("unknown key 'colour'"));
  EXPECT_THAT(message(std::string("\x7f\x45\x4c\x46\0\1\2\3", 8)), HasSubstr("not a machine"));
  EXPECT_THAT(message("{\"devices\": [}"), HasSubstr(":1:"));
  EXPECT_THAT(message(""), HasSubstr("empty"));
}

}  // namespace
}  // namespace hemiola::machine

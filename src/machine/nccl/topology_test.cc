#include "machine/nccl/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <vector>

#include "machine/infragraph/infragraph.h"

namespace hemiola::machine {
namespace {

using testing::HasSubstr;

/// Two GPUs of one architecture under two CPUs, `links` inside the first and the second.
std::string system(const std::string& gpu, const std::string& first, const std::string& second) {
  return R"(<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" modelid="143">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" )" +
         gpu + R"( rank="1">)" + first + R"(</gpu></pci>
      <pci busid="0000:03:00.0" class="0x020700" link_speed="8.0 GT/s PCIe" link_width="8">
        <nic><net name="mlx5_0" dev="0" speed="200000" port="1"/></nic></pci>
    </pci>
  </cpu>
  <cpu numaid="1" arch="x86_64" vendor="GenuineIntel" modelid="143">
    <pci busid="0000:12:00.0" class="0x030200" link_speed="16 GT/s" link_width="16">
      <gpu dev="1" )" +
         gpu + R"( rank="0">)" + second + R"(</gpu></pci>
  </cpu>
</system>)";
}

std::string message_of(const std::string& xml) {
  try {
    from_nccl_topology(xml, "topo.xml");
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::bad_input);
    return failure.what();
  }
  return "no failure";
}

const LinkClass& link_between(const Machine& machine, const std::string& from,
                              const std::string& to) {
  for (const Link& link : machine.links) {
    if (machine.nodes[static_cast<std::size_t>(link.from)].name == from &&
        machine.nodes[static_cast<std::size_t>(link.to)].name == to) {
      return machine.link_classes[static_cast<std::size_t>(link.link_class)];
    }
  }
  throw std::runtime_error("no link from " + from + " to " + to);
}

TEST(NcclTopology, pcie_bandwidth_is_speed_times_width_after_the_line_code) {
  const Machine machine = from_nccl_topology(system("sm=\"80\"", "", ""), "dir/topo.xml");
  EXPECT_EQ(machine.name, "topo");
  EXPECT_EQ(machine.nodes.size(), 2u + 1u + 2u + 1u);
  const LinkClass& gpu = link_between(machine, "host.0.pcie.0", "host.0.gpu.0");
  EXPECT_EQ(gpu.name, "pcie-gen4-x16");
  // 16 GT/s x 16 lanes x 128/130 / 8 bits
  EXPECT_NEAR(static_cast<double>(gpu.bandwidth.bytes_per_second), 16e9 * 16 * 128 / 130 / 8, 1e5);
  const LinkClass& nic = link_between(machine, "host.0.pcie.0", "host.0.nic.0");
  EXPECT_NEAR(static_cast<double>(nic.bandwidth.bytes_per_second), 8e9 * 8 * 128 / 130 / 8, 1e5);
  const Node& node = machine.nodes[5];
  EXPECT_EQ(node.name, "host.0.nic.0");
  EXPECT_EQ(node.nic_model.rate.bytes_per_second, 25'000'000'000);
  EXPECT_EQ(node.attributes.at("net"), "mlx5_0");
  EXPECT_EQ(node.attributes.at("busid"), "0000:03:00.0");
}

TEST(NcclTopology, ranks_follow_the_file_and_cpus_of_a_host_are_joined_as_nccl_does) {
  const Machine machine = from_nccl_topology(system("sm=\"80\"", "", ""), "topo.xml");
  EXPECT_EQ(machine.nodes[static_cast<std::size_t>(machine.gpus[0])].name, "host.0.gpu.1");
  const LinkClass& socket = link_between(machine, "host.0.cpu.0", "host.0.cpu.1");
  EXPECT_EQ(socket.bandwidth.bytes_per_second, 22'000'000'000);  // model 143: Sapphire Rapids
  EXPECT_THAT(machine.warnings.render(), testing::Not(HasSubstr("cpu-fabric")));
  EXPECT_EQ(machine.routes(0, 1).reach, Reach::load_store);
  EXPECT_EQ(machine.routes(0, 1).hops, 4);
}

TEST(NcclTopology, nvlinks_between_gpus_are_counted_once) {
  const Machine machine = from_nccl_topology(
      system("sm=\"70\"", R"(<nvlink target="0000:12:00.0" count="2" tclass="0x030200"/>)",
             R"(<nvlink target="0000:02:00.0" count="2" tclass="0x030200"/>)"),
      "topo.xml");
  EXPECT_EQ(machine.routes(0, 1).hops, 1);
  EXPECT_EQ(machine.routes(0, 1).count, 2);
  const LinkClass& nvlink = link_between(machine, "host.0.gpu.0", "host.0.gpu.1");
  EXPECT_EQ(nvlink.bandwidth.bytes_per_second, 25'000'000'000);
  EXPECT_EQ(machine.model(0).name, "v100");
}

TEST(NcclTopology, nvswitches_become_switch_nodes) {
  const std::string links = R"(<nvlink target="0000:c4:00.0" count="5" tclass="0x068000"/>
                               <nvlink target="0000:c5:00.0" count="4" tclass="0x068000"/>)";
  const Machine machine = from_nccl_topology(system("sm=\"90\"", links, links), "topo.xml");
  EXPECT_EQ(machine.routes(0, 1).hops, 2);
  EXPECT_EQ(machine.routes(0, 1).count, 9);
  EXPECT_EQ(machine.model(0).name, "h100");
  EXPECT_EQ(machine.nodes.back().kind, NodeKind::switch_);
}

TEST(NcclTopology, the_device_model_follows_the_architecture) {
  const auto model = [](const std::string& gpu) {
    const Machine machine = from_nccl_topology(system(gpu, "", ""), "topo.xml");
    return machine.model(0).name +
           (machine.warnings.render().find("is the nearest") == std::string::npos ? ""
                                                                                  : " nearest");
  };
  EXPECT_EQ(model("sm=\"80\""), "a100");
  EXPECT_EQ(model("sm=\"100\""), "b200");
  EXPECT_EQ(model("sm=\"103\""), "b200 nearest");
  EXPECT_EQ(model("sm=\"89\""), "a100 nearest");
  EXPECT_EQ(model("sm=\"304\" gcn=\"gfx942\""), "mi300x");
  EXPECT_EQ(model("sm=\"304\" gcn=\"gfx950\""), "mi355x");
  EXPECT_EQ(model("sm=\"104\" gcn=\"910\""), "mi300x nearest");
}

TEST(NcclTopology, bad_files_are_errors_with_their_place) {
  const std::string good = system("sm=\"80\"", "", "");
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return message_of(text);
  };
  EXPECT_THAT(message_of("<graphs/>"), HasSubstr("<system>"));
  EXPECT_THAT(message_of("<system/>"), HasSubstr("no <cpu>"));
  EXPECT_THAT(message_of(good.substr(0, 300)), HasSubstr("this is no XML"));
  EXPECT_THAT(replaced("busid=\"0000:02:00.0\"", ""), HasSubstr("topo.xml:4:"));
  EXPECT_THAT(replaced("busid=\"0000:02:00.0\"", ""),
              HasSubstr("<pci> has no 'busid' (at /system/cpu[0]/pci[0]/pci[0])"));
  EXPECT_THAT(replaced("16.0 GT/s", "17.0 GT/s"), HasSubstr("is no value for 'link_speed'"));
  EXPECT_THAT(replaced("link_width=\"16\"", "link_width=\"x\""),
              HasSubstr("is no value for 'link_width'"));
  EXPECT_THAT(message_of(system("sm=\"80\"", "<nvlink target=\"0000:12:00.0\" count=\"0\"/>", "")),
              HasSubstr("'0' is no value for 'count'"));
}

TEST(NcclTopology, links_of_a_gpu_to_itself_are_left_out) {
  // As Azure's topology of the NC A100 v4 has them: twelve, with no other end.
  const std::string xml =
      system("sm=\"80\"", R"(<nvlink target="0000:02:00.0" count="12" tclass="0x030200"/>)",
             R"(<nvlink target="0000:12:00.0" count="12" tclass="0x030200"/>)");
  const Machine machine = from_nccl_topology(xml, "topo.xml");
  EXPECT_EQ(machine.ranks(), 2);
  EXPECT_EQ(machine.links.size(),
            from_nccl_topology(system("sm=\"80\"", "", ""), "t").links.size());
  EXPECT_THAT(machine.warnings.render(),
              HasSubstr("ignored: 12 links of '0000:02:00.0' to itself (and 1 more like it) (at "
                        "/system/cpu[0]/pci[0]/pci[0]/gpu[0]/nvlink[0])"));
}

TEST(NcclTopology, a_second_gpu_of_one_busid_is_another_if_its_rank_says_so) {
  std::string xml = system("sm=\"80\"", "", "");
  const std::string from = "busid=\"0000:12:00.0\"", to = "busid=\"0000:02:00.0\"";
  xml.replace(xml.find(from), from.size(), to);
  const Machine two = from_nccl_topology(xml, "topo.xml");
  EXPECT_EQ(two.ranks(), 2);
  EXPECT_THAT(two.warnings.render(),
              HasSubstr("converted: the second GPU with the busid '0000:02:00.0', another one by "
                        "its rank: links lead to the first"));
  const std::string rank = "rank=\"0\"";
  xml.replace(xml.find(rank), rank.size(), "rank=\"1\"");
  const Machine one = from_nccl_topology(xml, "topo.xml");
  EXPECT_EQ(one.ranks(), 1);
  EXPECT_THAT(one.warnings.render(),
              HasSubstr("ignored: the second <pci> with the busid '0000:02:00.0'"));
}

TEST(NcclTopology, a_second_nic_of_one_busid_brings_ports_of_the_first) {
  std::string xml = system("sm=\"80\"", "", "");
  const std::string end = "</cpu>\n</system>";
  xml.replace(xml.find(end), end.size(), R"(
    <pci busid="0000:03:00.0" class="0x020700" link_speed="8.0 GT/s PCIe" link_width="8">
      <nic><net name="mlx5_1" dev="1" speed="100000" port="1"/></nic></pci>
  </cpu>
</system>)");
  const Machine machine = from_nccl_topology(xml, "topo.xml");
  const auto is_nic = [](const Node& node) { return node.kind == NodeKind::nic; };
  EXPECT_EQ(std::count_if(machine.nodes.begin(), machine.nodes.end(), is_nic), 1);
  EXPECT_THAT(to_infragraph(machine), HasSubstr("mlx5_0 mlx5_1"));
  EXPECT_THAT(machine.warnings.render(),
              HasSubstr("converted: the second NIC with the busid '0000:03:00.0': its ports are "
                        "the first's"));
}

TEST(NcclTopology, what_is_left_out_is_said) {
  const Machine machine = from_nccl_topology(
      system("sm=\"80\"", R"(<nvlink target="0000:77:00.0" count="1" tclass="0x030200"/><what/>)",
             ""),
      "topo.xml");
  EXPECT_THAT(
      machine.warnings.render(),
      HasSubstr("ignored: the nvlink of '0000:02:00.0' to '0000:77:00.0', which is not in the "
                "file"));
  EXPECT_THAT(machine.warnings.render(), HasSubstr("ignored: <what>, which is not understood"));
}

TEST(NcclTopology, every_real_file_expands_to_a_connected_machine) {
  const std::filesystem::path folder = HEMIOLA_SOURCE_DIR "/../shared/inputs/nccl_topo";
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "NOT TESTED: the real NCCL topologies are not at " << folder;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".xml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  EXPECT_EQ(files.size(), 35u);
  for (const std::filesystem::path& file : files) {
    SCOPED_TRACE(file);
    const Machine machine = load(file.string());
    EXPECT_GE(machine.ranks(), 3);
    for (int from = 0; from < machine.ranks(); ++from) {
      for (int to = 0; to < machine.ranks(); ++to) {
        if (from != to) {
          ASSERT_EQ(machine.reach(from, to), Reach::load_store);
        }
      }
    }
    const Machine again = from_infragraph(to_infragraph(machine), "again.yaml");
    EXPECT_EQ(again.nodes.size(), machine.nodes.size());
    ASSERT_EQ(again.links.size(), machine.links.size());
    for (std::size_t i = 0; i < machine.links.size(); ++i) {
      ASSERT_EQ(again.links[i].from, machine.links[i].from);
      ASSERT_EQ(again.links[i].to, machine.links[i].to);
      ASSERT_EQ(again.links[i].link_class, machine.links[i].link_class);
    }
    EXPECT_EQ(again.gpus, machine.gpus);
  }
}

}  // namespace
}  // namespace hemiola::machine

// Files for schemas of InfraGraph before 2.4; examples of upstream's repository have these forms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "machine/infragraph/infragraph.h"

namespace hemiola::machine {
namespace {

using testing::HasSubstr;

/// Two servers of two GPUs behind a switch, as schema 2.4 has it.
constexpr const char* kCurrent = R"(
name: pod
devices:
- name: server
  components:
  - {name: xpu, count: 2, choice: xpu}
  - {name: nic, count: 2, choice: nic}
  - {name: pciesw, count: 1, choice: switch}
  links:
  - {name: pcie, physical: {bandwidth: {gigabytes_per_second: 32}, latency: {ns: 100}}}
  edges:
  - {ep1: {component: xpu}, ep2: {component: pciesw}, scheme: many2many, link: pcie}
  - {ep1: {component: nic}, ep2: {component: pciesw}, scheme: many2many, link: pcie}
- name: switch
  components:
  - {name: port, count: 4, choice: port}
  - {name: asic, count: 1, choice: custom, custom: {type: asic}}
  links: [{name: ic}]
  edges:
  - {ep1: {component: port}, ep2: {component: asic}, scheme: many2many, link: ic}
links:
- {name: eth, physical: {bandwidth: {gigabits_per_second: 100}, latency: {ns: 500}}}
instances:
- {name: server, device: server, count: 2}
- {name: leaf, device: switch, count: 1}
edges:
- {ep1: {instance: "server[0]", component: "nic[0]"}, ep2: {instance: "leaf[0]", component: "port[0]"}, scheme: one2one, link: eth}
- {ep1: {instance: "server[1]", component: "nic[1]"}, ep2: {instance: "leaf[0]", component: "port[3]"}, scheme: one2one, link: eth}
)";

/// The same, with everything that older schemas wrote otherwise.
constexpr const char* kOlder = R"(
infrastructure:
  devices:
  - name: server
    components:
    - {name: xpu, type: npu}
    - {name: nic, type: nic, external: true}
    - {name: pciesw, type: switch}
    links:
    - name: pcie
      bandwidth: {choice: giga_bytes_per_second, giga_bytes_per_second: 32}
    connections: [xpu.0.pcie.pciesw.0, xpu.1.pcie.pciesw.0, nic.0.pcie.pciesw.0, nic.1.pcie.pciesw.0]
  - name: switch
    components:
    - {name: port, count: 4, type: nic, external: true}
    - {name: asic, count: 1, type: asic}
    links: [{name: ic}]
    edges:
    - {ep1: {component: port}, ep2: {component: asic}, many2many: true, link: ic}
    instances:
    - {name: leaf, count: 1}
  links:
  - {name: eth, physical: {bandwidth: {choice: g_bits_per_second, g_bits_per_second: 100}}}
  instances:
  - {name: server, device: server}
  connections:
  - server.0.nic.0.eth.leaf.0.port.0
  - server.1.nic.1.eth.leaf.0.port.3
  annotations:
  - {name: addresses, data: {server: 10.0.0.1}}
)";

TEST(OlderInfragraph, is_the_machine_that_the_current_schema_describes) {
  const Machine current = from_infragraph(kCurrent, "current.yaml");
  const Machine older = from_infragraph(kOlder, "folder/pod.yaml");
  EXPECT_EQ(older.name, "pod");  // of the file: it names itself nowhere
  ASSERT_EQ(older.nodes.size(), current.nodes.size());
  for (std::size_t i = 0; i < current.nodes.size(); ++i) {
    EXPECT_EQ(older.nodes[i].name, current.nodes[i].name);
    EXPECT_EQ(older.nodes[i].kind, current.nodes[i].kind);
  }
  ASSERT_EQ(older.links.size(), current.links.size());
  for (std::size_t i = 0; i < current.links.size(); ++i) {
    EXPECT_EQ(older.links[i].from, current.links[i].from);
    EXPECT_EQ(older.links[i].to, current.links[i].to);
    const auto rate = [i](const Machine& machine) {
      const auto which = static_cast<std::size_t>(machine.links[i].link_class);
      return machine.link_classes[which].bandwidth;
    };
    EXPECT_EQ(rate(older), rate(current));
  }
}

TEST(OlderInfragraph, says_what_was_converted_and_what_ignored) {
  const std::string warnings = from_infragraph(kOlder, "pod.yaml").warnings.render();
  for (const char* said :
       {"pod.yaml:3:3: warning: converted: the root key 'infrastructure' to the root itself",
        "converted: the type 'npu' of a component to the choice 'xpu' (and 4 more like it) (at "
        "/infrastructure/devices/0/components/0/type)",
        "converted: the highest index of 'xpu' in the connections to its count, 2",
        "converted: a connection to an edge (and 5 more like it)",
        "converted: 'many2many: true' of an edge to 'scheme: many2many'",
        "converted: 'bandwidth' of a link to its 'physical'",
        "converted: 'giga_bytes_per_second' to 'gigabytes_per_second'",
        "converted: 'instances' of a device to those of the infrastructure",
        "converted: an infrastructure without a name",
        "ignored: 'external' of a component: edges may end at any (and 1 more like it)",
        "ignored: annotations of named data"})
    EXPECT_THAT(warnings, HasSubstr(said));
}

TEST(OlderInfragraph, current_files_are_left_alone) {
  const std::string warnings = from_infragraph(kCurrent, "current.yaml").warnings.render();
  EXPECT_THAT(warnings, testing::Not(HasSubstr("converted")));
  EXPECT_THAT(warnings, testing::Not(HasSubstr("ignored")));
}

TEST(OlderInfragraph, whose_meaning_is_not_clear_is_refused) {
  const auto message = [](const std::string& from, const std::string& to) {
    std::string text = kOlder;
    text.replace(text.find(from), from.size(), to);
    try {
      from_infragraph(text, "pod.yaml");
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), ExitCode::bad_input);
      return std::string(failure.what());
    }
    return std::string("no failure");
  };
  EXPECT_THAT(message("xpu.0.pcie.pciesw.0", "xpu.0.pcie.pciesw"),
              HasSubstr("'xpu.0.pcie.pciesw' is no connection of the schema before 'edges' (at "
                        "/infrastructure/devices/0/connections/0)"));
  EXPECT_THAT(message("many2many: true", "many2many: some"),
              HasSubstr("'many2many' is true or false, not 'some'"));
  EXPECT_THAT(message("device: server}", "device: servers}"), HasSubstr("servers"));
  EXPECT_THAT(message("- {name: xpu, type: npu}", "- {name: spare, type: npu}"),
              HasSubstr("a component has no 'count'"));
  EXPECT_THAT(message("eth.leaf.0.port.0", "eht.leaf.0.port.0"), HasSubstr("eht"));
}

}  // namespace
}  // namespace hemiola::machine

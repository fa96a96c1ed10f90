#include "machine/nccl/topology.h"

#include <algorithm>
#include <array>
#include <map>
#include <pugixml.hpp>
#include <set>
#include <utility>
#include <vector>

#include "core/finding.h"
#include "core/text.h"
#include "machine/link_defaults.h"
#include "machine/nccl/gpus.h"
#include "machine/nccl/host.h"
#include "machine/nccl/xml.h"

namespace hemiola::machine {
namespace {

using namespace infragraph;

enum Group { kCpu, kPcie, kGpu, kNic, kNvswitch, kOther, kGroups };
constexpr std::array<std::pair<std::string_view, Choice>, kGroups> kGroupComponents{
    {{"cpu", Choice::cpu},
     {"pcie", Choice::switch_},
     {"gpu", Choice::xpu},
     {"nic", Choice::nic},
     {"nvswitch", Choice::switch_},
     {"other", Choice::custom}}};

struct GroupMember {
  Group group;
  std::int64_t index;
  bool operator==(const GroupMember&) const = default;
};

class Reader {
 public:
  Reader(std::string_view xml, const std::string& file) : xml_(xml, file), file_(file) {}

  Document read() {
    const pugi::xml_node system = xml_.root("system", "an NCCL topology");
    start();
    for (const pugi::xml_node& node : system.children()) {
      if (node.type() != pugi::node_element) continue;
      if (std::string_view(node.name()) == "cpu")
        read_cpu(node);
      else
        skip(node);
    }
    if (counts_[kCpu] == 0) throw Failure("the topology has no <cpu>", where(system));
    join_cpus();
    join_gpus();
    finish();
    return std::move(document_);
  }

 private:
  struct Cpu {
    GroupMember place;
    std::string host, arch, vendor;
    std::int64_t model = 0;
  };
  struct Gpu {
    GroupMember place, cpu;
    std::string busid;
    const Generation* generation = nullptr;
    pugi::xml_node links;  ///< <gpu>; empty in files without one
    SourceLocation where;
  };

  struct Ports {
    std::string names;
    std::int64_t megabits = 0;
  };

  SourceLocation where(const pugi::xml_node& node) const { return xml_.where(node); }

  void start() {
    document_.file = file_;
    const std::size_t slash = file_.find_last_of('/');
    document_.name = slash == std::string::npos ? file_ : file_.substr(slash + 1);
    document_.name = document_.name.substr(0, document_.name.find('.'));
    if (document_.name.empty()) document_.name = "nccl-topology";
    document_.description = "read from an NCCL topology";
    device_.name = "host";
  }

  void skip(const pugi::xml_node& node) {
    if (!skipped_.insert(node.name()).second) return;
    warn_leniently(document_.warnings, Leniency::ignored,
                   "<" + std::string(node.name()) + ">, which is not understood", where(node));
  }

  GroupMember add(Group group) { return {group, counts_[group]++}; }

  static std::string text(const GroupMember& place) {
    return std::string(kGroupComponents[place.group].first) + "[" + std::to_string(place.index) +
           "]";
  }

  /// A second value of a key takes the place of the first.
  void annotate(const GroupMember& place, const std::string& key, const std::string& value,
                const SourceLocation& at) {
    const std::string name = "host[0]." + text(place);
    const auto [entry, is_new] =
        annotation_of_.try_emplace(name, document_.node_annotations.size());
    if (is_new) {
      Annotation annotation;
      annotation.first = name;
      annotation.where = at;
      document_.node_annotations.push_back(std::move(annotation));
    }
    std::vector<Attribute>& attributes = document_.node_annotations[entry->second].attributes;
    const auto known = std::ranges::find(attributes, key, &Attribute::name);
    if (known == attributes.end())
      attributes.push_back({key, value, at});
    else
      known->value = value;
  }

  /// A link class by name; the first to name it gives its numbers.
  std::string link(const std::string& name, Rate rate, const SourceLocation& at) {
    for (LinkDefinition& known : device_.links)
      if (known.name == name) return known.name;
    LinkDefinition definition;
    definition.name = name;
    definition.bandwidth = rate;
    definition.where = at;
    device_.links.push_back(std::move(definition));
    return device_.links.back().name;
  }

  void join(const GroupMember& a, const GroupMember& b, const std::string& link, std::int64_t lanes,
            const SourceLocation& at) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      Edge edge;
      edge.ep1.component = text(a);
      edge.ep2.component = text(b);
      edge.ep1.where = edge.ep2.where = edge.where = at;
      edge.scheme = Scheme::one2one;
      edge.link = link;
      device_.edges.push_back(std::move(edge));
    }
  }

  void read_cpu(const pugi::xml_node& node) {
    const SourceLocation at = where(node);
    Cpu cpu;
    cpu.place = add(kCpu);
    cpu.host = node.attribute("host_hash").value();
    cpu.arch = node.attribute("arch").value();
    cpu.vendor = node.attribute("vendor").value();
    cpu.model = parse_count(node.attribute("modelid").value()).value_or(0);
    annotate(cpu.place, "numaid", xml_.attribute(node, "numaid"), at);
    cpus_.push_back(cpu);
    for (const pugi::xml_node& child : node.children()) {
      if (child.type() != pugi::node_element) continue;
      if (std::string_view(child.name()) == "pci")
        read_pci(child, cpu.place, cpu.place, 1);
      else if (std::string_view(child.name()) == "nic")
        read_nic(child, add(kNic), cpu.place);
      else
        skip(child);
    }
  }

  void read_pci(const pugi::xml_node& node, const GroupMember& parent, const GroupMember& cpu,
                int depth) {
    const SourceLocation at = where(node);
    constexpr int kMostDepth = 32;
    if (depth > kMostDepth) throw Failure("<pci> elements are nested more than 32 deep", at);
    const std::string busid = xml_.attribute(node, "busid");
    const std::string pci_class = node.attribute("class").value();
    const bool has_pci = node.child("pci");
    const bool is_gpu = node.child("gpu") ||
                        (!has_pci && starts_with_any(pci_class, {"0x0302", "0x0380", "0x1200"}));
    const bool is_nic = node.child("nic") || (!has_pci && pci_class.starts_with("0x02"));
    const bool is_bridge = has_pci || pci_class.starts_with("0x0604");
    const Group group = is_gpu                            ? kGpu
                        : is_nic                          ? kNic
                        : is_bridge                       ? kPcie
                        : pci_class.starts_with("0x0680") ? kNvswitch
                                                          : kOther;
    // RCCL writes several bridges under the busid of one when it shortens a dump; other devices are
    // what links lead to.
    const auto known = by_busid_.find(busid);
    const bool twice = known != by_busid_.end() && group != kPcie && known->second.group != kPcie;
    if (twice && !is_another(node, known->second)) return add_to(known->second, node, busid);
    const GroupMember place = add(group);
    if (!twice && (group != kPcie || known == by_busid_.end())) by_busid_[busid] = place;
    if (twice) {
      same_busid_.note("the second GPU with the busid '" + busid +
                           "', another one by its rank: links lead to the first",
                       [&] { return at; });
    }
    annotate(place, "busid", busid, at);
    join(parent, place, pcie_link(node), 1, at);
    if (is_gpu) read_gpu(node, place, cpu, twice ? busid + " (another)" : busid);
    for (const pugi::xml_node& child : node.children()) {
      if (child.type() != pugi::node_element) continue;
      const std::string_view name = child.name();
      if (name == "pci")
        read_pci(child, place, cpu, depth + 1);
      else if (name == "nic" && group == kNic)
        read_nets(child, place);
      else if (name != "gpu")
        skip(child);
    }
  }

  /// Whether a device with the busid of a GPU is a GPU of its own: parts of one have its busid.
  bool is_another(const pugi::xml_node& node, const GroupMember& known) const {
    if (known.group != kGpu) return false;
    const std::string rank = node.child("gpu").attribute("rank").value();
    return !rank.empty() && std::ranges::none_of(gpus_, [&](const Gpu& gpu) {
      return gpu.place == known && rank == gpu.links.attribute("rank").value();
    });
  }

  /// A device that stands in the file again: NCCL takes NICs with one busid for ports of one.
  void add_to(const GroupMember& known, const pugi::xml_node& node, const std::string& busid) {
    if (known.group == kNic && node.child("nic")) {
      for (const pugi::xml_node& nic : node.children("nic")) read_nets(nic, known);
      same_busid_.note("the second NIC with the busid '" + busid + "': its ports are the first's",
                       [&] { return where(node); });
      return;
    }
    repeated_.note("the second <pci> with the busid '" + busid + "'", [&] { return where(node); });
  }

  /// The class of a device's link to its parent.
  std::string pcie_link(const pugi::xml_node& node) {
    const SourceLocation at = where(node);
    const PcieLink pcie = pcie_link_of(node.attribute("link_speed").value(),
                                       node.attribute("link_width").value(), at);
    if (pcie.assumed && !pcie_warned_) {
      pcie_warned_ = true;
      document_.warnings.warning(
          "a <pci> has no link_speed or link_width: 8 GT/s and 16 lanes are taken, as NCCL does",
          at);
    }
    return link(pcie.name, pcie.rate, at);
  }

  void read_gpu(const pugi::xml_node& pci, const GroupMember& place, const GroupMember& cpu,
                const std::string& busid) {
    const pugi::xml_node element = pci.child("gpu");
    Gpu gpu{place, cpu, busid, generation_of(pci, element), element, where(pci)};
    if (gpu.generation)
      annotate(place, "hemiola.device_model", std::string(gpu.generation->model), gpu.where);
    const std::string rank = element.attribute("rank").value();
    if (!rank.empty()) annotate(place, "rank", rank, gpu.where);
    gpus_.push_back(std::move(gpu));
  }

  /// Null where nothing says it: the machine's default model is taken.
  const Generation* generation_of(const pugi::xml_node& pci, const pugi::xml_node& gpu) {
    const std::string architecture =
        architecture_of(gpu.attribute("sm").value(), gpu.attribute("gcn").value(),
                        pci.attribute("vendor").value(), pci.attribute("device").value());
    if (architecture.empty()) return nullptr;
    const Generation* nearest = nearest_generation(architecture);
    if (!nearest) throw Failure("the architecture '" + architecture + "' is not known", where(pci));
    const bool exact = nearest->exact && nearest->architecture == architecture;
    if (!exact && models_warned_.insert(architecture).second) {
      document_.warnings.warning("there is no device model of " + architecture + ": " +
                                     std::string(nearest->model) + " is the nearest",
                                 where(pci), "the results are not those of this GPU");
    }
    return nearest;
  }

  void read_nic(const pugi::xml_node& node, const GroupMember& place, const GroupMember& parent) {
    const LinkDefault& pcie = link_default_named("PCIe Gen5 x16");
    join(parent, place, link("pcie-gen5-x16", pcie.bandwidth, where(node)), 1, where(node));
    read_nets(node, place);
  }

  /// The ports of a NIC: its rate is their sum.
  void read_nets(const pugi::xml_node& nic, const GroupMember& place) {
    Ports& ports = ports_[place.index];
    for (const pugi::xml_node& net : nic.children()) {
      if (net.type() != pugi::node_element) continue;
      if (std::string_view(net.name()) != "net") {
        skip(net);
        continue;
      }
      ports.names += (ports.names.empty() ? "" : " ") + xml_.attribute(net, "name");
      constexpr std::int64_t kMostMegabits = 1'000'000'000;
      if (net.attribute("speed")) ports.megabits += xml_.number(net, "speed", kMostMegabits);
    }
    if (!ports.names.empty()) annotate(place, "net", ports.names, where(nic));
    if (ports.megabits > 0)
      annotate(place, "hemiola.nic.rate", std::to_string(ports.megabits) + " Mb/s", where(nic));
  }

  static std::int64_t socket_rate(const Cpu& cpu) {
    return socket_megabytes(cpu.arch, cpu.vendor, cpu.model);
  }

  void join_cpus() {
    std::set<std::string> used;
    for (std::size_t i = 0; i < cpus_.size(); ++i) {
      for (std::size_t j = i + 1; j < cpus_.size(); ++j) {
        if (cpus_[i].host != cpus_[j].host) continue;
        const std::int64_t rate = std::min(socket_rate(cpus_[i]), socket_rate(cpus_[j]));
        const std::string name = "cpu-fabric-" + std::to_string(rate / 1000);
        join(cpus_[i].place, cpus_[j].place, link(name, {rate * 1'000'000}, {}), 1, {});
        used.insert(name);
      }
    }
    const LinkDefault& format = link_default("cpu-fabric", "");
    for (LinkDefinition& known : device_.links) {
      if (!used.contains(known.name)) continue;
      known.latency = format.latency;
      Annotation annotation;
      annotation.first = known.name;
      annotation.attributes = {{"hemiola.max_payload", to_string(format.max_payload), {}},
                               {"hemiola.header", to_string(format.header), {}}};
      document_.link_annotations.push_back(std::move(annotation));
    }
  }

  void join_gpus() {
    bool any_link = false;
    for (const Gpu& gpu : gpus_) {
      for (const pugi::xml_node& node : gpu.links.children()) {
        if (node.type() != pugi::node_element) continue;
        const std::string_view name = node.name();
        if (name == "nvlink" || name == "xgmi") {
          join_gpu(gpu, node);
        } else if (name == "c2c") {
          const std::int64_t megabytes = xml_.number(node, "bw", 10'000'000);
          join(gpu.place, gpu.cpu, link("c2c", {megabytes * 1'000'000}, where(node)),
               xml_.number(node, "count", 64), where(node));
        } else {
          skip(node);
          continue;
        }
        any_link = true;
      }
    }
    const bool virtual_file =
        std::ranges::none_of(gpus_, [](const Gpu& gpu) { return bool(gpu.links); });
    if (virtual_file && !any_link && !gpus_.empty()) {
      document_.warnings.warning(
          "the file has no <gpu> elements, so NVLinks are not in it: GPUs reach each other over "
          "PCIe",
          gpus_[0].where, "dump a topology with NCCL_TOPO_DUMP_FILE on the machine itself");
    }
  }

  void join_gpu(const Gpu& gpu, const pugi::xml_node& node) {
    const SourceLocation at = where(node);
    const std::string target = xml_.attribute(node, "target");
    const std::string target_class = node.attribute("tclass").value();
    const std::int64_t lanes = xml_.number(node, "count", 64);
    const bool is_nvlink = std::string_view(node.name()) == "nvlink";
    const std::string generation =
        gpu.generation ? std::string(gpu.generation->architecture) : "unknown";
    const LinkDefault& otherwise = link_default(node.name(), "");
    const Rate rate =
        gpu.generation ? Rate{gpu.generation->link_megabytes * 1'000'000} : otherwise.bandwidth;
    std::string link_name = std::string(node.name()) + "-" + generation;
    std::replace(link_name.begin(), link_name.end(), '_', '-');
    if (is_nvlink && target_class == "0x068001") {  // a POWER CPU
      join(gpu.place, gpu.cpu, link(link_name, rate, at), lanes, at);
      return;
    }
    auto found = by_busid_.find(target);
    if (is_nvlink && target_class.starts_with("0x0680") && found == by_busid_.end()) {
      const GroupMember place = add(kNvswitch);
      annotate(place, "busid", target, at);
      found = by_busid_.emplace(target, place).first;
    }
    if (found == by_busid_.end()) {
      nowhere_.note("the " + std::string(node.name()) + " of '" + gpu.busid + "' to '" + target +
                        "', which is not in the file",
                    [&] { return at; });
      return;
    }
    if (found->second.group == kGpu && !is_first_of_pair(gpu, found->second, target, lanes, at))
      return;
    join(gpu.place, found->second, link(link_name, rate, at), lanes, at);
  }

  /// Both GPUs list a link between them: the first in the file counts.
  bool is_first_of_pair(const Gpu& gpu, const GroupMember& target, const std::string& busid,
                        std::int64_t lanes, const SourceLocation& at) {
    if (target == gpu.place) {
      // Azure's NC A100 v4 lists the links of one GPU as leading to itself: they lead nowhere.
      itself_.note(std::to_string(lanes) + " links of '" + gpu.busid + "' to itself",
                   [&] { return at; });
      return false;
    }
    const auto [seen, is_new] = pairs_.emplace(std::pair{gpu.busid, busid}, lanes);
    if (!is_new) throw Failure("two elements link '" + gpu.busid + "' and '" + busid + "'", at);
    const auto reverse = pairs_.find({busid, gpu.busid});
    if (reverse == pairs_.end()) return true;
    if (reverse->second != lanes) {
      document_.warnings.warning("'" + busid + "' lists " + std::to_string(reverse->second) +
                                     " links to '" + gpu.busid + "', which lists " +
                                     std::to_string(lanes) + " back: the first number is taken",
                                 at);
    }
    return false;
  }

  void finish() {
    same_busid_.warn(document_.warnings, Leniency::converted);
    repeated_.warn(document_.warnings, Leniency::ignored);
    itself_.warn(document_.warnings, Leniency::ignored,
                 "if GPUs of this machine are linked in pairs, name the other GPU of the pair");
    nowhere_.warn(document_.warnings, Leniency::ignored);
    for (int group = 0; group < kGroups; ++group) {
      if (counts_[index(group)] == 0) continue;
      Component component;
      component.name = kGroupComponents[index(group)].first;
      component.choice = kGroupComponents[index(group)].second;
      component.count = counts_[index(group)];
      device_.components.push_back(std::move(component));
    }
    Instance host;
    host.name = host.device = device_.name;
    document_.instances.push_back(std::move(host));
    document_.devices.push_back(std::move(device_));
  }

  TopologyXml xml_;
  const std::string& file_;
  Document document_;
  Device device_;
  std::array<std::int64_t, kGroups> counts_{};
  std::vector<Cpu> cpus_;
  std::vector<Gpu> gpus_;
  std::map<std::string, GroupMember> by_busid_;
  std::map<std::pair<std::string, std::string>, std::int64_t> pairs_;
  std::map<std::string, std::size_t> annotation_of_;  ///< by node: place among the annotations
  std::map<std::int64_t, Ports> ports_;               ///< by NIC
  std::set<std::string> skipped_, models_warned_;
  Finding same_busid_, repeated_, itself_, nowhere_;
  bool pcie_warned_ = false;
};

}  // namespace

Document nccl_topology_document(std::string_view xml, const std::string& file) {
  return Reader(xml, file).read();
}

Machine from_nccl_topology(std::string_view xml, const std::string& file,
                           const LoadOptions& options) {
  return expand(nccl_topology_document(xml, file), options);
}

}  // namespace hemiola::machine

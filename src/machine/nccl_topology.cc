#include "machine/nccl_topology.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <pugixml.hpp>
#include <set>
#include <utility>
#include <vector>

#include "core/text.h"
#include "machine/link_defaults.h"
#include "machine/nccl_topology_gpus.h"

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

struct Place {
  Group group;
  std::int64_t index;
  bool operator==(const Place&) const = default;
};

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

class Reader {
 public:
  Reader(std::string_view xml, const std::string& file) : xml_(xml), file_(file) {}

  Document read() {
    pugi::xml_document xml;
    const pugi::xml_parse_result result = xml.load_buffer(xml_.data(), xml_.size());
    if (!result) {
      throw Failure(std::string("this is no XML: ") + result.description(),
                    locate(file_, xml_,
                           static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, result.offset))));
    }
    const pugi::xml_node system = xml.child("system");
    if (!system) {
      throw Failure("the root of an NCCL topology is <system>", SourceLocation{file_, 1, 1, {}});
    }
    start();
    for (const pugi::xml_node& node : system.children()) {
      if (node.type() != pugi::node_element) continue;
      if (std::string_view(node.name()) == "cpu") {
        read_cpu(node);
      } else {
        skip(node);
      }
    }
    if (counts_[kCpu] == 0) {
      throw Failure("the topology has no <cpu>", where(system));
    }
    join_cpus();
    join_gpus();
    finish();
    return std::move(document_);
  }

 private:
  struct Cpu {
    Place place;
    std::string host, arch, vendor;
    std::int64_t model = 0;
  };
  struct Gpu {
    Place place, cpu;
    std::string busid;
    const Generation* generation = nullptr;
    pugi::xml_node links;  ///< <gpu>; empty in files without one
    SourceLocation where;
  };

  SourceLocation where(const pugi::xml_node& node) const {
    SourceLocation location = locate(
        file_, xml_, static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, node.offset_debug())));
    for (pugi::xml_node at = node; at.type() == pugi::node_element; at = at.parent()) {
      int index = 0;
      for (pugi::xml_node other = at.previous_sibling(at.name()); other;
           other = other.previous_sibling(at.name())) {
        ++index;
      }
      const bool root = at.parent().type() != pugi::node_element;
      location.pointer = "/" + std::string(at.name()) +
                         (root ? "" : "[" + std::to_string(index) + "]") + location.pointer;
    }
    return location;
  }

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
    document_.warnings.warning("<" + std::string(node.name()) + "> is not understood and left out",
                               where(node));
  }

  std::string attribute(const pugi::xml_node& node, const char* name) const {
    const pugi::xml_attribute found = node.attribute(name);
    if (!found || !*found.value()) {
      throw Failure("<" + std::string(node.name()) + "> has no '" + name + "'", where(node));
    }
    return found.value();
  }

  std::int64_t number(const pugi::xml_node& node, const char* name, std::int64_t most) const {
    const std::string text = attribute(node, name);
    const auto value = parse_count(text);
    if (!value || *value < 1 || *value > most) {
      throw Failure("'" + text + "' is no value for '" + name + "' of <" + node.name() + ">",
                    where(node), "a whole number from 1 to " + std::to_string(most));
    }
    return *value;
  }

  Place add(Group group) { return {group, counts_[group]++}; }

  static std::string text(const Place& place) {
    return std::string(kGroupComponents[place.group].first) + "[" + std::to_string(place.index) +
           "]";
  }

  void annotate(const Place& place, const std::string& key, const std::string& value,
                const SourceLocation& at) {
    const std::string name = "host[0]." + text(place);
    if (document_.node_annotations.empty() || document_.node_annotations.back().first != name) {
      Annotation annotation;
      annotation.first = name;
      annotation.where = at;
      document_.node_annotations.push_back(std::move(annotation));
    }
    document_.node_annotations.back().attributes.push_back({key, value, at});
  }

  /// A link class by name; the first to name it gives its numbers.
  std::string link(const std::string& name, Rate rate, const SourceLocation& at) {
    for (LinkDefinition& known : device_.links) {
      if (known.name == name) return known.name;
    }
    LinkDefinition definition;
    definition.name = name;
    definition.bandwidth = rate;
    definition.where = at;
    device_.links.push_back(std::move(definition));
    return device_.links.back().name;
  }

  void join(const Place& a, const Place& b, const std::string& link, std::int64_t lanes,
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
    annotate(cpu.place, "numaid", attribute(node, "numaid"), at);
    cpus_.push_back(cpu);
    for (const pugi::xml_node& child : node.children()) {
      if (child.type() != pugi::node_element) continue;
      if (std::string_view(child.name()) == "pci") {
        read_pci(child, cpu.place, cpu.place, 1);
      } else if (std::string_view(child.name()) == "nic") {
        read_nic(child, add(kNic), cpu.place);
      } else {
        skip(child);
      }
    }
  }

  void read_pci(const pugi::xml_node& node, const Place& parent, const Place& cpu, int depth) {
    const SourceLocation at = where(node);
    constexpr int kMostDepth = 32;
    if (depth > kMostDepth) throw Failure("<pci> elements are nested more than 32 deep", at);
    const std::string busid = attribute(node, "busid");
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
    const Place place = add(group);
    // RCCL writes several bridges under the busid of one when it shortens a dump; GPUs and NICs are
    // what others refer to.
    if (!by_busid_.emplace(busid, place).second && group != kPcie) {
      throw Failure("two devices have the busid '" + busid + "'", at);
    }
    annotate(place, "busid", busid, at);
    join(parent, place, pcie_link(node), 1, at);
    if (is_gpu) read_gpu(node, place, cpu, busid);
    for (const pugi::xml_node& child : node.children()) {
      if (child.type() != pugi::node_element) continue;
      const std::string_view name = child.name();
      if (name == "pci") {
        read_pci(child, place, cpu, depth + 1);
      } else if (name == "nic" && group == kNic) {
        read_nets(child, place);
      } else if (name != "gpu") {
        skip(child);
      }
    }
  }

  /// "16.0 GT/s PCIe" of 16 lanes is the class pcie-gen4-x16. An empty speed or width means what
  /// NCCL takes it for: 8 GT/s, 16 lanes.
  std::string pcie_link(const pugi::xml_node& node) {
    struct Speed {
      std::string_view prefix, generation;
      std::int64_t kilobytes_per_lane;  // 1000 B/s, after the line code
    };
    constexpr std::array kSpeeds{
        Speed{"2.5", "gen1", 250'000},  Speed{"5", "gen2", 500'000},
        Speed{"8", "gen3", 984'615},    Speed{"16", "gen4", 1'969'231},
        Speed{"32", "gen5", 3'938'462}, Speed{"64", "gen6", 7'562'500},
    };
    const SourceLocation at = where(node);
    const std::string speed = node.attribute("link_speed").value();
    const std::string width_text = node.attribute("link_width").value();
    auto width = width_text.empty() ? 0 : parse_count(width_text).value_or(-1);
    if (width < 0 || width > 32) {
      throw Failure("'" + width_text + "' is no value for 'link_width'", at, "lanes such as 16");
    }
    const bool assumed = speed.empty() || width == 0;
    if (width == 0) width = 16;
    const std::string_view value =
        speed.empty() ? "8" : std::string_view(speed).substr(0, speed.find_first_of(" G"));
    const auto found = std::find_if(kSpeeds.begin(), kSpeeds.end(), [&](const Speed& known) {
      return known.prefix == value || std::string(known.prefix) + ".0" == value;
    });
    if (found == kSpeeds.end()) {
      throw Failure("'" + speed + "' is no value for 'link_speed'", at,
                    "one of 2.5, 5, 8, 16, 32 and 64 GT/s");
    }
    if (assumed && !pcie_warned_) {
      pcie_warned_ = true;
      document_.warnings.warning(
          "a <pci> has no link_speed or link_width: 8 GT/s and 16 lanes are taken, as NCCL does",
          at);
    }
    const std::string name =
        "pcie-" + std::string(found->generation) + "-x" + std::to_string(width);
    return link(name, {found->kilobytes_per_lane * width * 1000}, at);
  }

  void read_gpu(const pugi::xml_node& pci, const Place& place, const Place& cpu,
                const std::string& busid) {
    const pugi::xml_node element = pci.child("gpu");
    Gpu gpu{place, cpu, busid, generation_of(pci, element), element, where(pci)};
    if (gpu.generation) {
      annotate(place, "hemiola.device_model", std::string(gpu.generation->model), gpu.where);
    }
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
    if (!nearest) {
      throw Failure("the architecture '" + architecture + "' is not known", where(pci));
    }
    const bool exact = nearest->exact && nearest->architecture == architecture;
    if (!exact && models_warned_.insert(architecture).second) {
      document_.warnings.warning("there is no device model of " + architecture + ": " +
                                     std::string(nearest->model) + " is the nearest",
                                 where(pci), "the results are not those of this GPU");
    }
    return nearest;
  }

  void read_nic(const pugi::xml_node& node, const Place& place, const Place& parent) {
    const LinkDefault& pcie = link_default_named("PCIe Gen5 x16");
    join(parent, place, link("pcie-gen5-x16", pcie.bandwidth, where(node)), 1, where(node));
    read_nets(node, place);
  }

  /// The ports of a NIC: its rate is their sum.
  void read_nets(const pugi::xml_node& nic, const Place& place) {
    std::int64_t megabits = 0;
    std::string names;
    for (const pugi::xml_node& net : nic.children()) {
      if (net.type() != pugi::node_element) continue;
      if (std::string_view(net.name()) != "net") {
        skip(net);
        continue;
      }
      names += (names.empty() ? "" : " ") + attribute(net, "name");
      constexpr std::int64_t kMostMegabits = 1'000'000'000;
      if (net.attribute("speed")) megabits += number(net, "speed", kMostMegabits);
    }
    if (!names.empty()) annotate(place, "net", names, where(nic));
    if (megabits > 0) {
      annotate(place, "hemiola.nic.rate", std::to_string(megabits) + " Mb/s", where(nic));
    }
  }

  /// NCCL takes all CPUs of a host to be joined, at a rate by vendor and model
  /// (ncclTopoGetInterCpuBw).
  static std::int64_t socket_megabytes(const Cpu& cpu) {
    if (cpu.arch == "ppc64") return 32'000;
    if (cpu.arch == "arm64") return 6'000;
    if (cpu.vendor == "AuthenticAMD") return 16'000;
    if (cpu.vendor == "GenuineIntel") {
      return cpu.model >= 0xcf   ? 40'000
             : cpu.model >= 0x8f ? 22'000
             : cpu.model >= 0x55 ? 10'000
                                 : 6'000;
    }
    return 6'000;
  }

  void join_cpus() {
    std::set<std::string> used;
    for (std::size_t i = 0; i < cpus_.size(); ++i) {
      for (std::size_t j = i + 1; j < cpus_.size(); ++j) {
        if (cpus_[i].host != cpus_[j].host) continue;
        const std::int64_t rate = std::min(socket_megabytes(cpus_[i]), socket_megabytes(cpus_[j]));
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
          const std::int64_t megabytes = number(node, "bw", 10'000'000);
          join(gpu.place, gpu.cpu, link("c2c", {megabytes * 1'000'000}, where(node)),
               number(node, "count", 64), where(node));
        } else {
          skip(node);
          continue;
        }
        any_link = true;
      }
    }
    const bool virtual_file =
        std::none_of(gpus_.begin(), gpus_.end(), [](const Gpu& gpu) { return bool(gpu.links); });
    if (virtual_file && !any_link && !gpus_.empty()) {
      document_.warnings.warning(
          "the file has no <gpu> elements, so NVLinks are not in it: GPUs reach each other over "
          "PCIe",
          gpus_[0].where, "dump a topology with NCCL_TOPO_DUMP_FILE on the machine itself");
    }
  }

  void join_gpu(const Gpu& gpu, const pugi::xml_node& node) {
    const SourceLocation at = where(node);
    const std::string target = attribute(node, "target");
    const std::string target_class = node.attribute("tclass").value();
    const std::int64_t lanes = number(node, "count", 64);
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
      const Place place = add(kNvswitch);
      annotate(place, "busid", target, at);
      found = by_busid_.emplace(target, place).first;
    }
    if (found == by_busid_.end()) {
      document_.warnings.warning("the " + std::string(node.name()) + " of '" + gpu.busid +
                                     "' leads to '" + target + "', which is not in the file",
                                 at);
      return;
    }
    if (found->second.group == kGpu && !is_first_of_pair(gpu, found->second, target, lanes, at)) {
      return;
    }
    join(gpu.place, found->second, link(link_name, rate, at), lanes, at);
  }

  /// Both GPUs list a link between them: the first in the file counts.
  bool is_first_of_pair(const Gpu& gpu, const Place& target, const std::string& busid,
                        std::int64_t lanes, const SourceLocation& at) {
    if (target == gpu.place) throw Failure("a GPU is linked with itself", at);
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
    for (int group = 0; group < kGroups; ++group) {
      if (counts_[static_cast<std::size_t>(group)] == 0) continue;
      Component component;
      component.name = kGroupComponents[static_cast<std::size_t>(group)].first;
      component.choice = kGroupComponents[static_cast<std::size_t>(group)].second;
      component.count = counts_[static_cast<std::size_t>(group)];
      device_.components.push_back(std::move(component));
    }
    Instance host;
    host.name = host.device = device_.name;
    document_.instances.push_back(std::move(host));
    document_.devices.push_back(std::move(device_));
  }

  std::string_view xml_;
  const std::string& file_;
  Document document_;
  Device device_;
  std::array<std::int64_t, kGroups> counts_{};
  std::vector<Cpu> cpus_;
  std::vector<Gpu> gpus_;
  std::map<std::string, Place> by_busid_;
  std::map<std::pair<std::string, std::string>, std::int64_t> pairs_;
  std::set<std::string> skipped_, models_warned_;
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

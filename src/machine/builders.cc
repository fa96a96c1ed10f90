#include "machine/builders.h"

#include <array>
#include <vector>

#include "core/embedded.h"
#include "core/lists.h"
#include "machine/infragraph/infragraph.h"
#include "machine/scale_out.h"

namespace hemiola::machine {
namespace {

constexpr std::string_view kMachineFolder = "data/machines/";
constexpr std::string_view kMachineExtension = ".yaml";
constexpr std::string_view kDefaultModel = "h100";
constexpr std::int64_t kMostGpus = 65536;

/// The link class of generated topologies: the bandwidth of an H100's NVLinks together, in one
/// link.
LinkClass generic_link() {
  LinkClass link;
  link.name = "link";
  link.bandwidth = Rate{450'000'000'000};
  link.latency = Time::from_ns(500);
  link.assumed = true;
  return link;
}

/// One port of ASTRA-sim 3.0's generic GPU to one switch plane. The paper gives 1 us from GPU to
/// GPU; the two links of a way through a plane share it. It describes no packets: the header is
/// assumed.
LinkClass astra3_link() {
  LinkClass link;
  link.name = "port";
  link.bandwidth = Rate{std::int64_t{32} << 30};
  link.latency = Time::from_ns(500);
  return link;
}

/// What stands after the colon: "4x4" as {4, 4}. Throws Failure.
std::vector<std::int64_t> read_sizes(const std::string& name, const std::string& form) {
  const auto bad = [&](const std::string& what) {
    return Failure("machine '" + name + "': " + what, {}, "write " + form);
  };
  const auto colon = name.find(':');
  if (colon == std::string::npos) throw bad("a size is missing");
  std::vector<std::int64_t> sizes;
  std::int64_t product = 1;
  for (const std::string& word : split(std::string_view(name).substr(colon + 1), 'x')) {
    // Five digits hold kMostGpus, and parse_count() would let a sign through.
    const bool digits = !word.empty() && word.size() <= 5 &&
                        word.find_first_not_of("0123456789") == std::string::npos;
    if (!digits) throw bad("'" + word + "' is not a size");
    sizes.push_back(*parse_count(word));
    if (sizes.back() == 0) throw bad("a size is 0");
    product *= sizes.back();
    if (product > kMostGpus) throw bad("more than " + std::to_string(kMostGpus) + " GPUs");
  }
  return sizes;
}

/// Puts nodes and links together.
class Builder {
 public:
  Builder(const std::string& name, std::string description, LinkClass link) {
    machine_.name = name;
    machine_.description = std::move(description);
    machine_.link_classes.push_back(std::move(link));
  }

  NodeId add(const std::string& instance, int index, const std::string& component, NodeKind kind) {
    Node node;
    node.name = instance + "." + std::to_string(index) + "." + component + ".0";
    node.kind = kind;
    node.instance = instance;
    node.instance_index = index;
    node.device = instance;
    machine_.nodes.push_back(std::move(node));
    const auto id = static_cast<NodeId>(machine_.nodes.size() - 1);
    if (kind == NodeKind::xpu) {
      machine_.gpus.push_back(id);
      machine_.gpu_models.push_back(0);
    }
    return id;
  }

  void connect(NodeId a, NodeId b) {
    machine_.links.push_back({.from = a, .to = b, .link_class = 0, .lane = 0});
    machine_.links.push_back({.from = b, .to = a, .link_class = 0, .lane = 0});
  }

  /// `forwards`: the topology lives on GPUs that pass traffic on, whatever the device model says.
  Machine finish(const LoadOptions& options, std::string_view default_model, bool forwards) {
    GpuModel model = options.gpu.empty() ? gpu_model(default_model) : load_gpu_model(options.gpu);
    if (forwards && !model.forwards) {
      model.forwards = true;
      model.sources["fabric.forwards"] = "assumed: GPUs of '" + machine_.name + "' forward traffic";
    }
    machine_.models.push_back(std::move(model));
    const LinkClass& link = machine_.link_classes.front();
    if (link.assumed) {
      machine_.warnings.warning("the links of '" + machine_.name +
                                    "' are assumed: " + to_string(link.bandwidth) + " and " +
                                    to_string(link.latency) + " per direction, packets of " +
                                    to_string(link.max_payload) + " + " + to_string(link.header) +
                                    "; its switches and NICs add nothing",
                                {}, "change them with --set link." + link.name + ".bandwidth=...");
      if (options.gpu.empty()) {
        machine_.warnings.warning(
            "the GPUs of '" + machine_.name + "' are assumed to be " + machine_.models.front().name,
            {}, "choose another device model with --gpu");
      }
    }
    return std::move(machine_);
  }

 private:
  Machine machine_;
};

Machine build_switch(const std::string& name, const std::vector<std::int64_t>& sizes,
                     const LoadOptions& options) {
  Builder build(name, std::to_string(sizes[0]) + " GPUs on one switch", generic_link());
  std::vector<NodeId> gpus;
  for (int i = 0; i < sizes[0]; ++i) gpus.push_back(build.add("gpu", i, "xpu", NodeKind::xpu));
  const NodeId center = build.add("switch", 0, "switch", NodeKind::switch_);
  for (const NodeId gpu : gpus) build.connect(gpu, center);
  return build.finish(options, kDefaultModel, false);
}

/// Ranks in row-major order, the last size fastest.
Machine build_grid(const std::string& name, const std::vector<std::int64_t>& sizes, bool wrap,
                   const LoadOptions& options) {
  std::int64_t total = 1;
  for (const std::int64_t size : sizes) total *= size;
  Builder build(name, std::to_string(total) + " GPUs in a " + name.substr(0, name.find(':')),
                generic_link());
  for (int i = 0; i < total; ++i) build.add("gpu", i, "xpu", NodeKind::xpu);
  std::int64_t stride = total;
  for (const std::int64_t size : sizes) {
    stride /= size;
    for (std::int64_t i = 0; i < total; ++i) {
      const std::int64_t place = i / stride % size;
      const bool last = place == size - 1;
      if (!last) build.connect(static_cast<NodeId>(i), static_cast<NodeId>(i + stride));
      if (last && wrap && size > 2)
        build.connect(static_cast<NodeId>(i), static_cast<NodeId>(i - (size - 1) * stride));
    }
  }
  return build.finish(options, kDefaultModel, true);
}

Machine build_clos(const std::string& name, const std::vector<std::int64_t>& sizes,
                   const LoadOptions& options) {
  const std::int64_t leaves = sizes[0], spines = sizes[1], hosts = sizes[2];
  Builder build(name, std::to_string(leaves * hosts) + " hosts on a Clos network", generic_link());
  std::vector<NodeId> nics;
  for (int i = 0; i < leaves * hosts; ++i) {
    const NodeId gpu = build.add("host", i, "xpu", NodeKind::xpu);
    nics.push_back(build.add("host", i, "nic", NodeKind::nic));
    build.connect(gpu, nics.back());
  }
  std::vector<NodeId> leaf_nodes;
  for (int i = 0; i < leaves; ++i)
    leaf_nodes.push_back(build.add("leaf", i, "switch", NodeKind::switch_));
  for (std::size_t i = 0; i < nics.size(); ++i)
    build.connect(nics[i], leaf_nodes[i / index(hosts)]);
  for (int i = 0; i < spines; ++i) {
    const NodeId spine = build.add("spine", i, "switch", NodeKind::switch_);
    for (const NodeId leaf : leaf_nodes) build.connect(leaf, spine);
  }
  return build.finish(options, kDefaultModel, false);
}

Machine build_astra3(const std::string& name, const std::vector<std::int64_t>& sizes,
                     const LoadOptions& options) {
  constexpr int kPorts = 32;
  Builder build(
      name, std::to_string(sizes[0]) + " GPUs of ASTRA-sim 3.0's case studies, 32 switch planes",
      astra3_link());
  for (int i = 0; i < sizes[0]; ++i) build.add("gpu", i, "xpu", NodeKind::xpu);
  for (int plane = 0; plane < kPorts; ++plane) {
    const NodeId center = build.add("plane", plane, "switch", NodeKind::switch_);
    for (int i = 0; i < sizes[0]; ++i) build.connect(static_cast<NodeId>(i), center);
  }
  return build.finish(options, "generic-astra3", false);
}

struct Generator {
  std::string_view name;
  std::string_view form;
  std::string_view description;
  std::size_t least_sizes;
  std::size_t most_sizes;
  std::int64_t least_gpus;
  Machine (*build)(const std::string&, const std::vector<std::int64_t>&, const LoadOptions&);
};

constexpr std::array kGenerators{
    Generator{"switch", "switch:N such as switch:8", "N GPUs on one switch, one link each", 1, 1, 2,
              build_switch},
    Generator{"ring", "ring:N such as ring:8", "N GPUs in a ring", 1, 1, 2,
              [](const std::string& name, const std::vector<std::int64_t>& sizes,
                 const LoadOptions& options) { return build_grid(name, sizes, true, options); }},
    Generator{"mesh", "mesh:AxB or mesh:AxBxC such as mesh:4x4", "a grid of GPUs", 2, 3, 2,
              [](const std::string& name, const std::vector<std::int64_t>& sizes,
                 const LoadOptions& options) { return build_grid(name, sizes, false, options); }},
    Generator{"torus", "torus:AxB or torus:AxBxC such as torus:4x4",
              "a grid of GPUs that wraps around", 2, 3, 2,
              [](const std::string& name, const std::vector<std::int64_t>& sizes,
                 const LoadOptions& options) { return build_grid(name, sizes, true, options); }},
    Generator{"clos", "clos:LEAVESxSPINESxHOSTS such as clos:2x2x4",
              "HOSTS on each leaf switch, each one GPU with a NIC", 3, 3, 1, build_clos},
    Generator{"astra3", "astra3:N such as astra3:16",
              "N GPUs of ASTRA-sim 3.0's case studies on 32 switch planes", 1, 1, 2, build_astra3},
};

Machine generate(const Generator& generator, const std::string& name, const LoadOptions& options) {
  const std::string form(generator.form);
  const std::vector<std::int64_t> sizes = read_sizes(name, form);
  if (sizes.size() < generator.least_sizes || sizes.size() > generator.most_sizes)
    throw Failure("machine '" + name + "': wrong number of sizes", {}, "write " + form);
  std::int64_t gpus = 1;
  for (const std::int64_t size : sizes) gpus *= size;
  if (gpus < generator.least_gpus) {
    throw Failure(
        "machine '" + name + "' has fewer than " + std::to_string(generator.least_gpus) + " GPUs",
        {}, "write " + form);
  }
  return generator.build(name, sizes, options);
}

Machine read_shipped(const EmbeddedFile& file, const std::string& name,
                     const LoadOptions& options) {
  Machine machine = from_infragraph(file.content, std::string(file.path), options);
  const std::string base = name.substr(0, name.find(':'));
  machine.name = base;
  if (base == name) return machine;
  const std::string form = base + ":N such as " + base + ":4";
  const std::vector<std::int64_t> sizes = read_sizes(name, form);
  if (sizes.size() != 1)
    throw Failure("machine '" + name + "': wrong number of sizes", {}, "write " + form);
  if (sizes[0] * machine.ranks() > kMostGpus) {
    throw Failure("machine '" + name + "': more than " + std::to_string(kMostGpus) + " GPUs", {},
                  "write " + form);
  }
  return scale_out(std::move(machine), static_cast<int>(sizes[0]));
}

}  // namespace

std::optional<Machine> make_built_in(const std::string& name, const LoadOptions& options) {
  const std::string base = name.substr(0, name.find(':'));
  for (const Generator& generator : kGenerators)
    if (generator.name == base) return generate(generator, name, options);
  const std::string path = std::string(kMachineFolder) + base + std::string(kMachineExtension);
  if (const EmbeddedFile* file = find_embedded(path)) return read_shipped(*file, name, options);
  return std::nullopt;
}

std::vector<BuiltIn> built_in_machines() {
  std::vector<BuiltIn> all;
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.path.substr(0, kMachineFolder.size()) != kMachineFolder) continue;
    std::string name(file.path.substr(kMachineFolder.size()));
    name.resize(name.size() - kMachineExtension.size());
    all.push_back({name, infragraph::parse(file.content, std::string(file.path)).description});
  }
  all.push_back(
      {"dgx-h100:N", "N nodes of any of these behind rail-optimised leaf and spine switches"});
  for (const Generator& generator : kGenerators) {
    const std::string form(generator.form);
    all.push_back({form.substr(0, form.find(' ')), std::string(generator.description)});
  }
  return all;
}

}  // namespace hemiola::machine

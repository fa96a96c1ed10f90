#include "machine/simai/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/finding.h"
#include "core/lists.h"
#include "machine/devices/gpu_model.h"

namespace hemiola::machine {
namespace {

using namespace infragraph;

/// SimAI's names of GPUs that differ from a device model in their NVLinks only, which are the
/// text's own (NVIDIA data sheets).
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kSameChip{
    {{"a800", "a100"}, {"h800", "h100"}}};

/// ns-3's "3600Gbps", "400Gb/s", "50GBps" as units are written elsewhere: "3600Gb/s", "50GB/s".
std::string with_slash(std::string_view rate) {
  std::string text(rate);
  if (text.ends_with("ps") && text.size() > 3) text.replace(text.size() - 2, 2, "/s");
  const std::size_t unit = text.find_first_not_of("0123456789.");
  if (unit != std::string::npos && text[unit] == 'k') text[unit] = 'K';
  return text;
}

class TopologyReader {
 public:
  TopologyReader(std::string_view text, const std::string& file, const std::string& gpu)
      : file_(file), gpu_(gpu), lines_(word_lines(text)) {}

  Document read() {
    read_head();
    read_switches();
    number_gpus();
    document_.file = file_;
    document_.name = file_.substr(file_.find_last_of('/') + 1);
    document_.name = document_.name.substr(0, document_.name.find('.'));
    if (document_.name.empty()) document_.name = "simai-topology";
    document_.description = "read from a SimAI topology";
    read_links();
    add_servers();
    add_switches("nvswitch", nvswitches_);
    add_switches("switch", switches_);
    lossy_.warn(document_.warnings, Leniency::ignored, "links lose nothing here");
    return std::move(document_);
  }

 private:
  static constexpr std::int64_t kMostNodes = 1'000'000, kMostLinks = 5'000'000;
  enum class Kind : std::uint8_t { gpu, nvswitch, switch_ };
  struct Place {
    Kind kind = Kind::gpu;
    std::int64_t index = 0;
  };

  SourceLocation where(int line) const { return {.file = file_, .line = line}; }
  SourceLocation at_end() const { return where(lines_.empty() ? 1 : lines_.back().number); }

  void read_head() {
    const WordLine& head = lines_.empty() ? WordLine{1, {}} : lines_[0];
    const SourceLocation at = where(head.number);
    if (head.words.size() != 6)
      throw Failure("the first line of a SimAI topology has six words", at,
                    "nodes, GPUs of a server, NVSwitches, switches, links, type of GPU: "
                    "'9 8 1 0 8 H100'");
    const std::int64_t nodes = read_count(head.words[0], 1, kMostNodes, at);
    per_server_ = read_count(head.words[1], 1, nodes, at);
    nvswitches_ = read_count(head.words[2], 0, nodes, at);
    switches_ = read_count(head.words[3], 0, nodes, at);
    links_ = read_count(head.words[4], 0, kMostLinks, at);
    const std::int64_t gpus = nodes - nvswitches_ - switches_;
    if (gpus < 1) throw Failure("all nodes are switches: there is no GPU", at);
    if (gpus % per_server_ != 0)
      throw Failure(
          fmt::format("{} GPUs are no whole number of servers with {}", gpus, per_server_), at);
    servers_ = gpus / per_server_;
    places_.resize(index(nodes));
    model_ = model_of(head.words[5], at);
  }

  /// Empty: --gpu says it.
  std::string model_of(std::string_view type, const SourceLocation& at) {
    std::string name(type);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (const auto& [other, model] : kSameChip) {
      if (name != other) continue;
      document_.warnings.warning(
          fmt::format("GPUs of type {} are taken as '{}': the same chip, and links are the text's",
                      type, model),
          at);
      return std::string(model);
    }
    const std::vector<std::string> known = gpu_model_names();
    if (std::ranges::find(known, name) != known.end()) return name;
    if (!gpu_.empty()) {
      document_.warnings.warning(
          fmt::format("there is no device model '{}': GPUs are taken as '{}'", type, gpu_), at);
      return {};
    }
    throw Failure(fmt::format("there is no device model of the GPU type '{}'", type), at,
                  fmt::format("there are {}, and A800 and H800; --gpu NAME takes one of them",
                              joined(known)));
  }

  void read_switches() {
    std::int64_t read = 0;
    const std::int64_t all = nvswitches_ + switches_;
    while (read < all) {
      if (next_ == lines_.size())
        throw Failure(fmt::format("the text ends after {} of {} ids of switches", read, all),
                      at_end());
      const WordLine& line = lines_[next_++];
      for (const std::string_view word : line.words) {
        const SourceLocation at = where(line.number);
        const std::int64_t id =
            read_count(word, 0, static_cast<std::int64_t>(places_.size()) - 1, at);
        Place& place = places_[index(id)];
        if (read == all) throw Failure(fmt::format("there are more than {} switches", all), at);
        if (place.kind != Kind::gpu) throw Failure(fmt::format("switch {} stands twice", id), at);
        const bool is_nvswitch = read < nvswitches_;
        place =
            is_nvswitch ? Place{Kind::nvswitch, read} : Place{Kind::switch_, read - nvswitches_};
        ++read;
      }
    }
  }

  void number_gpus() {
    std::int64_t gpus = 0;
    for (Place& place : places_)
      if (place.kind == Kind::gpu) place.index = gpus++;
  }

  void read_links() {
    for (std::int64_t read = 0; read < links_; ++read) {
      if (next_ == lines_.size())
        throw Failure(fmt::format("the text ends after {} of {} links", read, links_), at_end(),
                      "the fifth number of the first line says how many there are");
      read_link(lines_[next_++]);
    }
    if (next_ != lines_.size())
      throw Failure(fmt::format("there is more behind the {} links", links_),
                    where(lines_[next_].number),
                    "the fifth number of the first line says how many there are");
  }

  void read_link(const WordLine& line) {
    const SourceLocation at = where(line.number);
    if (line.words.size() != 5)
      throw Failure("a link has five words", at,
                    "both ends, rate, latency, error rate: '0 8 3600Gbps 0.000025ms 0'");
    const auto last = static_cast<std::int64_t>(places_.size()) - 1;
    const std::int64_t from = read_count(line.words[0], 0, last, at);
    const std::int64_t to = read_count(line.words[1], 0, last, at);
    if (from == to) throw Failure(fmt::format("node {} is linked to itself", from), at);
    const Place& a = places_[index(from)];
    const Place& b = places_[index(to)];
    const bool is_network = a.kind == Kind::switch_ || b.kind == Kind::switch_;
    const std::optional<Rate> rate = parse_rate(with_slash(line.words[2]));
    if (!rate || rate->is_ideal())
      throw Failure(fmt::format("'{}' is no rate", line.words[2]), at, "such as 400Gbps");
    const std::optional<Time> latency = parse_time(line.words[3]);
    if (!latency) throw Failure(fmt::format("'{}' is no latency", line.words[3]), at, "0.0005ms");
    if (line.words[4].find_first_not_of("0.") != std::string_view::npos)
      lossy_.note(fmt::format("the error rate {} of a link", line.words[4]), [&] { return at; });
    Edge edge;
    edge.ep1 = endpoint(a, is_network, at);
    edge.ep2 = endpoint(b, is_network, at);
    edge.where = at;
    edge.link = link_class(is_network, *rate, std::max(*latency, Time{1}), at);
    document_.edges.push_back(std::move(edge));
  }

  Endpoint endpoint(const Place& place, bool is_network, const SourceLocation& at) {
    if (place.kind != Kind::gpu) {
      const char* name = place.kind == Kind::nvswitch ? "nvswitch" : "switch";
      return {fmt::format("{}[{}]", name, place.index), "switch[0]", at};
    }
    has_nics_ = has_nics_ || is_network;
    return {fmt::format("server[{}]", place.index / per_server_),
            fmt::format("{}[{}]", is_network ? "nic" : "xpu", place.index % per_server_), at};
  }

  /// The words "nvlink" and "ethernet" say which packets are assumed.
  std::string link_class(bool is_network, Rate rate, Time latency, const SourceLocation& at) {
    std::string& name = classes_[{is_network, rate, latency}];
    if (!name.empty()) return name;
    name = is_network ? "ethernet" : "nvlink";
    const auto same = std::ranges::count_if(
        classes_, [&](const auto& one) { return std::get<0>(one.first) == is_network; });
    if (same > 1) name += fmt::format("-{}", same);
    LinkDefinition definition;
    definition.name = name;
    definition.bandwidth = rate;
    definition.latency = latency;
    definition.where = at;
    document_.links.push_back(std::move(definition));
    return name;
  }

  static Component component(const char* name, std::int64_t count, Choice choice) {
    Component one;
    one.name = name;
    one.count = count;
    one.choice = choice;
    return one;
  }

  void add_instances(const Device& device, std::int64_t count) {
    Instance instance;
    instance.name = instance.device = device.name;
    instance.count = count;
    document_.instances.push_back(std::move(instance));
  }

  void add_servers() {
    Device server;
    server.name = "server";
    server.components = {component("xpu", per_server_, Choice::xpu)};
    if (has_nics_) {
      document_.warnings.warning(
          "SimAI's text has no NICs: one stands between each GPU and its switches, and takes no "
          "time",
          where(1), "--set nic.latency=..., nic.message_time, nic.rate");
      server.components.push_back(component("nic", per_server_, Choice::nic));
      LinkDefinition inside;
      inside.name = "internal";
      server.links = {inside};
      Edge edge;
      edge.ep1.component = "xpu";
      edge.ep2.component = "nic";
      edge.link = inside.name;
      server.edges = {edge};
    }
    if (!model_.empty()) {
      Annotation model;
      model.first = "server.xpu";
      model.attributes = {{"hemiola.device_model", model_, where(1)}};
      document_.node_annotations.push_back(std::move(model));
    }
    add_instances(server, servers_);
    document_.devices.push_back(std::move(server));
  }

  void add_switches(const char* name, std::int64_t count) {
    if (count == 0) return;
    Device device;
    device.name = name;
    device.components = {component("switch", 1, Choice::switch_)};
    add_instances(device, count);
    document_.devices.push_back(std::move(device));
  }

  const std::string& file_;
  const std::string& gpu_;
  std::vector<WordLine> lines_;
  std::size_t next_ = 1;  ///< line to read
  std::int64_t per_server_ = 0, servers_ = 0, nvswitches_ = 0, switches_ = 0, links_ = 0;
  std::string model_;
  std::vector<Place> places_;  ///< by id
  std::map<std::tuple<bool, Rate, Time>, std::string> classes_;
  bool has_nics_ = false;
  Finding lossy_;
  Document document_;
};

}  // namespace

Document simai_topology_document(std::string_view text, const std::string& file,
                                 const std::string& gpu) {
  return TopologyReader(text, file, gpu).read();
}

Machine from_simai_topology(std::string_view text, const std::string& file,
                            const LoadOptions& options) {
  return infragraph::expand(simai_topology_document(text, file, options.gpu), options);
}

}  // namespace hemiola::machine

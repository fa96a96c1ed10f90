#include "report/pages/machine_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "core/units.h"
#include "report/values/node_names.h"

namespace hemiola::report {
namespace {

using machine::Machine;
using machine::NodeId;

/// Boxes that are wide enough to be read, beside each other.
constexpr std::size_t kMostInRow = 24;
/// What is drawn of a component that is folded.
constexpr std::size_t kShownOfFolded = 3;
/// GPUs that are joined without switches, as squares: more are not drawn.
constexpr std::size_t kMostInGrid = 256;
constexpr double kGap = 0.3;  ///< between frames

std::size_t at(NodeId node) {
  return index(node);
}

/// "xpu.3" of "dgx_h100.0.xpu.3"; of an instance with one node "leaf.3".
std::string tail_of(const machine::Node& node) {
  const std::string head = node.instance + "." + std::to_string(node.instance_index) + ".";
  return node.name.rfind(head, 0) == 0 ? node.name.substr(head.size()) : node.name;
}

/// Some nodes that are drawn as one.
struct Box {
  std::vector<NodeId> nodes;
  std::string frame;  ///< of its instance, "dgx_h100.0", or of all others, "dgx_h100.1-15"
  int depth = 0;      ///< hops to the nearest GPU; -1 below the GPUs
};

class Drawing {
 public:
  explicit Drawing(const Machine& machine) : machine_(machine) {
    for (const machine::Node& node : machine.nodes)
      ++instances_[node.instance][node.instance_index];
    find_depths();
  }

  page::Graph draw() {
    const bool is_direct = std::ranges::all_of(machine_.nodes, [](const machine::Node& node) {
      return node.kind == machine::NodeKind::xpu;
    });
    if (is_direct) {
      place_in_grid();
    } else {
      make_boxes();
      while (fold_more()) make_boxes();
      place_in_rows();
    }
    add_nodes();
    add_edges();
    return std::move(graph_);
  }

 private:
  void find_depths() {
    std::vector<std::vector<NodeId>> neighbours(machine_.nodes.size());
    for (const machine::Link& link : machine_.links) {
      neighbours[at(link.from)].push_back(link.to);
      neighbours[at(link.to)].push_back(link.from);
    }
    depths_.assign(machine_.nodes.size(), -2);
    std::queue<NodeId> next;
    for (std::size_t n = 0; n < depths_.size(); ++n) {
      if (machine_.nodes[n].kind != machine::NodeKind::xpu) continue;
      depths_[n] = 0;
      next.push(static_cast<NodeId>(n));
    }
    for (; !next.empty(); next.pop()) {
      for (const NodeId node : neighbours[at(next.front())]) {
        if (depths_[at(node)] != -2) continue;
        depths_[at(node)] = depths_[at(next.front())] + 1;
        next.push(node);
      }
    }
    for (std::size_t n = 0; n < depths_.size(); ++n) {
      if (depths_[n] == -2) depths_[n] = 1;  // no link leads to a GPU from here
      const bool joins_gpus = depths_[n] == 1 &&
                              machine_.nodes[n].kind == machine::NodeKind::switch_ &&
                              std::ranges::all_of(neighbours[n], [&](NodeId other) {
                                return machine_.nodes[at(other)].kind == machine::NodeKind::xpu;
                              });
      if (joins_gpus) depths_[n] = -1;
    }
  }

  std::string frame_of(const machine::Node& node) const {
    const auto& indices = instances_.at(node.instance);
    const int first = indices.begin()->first, last = indices.rbegin()->first;
    if (folded_instances_.count(node.instance) == 0 || node.instance_index == first)
      return fmt::format("{}.{}", node.instance, node.instance_index);
    const int second = std::next(indices.begin())->first;
    return second == last ? fmt::format("{}.{}", node.instance, last)
                          : fmt::format("{}.{}-{}", node.instance, second, last);
  }

  void make_boxes() {
    boxes_.clear();
    std::map<std::pair<std::string, std::string>, std::size_t> shared, shown;
    for (std::size_t n = 0; n < machine_.nodes.size(); ++n) {
      const machine::Node& node = machine_.nodes[n];
      const std::string component = parts_of_name(tail_of(node)).first;
      const std::pair key(frame_of(node), component);
      const bool is_rest = folded_instances_.count(node.instance) > 0 &&
                           node.instance_index != instances_.at(node.instance).begin()->first;
      if (is_rest || (folded_components_.count(key) > 0 && shown[key]++ >= kShownOfFolded)) {
        const auto [found, is_new] = shared.emplace(key, boxes_.size());
        if (!is_new) {
          boxes_[found->second].nodes.push_back(static_cast<NodeId>(n));
          continue;
        }
      }
      boxes_.push_back({{static_cast<NodeId>(n)}, key.first, depths_[n]});
    }
  }

  /// Makes the widest row narrower, if it has to be and can be.
  bool fold_more() {
    std::map<int, std::size_t> widths;
    for (const Box& box : boxes_) ++widths[box.depth];
    const auto widest =
        std::ranges::max_element(widths, {}, [](const auto& one) { return one.second; });
    if (widest->second <= kMostInRow) return false;
    std::map<std::string, std::set<int>> instances;
    std::map<std::string, std::size_t> boxes_of_instance;
    std::map<std::pair<std::string, std::string>, std::size_t> components;
    for (const Box& box : boxes_) {
      if (box.depth != widest->first) continue;
      const machine::Node& node = machine_.nodes[at(box.nodes.front())];
      instances[node.instance].insert(node.instance_index);
      ++boxes_of_instance[node.instance];
      ++components[{box.frame, parts_of_name(tail_of(node)).first}];
    }
    std::string most;
    for (const auto& [instance, boxes] : boxes_of_instance)
      if (instances[instance].size() > 2 && folded_instances_.count(instance) == 0 &&
          (most.empty() || boxes > boxes_of_instance[most]))
        most = instance;
    if (!most.empty()) return folded_instances_.insert(most).second;
    const auto component =
        std::ranges::max_element(components, {}, [](const auto& one) { return one.second; });
    return component->second > kShownOfFolded + 1 &&
           folded_components_.insert(component->first).second;
  }

  /// Frames with GPUs from the left; what stands outside of them spreads over the whole width.
  void place_in_rows() {
    std::map<std::string, std::map<int, std::vector<std::size_t>>> frames;
    std::map<int, std::vector<std::size_t>> outside;
    std::vector<std::string> order;
    std::set<std::string> with_gpus;
    for (const Box& box : boxes_)
      if (box.depth == 0 && with_gpus.insert(box.frame).second) order.push_back(box.frame);
    std::set<int, std::greater<>> depths;
    for (std::size_t b = 0; b < boxes_.size(); ++b) {
      const Box& box = boxes_[b];
      depths.insert(box.depth);
      (with_gpus.count(box.frame) > 0 ? frames[box.frame] : outside)[box.depth].push_back(b);
    }
    std::map<int, double> rows;
    for (const int depth : depths) rows.emplace(depth, static_cast<double>(rows.size()) + 0.5);
    graph_.rows = static_cast<double>(rows.size());

    places_.resize(boxes_.size());
    const auto spread = [&](const std::vector<std::size_t>& boxes, double left, double width) {
      const double step = width / static_cast<double>(boxes.size());
      for (std::size_t i = 0; i < boxes.size(); ++i)
        places_[boxes[i]] = {left + (static_cast<double>(i) + 0.5) * step,
                             rows.at(boxes_[boxes[i]].depth)};
    };
    double sum = -kGap, width = 1;
    std::vector<double> widths;
    for (const std::string& name : order) {
      std::size_t most = 1;
      for (const auto& [depth, boxes] : frames[name]) most = std::max(most, boxes.size());
      widths.push_back(static_cast<double>(most));
      sum += widths.back() + kGap;
    }
    for (const auto& [depth, boxes] : outside)
      width = std::max(width, static_cast<double>(boxes.size()));
    width = std::max(width, sum);
    const double stretch = width / std::max(1.0, sum);
    double left = 0;
    for (std::size_t f = 0; f < order.size(); ++f) {
      const std::map<int, std::vector<std::size_t>>& frame = frames[order[f]];
      const double wide = widths[f] * stretch;
      for (const auto& [depth, boxes] : frame) spread(boxes, left, wide);
      if (frame.size() > 1 || widths[f] > 1) {
        graph_.areas.push_back({.label = order[f],
                                .left = left - 0.1,
                                .top = rows.at(frame.rbegin()->first) - 0.32,
                                .right = left + wide + 0.1,
                                .bottom = rows.at(frame.begin()->first) + 0.46});
      }
      left += wide + kGap * stretch;
    }
    for (const auto& [depth, boxes] : outside) spread(boxes, 0, width);
    graph_.columns = width;
    if (!folded_instances_.empty() || !folded_components_.empty()) {
      graph_.note = fmt::format(
          "{} nodes are too many to be drawn one by one: the first of each kind is, and a box with "
          "a "
          "number stands for the others. A line stands for all links of a class between two boxes; "
          "point at it for their bandwidth.",
          machine_.nodes.size());
    } else {
      graph_.note =
          "A line stands for all links of a class between two nodes; point at it for their "
          "bandwidth and latency.";
    }
  }

  /// Of GPUs without switches: rows as long as the step that most links take.
  void place_in_grid() {
    const std::size_t all = machine_.nodes.size(), shown = std::min(all, kMostInGrid);
    std::map<std::size_t, std::size_t> steps;
    for (const machine::Link& link : machine_.links)
      if (link.to > link.from) ++steps[at(link.to) - at(link.from)];
    std::size_t width =
        all <= kMostInRow
            ? all
            : static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(all))));
    for (const auto& [step, links] : steps) {
      if (step < 2 || step + 1 == all || 2 * links < all || step > kMostInRow) continue;
      width = step;
      break;
    }
    width = std::min(width, kMostInRow);
    for (std::size_t n = 0; n < shown; ++n) {
      boxes_.push_back({{static_cast<NodeId>(n)}, "", 0});
      places_.emplace_back(static_cast<double>(n % width) + 0.5,
                           static_cast<double>(n / width) + 0.5);
    }
    graph_.columns = static_cast<double>(width) + 0.5;
    graph_.rows = static_cast<double>((shown + width - 1) / width);
    graph_.note =
        "GPUs are joined without switches. Point at a line for its bandwidth and latency.";
    if (shown < all) graph_.note += fmt::format(" The first {} of {}.", shown, all);
  }

  std::string detail_of(const Box& box) const {
    const machine::Node& node = machine_.nodes[at(box.nodes.front())];
    std::string text = fmt::format("{}", machine::name_of(node.kind));
    if (box.nodes.size() > 1)
      text = fmt::format("{} x {}, {} to {}", box.nodes.size(), text, node.name,
                         machine_.nodes[at(box.nodes.back())].name);
    else
      text += fmt::format(" {}", node.name);
    if (node.kind == machine::NodeKind::xpu) {
      const auto rank = std::ranges::find(machine_.gpus, box.nodes.front());
      if (rank == machine_.gpus.end()) return text + ", not part of the job";
      const auto number = static_cast<int>(rank - machine_.gpus.begin());
      text += fmt::format(": {}{}", machine_.model(number).name,
                          box.nodes.size() > 1 ? "" : fmt::format(", rank {}", number));
    }
    if (node.kind == machine::NodeKind::switch_)
      text += fmt::format(", latency {}{}", to_string(node.switch_model.latency),
                          node.switch_model.multicast ? ", multicast" : "");
    if (node.kind == machine::NodeKind::nic)
      text += fmt::format(
          ", MTU {}, rate {}", to_string(node.nic_model.mtu),
          node.nic_model.rate.is_ideal() ? "of its links" : to_string(node.nic_model.rate));
    return text;
  }

  void add_nodes() {
    for (std::size_t b = 0; b < boxes_.size(); ++b) {
      const Box& box = boxes_[b];
      const machine::Node& node = machine_.nodes[at(box.nodes.front())];
      const std::string tail = tail_of(node);
      std::string label = tail;
      if (box.nodes.size() > 1)
        label = fmt::format("{} {}", box.nodes.size(),
                            is_single(node) ? node.instance : tail.substr(0, tail.rfind('.')));
      else if (is_single(node))
        label = fmt::format("{}.{}", node.instance, node.instance_index);
      graph_.nodes.push_back({.label = label,
                              .kind = std::string(machine::name_of(node.kind)),
                              .detail = detail_of(box),
                              .x = places_[b].first,
                              .y = places_[b].second});
    }
  }
  bool is_single(const machine::Node& node) const {
    return instances_.at(node.instance).at(node.instance_index) == 1;
  }

  void add_edges() {
    std::vector<std::size_t> box_of(machine_.nodes.size(), boxes_.size());
    for (std::size_t b = 0; b < boxes_.size(); ++b)
      for (const NodeId node : boxes_[b].nodes) box_of[at(node)] = b;
    struct Count {
      std::int64_t there = 0, back = 0;
    };
    std::map<std::tuple<std::size_t, std::size_t, std::int32_t>, Count> lines;
    for (const machine::Link& link : machine_.links) {
      const std::size_t from = box_of[at(link.from)], to = box_of[at(link.to)];
      if (from == to || from == boxes_.size() || to == boxes_.size()) continue;
      Count& count = lines[{std::min(from, to), std::max(from, to), link.link_class}];
      ++(from < to ? count.there : count.back);
    }
    for (const auto& [key, count] : lines) {
      const auto& [from, to, number] = key;
      const machine::LinkClass& link = machine_.link_classes[index(number)];
      const std::int64_t links = std::max(count.there, count.back);
      const auto rate = static_cast<double>(link.bandwidth.bytes_per_second);
      std::string text = fmt::format("{} x {}", links, link.name);
      if (count.there != count.back)
        text = fmt::format("{} x {} there, {} back", count.there, link.name, count.back);
      text += fmt::format(", {} and {} each", to_string(link.bandwidth), to_string(link.latency));
      if (links > 1 && !link.bandwidth.is_ideal())
        text += fmt::format(", {:.6g} GB/s together", static_cast<double>(links) * rate * 1e-9);
      graph_.edges.push_back({.from = from,
                              .to = to,
                              .kind = link.name,
                              .weight = link.bandwidth.is_ideal()
                                            ? 1e9
                                            : static_cast<double>(links) * std::max(1.0, rate),
                              .detail = text});
    }
  }

  const Machine& machine_;
  std::map<std::string, std::map<int, std::size_t>> instances_;  ///< how many nodes each has
  std::vector<int> depths_;                                      ///< by node
  std::set<std::string> folded_instances_;
  std::set<std::pair<std::string, std::string>> folded_components_;  ///< frame, component
  std::vector<Box> boxes_;
  std::vector<std::pair<double, double>> places_;  ///< by box: x, y
  page::Graph graph_{.heading = "The machine"};
};

}  // namespace

page::Graph machine_drawing(const Machine& machine) {
  return Drawing(machine).draw();
}

}  // namespace hemiola::report

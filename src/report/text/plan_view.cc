// Plans for people: a table per rank, and graphs for Mermaid and Graphviz.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <ostream>

#include "plan/plan_json.h"
#include "plan/waves.h"
#include "report/report.h"
#include "report/values/columns.h"

namespace hemiola::report {
namespace {

using plan::Plan;
using plan::Transfer;

std::string place(std::int64_t rank, std::int64_t stream, std::int64_t transfer) {
  return fmt::format("{}.{}.{}", rank, stream, transfer);
}

std::string area_text(const Plan& plan, const plan::Region& region, const Indices& at) {
  return to_string(plan, evaluate(region, at));
}

std::string operation(const Transfer& transfer) {
  if (transfer.kind == plan::TransferKind::collective)
    return std::string(name_of(transfer.collective));
  std::string text(name_of(transfer.kind));
  if (transfer.reduce != ReduceOp::none) text += ' ' + std::string(name_of(transfer.reduce));
  return text;
}

std::string partner(const Transfer& transfer, const Indices& at) {
  if (transfer.group >= 0) return fmt::format("group {}", transfer.group);
  if (transfer.kind == plan::TransferKind::copy) return "";
  return std::to_string(transfer.peer(at));
}

std::string dependencies(const Plan& plan, const std::vector<plan::Dependency>& after,
                         const Indices& at) {
  std::string text;
  for (const plan::Dependency& dependency : after) {
    if (!text.empty()) text += ", ";
    if (dependency.computed) {
      text += fmt::format("{} of rank {}", area_text(plan, *dependency.computed, at),
                          dependency.rank(at));
    } else if (dependency.compute) {
      const auto rank = static_cast<int>(dependency.rank(at));
      const auto compute = index((*dependency.compute)(at));
      text += plan.code(rank).computes[compute].name;
      if (rank != at.rank) text += fmt::format(" of rank {}", rank);
    } else {
      text += place(dependency.rank(at), dependency.stream, dependency.transfer(at));
    }
  }
  return text;
}

std::string shape_text(const plan::Tensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.shape, ", "));
}

void print_head(std::ostream& out, const Plan& plan) {
  out << fmt::format("{}: {} on {} ranks, {} transfers", plan.name, name_of(plan.collective),
                     plan.ranks, plan::count_transfers(plan));
  if (!plan.of_elements()) out << fmt::format(", size = {} chunks", plan.chunks_per_size);
  out << '\n';
  for (const plan::Tensor& tensor : plan.tensors)
    out << fmt::format("tensor {} {} of {}, {}\n", tensor.name, shape_text(tensor),
                       tensor.type ? name_of(*tensor.type) : "chunks", name_of(tensor.role));
  for (std::size_t g = 0; g < plan.groups.size(); ++g)
    out << fmt::format("group {}: ranks {}\n", g, plan::ranks_text(plan.groups[g]));
}

void print_compute(std::ostream& out, const Plan& plan, const plan::Compute& compute, int rank) {
  out << fmt::format("  compute {} ({}):", compute.name, compute.kernel);
  for (const plan::ComputeAxis& axis : compute.axes)
    out << fmt::format(" {}={}/{}{}", axis.name, axis.extent, axis.tile, axis.reduced ? "+" : "");
  for (const plan::ComputeOperand& operand : compute.operands)
    out << fmt::format(", {} {}", name_of(operand.use), plan.tensors[index(operand.tensor)].name);
  if (compute.by_arrival && compute.waits == plan::Waits::tiles) out << ", tiles by arrival";
  if (compute.is_launch()) {
    out << (compute.stream.empty() ? std::string(", a launch")
                                   : fmt::format(", a launch on stream {}", compute.stream));
    if (!compute.after.empty())
      out << " after " << dependencies(plan, compute.after, {.rank = rank});
  }
  out << '\n';
}

void print_rank(std::ostream& out, const Plan& plan, int rank) {
  const plan::Code& code = plan.code(rank);
  out << fmt::format("\nrank {}\n", rank);
  for (const plan::Compute& compute : code.computes) print_compute(out, plan, compute, rank);
  const auto left = Align::left;
  Columns columns({left, left, left, left, left, left});
  columns.add_heading({"", "op", "peer", "source", "destination", "after"});
  for (std::size_t s = 0; s < code.streams.size(); ++s) {
    std::int64_t number = 0;
    plan::for_each_transfer(
        code.streams[s], rank, [&](const Transfer& transfer, const Indices& at) {
          columns.add({place(rank, static_cast<std::int64_t>(s), number++), operation(transfer),
                       partner(transfer, at), area_text(plan, transfer.source, at),
                       area_text(plan, transfer.destination, at),
                       dependencies(plan, transfer.after, at)});
        });
  }
  columns.print(out, "  ");
}

constexpr std::int64_t kMostNodes = 2000;

/// What a graph shows of one transfer or launch.
struct TransferNode {
  int rank = 0;
  std::string name, label;
  std::vector<std::string> after;  ///< names of those it waits for; the stream's order first
};

std::string node_name(std::int64_t rank, std::int64_t stream, std::int64_t number) {
  return fmt::format("t{}_{}_{}", rank, stream, number);
}
std::string launch_name(std::int64_t rank, std::int64_t compute) {
  return fmt::format("c{}_{}", rank, compute);
}

/// The nodes that dependencies name.
void add_edges(TransferNode& node, const std::vector<plan::Dependency>& after, const Indices& at,
               const std::optional<int>& only) {
  for (const plan::Dependency& dependency : after) {
    const std::int64_t rank = dependency.rank(at);
    if (dependency.computed || (only && rank != *only)) continue;
    node.after.push_back(dependency.compute
                             ? launch_name(rank, (*dependency.compute)(at))
                             : node_name(rank, dependency.stream, dependency.transfer(at)));
  }
}

void add_launches(const Plan& plan, int rank, const std::optional<int>& only,
                  std::vector<TransferNode>& nodes) {
  const std::vector<plan::Compute>& computes = plan.code(rank).computes;
  std::map<std::string, std::string> last;  // node of a stream
  for (std::size_t c = 0; c < computes.size(); ++c) {
    if (!computes[c].is_launch()) continue;
    TransferNode node{rank, launch_name(rank, static_cast<std::int64_t>(c)), computes[c].name, {}};
    if (!computes[c].stream.empty()) {
      std::string& before = last[computes[c].stream];
      if (!before.empty()) node.after.push_back(before);
      before = node.name;
    }
    add_edges(node, computes[c].after, {.rank = rank}, only);
    nodes.push_back(std::move(node));
  }
}

std::vector<TransferNode> nodes_of(const Plan& plan, const std::optional<int>& only) {
  std::vector<TransferNode> nodes;
  const auto name = node_name;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    if (only && rank != *only) continue;
    const std::vector<plan::Stream>& streams = plan.code(rank).streams;
    for (std::size_t s = 0; s < streams.size(); ++s) {
      const auto stream = static_cast<std::int64_t>(s);
      std::int64_t number = 0;
      plan::for_each_transfer(streams[s], rank, [&](const Transfer& transfer, const Indices& at) {
        if (std::ssize(nodes) >= kMostNodes)
          throw Failure(fmt::format("a graph of more than {} transfers cannot be read", kMostNodes),
                        {.file = "--graph"}, "pick a rank with --rank, or fewer ranks");
        TransferNode node{rank, name(rank, stream, number), {}, {}};
        const std::string to = partner(transfer, at);
        node.label = fmt::format("{} {}{}{}", place(rank, stream, number), operation(transfer),
                                 to.empty() ? "" : " " + to,
                                 "\n" + area_text(plan, transfer.source, at) + " > " +
                                     area_text(plan, transfer.destination, at));
        if (number > 0) node.after.push_back(name(rank, stream, number - 1));
        add_edges(node, transfer.after, at, only);
        nodes.push_back(std::move(node));
        ++number;
      });
    }
    add_launches(plan, rank, only, nodes);
  }
  return nodes;
}

std::string with_breaks(std::string label, const char* line_break) {
  const std::size_t at = label.find('\n');
  if (at != std::string::npos) label.replace(at, 1, line_break);
  return label;
}

/// How a language of graphs writes them: `rank`, `node` and `edge` are formats.
struct GraphWords {
  const char *head, *rank, *node, *line_break, *end_of_rank, *edge, *tail;
};

std::string graph_text(const Plan& plan, std::optional<int> rank, const GraphWords& words) {
  std::string text = words.head;
  int open = -1;
  const std::vector<TransferNode> nodes = nodes_of(plan, rank);
  for (const TransferNode& node : nodes) {
    if (node.rank != open) {
      if (open >= 0) text += words.end_of_rank;
      open = node.rank;
      text += fmt::format(fmt::runtime(words.rank), open);
    }
    text +=
        fmt::format(fmt::runtime(words.node), node.name, with_breaks(node.label, words.line_break));
  }
  if (open >= 0) text += words.end_of_rank;
  for (const TransferNode& node : nodes)
    for (const std::string& from : node.after)
      text += fmt::format(fmt::runtime(words.edge), from, node.name);
  return text + words.tail;
}

}  // namespace

void print_plan(std::ostream& out, const Plan& plan, std::optional<int> rank) {
  print_head(out, plan);
  for (int r = 0; r < plan.ranks; ++r)
    if (!rank || *rank == r) print_rank(out, plan, r);
}

void print_waves(std::ostream& out, const Plan& plan, int rank, std::int32_t tensor) {
  const plan::Timeline timeline(plan);
  Columns columns({Align::right, Align::left, Align::left});
  columns.add_heading({"step", "area", "transfer"});
  for (const plan::Wave& wave : plan::waves(plan, timeline, rank, tensor)) {
    for (const plan::Touch& touch : wave.touches)
      columns.add(
          {std::to_string(wave.step), to_string(plan, touch.area),
           touch.transfer < 0 ? "resident" : place(touch.rank, touch.stream, touch.transfer)});
  }
  columns.print(out, "  ");
}

std::string to_mermaid(const Plan& plan, std::optional<int> rank) {
  return graph_text(plan, rank,
                    {.head = "flowchart LR\n",
                     .rank = "  subgraph rank{0}[rank {0}]\n",
                     .node = "    {}[\"{}\"]\n",
                     .line_break = "<br/>",
                     .end_of_rank = "  end\n",
                     .edge = "  {} --> {}\n",
                     .tail = ""});
}

std::string to_dot(const Plan& plan, std::optional<int> rank) {
  return graph_text(plan, rank,
                    {.head = "digraph plan {\n  rankdir=LR;\n  node [shape=box];\n",
                     .rank = "  subgraph cluster_{0} {{\n    label=\"rank {0}\";\n",
                     .node = "    {} [label=\"{}\"];\n",
                     .line_break = "\\n",
                     .end_of_rank = "  }\n",
                     .edge = "  {} -> {};\n",
                     .tail = "}\n"});
}

}  // namespace hemiola::report

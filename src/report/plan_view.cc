// Plans for people: a table per rank, and graphs for Mermaid and Graphviz.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>

#include "plan/plan_json.h"
#include "plan/waves.h"
#include "report/columns.h"
#include "report/report.h"

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

std::string dependencies(const Plan& plan, const Transfer& transfer, const Indices& at) {
  std::string text;
  for (const plan::Dependency& dependency : transfer.after) {
    if (!text.empty()) text += ", ";
    if (dependency.computed) {
      text += fmt::format("{} of rank {}", area_text(plan, *dependency.computed, at),
                          dependency.rank(at));
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
  std::int64_t transfers = 0;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    for (const plan::Stream& stream : plan.code(rank).streams)
      transfers += plan::count_transfers(stream);
  }
  out << fmt::format("{}: {} on {} ranks, {} transfers", plan.name, name_of(plan.collective),
                     plan.ranks, transfers);
  if (!plan.of_elements()) out << fmt::format(", size = {} chunks", plan.chunks_per_size);
  out << '\n';
  for (const plan::Tensor& tensor : plan.tensors)
    out << fmt::format("tensor {} {} of {}, {}\n", tensor.name, shape_text(tensor),
                       tensor.type ? name_of(*tensor.type) : "chunks", name_of(tensor.role));
  for (std::size_t g = 0; g < plan.groups.size(); ++g)
    out << fmt::format("group {}: ranks {}\n", g, plan::ranks_text(plan.groups[g]));
}

void print_compute(std::ostream& out, const Plan& plan, const plan::Compute& compute) {
  out << fmt::format("  compute {} ({}):", compute.name, compute.kernel);
  for (const plan::ComputeAxis& axis : compute.axes)
    out << fmt::format(" {}={}/{}{}", axis.name, axis.extent, axis.tile, axis.reduced ? "+" : "");
  for (const plan::ComputeOperand& operand : compute.operands)
    out << fmt::format(", {} {}", name_of(operand.use),
                       plan.tensors[static_cast<std::size_t>(operand.tensor)].name);
  out << (compute.by_arrival ? ", tiles by arrival\n" : "\n");
}

void print_rank(std::ostream& out, const Plan& plan, int rank) {
  const plan::Code& code = plan.code(rank);
  out << fmt::format("\nrank {}\n", rank);
  for (const plan::Compute& compute : code.computes) print_compute(out, plan, compute);
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
                       dependencies(plan, transfer, at)});
        });
  }
  columns.print(out, "  ");
}

constexpr std::int64_t kMostNodes = 2000;

/// What a graph shows of one transfer.
struct TransferNode {
  int rank = 0;
  std::string name, label;
  std::vector<std::string> after;  ///< names of those it waits for; the stream's order first
};

std::vector<TransferNode> nodes_of(const Plan& plan, const std::optional<int>& only) {
  std::vector<TransferNode> nodes;
  const auto name = [](std::int64_t rank, std::int64_t stream, std::int64_t number) {
    return fmt::format("t{}_{}_{}", rank, stream, number);
  };
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
        for (const plan::Dependency& dependency : transfer.after) {
          if (!dependency.computed && (!only || dependency.rank(at) == *only))
            node.after.push_back(
                name(dependency.rank(at), dependency.stream, dependency.transfer(at)));
        }
        nodes.push_back(std::move(node));
        ++number;
      });
    }
  }
  return nodes;
}

std::string with_breaks(std::string label, const char* line_break) {
  const std::size_t at = label.find('\n');
  if (at != std::string::npos) label.replace(at, 1, line_break);
  return label;
}

}  // namespace

void print_plan(std::ostream& out, const Plan& plan, std::optional<int> rank) {
  print_head(out, plan);
  for (int r = 0; r < plan.ranks; ++r) {
    if (!rank || *rank == r) print_rank(out, plan, r);
  }
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
  std::string text = "flowchart LR\n";
  int open = -1;
  const std::vector<TransferNode> nodes = nodes_of(plan, rank);
  for (const TransferNode& node : nodes) {
    if (node.rank != open) {
      if (open >= 0) text += "  end\n";
      open = node.rank;
      text += fmt::format("  subgraph rank{0}[rank {0}]\n", open);
    }
    text += fmt::format("    {}[\"{}\"]\n", node.name, with_breaks(node.label, "<br/>"));
  }
  if (open >= 0) text += "  end\n";
  for (const TransferNode& node : nodes) {
    for (const std::string& from : node.after)
      text += fmt::format("  {} --> {}\n", from, node.name);
  }
  return text;
}

std::string to_dot(const Plan& plan, std::optional<int> rank) {
  std::string text = "digraph plan {\n  rankdir=LR;\n  node [shape=box];\n";
  int open = -1;
  const std::vector<TransferNode> nodes = nodes_of(plan, rank);
  for (const TransferNode& node : nodes) {
    if (node.rank != open) {
      if (open >= 0) text += "  }\n";
      open = node.rank;
      text += fmt::format("  subgraph cluster_{0} {{\n    label=\"rank {0}\";\n", open);
    }
    text += fmt::format("    {} [label=\"{}\"];\n", node.name, with_breaks(node.label, "\\n"));
  }
  if (open >= 0) text += "  }\n";
  for (const TransferNode& node : nodes) {
    for (const std::string& from : node.after)
      text += fmt::format("  {} -> {};\n", from, node.name);
  }
  return text + "}\n";
}

}  // namespace hemiola::report

// Trees: every chunk goes up to the root, reduced on its way, or down from it. Chunks follow each
// other, so all levels work at once. Two trees that share no inner rank use both directions of all
// links (Sanders, Speck, Traeff: Two-tree algorithms for full bandwidth broadcast, reduction and
// scan, 2009).
#include "plan/templates/trees.h"

#include <optional>

#include "plan/templates/families.h"
#include "plan/templates/gather.h"
#include "plan/templates/rings.h"

namespace hemiola::plan {
namespace {

std::vector<std::vector<int>> children_of(const Tree& tree) {
  std::vector<std::vector<int>> children(tree.size());
  for (std::size_t rank = 0; rank < tree.size(); ++rank)
    if (tree[rank] >= 0) children[index(tree[rank])].push_back(static_cast<int>(rank));
  return children;
}

/// The tree with rank `rank_at(place)` at every place.
template <class RankAt>
Tree renumbered(const Tree& tree, RankAt rank_at) {
  Tree result(tree.size());
  for (std::size_t place = 0; place < tree.size(); ++place)
    result[index(rank_at(static_cast<int>(place)))] = tree[place] < 0 ? -1 : rank_at(tree[place]);
  return result;
}

/// Ranks so that parents stand before their children.
std::vector<int> from_root(const Tree& tree, const std::vector<std::vector<int>>& children) {
  std::vector<int> order;
  for (std::size_t rank = 0; rank < tree.size(); ++rank)
    if (tree[rank] < 0) order.push_back(static_cast<int>(rank));
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const int child : children[index(order[i])]) order.push_back(child);
  return order;
}

/// Trees that follow the machine, if the parameter says so, among which the data is divided: two
/// from the first of `roots` along links between GPUs, or one from each over several nodes; else
/// `otherwise`.
std::vector<Tree> trees_of(const TemplateArguments& arguments, const std::vector<int>& roots,
                           std::vector<Tree> otherwise) {
  if (arguments.machine == nullptr || arguments.word("trees") == "identity") return otherwise;
  const Fabric fabric(*arguments.machine);
  std::vector<Tree> trees = find_trees(fabric, roots.front());
  if (!trees.empty()) return trees;
  for (const int root : roots) trees.push_back(tree_over_nodes(fabric, root));
  return trees.front().empty() ? otherwise : trees;
}

Plan make_all_reduce_double_binary_tree(const TemplateArguments& arguments) {
  const std::int64_t parts = split_of(arguments);
  Plan plan = start_plan(arguments, 2 * parts);
  plan.tensors = {{"input", Role::input, 2 * parts},
                  {"output", Role::output, 2 * parts},
                  {"partial", Role::scratch, 2 * parts}};
  plan.in_place_safe = true;
  RankByRank code(plan.ranks);
  const Tree first = binary_tree(plan.ranks);
  const Tree second =
      renumbered(first, [&](int place) { return place_in_second_tree(place, plan.ranks); });
  std::int64_t number = 0;
  for (const Tree& tree : trees_of(arguments, {0, 1}, {first, second})) {
    const Flow flow{
        .input = 0, .partial = 2, .output = 1, .first = parts * number++, .count = parts};
    broadcast_along(code, tree, flow, flow.output, reduce_along(code, tree, flow));
  }
  code.finish(plan);
  return plan;
}

Plan start_rooted(const TemplateArguments& arguments, std::int64_t parts) {
  Plan plan = start_plan(arguments, parts);
  plan.root = root_of(arguments);
  plan.tensors = {{"input", Role::input, parts}, {"output", Role::output, parts}};
  plan.in_place_safe = true;
  return plan;
}

Plan make_broadcast_tree(const TemplateArguments& arguments) {
  const int root = root_of(arguments);
  const std::vector<Tree> trees =
      trees_of(arguments, {root}, {shifted_tree(binary_tree(arguments.ranks), root)});
  const std::int64_t parts = split_of(arguments), all = parts * std::ssize(trees);
  Plan plan = start_rooted(arguments, all);
  RankByRank code(plan.ranks);
  std::int64_t number = 0;
  for (const Tree& tree : trees) {
    broadcast_along(code, tree,
                    {.input = 0, .output = 1, .first = parts * number++, .count = parts}, 0, {});
  }
  code.add(plan.root, 0, copy(chunks_of(0, {}, all), chunks_of(1, {}, all)));
  code.finish(plan);
  return plan;
}

/// The data is divided among the trees: tree k of K moves the chunks k, k + K, ... `partial`: where
/// sums wait.
Plan make_reduce(const TemplateArguments& arguments, const std::vector<Tree>& trees, Role partial) {
  const std::int64_t parts = split_of(arguments), count = std::ssize(trees), all = parts * count;
  Plan plan = start_rooted(arguments, all);
  plan.tensors.push_back({"partial", partial, all});
  RankByRank code(plan.ranks);
  for (std::int64_t k = 0; k < count; ++k) {
    reduce_along(
        code, trees[index(k)],
        {.input = 0, .partial = 2, .output = 1, .first = k, .count = parts, .stride = count});
  }
  code.finish(plan);
  return plan;
}

Plan make_reduce_tree(const TemplateArguments& arguments) {
  const int root = root_of(arguments);
  return make_reduce(
      arguments, trees_of(arguments, {root}, {shifted_tree(binary_tree(arguments.ranks), root)}),
      Role::scratch);
}

Plan make_reduce_ring(const TemplateArguments& arguments) {
  std::vector<Tree> chains;
  for (const Ring& ring : rings_of(arguments)) chains.push_back(chain_to(ring, root_of(arguments)));
  Plan plan = make_reduce(arguments, chains, Role::transit);
  name_peers_by_distance(plan);
  return plan;
}

ParameterInfo trees_parameter() {
  return {"trees",
          "graph",
          {"graph", "identity"},
          "graph: along the links of the machine, where it is known; identity: over 0, 1, 2, ..."};
}

}  // namespace

Tree binary_tree(int ranks) {
  Tree parents{-1};
  for (int rank = 1; rank < ranks; ++rank) {
    const int bit = rank & -rank;
    const int up = (rank ^ bit) | (bit << 1);
    parents.push_back(up < ranks ? up : rank ^ bit);
  }
  return parents;
}

Tree shifted_tree(const Tree& tree, int shift) {
  const auto ranks = static_cast<int>(tree.size());
  return renumbered(tree, [&](int place) { return (place + shift) % ranks; });
}

int place_in_second_tree(int place, int ranks) {
  return ranks % 2 == 0 ? ranks - 1 - place : (place + 1) % ranks;
}

std::vector<Dependency> reduce_along(RankByRank& code, const Tree& tree, const Flow& flow) {
  const auto children = children_of(tree);
  const std::vector<int> order = from_root(tree, children);
  const std::int32_t stream = code.add_stream("up");
  std::vector<Dependency> complete;
  for (std::int64_t i = 0; i < flow.count; ++i) {
    const std::int64_t chunk = flow.first + i * flow.stride;
    std::vector<std::optional<Dependency>> sum(tree.size());  // the last addition at a rank
    for (auto rank = order.rbegin(); rank != order.rend(); ++rank) {
      const auto& below = children[index(*rank)];
      const bool is_root = *rank == order.front();
      for (const int child : below) {
        std::optional<Dependency>& here = sum[index(*rank)];
        const std::optional<Dependency>& there = sum[index(child)];
        const bool is_last = child == below.back();
        Transfer transfer = reducing(
            push(constant(*rank), chunk_of(there ? flow.partial : flow.input, constant(chunk)),
                 chunk_of(is_root && is_last ? flow.output : flow.partial, constant(chunk))),
            chunk_of(here ? flow.partial : flow.input, constant(chunk)));
        for (const auto& needed : {there, here})
          if (needed) transfer.after.push_back(*needed);
        here = code.add(child, stream, std::move(transfer));
      }
    }
    complete.push_back(*sum[index(order.front())]);
  }
  return complete;
}

void broadcast_along(RankByRank& code, const Tree& tree, const Flow& flow, std::int32_t source,
                     const std::vector<Dependency>& complete) {
  const auto children = children_of(tree);
  const std::vector<int> order = from_root(tree, children);
  std::vector<std::int32_t> streams;  // to the first child, the second, ...
  for (const auto& some : children)
    while (streams.size() < some.size()) streams.push_back(code.add_stream("down"));
  for (std::int64_t i = 0; i < flow.count; ++i) {
    std::vector<std::optional<Dependency>> arrived(tree.size());
    if (!complete.empty()) arrived[index(order.front())] = complete[index(i)];
    const Affine chunk = constant(flow.first + i * flow.stride);
    for (const int rank : order) {
      const std::int32_t held = rank == order.front() ? source : flow.output;
      auto stream = streams.begin();
      for (const int child : children[index(rank)]) {
        Transfer transfer =
            push(constant(child), chunk_of(held, chunk), chunk_of(flow.output, chunk));
        if (const auto& needed = arrived[index(rank)]) transfer.after.push_back(*needed);
        arrived[index(child)] = code.add(rank, *stream++, std::move(transfer));
      }
    }
  }
}

std::vector<TemplateInfo> tree_templates() {
  return of_collectives(
      {{"all-reduce/double-binary-tree",
        "two complementary trees, half of the data up and down each",
        {split_parameter("4"), trees_parameter()},
        make_all_reduce_double_binary_tree},
       {"broadcast/tree",
        "down a binary tree, in parts",
        {root_parameter("sends"), split_parameter("4"), trees_parameter()},
        make_broadcast_tree},
       {"reduce/ring",
        "along a chain that ends at the root, in parts",
        {root_parameter("gets the result"), split_parameter("1"), rings_parameter()},
        make_reduce_ring},
       {"reduce/tree",
        "up a binary tree, in parts",
        {root_parameter("gets the result"), split_parameter("4"), trees_parameter()},
        make_reduce_tree}});
}

}  // namespace hemiola::plan

#include "explore/space/block.h"

#include <fmt/format.h>

#include "explore/space/serial_job.h"

namespace hemiola::explore {
namespace {

/// Columns of what the first product makes, and of what the second one sums over.
std::int64_t columns_of_first(const Block& block) {
  return block.kind == BlockKind::mlp ? block.intermediate * (block.gated ? 2 : 1)
                                      : (block.heads + 2 * block.kv_heads) * block.head_dim;
}
std::int64_t depth_of_last(const Block& block) {
  return block.kind == BlockKind::mlp ? block.intermediate : block.heads * block.head_dim;
}

/// A size, and the option that says it.
struct Size {
  const char* option;
  const char* what;
  std::int64_t value, parts;
  const char* why;
};

std::vector<Size> sizes_of(const Block& block) {
  const std::int64_t n = block.ranks;
  std::vector<Size> sizes{{"hidden", "the hidden size", block.hidden, 1, ""}};
  if (block.kind == BlockKind::mlp) {
    sizes.push_back({"tokens", "the number of tokens", block.tokens, n, "each rank has as many"});
    sizes.push_back({"intermediate", "the intermediate size", block.intermediate, n,
                     "each rank has as many columns"});
    return sizes;
  }
  sizes.push_back({"sequences", "the number of sequences", block.sequences, 1, ""});
  sizes.push_back({"tokens", "the number of tokens", block.tokens, n * block.sequences,
                   "each rank has as many of every sequence"});
  sizes.push_back({"head-dim", "the size of a head", block.head_dim, 1, ""});
  sizes.push_back({"kv-heads", "the number of heads of keys and values", block.kv_heads, n,
                   "each rank has as many"});
  sizes.push_back({"heads", "the number of heads", block.heads, block.kv_heads,
                   "each head of keys and values is shared by as many"});
  return sizes;
}

}  // namespace

std::string_view name_of(BlockKind kind) {
  return kind == BlockKind::mlp ? "mlp" : "attention";
}

BlockKind block_named(const std::string& name, const SourceLocation& where) {
  for (const BlockKind kind : {BlockKind::mlp, BlockKind::attention})
    if (name_of(kind) == name) return kind;
  throw Failure(fmt::format("'{}' is not a block", name), where,
                suggest(name, {"mlp", "attention"}, "there are: mlp, attention"));
}

void check(const Block& block, const std::string& prefix) {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  if (block.ranks < 2)
    throw Failure("a block is divided among 2 ranks at least", {.file = prefix + "ranks"},
                  "choose more, or another machine");
  for (const Size& size : sizes_of(block)) {
    const SourceLocation where{.file = prefix + size.option};
    if (size.value < 1)
      throw Failure(size.value == 0 ? fmt::format("{} is not given", size.what)
                                    : fmt::format("{} cannot be {}", size.what, size.value),
                    where, fmt::format("for example {}{} 8192", prefix, size.option));
    if (size.value > kMost)
      throw Failure(fmt::format("{} is {}, beyond 2^24", size.what, size.value), where);
    if (size.value % size.parts == 0) continue;
    const std::int64_t below = size.value / size.parts * size.parts;
    throw Failure(fmt::format("{}, {}, does not divide by {}: {}", size.what, size.value,
                              size.parts, size.why),
                  where,
                  fmt::format("the next ones that do are {}{}",
                              below > 0 ? std::to_string(below) + " and " : std::string(),
                              below + size.parts));
  }
  check(first_operator(block), {.file = prefix + "tokens"});
  check(last_operator(block), {.file = prefix + "tokens"});
}

Operator first_operator(const Block& block) {
  return {.kind = OperatorKind::ag_gemm,
          .ranks = block.ranks,
          .m = block.tokens,
          .n = columns_of_first(block),
          .k = block.hidden,
          .type = block.type};
}

Operator last_operator(const Block& block) {
  return {.kind = OperatorKind::gemm_rs,
          .ranks = block.ranks,
          .m = block.tokens,
          .n = block.hidden,
          .k = depth_of_last(block),
          .type = block.type};
}

std::array<std::string_view, 5> parts_of(BlockKind kind) {
  if (kind == BlockKind::mlp) return {"all-gather", "up", "activation", "down", "reduce-scatter"};
  return {"all-gather", "qkv", "attention", "output", "reduce-scatter"};
}

std::string middle_launch(const Block& block) {
  const std::string_view name = parts_of(block.kind)[2];
  if (block.kind == BlockKind::attention) {
    const std::int64_t length = block.tokens / block.sequences;
    return fmt::format(
        "  - {{name: {}, attention: {{queries: {}, keys: {}, heads: {}, kv_heads: {}, dim: {}, "
        "batch: {}, causal: {}}}}}\n",
        name, length, length, block.heads / block.ranks, block.kv_heads / block.ranks,
        block.head_dim, block.sequences, block.causal);
  }
  const std::int64_t written =
      block.tokens * (block.intermediate / block.ranks) * size_of(block.type);
  return fmt::format("  - {{name: {}, compute: {{read: {}B, write: {}B}}}}\n", name,
                     written * (block.gated ? 2 : 1), written);
}

std::string serial_job(const Block& block) {
  const auto parts = parts_of(block.kind);
  const Operator first = first_operator(block), last = last_operator(block);
  return job_of("serial", block.type,
                collective_launch(parts[0], collective_of(first.kind), collective_size(first)) +
                    product_launch(parts[1], local_product(first)) + middle_launch(block) +
                    product_launch(parts[3], local_product(last)) +
                    collective_launch(parts[4], collective_of(last.kind), collective_size(last)));
}

std::string template_of(const Block& block) {
  return fmt::format("block-{}/sequence", name_of(block.kind));
}

study::Settings template_sizes(const Block& block) {
  study::Settings all{{"m", std::to_string(block.tokens)}, {"h", std::to_string(block.hidden)}};
  const auto add = [&all](const char* name, std::int64_t value) {
    all.emplace_back(name, std::to_string(value));
  };
  if (block.kind == BlockKind::mlp) {
    add("f", block.intermediate);
    all.emplace_back("activation", block.gated ? "swiglu" : "gelu");
  } else {
    add("heads", block.heads);
    add("kv_heads", block.kv_heads);
    add("head", block.head_dim);
    add("sequences", block.sequences);
    all.emplace_back("causal", block.causal ? "yes" : "no");
  }
  all.push_back(template_sizes(first_operator(block)).back());  // dtype
  return all;
}

std::string text_of(const Block& block) {
  const std::string sizes =
      block.kind == BlockKind::mlp
          ? fmt::format("intermediate {}, {}", block.intermediate, block.gated ? "swiglu" : "gelu")
          : fmt::format("{} heads of {}, {} of keys and values, {} sequence{}{}", block.heads,
                        block.head_dim, block.kv_heads, block.sequences,
                        block.sequences > 1 ? "s" : "", block.causal ? ", causal" : "");
  return fmt::format("{} block, {} tokens, hidden {}, {}, {} on {} GPUs", name_of(block.kind),
                     block.tokens, block.hidden, sizes, name_of(block.type), block.ranks);
}

std::vector<std::string> who_holds_what(const Block& block) {
  const machine::GemmShape first = local_product(first_operator(block)),
                           last = local_product(last_operator(block));
  const auto parts = parts_of(block.kind);
  return {
      fmt::format("rows [{}, {}]: {} on each GPU; gathered, so that every GPU has all",
                  block.tokens, block.hidden, block.tokens / block.ranks),
      fmt::format("{}: each GPU multiplies {} x {} x {} (M x N x K)", parts[1], first.m, first.n,
                  first.k),
      block.kind == BlockKind::mlp
          ? fmt::format("{}: {} of [{}, {}] on each GPU", parts[2], block.gated ? "swiglu" : "gelu",
                        block.tokens, block.intermediate / block.ranks)
          : fmt::format("{}: {} of {} heads on each GPU, all rows of a sequence", parts[2],
                        block.heads / block.ranks, block.heads),
      fmt::format("{}: each GPU multiplies {} x {} x {}", parts[3], last.m, last.n, last.k),
      fmt::format("results [{}, {}]: {} rows on each GPU, summed over all", block.tokens,
                  block.hidden, block.tokens / block.ranks)};
}

}  // namespace hemiola::explore

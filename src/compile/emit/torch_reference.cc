#include "compile/emit/torch_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "plan/area.h"

namespace hemiola::compile {
namespace {

/// Of a family of templates: which tensors it has, and how c follows from what all ranks hold.
struct OperatorReference {
  std::string_view family;
  std::string_view left;   ///< of the product, beside b
  std::size_t dimensions;  ///< of `left`
  bool own_block_only;     ///< of `left` a rank holds its own block of the first axis
  std::string_view text;
  bool depth_is_split = false;  ///< each rank has a part of the depth of `left`
};

constexpr std::array kReferences{
    OperatorReference{"ag-gemm/", "a", 3, true,
                      "    a = torch.stack([of[\"a\"] for of in held])  # gathered\n"
                      "    return {\"c\": $a.to(WIDE) @ held[rank][\"b\"].to(WIDE)$held[rank]$}\n"},
    OperatorReference{"ag-gemm/", "a", 2, true,
                      "    a = torch.cat([of[\"a\"] for of in held])  # gathered\n"
                      "    return {\"c\": $a.to(WIDE) @ held[rank][\"b\"].to(WIDE)$held[rank]$}\n"},
    OperatorReference{
        "dispatch-gemm/", "x", 3, false,
        "    x = torch.stack([of[\"x\"][rank] for of in held])  # tokens for this rank's expert\n"
        "    return {\"c\": $x.to(WIDE) @ held[rank][\"b\"].to(WIDE)$held[rank]$}\n"},
    OperatorReference{"dispatch-gemm/", "x", 2, false,
                      "    # Tokens for this rank's expert.\n"
                      "    a = torch.cat([of[\"x\"].chunk(RANKS)[rank] for of in held])\n"
                      "    return {\"c\": $a.to(WIDE) @ held[rank][\"b\"].to(WIDE)$held[rank]$}\n"},
    OperatorReference{"gemm-rs/", "a", 3, false,
                      "    return {\"c\": sum($of[\"a\"][rank].to(WIDE) @ of[\"b\"].to(WIDE)$of$ "
                      "for of in held)}\n"},
    OperatorReference{"gemm-rs/", "a", 2, false,
                      "    return {\"c\": sum($of[\"a\"].chunk(RANKS)[rank].to(WIDE) @ "
                      "of[\"b\"].to(WIDE)$of$ for of in held)}\n"},
    OperatorReference{
        "gemm-ar/", "a", 3, false,
        "    return {\"c\": sum($of[\"a\"].to(WIDE) @ of[\"b\"].to(WIDE)$of$ for of in held)}\n"},
    OperatorReference{
        "gemm-ar/", "a", 2, false,
        "    return {\"c\": sum($of[\"a\"].to(WIDE) @ of[\"b\"].to(WIDE)$of$ for of in held)}\n"},
    OperatorReference{"a2a-gemm/", "x", 2, false,
                      "    # Of all ranks the rows for this one, beside each other.\n"
                      "    a = torch.cat([of[\"x\"].chunk(RANKS)[rank] for of in held], 1)\n"
                      "    return {\"c\": $a.to(WIDE) @ held[rank][\"b\"].to(WIDE)$held[rank]$}\n",
                      true},
    OperatorReference{
        "gemm-combine/", "a", 3, false,
        "    # Results of all experts for this rank's tokens.\n"
        "    return {\"c\": torch.stack([$of[\"a\"][rank].to(WIDE) @ of[\"b\"].to(WIDE)$of$ "
        "for of in held])}\n"},
    OperatorReference{"gemm-combine/", "a", 2, false,
                      "    # Results of all experts for this rank's tokens.\n"
                      "    return {\"c\": torch.cat([$of[\"a\"].chunk(RANKS)[rank].to(WIDE) @ "
                      "of[\"b\"].to(WIDE)$of$ for of in held])}\n"}};

const plan::Tensor* tensor_named(const plan::Plan& plan, std::string_view name, plan::Role role) {
  for (const plan::Tensor& tensor : plan.tensors)
    if (tensor.name == name && tensor.role == role) return &tensor;
  return nullptr;
}

/// Whether every rank starts with its block of the tensor, or with all of it, and nothing else.
bool holds(const plan::Plan& plan, std::string_view name, bool own_block_only) {
  const plan::Tensor& tensor = *tensor_named(plan, name, plan::Role::input);
  const std::int64_t block = tensor.shape[0] / plan.ranks;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    std::int64_t held = 0;
    for (const plan::Area& area : plan::residents(plan, rank)) {
      if (plan.tensors[static_cast<std::size_t>(area.tensor)].name != name) continue;
      for (const plan::Rect& rect : area.rects) {
        if (own_block_only && (rect.begin[0] != rank * block || rect.end[0] != (rank + 1) * block))
          return false;
        held += rect.elements();
      }
    }
    const std::int64_t all = tensor.elements();
    if (held != (own_block_only ? all / plan.ranks : all)) return false;
  }
  return true;
}

/// Whether `left` has blocks of its first axis for all ranks, and the depth of `right`.
bool has_shapes_of(const OperatorReference& formula, const plan::Tensor& left,
                   const plan::Tensor& right, int ranks) {
  if (left.shape.size() != formula.dimensions || right.shape.size() != 2) return false;
  const bool has_blocks =
      formula.dimensions == 3 ? left.shape[0] == ranks : left.shape[0] % ranks == 0;
  return has_blocks && left.shape.back() * (formula.depth_is_split ? ranks : 1) == right.shape[0];
}

std::string_view formula_of(const plan::Plan& plan) {
  for (const OperatorReference& formula : kReferences) {
    if (!plan.name.starts_with(formula.family)) continue;
    const plan::Tensor* left = tensor_named(plan, formula.left, plan::Role::input);
    const plan::Tensor* right = tensor_named(plan, "b", plan::Role::input);
    const plan::Tensor* result = tensor_named(plan, "c", plan::Role::output);
    if (left == nullptr || right == nullptr || result == nullptr ||
        !has_shapes_of(formula, *left, *right, plan.ranks) ||
        result->shape.back() != right->shape[1] ||
        !holds(plan, formula.left, formula.own_block_only) || !holds(plan, "b", false))
      continue;
    return formula.text;
  }
  return {};
}

/// Experts of a mixture: rows of all ranks for each of the own ones.
std::string_view experts_of(const plan::Plan& plan) {
  for (const char* name : {"x", "b"}) {
    const plan::Tensor* tensor = tensor_named(plan, name, plan::Role::input);
    if (tensor == nullptr || tensor->shape.size() != 3 || !holds(plan, name, false)) return {};
  }
  return plan.name.starts_with("moe/")
             ? "    # Of all ranks the tokens for this one's experts.\n"
               "    a = torch.cat([of[\"x\"].chunk(RANKS)[rank] for of in held], 1)\n"
               "    return {\"c\": $a.to(WIDE) @ held[rank][\"b\"].to(WIDE)$held[rank]$}\n"
             : "";
}

/// Layers of two products: what lies in memory between them is rounded.
std::string_view layer_of(const plan::Plan& plan) {
  for (const char* name : {"x", "w_in", "w_out"}) {
    const plan::Tensor* tensor = tensor_named(plan, name, plan::Role::input);
    if (tensor == nullptr || tensor->shape.size() != 2 || !holds(plan, name, false)) return {};
  }
  if (plan.name.starts_with("gemm-a2a-gemm/"))
    return "    middle = [($of[\"x\"].to(WIDE) @ of[\"w_in\"].to(WIDE)$of$).to(of[\"x\"].dtype) "
           "for of "
           "in "
           "held]\n"
           "    gathered = torch.cat([of.chunk(RANKS)[rank] for of in middle], 1)\n"
           "    return {\"c\": $gathered.to(WIDE) @ held[rank][\"w_out\"].to(WIDE)$held[rank]$}\n";
  if (plan.name.starts_with("mlp/"))
    return "    middle = [($of[\"x\"].to(WIDE) @ of[\"w_in\"].to(WIDE)$of$).to(of[\"x\"].dtype) "
           "for of "
           "in held]\n"
           "    return {\"c\": sum($one.to(WIDE) @ of[\"w_out\"].to(WIDE)$of$ for one, of in "
           "zip(middle, held))}\n";
  return {};
}

/// The axis along which the plan cuts its tensors; that of chunks.
std::size_t axis_of_chunks(const plan::Plan& plan) {
  std::optional<std::size_t> axis;
  for (const plan::Stream& stream : plan.codes.front().streams) {
    plan::for_each_transfer(stream, 0, [&](const plan::Transfer& transfer, const Indices&) {
      const auto& shape = plan.tensors[static_cast<std::size_t>(transfer.source.tensor)].shape;
      for (std::size_t i = 0; i < shape.size() && !axis; ++i)
        if (transfer.source.boxes.front()[i].extent != shape[i]) axis = i;
    });
  }
  return axis.value_or(0);
}

std::string collective_text(const plan::Plan& plan, const std::vector<std::string>& names) {
  std::string input, output;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    std::string* place = plan.tensors[i].role == plan::Role::input    ? &input
                         : plan.tensors[i].role == plan::Role::output ? &output
                                                                      : nullptr;
    if (place == nullptr) continue;
    if (!place->empty()) return {};
    *place = names[i];
  }
  const bool is_usual = std::ranges::all_of(
      plan.codes, [](const auto& code) { return !code.resident && code.expected.empty(); });
  if (input.empty() || output.empty() || !is_usual) return {};
  const std::size_t axis = axis_of_chunks(plan);
  const std::string sum = fmt::format("sum(of[\"{}\"].to(WIDE) for of in held)", input);
  const auto returned = [&](const std::string& value) {
    return fmt::format("    return {{\"{}\": {}}}\n", output, value);
  };
  switch (plan.collective) {
    case Collective::all_reduce:
      return returned(sum);
    case Collective::reduce_scatter:
      return returned(fmt::format("{}.chunk(RANKS, {})[rank]", sum, axis));
    case Collective::all_gather:
      return returned(fmt::format("torch.cat([of[\"{}\"] for of in held], {})", input, axis));
    case Collective::all_to_all:
      return returned(fmt::format(
          "torch.cat([of[\"{}\"].chunk(RANKS, {})[rank] for of in held], {})", input, axis, axis));
    case Collective::broadcast:
      return returned(fmt::format("held[{}][\"{}\"]", plan.root, input));
    case Collective::reduce:
      return fmt::format("    return {{\"{}\": {}}} if rank == {} else {{}}\n", output, sum,
                         plan.root);
    case Collective::send_recv:
    case Collective::custom:
      break;
  }
  return {};
}

/// Queries of the own part of the sequence, keys and values of all of it.
std::string attention_text(const plan::Plan& plan, const Softmax& softmax) {
  // With a mask, rows would have to be counted from where the own part begins.
  const bool is_it = plan.name.find("ring-attention/") != plan.name.npos &&
                     !softmax.scale.empty() && !softmax.is_causal;
  if (!is_it) return {};
  for (const char* name : {"q", "k", "v"}) {
    const plan::Tensor* tensor = tensor_named(plan, name, plan::Role::input);
    if (tensor == nullptr || tensor->shape.size() != 3) return {};
  }
  return "    k, v = (torch.cat([of[name] for of in held], 1).to(WIDE) for name in (\"k\", "
         "\"v\"))\n"
         "    weights = torch.softmax(held[rank][\"q\"].to(WIDE) @ k.transpose(1, 2) * " +
         softmax.scale +
         ", -1)\n"
         "    return {\"o\": weights @ v}\n";
}

/// The own part of the sequence with all heads; each rank attends with some heads to all of it.
std::string ulysses_text(const plan::Plan& plan, const Softmax& softmax) {
  if (!plan.name.starts_with("ulysses-attention/") || softmax.scale.empty()) return {};
  const plan::Tensor* held[3] = {};
  for (std::size_t i = 0; i < 3; ++i) {
    const char* name = std::array{"x_q", "x_k", "x_v"}[i];
    held[i] = tensor_named(plan, name, plan::Role::input);
    if (held[i] == nullptr || held[i]->shape.size() < 3 || !holds(plan, name, false)) return {};
  }
  // A mask that one of the two has and not the other: what is meant is not known.
  const bool is_causal = plan.codes.front().computes.front().name == plan::kCausalAttention;
  if (is_causal != softmax.is_causal) return {};
  // Heads of queries by the head of keys that they share.
  const bool has_groups = held[0]->shape.size() == 4;
  const std::int64_t kv_heads = held[1]->shape[0];
  const std::string of_rank =
      kv_heads < plan.ranks ? fmt::format(".chunk({})[rank // {}]", kv_heads, plan.ranks / kv_heads)
                            : ".chunk(RANKS)[rank]";
  const int rows = has_groups ? 2 : 1;
  const std::string shared = has_groups ? ".unsqueeze(1)" : "";
  std::string text = fmt::format(
      "    def made_by(rank):\n"
      "        \"\"\"By the rank that has these heads of whole sequences.\"\"\"\n"
      "        q = torch.cat([of[\"x_q\"].chunk(RANKS)[rank] for of in held], {rows})\n"
      "        k = torch.cat([of[\"x_k\"]{of_rank} for of in held], 1)\n"
      "        v = torch.cat([of[\"x_v\"]{of_rank} for of in held], 1)\n"
      "        scores = q.to(WIDE) @ k.to(WIDE){shared}.transpose(-1, -2) * {scale}\n",
      fmt::arg("rows", rows), fmt::arg("of_rank", of_rank), fmt::arg("shared", shared),
      fmt::arg("scale", softmax.scale));
  if (is_causal)
    text +=
        "        scores = scores.masked_fill(torch.ones_like(scores).triu(1) > 0, "
        "float(\"-inf\"))  # keys behind a query\n";
  return text + fmt::format(
                    "        return (torch.softmax(scores, -1) @ v.to(WIDE){}).to(q.dtype)\n"
                    "    o = [made_by(r) for r in range(RANKS)]\n"
                    "    y = torch.cat([of.chunk(RANKS, {})[rank] for of in o])\n"
                    "    return {{\"y\": y}}\n",
                    shared, rows);
}

/// Products of formulas stand as "$X @ Y$of$", with what the rank of Y was given behind them.
std::string with_products(const std::string& formula, bool has_epilogue) {
  std::vector<std::string> parts{""};
  for (const char c : formula)
    if (c == '$')
      parts.emplace_back();
    else
      parts.back() += c;
  std::string text = parts.front();
  for (std::size_t i = 1; i + 2 < parts.size(); i += 3) {
    std::string& product = parts[i];
    if (has_epilogue) {  // of all rows: what is added to them has all, too
      constexpr std::string_view kPart = ".chunk(RANKS)[rank]";
      const std::size_t part = product.find(kPart);
      if (part != product.npos) product.erase(part, kPart.size());
      product = "epilogue(" + product + ", " + parts[i + 1] + ")" +
                (part != product.npos ? std::string(kPart) : "");
    }
    text += product + parts[i + 2];
  }
  return text;
}

}  // namespace

std::string reference_of(const plan::Plan& plan, const std::vector<std::string>& names,
                         const Softmax& softmax, bool has_epilogue) {
  std::string text = plan.collective == Collective::custom ? std::string(formula_of(plan))
                                                           : collective_text(plan, names);
  if (text.empty()) text = layer_of(plan);
  if (text.empty()) text = experts_of(plan);
  text = with_products(text, has_epilogue);
  if (text.empty()) text = attention_text(plan, softmax);
  if (text.empty()) text = ulysses_text(plan, softmax);
  if (text.empty()) return {};
  return "def reference(rank, held):\n"
         "    \"\"\"What `rank` has to hold at the end, in one piece; held[r] is what rank r was "
         "given.\"\"\"\n" +
         text;
}

}  // namespace hemiola::compile

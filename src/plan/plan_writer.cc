// Writes plan files.
#include <nlohmann/json.hpp>

#include <algorithm>

#include "core/lists.h"
#include "plan/plan_json.h"

namespace hemiola::plan {
namespace {

using json = nlohmann::ordered_json;

json expression(const Affine& value) {
  const Affine simple = normalised(value);
  if (simple.modulus == 0 && simple.is_constant()) return simple.constant;
  return to_string(simple);
}

class Writer {
 public:
  explicit Writer(const Plan& plan) : plan_(plan) {}

  json write() const {
    json root;
    root["hemiola_plan"] = 1;
    root["name"] = plan_.name;
    root["collective"] = name_of(plan_.collective);
    if (plan_.root != 0) root["root"] = plan_.root;
    json& mesh = root["mesh"] = json::array();
    for (const MeshAxis& axis : plan_.mesh)
      mesh.push_back({{"axis", axis.name}, {"size", axis.size}});
    if (plan_.mesh.empty()) mesh.push_back({{"axis", "rank"}, {"size", plan_.ranks}});
    if (!plan_.of_elements()) root["chunks_per_size"] = plan_.chunks_per_size;
    if (plan_.in_place_safe) root["in_place_safe"] = true;
    for (const auto& [parameter, value] : plan_.lowering)
      root["lowering"].push_back({{"parameter", parameter}, {"value", value}});
    json& tensors = root["tensors"] = json::array();
    for (const Tensor& tensor : plan_.tensors) tensors.push_back(of(tensor));
    if (!plan_.groups.empty()) root["groups"] = plan_.groups;
    json& codes = root["codes"] = json::array();
    for (std::size_t c = 0; c < plan_.codes.size(); ++c) {
      std::vector<int> ranks;
      for (int rank = 0; rank < plan_.ranks; ++rank)
        if (plan_.code_of[static_cast<std::size_t>(rank)] == static_cast<std::int32_t>(c))
          ranks.push_back(rank);
      if (!ranks.empty()) codes.push_back(of(plan_.codes[c], ranks));
    }
    return root;
  }

 private:
  const std::string& tensor_name(std::int32_t tensor) const {
    return plan_.tensors[static_cast<std::size_t>(tensor)].name;
  }

  static json of(const Tensor& tensor) {
    json out{{"name", tensor.name}, {"role", name_of(tensor.role)}, {"shape", tensor.shape}};
    out["dtype"] = tensor.type ? name_of(*tensor.type) : "chunk";
    if (!tensor.strides.empty()) out["strides"] = tensor.strides;
    return out;
  }

  static void write_box(json& out, const Box& box) {
    json begin = json::array(), extent = json::array();
    bool ones = true;
    for (const Range& range : box) {
      begin.push_back(expression(range.begin));
      extent.push_back(range.extent);
      ones = ones && range.extent == 1;
    }
    out["begin"] = std::move(begin);
    if (!ones) out["extent"] = std::move(extent);
  }

  json of(const Region& region) const {
    json out{{"tensor", tensor_name(region.tensor)}};
    if (region.boxes.size() == 1) {
      write_box(out, region.boxes.front());
      return out;
    }
    json& boxes = out["boxes"] = json::array();
    for (const Box& box : region.boxes) {
      json one;
      write_box(one, box);
      boxes.push_back(std::move(one));
    }
    return out;
  }

  json of(const Dependency& dependency) const {
    json out{{"rank", expression(dependency.rank)}};
    if (dependency.computed) {
      out["computed"] = of(*dependency.computed);
    } else if (dependency.compute) {
      out["compute"] = expression(*dependency.compute);
    } else {
      out["stream"] = dependency.stream;
      out["transfer"] = expression(dependency.transfer);
    }
    return out;
  }

  json of(const Transfer& transfer) const {
    json out{{"op", name_of(transfer.kind)}};
    const bool whole = transfer.kind == TransferKind::collective;
    if (whole) out["collective"] = name_of(transfer.collective);
    if (transfer.group >= 0)
      out["group"] = transfer.group;
    else if (transfer.kind != TransferKind::copy)
      out["peer"] = expression(transfer.peer);
    out["source"] = of(transfer.source);
    out["destination"] = of(transfer.destination);
    if (transfer.reduce != ReduceOp::none) {
      out["reduce"] = name_of(transfer.reduce);
      if (!whole && transfer.group < 0 && transfer.operand != transfer.destination)
        out["operand"] = of(transfer.operand);
    }
    for (const Dependency& dependency : transfer.after) out["after"].push_back(of(dependency));
    return out;
  }

  json of(const std::vector<Item>& items) const {
    json out = json::array();
    for (const Item& item : items)
      if (const auto* loop = std::get_if<Loop>(&item))
        out.push_back({{"loop", loop->count}, {"items", of(loop->items)}});
      else
        out.push_back(of(std::get<Transfer>(item)));
    return out;
  }

  /// By its name, where no other compute of the code has it.
  static json on_launch(const Affine& compute, const Code& code) {
    const std::string& name = code.computes[static_cast<std::size_t>(compute({}))].name;
    const auto same = std::ranges::count(code.computes, name, &Compute::name);
    if (same > 1) return {{"compute", expression(compute)}};
    return {{"compute", name}};
  }

  json of(const Compute& compute, const Code& code) const {
    json out{{"name", compute.name}, {"kernel", compute.kernel}};
    for (const ComputeAxis& axis : compute.axes) {
      json one{{"name", axis.name}, {"extent", axis.extent}, {"tile", axis.tile}};
      if (axis.reduced) one["reduced"] = true;
      out["axes"].push_back(std::move(one));
    }
    const auto axis_name = [&](std::int32_t axis) {
      return axis < 0 ? "*" : compute.axes[static_cast<std::size_t>(axis)].name;
    };
    for (const ComputeOperand& operand : compute.operands) {
      json one{{"tensor", tensor_name(operand.tensor)}, {"use", name_of(operand.use)}};
      for (const std::int32_t axis : operand.axes) one["axes"].push_back(axis_name(axis));
      for (const Affine& begin : operand.begin) one["begin"].push_back(expression(begin));
      if (operand.wraps) one["wraps"] = true;
      out["operands"].push_back(std::move(one));
    }
    out["flop_per_point"] = compute.flop_per_point;
    for (const std::int32_t axis : compute.order) out["order"].push_back(axis_name(axis));
    out["by_arrival"] = compute.by_arrival;
    if (!compute.stream.empty()) out["stream"] = compute.stream;
    for (const Dependency& dependency : compute.after)
      out["after"].push_back(dependency.compute ? on_launch(*dependency.compute, code)
                                                : of(dependency));
    if (compute.waits != Waits::tiles) out["waits"] = name_of(compute.waits);
    return out;
  }

  json of(const Code& code, const std::vector<int>& ranks) const {
    json out{{"ranks", std::ssize(ranks) == plan_.ranks ? "all" : ranks_text(ranks)}};
    if (code.resident) {
      out["resident"] = json::array();
      for (const Region& region : *code.resident) out["resident"].push_back(of(region));
    }
    for (const Compute& compute : code.computes) out["computes"].push_back(of(compute, code));
    out["streams"] = json::array();
    for (const Stream& stream : code.streams) {
      json one{{"name", stream.name}};
      if (!stream.channel.empty()) one["channel"] = stream.channel;
      one["items"] = of(stream.items);
      out["streams"].push_back(std::move(one));
    }
    for (const Expectation& expectation : code.expected) {
      json one{{"region", of(expectation.region)},
               {"value", expectation.reduced ? "reduced" : "gathered"}};
      if (expectation.of) one["of"] = of(*expectation.of);
      if (expectation.holder) one["rank"] = expression(*expectation.holder);
      out["expected"].push_back(std::move(one));
    }
    return out;
  }

  const Plan& plan_;
};

constexpr std::size_t kWidth = 110;

/// On one line.
void write_flat(const json& value, std::string& out) {
  if (!value.is_structured()) {
    out += value.dump();
    return;
  }
  out += value.is_object() ? '{' : '[';
  bool first = true;
  for (const auto& [key, member] : value.items()) {
    if (!first) out += ", ";
    first = false;
    if (value.is_object()) out += json(key).dump() + ": ";
    write_flat(member, out);
  }
  out += value.is_object() ? '}' : ']';
}

/// What fits a line stands on one.
void write_folded(const json& value, std::size_t indent, std::size_t used, std::string& out) {
  const std::size_t begin = out.size();
  write_flat(value, out);
  if (!value.is_structured() || value.empty() || out.size() - begin + used <= kWidth) return;
  out.resize(begin);
  out += value.is_object() ? '{' : '[';
  bool first = true;
  for (const auto& [key, member] : value.items()) {
    out += first ? "\n" : ",\n";
    first = false;
    out.append(indent + 2, ' ');
    std::size_t column = indent + 2;
    if (value.is_object()) {
      const std::string name = json(key).dump() + ": ";
      out += name;
      column += name.size();
    }
    write_folded(member, indent + 2, column + 1, out);
  }
  out += '\n';
  out.append(indent, ' ');
  out += value.is_object() ? '}' : ']';
}

}  // namespace

std::string ranks_text(const std::vector<int>& ranks) {
  return joined(runs_of(ranks), ",");
}

std::string write_plan(const Plan& plan) {
  std::string out;
  write_folded(Writer(plan).write(), 0, 0, out);
  return out + '\n';
}

}  // namespace hemiola::plan

#include "compile/emit/fused_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compile/emit/fused_texts.h"
#include "compile/python/kernel_needs.h"

namespace hemiola::compile {

namespace {

bool uses_tma(const Description& kernel, bool loads) {
  return std::ranges::any_of(kernel.accesses, [&](const AccessDescription& access) {
    return (access.action == Action::load) == loads && access.mechanism == Mechanism::descriptor;
  });
}

}  // namespace

std::string bulk_constant(const Description& kernel) {
  return uses_tma(kernel, true) || uses_tma(kernel, false)
             ? "BULK = tl.constexpr(hemiola_rt.has_bulk_stores())\n\n\n"
             : "";
}

std::string wait_function(const Description& kernel) {
  std::string made(kWaitFunction);
  return made.replace(made.find("{}"), 2, uses_tma(kernel, true) ? kProxyFence : "");
}

std::string done_function(const Description& kernel) {
  std::string made(kDoneFunction);
  return made.replace(made.find("{}"), 2, uses_tma(kernel, false) ? kBulkWait : "");
}

std::string carry_function(const CarriedData& carried) {
  const std::string& type = carried.type;
  const bool is_half = type == "float16" || type == "bfloat16";
  std::string made(kCarryFunction);
  made.replace(made.find("{0}"), 3, type);
  made.replace(made.find("{1}"), 3, is_half ? "float32" : type);
  made.replace(made.find("{2}"), 3, std::to_string(carried.lanes));
  made.replace(made.find("{3}"), 3, std::to_string(carried.bytes));
  return made;
}

std::string carry_call(const std::string& end) {
  return "hm_carry(hm_moves, hm_moved, " + end +
         ", hm_needs, hm_signals, hm_told, hm_shares, hm_peers, hm_call)  # hemiola";
}

std::string coordinates_function(const Fusion& fusion) {
  const Description& kernel = *fusion.kernel;
  std::set<std::string> names;
  std::string lines;
  for (std::size_t i = 0; i < kernel.axes.size(); ++i) {
    const TileAxis& axis = kernel.axes[i];
    if (fusion.axes[i].is_derived) continue;
    const Formula formula(axis.formula);
    for (const std::string& name : formula.names())
      if (!name.starts_with("tl.")) names.insert(name);
    lines += fmt::format("        \"{}\": {},\n", axis.name, axis.formula);
  }
  std::string parameters = "tl";
  for (const std::string& name : names) parameters += ", " + name;
  return "def coordinates(" + parameters +
         ", **others):\n"
         "    \"\"\"By axis, the tile that each of the kernel's own programs takes: what its "
         "text says, for all of them at once.\"\"\"\n"
         "    min, max = tl.minimum, tl.maximum\n"
         "    return {\n" +
         lines + "    }\n";
}

bool carries_addresses(const Source& source, const Node& body) {
  std::set<std::string> carried, used;
  std::vector<const Node*> found;
  find_all(body, Kind::augmented_assignment, found);
  for (const Node* one : found) names_in(source, *one->child(Field::left), carried);
  found.clear();
  find_all(body, Kind::assignment, found);
  for (const Node* one : found) {
    std::set<std::string> left, right;
    names_in(source, *one->child(Field::left), left);
    if (const Node* value = one->child(Field::right)) names_in(source, *value, right);
    for (const std::string& name : left)
      if (right.contains(name)) carried.insert(name);
  }
  found.clear();
  find_all(body, Kind::call, found);
  for (const Node* call : found) {
    const std::string_view name = last_name(source, *call);
    if (name == "load" || name == "store" || name == "advance") names_in(source, *call, used);
  }
  return std::ranges::any_of(carried, [&](const std::string& name) { return used.contains(name); });
}

int axis_of(const Source& source, const Node& call) {
  const Node* arguments = call.child(Field::arguments);
  if (arguments == nullptr || arguments->children.size() != 1) return 3;
  const Node* value = arguments->children.front();
  if (value->kind == Kind::keyword_argument) value = value->child(Field::value);
  return value == nullptr ? 3 : static_cast<int>(number_in(source.text(*value)).value_or(3));
}

std::string why_not_to_peers(const Fusion& fusion) {
  for (const FusedOperand& one : fusion.operands)
    if (one.parameter == fusion.stores && (one.is_added_to || one.is_transposed))
      return "they are added up, or lie the other way round";
  for (const AccessDescription& one : fusion.kernel->accesses)
    if (one.operand == fusion.stores &&
        (one.action == Action::load || one.mechanism != Mechanism::pointer))
      return "it is no plain store by pointers";
  return {};
}

}  // namespace hemiola::compile

// Loads, stores and what they go through: block pointers and tensor descriptors.
#include <algorithm>

#include "compile/describe/builtins.h"

namespace hemiola::compile {

Ref Builtins::record(RawAccess access, const Ref& value, const Node& node) {
  access.id = Here::key(access_ids_, node, here_.frame->path);
  access.call = {&here_.source(), &node};
  access.statements = here_.statements;
  access.loops = here_.loops;
  access.conditional = here_.conditions > 0;
  if (value) access.value_loads = here_.traits_of(*value).loads;
  access.address = here_.under_facts(access.address);
  for (Expr& offset : access.offsets) offset = here_.under_facts(offset);
  std::vector<Expr> shape = access.shape;
  const int id = access.id;
  const bool is_load = access.action == Action::load;
  load_loops_[id] = here_.loops;
  if (!here_.is_silent()) {
    const auto [known, is_new] = recorded_.try_emplace(id, trace_.accesses.size());
    if (is_new)
      trace_.accesses.push_back(std::move(access));
    else
      trace_.accesses[known->second] = std::move(access);
  }
  if (!is_load) return value ? here_.data_of({value}, shape) : values::other("");
  std::vector<int> dims;
  for (std::size_t i = 0; i < shape.size(); ++i) dims.push_back(static_cast<int>(i));
  return values::number(
      algebra_.make({.kind = AtomKind::loaded, .number = id, .dims = std::move(dims)}),
      std::move(shape));
}

Ref Builtins::memory(std::string_view name, const Arguments& given, const Node& node) {
  const bool is_old_descriptor = name.starts_with("_experimental_descriptor");
  if (is_old_descriptor) {
    const bool is_load = name.ends_with("load");
    const Ref descriptor = given.get("desc_pointer", 0);
    if (!descriptor) return here_.opaque("an argument is missing", node);
    Arguments rest;
    if (is_load)
      rest.positional = {given.get("offsets", 1), given.get("shape", 2)};
    else
      rest.positional = {given.get("offsets", 2), given.get("value", 1)};
    for (const Ref& value : rest.positional)
      if (!value) return here_.opaque("an argument is missing", node);
    return descriptor_access(descriptor, is_load ? "load" : "store", rest, node);
  }
  const Ref pointer = given.get("pointer", 0);
  if (!pointer) return here_.opaque("an address is missing", node);
  RawAccess access{.action = name == "load"    ? Action::load
                             : name == "store" ? Action::store
                                               : Action::atomic,
                   .function = "tl." + std::string(name)};
  Ref value = name == "load" ? nullptr : given.get("value", 1);
  if (!value && name != "load") value = given.get("val", 1);
  if (pointer->type == Value::Type::block_pointer || pointer->type == Value::Type::descriptor) {
    access.mechanism = Mechanism::block_pointer;
    access.address = pointer->number;
    access.shape = pointer->block;
    access.sizes = pointer->sizes;
    access.strides = pointer->strides;
    access.offsets = pointer->offsets;
    access.block = pointer->block;
  } else {
    access.address = here_.number_of(pointer, node);
    access.shape = pointer->shape;
  }
  return record(std::move(access), value, node);
}

Ref Builtins::make_block_pointer(std::string_view /*name*/, const Arguments& given,
                                 const Node& node) {
  auto value = std::make_shared<Value>();
  value->type = Value::Type::block_pointer;
  value->number = here_.number_of(given.get("base", 0), node);
  value->sizes = here_.numbers_of(given.get("shape", 1), node);
  value->strides = here_.numbers_of(given.get("strides", 2), node);
  value->offsets = here_.numbers_of(given.get("offsets", 3), node);
  value->block = here_.numbers_of(given.get("block_shape", 4), node);
  const std::size_t rank = value->offsets.size();
  if (value->strides.size() != rank || value->block.size() != rank || value->sizes.size() != rank)
    return here_.opaque("a block pointer whose shape, strides, offsets and block do not agree",
                        node);
  return value;
}

Ref Builtins::make_descriptor(std::string_view /*name*/, const Arguments& given, const Node& node) {
  auto value = std::make_shared<Value>();
  value->type = Value::Type::descriptor;
  value->number = here_.number_of(given.get("base", 0), node);
  value->sizes = here_.numbers_of(given.get("shape", 1), node);
  value->strides = here_.numbers_of(given.get("strides", 2), node);
  value->block = here_.numbers_of(given.get("block_shape", 3), node);
  if (value->strides.size() != value->block.size())
    return here_.opaque("a descriptor whose strides and block do not agree", node);
  return value;
}

Ref Builtins::advance(std::string_view /*name*/, const Arguments& given, const Node& /*node*/) {
  const Ref pointer = given.get("base", 0), by = given.get("offsets", 1);
  if (!pointer || !by || pointer->type != Value::Type::block_pointer ||
      by->type != Value::Type::tuple || by->items.size() != pointer->offsets.size())
    return pointer ? pointer : values::other("");
  auto moved = std::make_shared<Value>(*pointer);
  for (std::size_t i = 0; i < moved->offsets.size(); ++i)
    if (values::is_number(by->items[i]))
      moved->offsets[i] = algebra_.add(moved->offsets[i], by->items[i]->number);
  return moved;
}

namespace {

/// What is stored says the block of a descriptor that does not, unless it was itself loaded through
/// one that does not: then its extents are `unknown`.
void take_block(RawAccess& access, const Ref& value, const Expr& unknown) {
  if (access.block.empty() && value != nullptr && value->type == Value::Type::number &&
      value->shape.size() == access.offsets.size() &&
      std::ranges::find(value->shape, unknown) == value->shape.end())
    access.block = value->shape;
}

}  // namespace

Ref Builtins::descriptor_access(const Ref& descriptor, std::string_view name,
                                const Arguments& given, const Node& node) {
  using Type = Value::Type;
  if (descriptor->type != Type::descriptor && descriptor->type != Type::number)
    return here_.opaque("'" + std::string(name) + "' of what is no descriptor", node);
  RawAccess access{.action = name == "load" || name == "gather"     ? Action::load
                             : name == "store" || name == "scatter" ? Action::store
                                                                    : Action::atomic,
                   .mechanism = Mechanism::descriptor,
                   .function = "descriptor." + std::string(name),
                   .address = descriptor->number};
  if (name == "gather" || name == "scatter") {
    const bool is_load = name == "gather";
    const Ref rows = given.get("x_offsets", is_load ? 0 : 1),
              column = given.get("y_offset", is_load ? 1 : 2);
    access.offsets = {here_.number_of(rows, node), here_.number_of(column, node)};
  } else {
    access.offsets = here_.numbers_of(given.get("offsets", 0), node);
  }
  access.block = descriptor->block;
  access.shape = descriptor->block;
  access.sizes = descriptor->sizes;
  access.strides = descriptor->strides;
  Ref value;
  if (access.action != Action::load)
    value = given.get("value", name == "scatter" ? 0 : 1);
  else if (given.positional.size() > 1 && descriptor->type == Type::number)
    access.block = here_.numbers_of(given.positional[1], node);  // the block stands at the load
  const Expr unknown = algebra_.function("#block", {});
  take_block(access, value, unknown);
  // The block of a descriptor that the host made is not in the text else; its rank is.
  if (access.shape.empty() && access.block.empty())
    access.shape.assign(access.offsets.size(), unknown);
  else if (access.shape.empty())
    access.shape = access.block;
  return record(std::move(access), value, node);
}

}  // namespace hemiola::compile

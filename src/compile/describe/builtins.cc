// What Triton and Python provide, by name.
#include "compile/describe/builtins.h"

#include <algorithm>
#include <span>

#include "compile/python/formula.h"

namespace hemiola::compile {

namespace {

/// Give back their first argument, or change its type only.
constexpr std::string_view kSame[] = {"multiple_of",  "max_contiguous", "max_constancy", "to",
                                      "cast",         "broadcast_to",   "constexpr",     "int",
                                      "assume",       "to_tensor",      "int64",         "int32",
                                      "abs_identity", "contiguous"};
constexpr std::string_view kReductions[] = {"sum",      "argmax", "argmin",           "xor_sum",
                                            "reduce",   "cumsum", "associative_scan", "cumprod",
                                            "reduce_or"};
constexpr std::string_view kShapes[] = {"trans", "permute", "expand_dims", "reshape",
                                        "view",  "ravel",   "flip"};
constexpr std::string_view kFilled[] = {"zeros",   "full",       "rand",     "randn",
                                        "randint", "zeros_like", "full_like"};
constexpr std::string_view kMemory[] = {"load",
                                        "store",
                                        "atomic_add",
                                        "atomic_max",
                                        "atomic_min",
                                        "atomic_xchg",
                                        "atomic_cas",
                                        "atomic_and",
                                        "atomic_or",
                                        "atomic_xor",
                                        "_experimental_descriptor_load",
                                        "_experimental_descriptor_store"};
constexpr std::string_view kSilent[] = {"static_assert", "static_print", "device_print",
                                        "device_assert", "debug_barrier", "print", "fence",
                                        "sync_threads", "extract_slice", "insert_slice",
                                        // what a caller gives is a pointer, no descriptor
                                        "isinstance"};

constexpr std::string_view kProgramIds[] = {"program_id", "num_programs"};
constexpr std::string_view kRange[] = {"arange"};
constexpr std::string_view kBlockPointer[] = {"make_block_ptr"};
constexpr std::string_view kDescriptor[] = {"make_tensor_descriptor",
                                            "_experimental_make_tensor_descriptor"};
constexpr std::string_view kAdvance[] = {"advance"};
constexpr std::string_view kDot[] = {"dot", "dot_scaled", "sparse_dot"};
constexpr std::string_view kCeilDivide[] = {"cdiv"};
constexpr std::string_view kMinimum[] = {"min", "max", "minimum", "maximum"};
constexpr std::string_view kWhere[] = {"where"};
constexpr std::string_view kSwizzle[] = {"swizzle2d"};
constexpr std::string_view kDivmod[] = {"divmod"};
constexpr std::string_view kLength[] = {"len"};
constexpr std::string_view kLists[] = {"tuple", "list"};
constexpr std::string_view kRearranged[] = {
    "join", "split", "interleave", "cat", "gather", "inline_asm_elementwise", "map_elementwise",
    "sort", "topk",  "histogram"};
constexpr std::string_view kExponentials[] = {"exp", "exp2", "fast_expf", "fast_exp", "exp_fn"};

/// Of a block whose last axis has two elements, one of them.
std::vector<Expr> half_of(const Ref& block) {
  std::vector<Expr> half = block ? block->shape : std::vector<Expr>();
  if (!half.empty()) half.pop_back();
  return half;
}

/// What stands for itself, or is computed from: `input` or `x`; null: none.
Ref first_of(const Arguments& given) {
  const Ref input = given.get("input", 0);
  return input ? input : given.get("x", 0);
}

std::vector<Ref> all_of(const Arguments& given) {
  std::vector<Ref> all = given.positional;
  for (const auto& [keyword, value] : given.named) all.push_back(value);
  return all;
}

/// tl.max(x, 1) reduces, min(a, b) of Python and tl.minimum compare.
bool reduces(std::string_view name, const Arguments& given, const std::vector<Ref>& values) {
  if (name != "max" && name != "min") return false;
  return given.named.contains("axis") || values.size() < 2 ||
         (values::is_number(values[0]) && !values[0]->shape.empty() &&
          values::is_number(values[1]) && values[1]->number.is_constant() &&
          values[1]->number.constant() < 5 && values[1]->shape.empty());
}

}  // namespace

Builtins::Maker Builtins::maker_of(std::string_view name) {
  struct Entry {
    std::span<const std::string_view> names;
    Maker maker;
  };
  static constexpr Entry kTable[] = {{kProgramIds, &Builtins::program},
                                     {kRange, &Builtins::arange},
                                     {kMemory, &Builtins::memory},
                                     {kBlockPointer, &Builtins::make_block_pointer},
                                     {kDescriptor, &Builtins::make_descriptor},
                                     {kAdvance, &Builtins::advance},
                                     {kDot, &Builtins::dot},
                                     {kCeilDivide, &Builtins::cdiv},
                                     {kMinimum, &Builtins::minimum_of},
                                     {kReductions, &Builtins::reduction},
                                     {kShapes, &Builtins::shape_change},
                                     {kFilled, &Builtins::filled},
                                     {kSilent, &Builtins::silent},
                                     {kWhere, &Builtins::where},
                                     {kSwizzle, &Builtins::swizzle},
                                     {kDivmod, &Builtins::divmod},
                                     {kLength, &Builtins::length},
                                     {kSame, &Builtins::same},
                                     {kLists, &Builtins::list},
                                     {kRearranged, &Builtins::rearranged}};
  for (const Entry& entry : kTable)
    if (std::ranges::find(entry.names, name) != entry.names.end()) return entry.maker;
  return nullptr;
}

Ref Builtins::call(std::string_view name, const Arguments& given, const Node& node) {
  if (const Maker maker = maker_of(name))
    if (Ref made = (this->*maker)(name, given, node)) return made;
  return pure(name, given, node);
}

Ref Builtins::method(const Ref& object, std::string_view name, const Arguments& given,
                     const Node& node) {
  const bool is_access = name == "load" || name == "store" || name == "gather" ||
                         name == "scatter" || name.starts_with("atomic_");
  if (is_access) return descriptor_access(object, name, given, node);
  Arguments all = given;
  all.positional.insert(all.positional.begin(), object);
  if (object->type == Value::Type::other && maker_of(name) != &Builtins::same)
    return values::other(std::string(name));
  return call(name, all, node);
}

bool Builtins::is_in(int load, int loop) const {
  const auto loops = load_loops_.find(load);
  return loops != load_loops_.end() && std::ranges::count(loops->second, loop) > 0;
}

Ref Builtins::program(std::string_view name, const Arguments& given, const Node& node) {
  const Ref axis = given.get("axis", 0);
  const Expr value = axis ? here_.number_of(axis, node) : Expr();
  if (!value.is_constant() || value.constant() < 0 || value.constant() > 2)
    return here_.opaque("the axis of the grid is not known", node);
  const int number_of_axis = static_cast<int>(value.constant());
  if (name == "num_programs") return values::number(algebra_.programs(number_of_axis));
  if (!here_.is_silent())
    trace_.programs.push_back(
        {number_of_axis, {&here_.source(), &node}, here_.frame->path == 0, here_.statements});
  return values::number(algebra_.program(number_of_axis));
}

Ref Builtins::arange(std::string_view /*name*/, const Arguments& given, const Node& node) {
  const Ref begin = given.get("start", 0), end = given.get("end", 1);
  const Expr from = begin ? here_.number_of(begin, node) : Expr(), to = here_.number_of(end, node);
  return values::number(algebra_.range(from, to, 0), {algebra_.subtract(to, from)});
}

Ref Builtins::cdiv(std::string_view /*name*/, const Arguments& given, const Node& /*node*/) {
  const Ref first = first_of(given);
  const Ref second = given.positional.size() > 1 ? given.positional[1] : nullptr;
  if (!values::is_number(first) || !values::is_number(second)) return nullptr;
  return values::number(algebra_.infix("cdiv", first->number, second->number), first->shape);
}

Ref Builtins::divmod(std::string_view /*name*/, const Arguments& given, const Node& /*node*/) {
  const Ref first = first_of(given);
  const Ref second = given.positional.size() > 1 ? given.positional[1] : nullptr;
  if (!values::is_number(first) || !values::is_number(second)) return nullptr;
  return values::tuple({values::number(algebra_.infix("//", first->number, second->number)),
                        values::number(algebra_.infix("%", first->number, second->number))});
}

Ref Builtins::filled(std::string_view name, const Arguments& given, const Node& node) {
  const Ref first = first_of(given);
  std::vector<Expr> shape;
  if (name.ends_with("_like")) {
    if (first) shape = first->shape;
  } else if (const Ref extents = given.get("shape", 0)) {
    shape = here_.numbers_of(extents, node);
  }
  return values::number(algebra_.data({}, false, false), std::move(shape));
}

Ref Builtins::silent(std::string_view /*name*/, const Arguments& /*given*/, const Node& /*node*/) {
  return values::nothing();
}

Ref Builtins::where(std::string_view /*name*/, const Arguments& given, const Node& /*node*/) {
  if (given.positional.size() != 3) return nullptr;
  const Ref &condition = given.positional[0], &a = given.positional[1], &b = given.positional[2];
  if (!values::is_number(condition) || !values::is_number(a) || !values::is_number(b))
    return here_.data_of(given.positional, {});
  Value left = *a, right = *b, by = *condition;
  here_.align(left, right);
  here_.align(left, by);
  here_.align(right, left);
  const Traits x = algebra_.traits(left.number), y = algebra_.traits(right.number);
  if (x.has_data || y.has_data) return here_.data_of(given.positional, left.shape);
  return values::number(algebra_.choose(by.number, left.number, right.number), left.shape);
}

Ref Builtins::swizzle(std::string_view /*name*/, const Arguments& given, const Node& node) {
  if (given.positional.size() != 5) return nullptr;
  std::vector<Expr> of;
  for (const Ref& value : given.positional) of.push_back(here_.number_of(value, node));
  const auto [row, column] = swizzled(
      of, [&](const char* op, const Expr& a, const Expr& b) { return algebra_.infix(op, a, b); });
  return values::tuple({values::number(row), values::number(column)});
}

Ref Builtins::length(std::string_view /*name*/, const Arguments& given, const Node& /*node*/) {
  const Ref first = first_of(given);
  if (!first || first->type != Value::Type::tuple) return nullptr;
  return values::number(Algebra::number(static_cast<std::int64_t>(first->items.size())));
}

Ref Builtins::same(std::string_view /*name*/, const Arguments& given, const Node& /*node*/) {
  const Ref first = first_of(given);
  return first ? first : values::nothing();
}

Ref Builtins::list(std::string_view /*name*/, const Arguments& given, const Node& /*node*/) {
  const Ref first = first_of(given);
  return first ? first : values::tuple({});
}

Ref Builtins::rearranged(std::string_view name, const Arguments& given, const Node& node) {
  const Ref first = first_of(given);
  const std::vector<Ref> all = all_of(given);
  if (name == "split")
    return values::tuple({here_.data_of(all, half_of(first)), here_.data_of(all, half_of(first))});
  const bool known = std::ranges::any_of(all, [&](const Ref& v) {
    const Traits t = here_.traits_of(*v);
    return t.has_data || !t.loads.empty();
  });
  if (known || name == "inline_asm_elementwise")
    return here_.data_of(all, first ? first->shape : std::vector<Expr>());
  return here_.opaque("'" + std::string(name) + "' of an index", node);
}

// Any other function of numbers is pure.
Ref Builtins::pure(std::string_view name, const Arguments& given, const Node& node) {
  const std::vector<Ref> all = all_of(given);
  std::vector<Expr> args;
  std::vector<Expr> shape;
  bool has_loads = false;
  for (const Ref& value : all) {
    if (!values::is_number(value)) continue;
    if (value->shape.size() > shape.size()) shape = value->shape;
    args.push_back(value->number);
    const Traits traits = algebra_.traits(value->number);
    has_loads |= traits.has_load || traits.has_data;
  }
  const bool is_exp = std::ranges::find(kExponentials, name) != std::end(kExponentials);
  if (has_loads) return here_.data_of(all, std::move(shape), false, is_exp);
  if (args.empty()) return here_.opaque("'" + std::string(name) + "' is not known", node);
  return values::number(algebra_.function(std::string(name), std::move(args)), std::move(shape));
}

Ref Builtins::minimum_of(std::string_view name, const Arguments& given, const Node& node) {
  const bool is_minimum = name.starts_with("min");
  std::vector<Ref> values = given.positional;
  if (given.named.contains("x") && given.named.contains("y"))
    values = {given.named.at("x"), given.named.at("y")};
  if (values.empty() || reduces(name, given, values)) return reduction(name, given, node);
  Ref result = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (!values::is_number(result) || !values::is_number(values[i]))
      return here_.opaque("this is not a number", node);
    Value a = *result, b = *values[i];
    here_.align(a, b);
    const Traits x = algebra_.traits(a.number), y = algebra_.traits(b.number);
    if (x.has_data || y.has_data || (!a.shape.empty() && x.has_load && y.has_load))
      result = here_.data_of({result, values[i]}, a.shape);
    else
      result =
          values::number(algebra_.infix(is_minimum ? "min" : "max", a.number, b.number), a.shape);
  }
  return result;
}

Ref Builtins::reduction(std::string_view name, const Arguments& given, const Node& node) {
  Ref input = given.get("input", 0);
  if (!input) return here_.opaque("an argument is missing", node);
  const Ref along = given.get("axis", 1);
  int axis = -1;
  if (values::is_number(along) && along->number.is_constant())
    axis = static_cast<int>(along->number.constant());
  std::vector<Expr> shape = input->shape;
  if (axis < 0 && axis >= -static_cast<int>(shape.size()) && along)
    axis += static_cast<int>(shape.size());
  const bool is_scan = name.starts_with("cum") || name == "associative_scan";
  if (!here_.is_silent() && !is_scan) {
    const Traits traits = here_.traits_of(*input);
    trace_.reductions.push_back({{&here_.source(), &node},
                                 std::string(name),
                                 traits.loads,
                                 axis,
                                 axis >= 0 && axis < static_cast<int>(shape.size())
                                     ? shape[static_cast<std::size_t>(axis)]
                                 : shape.size() == 1 ? shape[0]
                                                     : Expr(),
                                 here_.loops});
  }
  if (!is_scan) {
    if (axis >= 0 && axis < static_cast<int>(shape.size()))
      shape.erase(shape.begin() + axis);
    else
      shape.clear();
  }
  return here_.data_of({input}, std::move(shape));
}

Ref Builtins::dot(std::string_view /*name*/, const Arguments& given, const Node& node) {
  const bool is_scaled = last_name(here_.source(), node) == "dot_scaled";
  const Ref left = given.get(is_scaled ? "lhs" : "input", 0);
  const Ref right = given.get(is_scaled ? "rhs" : "other", is_scaled ? 3 : 1);
  if (!left || !right) return here_.opaque("a product whose operands are not known", node);
  RawDot product{.call = {&here_.source(), &node}, .loops = here_.loops};
  const auto describe = [&](const Ref& operand, std::vector<int>& loads, int& access,
                            bool& transposed) {
    const Traits traits = here_.traits_of(*operand);
    loads = traits.loads;
    if (!values::is_number(operand) || operand->number.terms.size() != 1 ||
        operand->number.terms[0].factors.size() != 1)
      return;
    const Atom& atom = algebra_.atom(operand->number.terms[0].factors[0]);
    if (atom.kind != AtomKind::loaded) return;
    access = atom.number;
    transposed = atom.dims.size() == 2 && atom.dims[0] == 1 && atom.dims[1] == 0;
  };
  describe(left, product.left, product.left_access, product.left_transposed);
  describe(right, product.right, product.right_access, product.right_transposed);
  const Traits of_left = here_.traits_of(*left);
  product.left_has_dot = of_left.has_dot;
  product.left_has_exp = of_left.has_exp;
  if (!here_.is_silent()) trace_.dots.push_back(product);
  std::vector<Expr> shape;
  if (left->shape.size() >= 2 && right->shape.size() >= 2) {
    shape = left->shape;
    shape.back() = right->shape.back();
  }
  std::vector<Ref> from{left, right};
  if (const Ref sum = given.get("acc", is_scaled ? 6 : 2)) {
    if (sum->shape.size() >= 2) shape = sum->shape;  // operands by descriptors do not say theirs
    from.push_back(sum);
  }
  return here_.data_of(from, std::move(shape), true);
}

Ref Builtins::transpose(const Ref& input, const Arguments& given, const Node& node) {
  const std::size_t rank = input->shape.size();
  std::vector<Expr> order;
  for (std::size_t i = 1; i < given.positional.size(); ++i)
    for (const Expr& one : here_.numbers_of(given.positional[i], node)) order.push_back(one);
  if (order.empty() && rank == 2) order = {Algebra::number(1), Algebra::number(0)};
  const bool known = order.size() == rank && std::ranges::all_of(order, [&](const Expr& e) {
                       return e.is_constant() && e.constant() >= 0 &&
                              e.constant() < static_cast<std::int64_t>(rank);
                     });
  if (!known) return here_.data_of({input}, input->shape);
  std::vector<int> to(rank);
  std::vector<Expr> shape(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const auto from = static_cast<std::size_t>(order[i].constant());
    to[from] = static_cast<int>(i);
    shape[i] = input->shape[from];
  }
  return values::number(algebra_.move_dims(input->number, to), std::move(shape));
}

Ref Builtins::expand(const Ref& input, const Arguments& given, const Node& node) {
  const std::size_t rank = input->shape.size();
  const Ref axis = given.get("axis", 1);
  if (!values::is_number(axis) || !axis->number.is_constant())
    return here_.opaque("a dimension that is not known", node);
  auto at = axis->number.constant();
  if (at < 0) at += static_cast<std::int64_t>(rank) + 1;
  if (at < 0 || at > static_cast<std::int64_t>(rank))
    return here_.opaque("a dimension that is not there", node);
  std::vector<int> to;
  for (std::size_t i = 0; i < rank; ++i)
    to.push_back(static_cast<int>(i) + (static_cast<std::int64_t>(i) >= at ? 1 : 0));
  std::vector<Expr> shape = input->shape;
  shape.insert(shape.begin() + at, Algebra::number(1));
  return values::number(algebra_.move_dims(input->number, to), std::move(shape));
}

Ref Builtins::shape_change(std::string_view name, const Arguments& given, const Node& node) {
  Ref input = given.positional.empty() ? given.get("input", 0) : given.positional[0];
  if (!values::is_number(input))
    return input ? input : here_.opaque("an argument is missing", node);
  if (name == "trans" || name == "permute") return transpose(input, given, node);
  if (name == "expand_dims") return expand(input, given, node);
  return reshape(name, input, given, node);
}

Ref Builtins::reshape(std::string_view name, const Ref& input, const Arguments& given,
                      const Node& node) {
  std::vector<Expr> shape;
  for (std::size_t i = 1; i < given.positional.size(); ++i)
    for (const Expr& one : here_.numbers_of(given.positional[i], node)) shape.push_back(one);
  if (given.named.contains("shape")) shape = here_.numbers_of(given.named.at("shape"), node);
  if (shape == input->shape) return input;
  const Traits traits = algebra_.traits(input->number);
  if (traits.has_data || traits.has_load) return here_.data_of({input}, std::move(shape));
  // Dimensions of extent 1 may come and go.
  std::vector<Expr> old_extents, new_extents;
  std::vector<int> to, place;
  const auto is_one = [](const Expr& e) { return e.is_constant() && e.constant() == 1; };
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (!is_one(shape[i])) new_extents.push_back(shape[i]), place.push_back(static_cast<int>(i));
  for (const Expr& extent : input->shape) {
    to.push_back(is_one(extent) || old_extents.size() >= place.size() ? 0
                                                                      : place[old_extents.size()]);
    if (!is_one(extent)) old_extents.push_back(extent);
  }
  if (old_extents == new_extents)
    return values::number(algebra_.move_dims(input->number, to), std::move(shape));
  return values::number(here_.opaque("'" + std::string(name) + "' of an index", node)->number,
                        std::move(shape));
}

}  // namespace hemiola::compile

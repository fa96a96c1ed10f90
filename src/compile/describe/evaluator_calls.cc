// Calls: helpers are followed inside, what Triton and Python provide is known by name.
#include <algorithm>

#include "compile/describe/evaluator.h"
#include "compile/python/formula.h"

namespace hemiola::compile {
namespace {

template <std::size_t N>
bool is_one_of(std::string_view name, const std::string_view (&names)[N]) {
  return std::ranges::find(names, name) != std::end(names);
}

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

/// Of a block whose last axis has two elements, one of them.
std::vector<Expr> half_of(const Ref& block) {
  std::vector<Expr> half = block ? block->shape : std::vector<Expr>();
  if (!half.empty()) half.pop_back();
  return half;
}

}  // namespace

Arguments Evaluator::arguments(const Node& node) {
  Arguments given;
  const Node* list = node.child(Field::arguments);
  if (list == nullptr) return given;
  for (const Node* child : list->children) {
    if (child->kind == Kind::keyword_argument) {
      const Node* name = child->child(Field::name);
      const Node* value = child->child(Field::value);
      if (name != nullptr && value != nullptr)
        given.named[std::string(text_of(*name))] = evaluate(*value);
    } else if (child->kind == Kind::list_splat || child->kind == Kind::dictionary_splat) {
      Ref value = child->children.empty() ? other("") : evaluate(*child->children.front());
      if (child->kind == Kind::list_splat && value->type == Value::Type::tuple)
        given.positional.insert(given.positional.end(), value->items.begin(), value->items.end());
      else
        given.complete = false;
    } else {
      given.positional.push_back(evaluate(*child));
    }
  }
  return given;
}

Ref Evaluator::call(const Node& node) {
  const Node* callee = node.child(Field::function);
  if (callee == nullptr) return opaque("a call", node);
  const std::string name(last_name(source(), node));
  if (callee->kind == Kind::identifier) {
    Ref value = identifier(*callee);
    const Arguments given = arguments(node);
    if (value->type == Value::Type::function) return inlined(*value->function, given, node);
    if (frame_->names.contains(name)) {  // a function that is a parameter
      const Traits traits = given.positional.empty() ? Traits() : traits_of(*given.positional[0]);
      if (!traits.loads.empty() || traits.has_data)
        return data_of(given.positional, given.positional[0]->shape);
      return opaque("'" + name + "' is called, which is not known before the kernel is launched",
                    node);
    }
    // A name of the module for something of Triton's: `exp = tl.exp`.
    return builtin(value->type == Value::Type::other && !value->text.empty() ? value->text : name,
                   given, node);
  }
  if (callee->kind == Kind::attribute) {
    const Node* object = callee->child(Field::object);
    // Of a module: tl.load, tl.math.exp2, helpers.tile(...). The root of the names tells.
    const Node* root = object;
    while (root != nullptr && root->kind == Kind::attribute) root = root->child(Field::object);
    const bool is_module = root != nullptr && root->kind == Kind::identifier &&
                           !frame_->names.contains(text_of(*root));
    if (is_module) {
      Ref value = attribute(*callee);
      const Arguments given = arguments(node);
      if (value->type == Value::Type::function) return inlined(*value->function, given, node);
      return builtin(name, given, node);
    }
    const Ref self = object == nullptr ? other("") : evaluate(*object);
    return method(self, name, arguments(node), node);
  }
  Ref value = evaluate(*callee);
  const Arguments given = arguments(node);
  if (value->type == Value::Type::function) return inlined(*value->function, given, node);
  return opaque("a call of what is no name", node);
}

Ref Evaluator::inlined(const Function& function, const Arguments& given, const Node& node) {
  const auto deep = std::ranges::count(calls_, &function);
  if (static_cast<int>(calls_.size()) > kDeepestCall || deep > 2)
    return opaque("calls are nested too deeply", node);
  Frame frame{.function = &function,
              .module = function.module,
              .path = key(path_ids_, node, frame_->path) + 1};
  std::size_t position = 0;
  std::set<std::string, std::less<>> used;
  for (const Parameter& parameter : function.parameters) {
    if (parameter.is_rest) continue;
    Ref value = given.get(parameter.name, position++);
    if (!value && parameter.default_value != nullptr) {
      Frame home{.module = function.module, .path = frame.path};
      Frame* const caller = std::exchange(frame_, &home);
      value = evaluate(*parameter.default_value);
      frame_ = caller;
    }
    if (!value)
      value = opaque("'" + parameter.name + "' of '" + function.name +
                         "' is given in a way that is not followed",
                     node);
    frame.names[parameter.name] = std::move(value);
  }
  Frame* const caller = std::exchange(frame_, &frame);
  calls_.push_back(&function);
  block(function.body());
  calls_.pop_back();
  frame_ = caller;
  if (frame.returns.empty()) return nothing();
  Ref result = frame.returns.back();
  for (std::size_t i = frame.returns.size() - 1; i-- > 0;) {
    const Expr which =
        algebra_.function("#return_" + std::to_string(frame.path) + '_' + std::to_string(i), {});
    result = merge(which, frame.returns[i], result);
  }
  return result;
}

Ref Evaluator::method(const Ref& object, std::string_view name, const Arguments& given,
                      const Node& node) {
  const bool is_access = name == "load" || name == "store" || name == "gather" ||
                         name == "scatter" || name.starts_with("atomic_");
  if (is_access) return descriptor_access(object, name, given, node);
  Arguments all = given;
  all.positional.insert(all.positional.begin(), object);
  if (object->type == Value::Type::other && !is_one_of(name, kSame))
    return other(std::string(name));
  return builtin(name, all, node);
}

Ref Evaluator::builtin(std::string_view name, const Arguments& given, const Node& node) {
  const Ref input = given.get("input", 0);
  const Ref first = input ? input : given.get("x", 0);
  Ref second = given.positional.size() > 1 ? given.positional[1] : nullptr;
  if (name == "program_id" || name == "num_programs") {
    const Ref axis = given.get("axis", 0);
    const Expr value = axis ? number_of(axis, node) : Expr();
    if (!value.is_constant() || value.constant() < 0 || value.constant() > 2)
      return opaque("the axis of the grid is not known", node);
    const int number_of_axis = static_cast<int>(value.constant());
    if (name == "num_programs") return number(algebra_.programs(number_of_axis));
    if (!is_silent())
      trace_.programs.push_back(
          {number_of_axis, {&source(), &node}, frame_->path == 0, statements_});
    return number(algebra_.program(number_of_axis));
  }
  if (name == "arange") {
    const Ref begin = given.get("start", 0), end = given.get("end", 1);
    const Expr from = begin ? number_of(begin, node) : Expr(), to = number_of(end, node);
    return number(algebra_.range(from, to, 0), {algebra_.subtract(to, from)});
  }
  if (is_one_of(name, kMemory)) return memory(name, given, node);
  if (name == "make_block_ptr") return make_block_pointer(given, node);
  if (name == "make_tensor_descriptor" || name == "_experimental_make_tensor_descriptor")
    return make_descriptor(given, node);
  if (name == "advance") return advance(given);
  if (name == "dot" || name == "dot_scaled" || name == "sparse_dot") return dot(given, node);
  if (name == "cdiv" && is_number(first) && is_number(second))
    return number(algebra_.infix("cdiv", first->number, second->number), first->shape);
  if (name == "min" || name == "max" || name == "minimum" || name == "maximum")
    return minimum_of(name, given, node);
  if (is_one_of(name, kReductions)) return reduction(name, given, node);
  if (is_one_of(name, kShapes)) return shape_change(name, given, node);
  if (is_one_of(name, kFilled)) {
    std::vector<Expr> shape;
    if (name.ends_with("_like")) {
      if (first) shape = first->shape;
    } else if (const Ref extents = given.get("shape", 0)) {
      shape = numbers_of(extents, node);
    }
    return number(algebra_.data({}, false, false), std::move(shape));
  }
  if (is_one_of(name, kSilent)) return nothing();
  if (name == "where" && given.positional.size() == 3) {
    const Ref &condition = given.positional[0], &a = given.positional[1], &b = given.positional[2];
    if (!is_number(condition) || !is_number(a) || !is_number(b))
      return data_of(given.positional, {});
    Value left = *a, right = *b, by = *condition;
    align(left, right);
    align(left, by);
    align(right, left);
    const Traits x = algebra_.traits(left.number), y = algebra_.traits(right.number);
    if (x.has_data || y.has_data) return data_of(given.positional, left.shape);
    return number(algebra_.choose(by.number, left.number, right.number), left.shape);
  }
  if (name == "swizzle2d" && given.positional.size() == 5) {
    std::vector<Expr> of;
    for (const Ref& value : given.positional) of.push_back(number_of(value, node));
    const auto [row, column] = swizzled(
        of, [&](const char* op, const Expr& a, const Expr& b) { return algebra_.infix(op, a, b); });
    return tuple({number(row), number(column)});
  }
  if (name == "divmod" && is_number(first) && is_number(second))
    return tuple({number(algebra_.infix("//", first->number, second->number)),
                  number(algebra_.infix("%", first->number, second->number))});
  if (name == "len" && first && first->type == Value::Type::tuple)
    return number(Algebra::number(static_cast<std::int64_t>(first->items.size())));
  if (is_one_of(name, kSame)) {
    if (!first) return nothing();
    return first;
  }
  if (name == "tuple" || name == "list") return first ? first : tuple({});
  // Any other function of numbers is pure.
  std::vector<Ref> all = given.positional;
  for (const auto& [keyword, value] : given.named) all.push_back(value);
  if (name == "join" || name == "split" || name == "interleave" || name == "cat" ||
      name == "gather" || name == "inline_asm_elementwise" || name == "map_elementwise" ||
      name == "sort" || name == "topk" || name == "histogram") {
    if (name == "split") return tuple({data_of(all, half_of(first)), data_of(all, half_of(first))});
    const bool known = std::ranges::any_of(all, [&](const Ref& v) {
      const Traits t = traits_of(*v);
      return t.has_data || !t.loads.empty();
    });
    if (known || name == "inline_asm_elementwise")
      return data_of(all, first ? first->shape : std::vector<Expr>());
    return opaque("'" + std::string(name) + "' of an index", node);
  }
  std::vector<Expr> args;
  std::vector<Expr> shape;
  bool has_loads = false;
  for (const Ref& value : all) {
    if (!is_number(value)) continue;
    if (value->shape.size() > shape.size()) shape = value->shape;
    args.push_back(value->number);
    const Traits traits = algebra_.traits(value->number);
    has_loads |= traits.has_load || traits.has_data;
  }
  const bool is_exp = name == "exp" || name == "exp2" || name == "fast_expf" ||
                      name == "fast_exp" || name == "exp_fn";
  if (has_loads) return data_of(all, std::move(shape), false, is_exp);
  if (args.empty()) return opaque("'" + std::string(name) + "' is not known", node);
  return number(algebra_.function(std::string(name), std::move(args)), std::move(shape));
}

Ref Evaluator::minimum_of(std::string_view name, const Arguments& given, const Node& node) {
  const bool is_minimum = name.starts_with("min");
  const bool has_axis = given.named.contains("axis");
  std::vector<Ref> values = given.positional;
  if (given.named.contains("x") && given.named.contains("y"))
    values = {given.named.at("x"), given.named.at("y")};
  // tl.max(x, 1) reduces, min(a, b) of Python and tl.minimum compare.
  const bool is_reduction = (name == "max" || name == "min") &&
                            (has_axis || values.size() < 2 ||
                             (is_number(values[0]) && !values[0]->shape.empty() &&
                              is_number(values[1]) && values[1]->number.is_constant() &&
                              values[1]->number.constant() < 5 && values[1]->shape.empty()));
  if (is_reduction || values.empty()) return reduction(name, given, node);
  Ref result = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (!is_number(result) || !is_number(values[i])) return opaque("this is not a number", node);
    Value a = *result, b = *values[i];
    align(a, b);
    const Traits x = algebra_.traits(a.number), y = algebra_.traits(b.number);
    if (x.has_data || y.has_data || (!a.shape.empty() && x.has_load && y.has_load))
      result = data_of({result, values[i]}, a.shape);
    else
      result = number(algebra_.infix(is_minimum ? "min" : "max", a.number, b.number), a.shape);
  }
  return result;
}

Ref Evaluator::reduction(std::string_view name, const Arguments& given, const Node& node) {
  Ref input = given.get("input", 0);
  if (!input) return opaque("an argument is missing", node);
  const Ref along = given.get("axis", 1);
  int axis = -1;
  if (is_number(along) && along->number.is_constant())
    axis = static_cast<int>(along->number.constant());
  std::vector<Expr> shape = input->shape;
  if (axis < 0 && axis >= -static_cast<int>(shape.size()) && along)
    axis += static_cast<int>(shape.size());
  const bool is_scan = name.starts_with("cum") || name == "associative_scan";
  if (!is_silent() && !is_scan) {
    const Traits traits = traits_of(*input);
    trace_.reductions.push_back({{&source(), &node},
                                 std::string(name),
                                 traits.loads,
                                 axis,
                                 axis >= 0 && axis < static_cast<int>(shape.size())
                                     ? shape[static_cast<std::size_t>(axis)]
                                 : shape.size() == 1 ? shape[0]
                                                     : Expr(),
                                 loops_});
  }
  if (!is_scan) {
    if (axis >= 0 && axis < static_cast<int>(shape.size()))
      shape.erase(shape.begin() + axis);
    else
      shape.clear();
  }
  return data_of({input}, std::move(shape));
}

Ref Evaluator::dot(const Arguments& given, const Node& node) {
  const bool is_scaled = last_name(source(), node) == "dot_scaled";
  const Ref left = given.get(is_scaled ? "lhs" : "input", 0);
  const Ref right = given.get(is_scaled ? "rhs" : "other", is_scaled ? 3 : 1);
  if (!left || !right) return opaque("a product whose operands are not known", node);
  RawDot product{.call = {&source(), &node}, .loops = loops_};
  const auto describe = [&](const Ref& operand, std::vector<int>& loads, int& access,
                            bool& transposed) {
    const Traits traits = traits_of(*operand);
    loads = traits.loads;
    if (!is_number(operand) || operand->number.terms.size() != 1 ||
        operand->number.terms[0].factors.size() != 1)
      return;
    const Atom& atom = algebra_.atom(operand->number.terms[0].factors[0]);
    if (atom.kind != AtomKind::loaded) return;
    access = atom.number;
    transposed = atom.dims.size() == 2 && atom.dims[0] == 1 && atom.dims[1] == 0;
  };
  describe(left, product.left, product.left_access, product.left_transposed);
  describe(right, product.right, product.right_access, product.right_transposed);
  const Traits of_left = traits_of(*left);
  product.left_has_dot = of_left.has_dot;
  product.left_has_exp = of_left.has_exp;
  if (!is_silent()) trace_.dots.push_back(product);
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
  return data_of(from, std::move(shape), true);
}

Ref Evaluator::shape_change(std::string_view name, const Arguments& given, const Node& node) {
  Ref input = given.positional.empty() ? given.get("input", 0) : given.positional[0];
  if (!is_number(input)) return input ? input : opaque("an argument is missing", node);
  const std::size_t rank = input->shape.size();
  if (name == "trans" || name == "permute") {
    std::vector<Expr> order;
    for (std::size_t i = 1; i < given.positional.size(); ++i)
      for (const Expr& one : numbers_of(given.positional[i], node)) order.push_back(one);
    if (order.empty() && rank == 2) order = {Algebra::number(1), Algebra::number(0)};
    const bool known = order.size() == rank && std::ranges::all_of(order, [&](const Expr& e) {
                         return e.is_constant() && e.constant() >= 0 &&
                                e.constant() < static_cast<std::int64_t>(rank);
                       });
    if (!known) return data_of({input}, input->shape);
    std::vector<int> to(rank);
    std::vector<Expr> shape(rank);
    for (std::size_t i = 0; i < rank; ++i) {
      const auto from = static_cast<std::size_t>(order[i].constant());
      to[from] = static_cast<int>(i);
      shape[i] = input->shape[from];
    }
    return number(algebra_.move_dims(input->number, to), std::move(shape));
  }
  if (name == "expand_dims") {
    const Ref axis = given.get("axis", 1);
    if (!is_number(axis) || !axis->number.is_constant())
      return opaque("a dimension that is not known", node);
    auto at = axis->number.constant();
    if (at < 0) at += static_cast<std::int64_t>(rank) + 1;
    if (at < 0 || at > static_cast<std::int64_t>(rank))
      return opaque("a dimension that is not there", node);
    std::vector<int> to;
    for (std::size_t i = 0; i < rank; ++i)
      to.push_back(static_cast<int>(i) + (static_cast<std::int64_t>(i) >= at ? 1 : 0));
    std::vector<Expr> shape = input->shape;
    shape.insert(shape.begin() + at, Algebra::number(1));
    return number(algebra_.move_dims(input->number, to), std::move(shape));
  }
  // reshape and view
  std::vector<Expr> shape;
  for (std::size_t i = 1; i < given.positional.size(); ++i)
    for (const Expr& one : numbers_of(given.positional[i], node)) shape.push_back(one);
  if (given.named.contains("shape")) shape = numbers_of(given.named.at("shape"), node);
  if (shape == input->shape) return input;
  const Traits traits = algebra_.traits(input->number);
  if (traits.has_data || traits.has_load) return data_of({input}, std::move(shape));
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
    return number(algebra_.move_dims(input->number, to), std::move(shape));
  return number(opaque("'" + std::string(name) + "' of an index", node)->number, std::move(shape));
}

}  // namespace hemiola::compile

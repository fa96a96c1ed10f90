#include "compile/describe/values.h"

#include <algorithm>

#include "compile/python/formula.h"

namespace hemiola::compile {

Ref Arguments::get(std::string_view name, std::size_t position) const {
  if (const auto found = named.find(name); found != named.end()) return found->second;
  return position < positional.size() ? positional[position] : nullptr;
}

namespace values {

Ref number(Expr e, std::vector<Expr> shape) {
  return std::make_shared<Value>(
      Value{.type = Value::Type::number, .number = std::move(e), .shape = std::move(shape)});
}

Ref nothing() {
  return std::make_shared<Value>(Value{.type = Value::Type::nothing});
}

Ref text(std::string content) {
  return std::make_shared<Value>(Value{.type = Value::Type::text, .text = std::move(content)});
}

Ref other(std::string name) {
  return std::make_shared<Value>(Value{.text = std::move(name)});
}

Ref tuple(std::vector<Ref> items) {
  return std::make_shared<Value>(Value{.type = Value::Type::tuple, .items = std::move(items)});
}

}  // namespace values

Ref Here::opaque(const std::string& why, const Node& node) {
  const int place = key(place_ids, node, frame->path);
  while (static_cast<int>(trace.puzzles.size()) <= place) trace.puzzles.push_back({});
  trace.puzzles[static_cast<std::size_t>(place)] = {why, {&source(), &node}};
  return values::number(algebra.opaque(why, place));
}

Traits Here::traits_of(const Value& value) const {
  Traits traits = algebra.traits(value.number);
  for (const Ref& item : value.items) traits.join(traits_of(*item));
  return traits;
}

Ref Here::data_of(const std::vector<Ref>& from, std::vector<Expr> shape, bool dot, bool exp) {
  Traits all;
  for (const Ref& value : from)
    if (value) all.join(traits_of(*value));
  return values::number(algebra.data(std::move(all.loads), dot || all.has_dot, exp || all.has_exp),
                        std::move(shape));
}

Expr Here::number_of(const Ref& value, const Node& node) {
  if (values::is_number(value)) return value->number;
  if (!value) return opaque("an argument is missing", node)->number;
  if (value->type == Value::Type::nothing) return algebra.function("#None", {});
  return opaque("this is not a number", node)->number;
}

std::vector<Expr> Here::numbers_of(const Ref& value, const Node& node) {
  std::vector<Expr> all;
  if (!value) return all;
  if (value->type == Value::Type::tuple)
    for (const Ref& item : value->items) all.push_back(number_of(item, node));
  else
    all.push_back(number_of(value, node));
  return all;
}

Ref Here::literal(std::string_view written) const {
  if (written == "None") return values::nothing();
  if (written == "True") return values::number(Algebra::number(1));
  if (written == "False") return values::number({});
  if (written.size() >= 2 && (written.front() == '"' || written.front() == '\''))
    return values::text(content_of(written));
  const bool is_negative = written.starts_with('-');
  if (const auto value = integer_in(written.substr(is_negative ? 1 : 0)))
    return values::number(Algebra::number(is_negative ? -*value : *value));
  return values::number(algebra.function("#" + std::string(written), {}));
}

int Here::key(Ids& ids, const Node& node, int path) {
  return ids.try_emplace({&node, path}, static_cast<int>(ids.size())).first->second;
}

/// Shapes as broadcasting makes them: the shorter one is extended on the left.
void Here::align(Value& a, Value& b) {
  const auto extend = [&](Value& value, std::size_t rank) {
    const std::size_t more = rank - value.shape.size();
    if (more == 0 || value.shape.empty()) return;
    std::vector<int> to;
    for (std::size_t i = 0; i < value.shape.size(); ++i) to.push_back(static_cast<int>(i + more));
    value.number = algebra.move_dims(value.number, to);
    value.shape.insert(value.shape.begin(), more, Algebra::number(1));
  };
  const std::size_t rank = std::max(a.shape.size(), b.shape.size());
  extend(a, rank);
  extend(b, rank);
  if (a.shape.empty()) a.shape = b.shape;
  if (b.shape.empty()) b.shape = a.shape;
  for (std::size_t i = 0; i < rank; ++i) {
    const bool one = a.shape[i].is_constant() && a.shape[i].constant() == 1;
    if (one) a.shape[i] = b.shape[i];
  }
}

/// An address where the conditions around it are taken into account.
Expr Here::under_facts(const Expr& e) {
  if (facts.empty()) return e;
  return algebra.decide(e, facts);
}

}  // namespace hemiola::compile

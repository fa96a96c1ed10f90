// The evaluator's values, and its entrance.
#include "compile/describe/evaluator.h"

#include "compile/python/formula.h"

namespace hemiola::compile {

const RawAccess* Trace::access(int id) const {
  for (const RawAccess& found : accesses)
    if (found.id == id) return &found;
  return nullptr;
}

Ref Arguments::get(std::string_view name, std::size_t position) const {
  if (const auto found = named.find(name); found != named.end()) return found->second;
  return position < positional.size() ? positional[position] : nullptr;
}

Ref Evaluator::number(Expr e, std::vector<Expr> shape) {
  return std::make_shared<Value>(
      Value{.type = Value::Type::number, .number = std::move(e), .shape = std::move(shape)});
}

Ref Evaluator::nothing() {
  return std::make_shared<Value>(Value{.type = Value::Type::nothing});
}

Ref Evaluator::text(std::string content) {
  return std::make_shared<Value>(Value{.type = Value::Type::text, .text = std::move(content)});
}

Ref Evaluator::other(std::string name) {
  return std::make_shared<Value>(Value{.text = std::move(name)});
}

Ref Evaluator::tuple(std::vector<Ref> items) {
  return std::make_shared<Value>(Value{.type = Value::Type::tuple, .items = std::move(items)});
}

Ref Evaluator::opaque(const std::string& why, const Node& node) {
  const int place = key(place_ids_, node, frame_->path);
  while (static_cast<int>(trace_.puzzles.size()) <= place) trace_.puzzles.push_back({});
  trace_.puzzles[static_cast<std::size_t>(place)] = {why, {&source(), &node}};
  return number(algebra_.opaque(why, place));
}

Traits Evaluator::traits_of(const Value& value) const {
  Traits traits = algebra_.traits(value.number);
  for (const Ref& item : value.items) traits.join(traits_of(*item));
  return traits;
}

Ref Evaluator::data_of(const std::vector<Ref>& from, std::vector<Expr> shape, bool dot, bool exp) {
  Traits all;
  for (const Ref& value : from)
    if (value) all.join(traits_of(*value));
  return number(algebra_.data(std::move(all.loads), dot || all.has_dot, exp || all.has_exp),
                std::move(shape));
}

Expr Evaluator::number_of(const Ref& value, const Node& node) {
  if (is_number(value)) return value->number;
  if (!value) return opaque("an argument is missing", node)->number;
  if (value->type == Value::Type::nothing) return algebra_.function("#None", {});
  return opaque("this is not a number", node)->number;
}

std::vector<Expr> Evaluator::numbers_of(const Ref& value, const Node& node) {
  std::vector<Expr> all;
  if (!value) return all;
  if (value->type == Value::Type::tuple)
    for (const Ref& item : value->items) all.push_back(number_of(item, node));
  else
    all.push_back(number_of(value, node));
  return all;
}

Ref Evaluator::literal(std::string_view written) const {
  if (written == "None") return nothing();
  if (written == "True") return number(Algebra::number(1));
  if (written == "False") return number({});
  if (written.size() >= 2 && (written.front() == '"' || written.front() == '\''))
    return text(content_of(written));
  const bool is_negative = written.starts_with('-');
  if (const auto value = integer_in(written.substr(is_negative ? 1 : 0)))
    return number(Algebra::number(is_negative ? -*value : *value));
  return number(algebra_.function("#" + std::string(written), {}));
}

int Evaluator::key(std::map<std::pair<const Node*, int>, int>& ids, const Node& node, int path) {
  return ids.try_emplace({&node, path}, static_cast<int>(ids.size())).first->second;
}

bool Evaluator::tired() {
  if (++steps_ <= kMostSteps) return false;
  trace_.exhausted = true;
  return true;
}

void Evaluator::run(const Function& kernel, const ParameterValues& values) {
  Frame frame{.function = &kernel, .module = kernel.module};
  frame_ = &frame;
  calls_.push_back(&kernel);
  for (const Parameter& parameter : kernel.parameters) {
    const auto given = values.find(parameter.name);
    frame.names[parameter.name] =
        given != values.end() ? literal(given->second)
                              : number(algebra_.parameter(parameter.name, parameter.is_constexpr));
  }
  block(kernel.body());
}

std::unique_ptr<Trace> follow(Library& library, const Function& kernel,
                              const ParameterValues& values) {
  auto trace = std::make_unique<Trace>();
  trace->kernel = &kernel;
  Evaluator(library, *trace).run(kernel, values);
  return trace;
}

}  // namespace hemiola::compile

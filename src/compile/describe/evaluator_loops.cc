// Loops: what changes by the same step in each iteration becomes (value before) + iteration x step.
#include <algorithm>

#include "compile/describe/evaluator.h"

namespace hemiola::compile {

/// A variable that a loop assigns and that has a value before it.
struct Evaluator::Carried {
  std::string name;
  Ref before;
  std::vector<Expr> atoms;  ///< stand for what was added to each part so far
  enum class Change { none, step, other } change = Change::other;
  std::vector<Expr> steps;
  Ref after;  ///< of the first pass
};

struct Evaluator::LoopPlan {
  int loop = 0;
  std::vector<Carried> carried;
};

/// The expressions of a value that an iteration may change.
std::vector<Expr> Evaluator::parts_of(const Value& value) {
  switch (value.type) {
    case Value::Type::number:
      return {value.number};
    case Value::Type::block_pointer:
    case Value::Type::descriptor: {
      std::vector<Expr> parts = value.offsets;
      parts.push_back(value.number);
      return parts;
    }
    default:
      return {};
  }
}

Ref Evaluator::with_parts(const Ref& value, const std::vector<Expr>& parts) const {
  auto changed = std::make_shared<Value>(*value);
  if (value->type == Value::Type::number) {
    changed->number = parts.at(0);
  } else {
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) changed->offsets.at(i) = parts[i];
    changed->number = parts.back();
  }
  return changed;
}

void Evaluator::assigned_names(const Source& source, const Node& node,
                               std::set<std::string>& names) {
  const auto add_targets = [&](const auto& self, const Node& target) -> void {
    if (target.kind == Kind::identifier)
      names.emplace(source.text(target));
    else if (target.kind != Kind::attribute && target.kind != Kind::subscript)
      for (const Node* child : target.children) self(self, *child);
  };
  if (node.kind == Kind::assignment || node.kind == Kind::augmented_assignment ||
      node.kind == Kind::for_statement) {
    if (const Node* left = node.child(Field::left)) add_targets(add_targets, *left);
  }
  for (const Node* child : node.children)
    if (child->kind != Kind::function_definition) assigned_names(source, *child, names);
}

Evaluator::LoopPlan Evaluator::plan_loop(const Node& node, int loop) {
  LoopPlan plan{.loop = loop};
  std::set<std::string> names;
  if (const Node* body = node.child(Field::body)) assigned_names(source(), *body, names);
  for (const std::string& name : names) {
    const auto before = here_.frame->names.find(name);
    if (before == here_.frame->names.end()) continue;
    Carried carried{.name = name, .before = before->second};
    const std::vector<Expr> all = parts_of(*before->second);
    for (std::size_t i = 0; i < all.size(); ++i) {
      // It begins with the value before the loop, and so varies with what that varies with.
      carried.atoms.push_back(
          algebra_.make({.kind = AtomKind::carried,
                         .name = name,
                         .number = loop * 8 + static_cast<int>(std::min<std::size_t>(i, 7)),
                         .args = {algebra_.is_data(all[i]) ? Expr() : all[i]}}));
    }
    plan.carried.push_back(std::move(carried));
  }
  return plan;
}

/// Runs the body once with unknown changes, to see what each variable changes by.
void Evaluator::first_pass(const Node& node, LoopPlan& plan, const std::function<void()>& begin) {
  const Environment before = here_.frame->names;
  const std::size_t returns = here_.frame->returns.size();
  ++here_.muted;
  for (const Carried& carried : plan.carried) {
    std::vector<Expr> parts = parts_of(*carried.before);
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (!algebra_.is_data(parts[i])) parts[i] = algebra_.add(parts[i], carried.atoms[i]);
    if (!parts.empty()) here_.frame->names[carried.name] = with_parts(carried.before, parts);
  }
  begin();
  block(*node.child(Field::body));
  --here_.muted;
  std::set<AtomId> unknown;
  for (const Carried& carried : plan.carried)
    for (const Expr& atom : carried.atoms) unknown.insert(atom.terms[0].factors[0]);
  const auto is_known = [&](const Expr& e) {
    const Traits traits = algebra_.traits(e);
    if (traits.has_data || traits.has_carried) return false;
    // What is loaded in the loop is another value each time.
    for (const int load : traits.loads) {
      if (builtins_.is_in(load, plan.loop)) return false;
    }
    return std::ranges::none_of(unknown, [&](AtomId id) { return algebra_.mentions(e, id); });
  };
  for (Carried& carried : plan.carried) {
    carried.after = here_.frame->names.at(carried.name);
    const std::vector<Expr> begins = parts_of(*carried.before), ends = parts_of(*carried.after);
    if (begins.size() != ends.size() || carried.after->type != carried.before->type) continue;
    bool all_known = true, any = false;
    for (std::size_t i = 0; i < begins.size(); ++i) {
      Expr step;
      if (algebra_.is_data(ends[i]) || algebra_.is_data(begins[i]))
        all_known = all_known && ends[i] == begins[i];
      else
        step = algebra_.difference(ends[i], algebra_.add(begins[i], carried.atoms[i]));
      const Traits traits = algebra_.traits(step);
      const bool varies = std::ranges::binary_search(traits.loops, plan.loop);
      all_known = all_known && is_known(step) && !varies;
      any = any || !step.is_zero();
      carried.steps.push_back(std::move(step));
    }
    if (all_known) carried.change = any ? Carried::Change::step : Carried::Change::none;
  }
  here_.frame->names = before;
  here_.frame->returns.resize(returns);
}

void Evaluator::run_loop(const Node& node, LoopPlan& plan, const std::function<void()>& begin) {
  const Expr iteration = algebra_.iteration(plan.loop);
  for (const Carried& carried : plan.carried) {
    std::vector<Expr> parts = parts_of(*carried.before);
    if (parts.empty() || carried.change == Carried::Change::none) continue;
    if (carried.change == Carried::Change::step) {
      for (std::size_t i = 0; i < parts.size(); ++i)
        parts[i] = algebra_.add(parts[i], algebra_.multiply(iteration, carried.steps[i]));
      here_.frame->names[carried.name] = with_parts(carried.before, parts);
      continue;
    }
    const Traits traits = here_.traits_of(*carried.after);
    const bool is_data =
        values::is_number(carried.after) && algebra_.is_data(carried.after->number);
    const bool is_block =
        values::is_number(carried.after) && !carried.after->shape.empty() && !traits.loads.empty();
    if (values::is_number(carried.before) && (is_data || is_block)) {
      std::vector<Expr> shape =
          values::is_number(carried.after) ? carried.after->shape : carried.before->shape;
      here_.frame->names[carried.name] =
          here_.data_of({carried.before, carried.after}, std::move(shape));
    } else {
      // From values that were loaded: what they are is not in the text either.
      for (std::size_t i = 0; i < parts.size(); ++i) {
        Atom atom = algebra_.atom(carried.atoms[i].terms[0].factors[0]);
        const std::vector<Expr> ends = parts_of(*carried.after);
        if (i < ends.size()) atom.loads = algebra_.traits(ends[i]).loads;
        parts[i] = algebra_.make(std::move(atom));
      }
      here_.frame->names[carried.name] = with_parts(carried.before, parts);
    }
  }
  begin();
  block(*node.child(Field::body));

  // Afterwards: as the last iteration left it.
  const Expr trips = algebra_.make({.kind = AtomKind::trips, .number = plan.loop});
  const AtomId counter = iteration.terms[0].factors[0];
  const Expr last = algebra_.subtract(trips, Algebra::number(1));
  const RawLoop& loop = trace_.loops[plan.loop];
  const Expr runs = loop.has_range && !loop.is_while
                        ? algebra_.infix("cdiv", algebra_.subtract(loop.end, loop.begin), loop.step)
                        : trips;
  std::map<std::string, const Carried*> stepped;
  for (const Carried& carried : plan.carried)
    if (carried.change == Carried::Change::step) stepped[carried.name] = &carried;
  std::set<std::string> names;
  assigned_names(source(), *node.child(Field::body), names);
  for (const std::string& name : names) {
    const auto found = here_.frame->names.find(name);
    if (found == here_.frame->names.end()) continue;
    if (const auto step = stepped.find(name); step != stepped.end()) {
      std::vector<Expr> parts = parts_of(*step->second->before);
      for (std::size_t i = 0; i < parts.size(); ++i)
        parts[i] = algebra_.add(parts[i], algebra_.multiply(runs, step->second->steps[i]));
      found->second = with_parts(step->second->before, parts);
    } else {
      std::vector<Expr> parts = parts_of(*found->second);
      if (parts.empty()) continue;
      for (Expr& part : parts) part = algebra_.replace(part, counter, last);
      found->second = with_parts(found->second, parts);
    }
  }
}

Flow Evaluator::for_statement(const Node& node) {
  const Node* target = node.child(Field::left);
  const Node* over = node.child(Field::right);
  if (target == nullptr || over == nullptr || node.child(Field::body) == nullptr) return Flow::on;
  const int id = Here::key(loop_ids_, node, here_.frame->path);
  RawLoop loop{.id = id,
               .statement = {&source(), &node},
               .variable = std::string(text_of(*target)),
               .in_kernel = here_.frame->path == 0,
               .outer = here_.loops};
  const std::string_view called =
      over->kind == Kind::call ? last_name(source(), *over) : std::string_view();
  if (called == "range" || called == "static_range") {
    const Arguments given = arguments(*over);
    const Ref first = given.get("arg1", 0), second = given.get("arg2", 1),
              third = given.get("step", 2);
    loop.has_range = given.complete && first != nullptr;
    loop.begin = second ? here_.number_of(first, *over) : Expr();
    loop.end = here_.number_of(second ? second : first, *over);
    loop.step = third ? here_.number_of(third, *over) : Algebra::number(1);
    if (loop.step.is_zero()) loop.has_range = false;
  } else {
    const Ref items = evaluate(*over);
    if (items->type == Value::Type::tuple && items->items.size() <= kMostUnrolled) {
      for (const Ref& item : items->items) {
        assign(*target, item, node);
        if (block(*node.child(Field::body)) == Flow::returned) return Flow::returned;
      }
      return Flow::on;
    }
  }
  trace_.loops[id] = loop;
  algebra_.loop_names[id] = loop.variable;
  const auto begin = [&] {
    const Expr value =
        algebra_.add(loop.begin, algebra_.multiply(algebra_.iteration(id), loop.step));
    assign(*target,
           loop.has_range ? values::number(value)
                          : here_.opaque("a loop over something other than a range", *over),
           node);
  };
  here_.loops.push_back(id);
  LoopPlan plan = plan_loop(node, id);
  std::erase_if(plan.carried, [&](const Carried& c) { return c.name == loop.variable; });
  first_pass(node, plan, begin);
  run_loop(node, plan, begin);
  here_.loops.pop_back();
  return Flow::on;
}

Flow Evaluator::while_statement(const Node& node) {
  const Node* condition = node.child(Field::condition);
  if (condition == nullptr || node.child(Field::body) == nullptr) return Flow::on;
  const int id = Here::key(loop_ids_, node, here_.frame->path);
  trace_.loops[id] = {.id = id,
                      .statement = {&source(), &node},
                      .is_while = true,
                      .in_kernel = here_.frame->path == 0,
                      .outer = here_.loops};
  here_.loops.push_back(id);
  LoopPlan plan = plan_loop(node, id);
  first_pass(node, plan, [&] { evaluate(*condition); });
  // while x < end, where x goes on by a step: a range.
  if (condition->kind == Kind::comparison_operator && condition->children.size() == 2 &&
      source().between(*condition, 0) == "<") {
    for (const Carried& carried : plan.carried) {
      if (carried.change != Carried::Change::step || !values::is_number(carried.before) ||
          text_of(*condition->children[0]) != carried.name)
        continue;
      RawLoop& loop = trace_.loops[id];
      loop.variable = carried.name;
      algebra_.loop_names[id] = carried.name;
      loop.begin = carried.before->number;
      loop.step = carried.steps[0];
      ++here_.muted;
      loop.end = here_.number_of(evaluate(*condition->children[1]), *condition);
      --here_.muted;
      loop.has_range = true;
    }
  }
  run_loop(node, plan, [&] { evaluate(*condition); });
  here_.loops.pop_back();
  return Flow::on;
}

}  // namespace hemiola::compile

#include "compile/skeleton/assemble.h"

#include <algorithm>

namespace hemiola::compile::skeleton {

Span Code::span(int step) const {
  const Step& one = steps[step];
  return span_of(sites[one.site].module->source, *one.node);
}

std::vector<Span> Code::chain(int step) const {
  std::vector<Span> spans;
  for (int site = steps[step].site; site >= 0 && sites[site].parent >= 0; site = sites[site].parent)
    spans.insert(spans.begin(),
                 span_of(sites[sites[site].parent].module->source, *sites[site].call));
  return spans;
}

Code assemble(Library& library, const Function& kernel, const Vocabulary& vocabulary) {
  return Assembler(library, vocabulary).assemble(kernel);
}

Code Assembler::assemble(const Function& kernel) {
  Frame frame{.module = kernel.module};
  frame_ = &frame;
  code_.sites.push_back({.module = kernel.module, .function = kernel.name});
  const Source& source = kernel.module->source;
  for (const compile::Parameter& one : kernel.parameters) {
    code_.parameters.push_back({.name = one.name, .is_constexpr = one.is_constexpr});
    if (one.default_value != nullptr)
      code_.parameters.back().default_text = source.text(*one.default_value);
    slot(one.name);
  }
  frame.result = code_.slots++;
  statements(kernel.body());
  for (const int step : frame.returns) land(step);
  return std::move(code_);
}

int Assembler::slot(const std::string& name) {
  const auto [found, is_new] = frame_->slots.try_emplace(name, code_.slots);
  if (is_new) ++code_.slots;
  return found->second;
}

int Assembler::emit(Op op, const Node& node, int a, int b) {
  code_.steps.push_back({.op = op, .a = a, .b = b, .node = &node, .site = frame_->site});
  return here() - 1;
}

int Assembler::name_index(std::string_view name) {
  const auto found = std::ranges::find(code_.names, name);
  if (found != code_.names.end()) return static_cast<int>(found - code_.names.begin());
  code_.names.emplace_back(name);
  return static_cast<int>(code_.names.size()) - 1;
}

void Assembler::constant(const Node& node, Value value) {
  code_.constants.push_back(std::move(value));
  emit(Op::constant, node, static_cast<int>(code_.constants.size()) - 1);
}

void Assembler::statements(const Node& block) {
  for (const Node* one : block.children) statement(*one);
}

void Assembler::statement(const Node& node) {
  switch (node.kind) {
    case Kind::expression_statement:
      return expression_statement(node);
    case Kind::if_statement:
      return if_statement(node, node, 0);
    case Kind::while_statement:
      return while_statement(node);
    case Kind::for_statement:
      return for_statement(node);
    case Kind::return_statement:
      return return_statement(node);
    case Kind::break_statement:
    case Kind::continue_statement:
      if (!loops_.empty()) {
        Loop& loop = loops_.back();
        (node.kind == Kind::break_statement ? loop.breaks : loop.continues)
            .push_back(emit(Op::leave, node));
      }
      return;
    case Kind::block:
      return statements(node);
    case Kind::with_statement:
      return with_statement(node);
    default:
      return;
  }
}

/// A region whose names are a thread's index and how many there are: a lane for each rank stands
/// for the threads.
void Assembler::with_statement(const Node& node) {
  const Node* body = node.child(Field::body);
  if (body == nullptr) return;
  const Node& head = *node.children.front();
  const std::string_view written = text(head);
  const std::size_t as = written.rfind(" as ");
  if (written.find("simt_exec_region") == written.npos || as == written.npos) {
    code_.not_followed.push_back(
        {"with " + std::string(written), span_of(frame_->module->source, head)});
  } else {
    std::string targets(written.substr(as + 4));
    std::erase_if(targets, [](char c) { return c == '(' || c == ')' || c == ' '; });
    const std::size_t comma = targets.find(',');
    call_word(head, "language_extra.tid");
    emit(Op::set, head, slot(targets.substr(0, comma)));
    if (comma != std::string::npos) {
      call_word(head, "nvshmem.n_pes");
      emit(Op::set, head, slot(targets.substr(comma + 1)));
    }
  }
  statements(*body);
}

void Assembler::expression_statement(const Node& node) {
  for (const Node* one : node.children) {
    if (one->kind == Kind::assignment)
      assignment(*one);
    else if (one->kind == Kind::augmented_assignment)
      augmented(*one);
    else if (one->kind != Kind::string) {
      expression(*one);
      emit(Op::pop, *one);
    }
  }
}

void Assembler::assignment(const Node& node) {
  const Node *left = node.child(Field::left), *right = node.child(Field::right);
  if (left == nullptr || right == nullptr) return;
  if (left->kind == Kind::identifier && right->kind == Kind::identifier &&
      !frame_->slots.contains(text(*right)))
    if (const Function* function = function_of(*right))
      frame_->functions[std::string(text(*left))] = function;
  if (right->kind == Kind::assignment) {  // a = b = value
    assignment(*right);
    expression(*right->child(Field::left));
  } else {
    expression(*right);
  }
  store_to(*left);
}

/// Pops a value into a name, or into several.
void Assembler::store_to(const Node& target) {
  switch (target.kind) {
    case Kind::identifier:
      emit(Op::set, target, slot(std::string(text(target))));
      return;
    case Kind::pattern_list:
    case Kind::tuple_pattern:
    case Kind::list_pattern:
    case Kind::tuple:
    case Kind::expression_list:
      emit(Op::unpack, target, static_cast<int>(target.children.size()));
      for (const Node* one : target.children) store_to(*one);
      return;
    case Kind::parenthesized_expression:
      return store_to(*target.children.front());
    default:
      emit(Op::pop, target);
  }
}

void Assembler::augmented(const Node& node) {
  const Node *left = node.child(Field::left), *right = node.child(Field::right);
  if (left == nullptr || right == nullptr) return;
  expression(*left);
  expression(*right);
  const Source& source = frame_->module->source;
  std::string op(source.text().substr(left->end, right->begin - left->end));
  std::erase_if(op, [](char c) { return c == ' ' || c == '=' || c == '\\' || c == '\n'; });
  emit(Op::binary, node, name_index(op));
  store_to(*left);
}

/// `part` is the statement itself or one of its elif clauses; alternatives from child `next` on are
/// its others.
void Assembler::if_statement(const Node& node, const Node& part, std::size_t next) {
  const Node *condition = part.child(Field::condition), *body = part.child(Field::consequence);
  if (condition == nullptr || body == nullptr) return;
  expression(*condition);
  const int id = ifs_++;
  const int test = emit(Op::unless, *condition, 0, id);
  statements(*body);
  const int over = emit(Op::over_else, part, 0, id);
  land(test);
  while (next < node.children.size() && node.children[next]->field != Field::alternative) ++next;
  if (next < node.children.size()) {
    const Node& clause = *node.children[next];
    const Node* otherwise = clause.child(Field::body);
    if (clause.kind == Kind::elif_clause)
      if_statement(node, clause, next + 1);
    else
      statements(otherwise == nullptr ? clause : *otherwise);
  }
  land(over);
  emit(Op::if_end, part, 0, id);
}

/// The body of a loop, from its head to its end.
void Assembler::loop(const Node& node, int id, int head, int test) {
  if (const Node* body = node.child(Field::body)) statements(*body);
  for (const int step : loops_.back().continues) land(step);
  emit(Op::again, node, head, id);
  land(test);
  code_.loop_may_wait[id] = code_.loop_may_wait[id] || !loops_.back().breaks.empty();
  for (const int step : loops_.back().breaks) land(step);
  loops_.pop_back();
  emit(Op::loop_end, node, 0, id);
}

void Assembler::while_statement(const Node& node) {
  const Node* condition = node.child(Field::condition);
  if (condition == nullptr) return;
  const int id = code_.loops++;
  code_.loop_may_wait.push_back(true);
  loops_.emplace_back();
  emit(Op::loop_begin, node, 0, id);
  const int head = here();
  expression(*condition);
  loop(node, id, head, emit(Op::unless_while, *condition, 0, id));
}

void Assembler::for_statement(const Node& node) {
  const Node *target = node.child(Field::left), *over = node.child(Field::right);
  if (target == nullptr || over == nullptr) return;
  const int id = code_.loops++;
  code_.loop_may_wait.push_back(false);
  expression(*over);
  const int hidden = code_.slots;
  code_.slots += 2;  // what is gone through, and how far
  emit(Op::set, node, hidden);
  constant(node, Value::of(0));
  emit(Op::set, node, hidden + 1);
  loops_.emplace_back();
  emit(Op::loop_begin, node, 0, id);
  const int head = here();
  const int test = emit(Op::next, node, 0, hidden);
  store_to(*target);
  loop(node, id, head, test);
}

void Assembler::return_statement(const Node& node) {
  if (!node.children.empty()) {
    expression(*node.children.front());
    emit(Op::set, node, frame_->result);
  }
  frame_->returns.push_back(emit(Op::leave, node));
}

}  // namespace hemiola::compile::skeleton

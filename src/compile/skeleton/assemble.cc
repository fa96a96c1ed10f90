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
  block(kernel.body());
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

Pushed Assembler::constant(const Node& node, Value value) {
  code_.constants.push_back(std::move(value));
  return pushed(Op::constant, node, static_cast<int>(code_.constants.size()) - 1);
}

/// What stands behind a return or a break has steps, too.
Flow Assembler::other_statement(const Node& node) {
  switch (node.kind) {
    case Kind::return_statement:
      if (!node.children.empty()) {
        evaluate(*node.children.front());
        emit(Op::set, node, frame_->result);
      }
      frame_->returns.push_back(emit(Op::leave, node));
      break;
    case Kind::break_statement:
    case Kind::continue_statement:
      if (!loops_.empty())
        (node.kind == Kind::break_statement ? loops_.back().breaks : loops_.back().continues)
            .push_back(emit(Op::leave, node));
      break;
    case Kind::with_statement:
      with_statement(node);
      break;
    default:
      break;
  }
  return Flow::on;
}

void Assembler::drop(const Node& node) {
  evaluate(node);
  emit(Op::pop, node);
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
    code_.not_followed.push_back({"with " + std::string(written), span_of(source(), head)});
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
  block(*body);
}

void Assembler::assignment(const Node& node, const Node& statement) {
  const Node *left = node.child(Field::left), *right = node.child(Field::right);
  if (right == nullptr) return;
  if (left->kind == Kind::identifier && right->kind == Kind::identifier &&
      !frame_->slots.contains(text(*right)))
    if (const Function* function = function_of(*right))
      frame_->functions[std::string(text(*left))] = function;
  const bool is_chain = right->kind == Kind::assignment;  // a = b = value
  if (is_chain) assignment(*right, statement);
  assign(*left, evaluate(is_chain ? *right->child(Field::left) : *right), statement);
}

void Assembler::bind(const Node& name, Pushed, const Node&) {
  emit(Op::set, name, slot(std::string(text(name))));
}

void Assembler::assign_other(const Node& target, Pushed value, const Node& statement) {
  const bool is_part = target.kind == Kind::attribute || target.kind == Kind::subscript;
  emit(is_part ? Op::pop : Op::unpack, target,
       is_part ? 0 : static_cast<int>(target.children.size()));
  for (std::size_t i = 0; !is_part && i < target.children.size(); ++i)
    assign(*target.children[i], value, statement);
}

Flow Assembler::choose(const Branch& branch) {
  evaluate(branch.condition());
  const int id = ifs_++;
  const int test = emit(Op::unless, branch.condition(), 0, id);
  block(branch.body());
  const int over = emit(Op::over_else, branch.part, 0, id);
  land(test);
  otherwise(branch);
  land(over);
  emit(Op::if_end, branch.part, 0, id);
  return Flow::on;
}

/// The body of a loop, from its head to its end.
Flow Assembler::loop(const Node& node, int id, int head, int test) {
  block(*node.child(Field::body));
  for (const int step : loops_.back().continues) land(step);
  emit(Op::again, node, head, id);
  land(test);
  code_.loop_may_wait[id] = code_.loop_may_wait[id] || !loops_.back().breaks.empty();
  for (const int step : loops_.back().breaks) land(step);
  loops_.pop_back();
  emit(Op::loop_end, node, 0, id);
  return Flow::on;
}

Flow Assembler::while_statement(const Node& node) {
  const Node& condition = *node.child(Field::condition);
  const int id = code_.loops++;
  code_.loop_may_wait.push_back(true);
  loops_.emplace_back();
  emit(Op::loop_begin, node, 0, id);
  const int head = here();
  evaluate(condition);
  return loop(node, id, head, emit(Op::unless_while, condition, 0, id));
}

Flow Assembler::for_statement(const Node& node) {
  const int id = code_.loops++;
  code_.loop_may_wait.push_back(false);
  evaluate(*node.child(Field::right));
  const int hidden = code_.slots;
  code_.slots += 2;  // what is gone through, and how far
  emit(Op::set, node, hidden);
  constant(node, Value::of(0));
  emit(Op::set, node, hidden + 1);
  loops_.emplace_back();
  emit(Op::loop_begin, node, 0, id);
  const int head = here();
  const int test = emit(Op::next, node, 0, hidden);
  assign(*node.child(Field::left), {}, node);
  return loop(node, id, head, test);
}

}  // namespace hemiola::compile::skeleton

// Makes steps of a kernel's text: statements here, expressions and calls in the sources beside it.
#pragma once

#include <map>
#include <set>

#include "compile/python/interpreter.h"
#include "compile/skeleton/code.h"

namespace hemiola::compile::skeleton {

/// A value of an expression: its steps leave it on the stack.
struct Pushed {};

class Assembler : private Interpreter<Assembler, Pushed> {
 public:
  Assembler(Library& library, const Vocabulary& vocabulary)
      : library_(library), vocabulary_(vocabulary) {}
  Code assemble(const Function& kernel);

 private:
  /// A function whose statements are being read.
  struct Frame {
    const Module* module = nullptr;
    int site = 0;
    std::map<std::string, int, std::less<>> slots;
    std::map<std::string, const Function*, std::less<>> functions;  ///< handed over as arguments
    int result = -1;
    std::vector<int> returns;  ///< steps that jump to the end
  };
  struct Loop {
    std::vector<int> breaks, continues;
  };

  friend Interpreter;
  void drop(const Node& node);
  Flow choose(const Branch& branch);
  Flow while_statement(const Node& node);
  Flow for_statement(const Node& node);
  Flow other_statement(const Node& node);
  void with_statement(const Node& node);
  void assignment(const Node& node, const Node& statement);
  void bind(const Node& name, Pushed value, const Node& statement);
  void assign_other(const Node& target, Pushed value, const Node& statement);
  Flow loop(const Node& node, int id, int head, int test);

  Pushed evaluate(const Node& node);
  Pushed literal(const Node& node);
  Pushed identifier(const Node& node);
  Pushed constant_of(const Node& node, const Module* home, const Node* value);
  Pushed attribute(const Node& node);
  Pushed subscript(const Node& node);
  Pushed comparison(const Node& node);
  Pushed boolean(const Node& node);
  Pushed conditional(const Node& node);
  Pushed unary(std::string_view sign, Pushed value, const Node& node);
  Pushed binary(std::string_view op, Pushed a, Pushed b, const Node& node);
  Pushed other_expression(const Node& node);

  Pushed call(const Node& node);
  Pushed enter(const Node& node, const Function& helper);
  Pushed call_word(const Node& node, Call made, const Node* receiver = nullptr);
  Pushed call_word(const Node& node, const std::string& name);
  /// "triton.language.load" of what is called, imports of the module looked up.
  std::string dotted(const Node& callee) const;
  const Function* function_of(const Node& callee) const;
  int slot(const std::string& name);

  int emit(Op op, const Node& node, int a = 0, int b = 0);
  int here() const { return static_cast<int>(code_.steps.size()); }
  void land(int step) { code_.steps[step].a = here(); }
  int name_index(std::string_view name);
  Pushed pushed(Op op, const Node& node, int a = 0) {
    emit(op, node, a);
    return {};
  }
  Pushed constant(const Node& node, Value value);
  Pushed unknown(const Node& node) { return constant(node, Value{}); }
  const Source& source() const { return frame_->module->source; }
  std::string_view text(const Node& node) const { return source().text(node); }

  Library& library_;
  const Vocabulary& vocabulary_;
  Code code_;
  Frame* frame_ = nullptr;
  std::vector<Loop> loops_;
  int ifs_ = 0, depth_ = 0;
  std::set<const Node*> open_constants_;
};

}  // namespace hemiola::compile::skeleton

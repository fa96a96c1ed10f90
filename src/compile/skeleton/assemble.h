// Makes steps of a kernel's text: statements here, expressions and calls in the sources beside it.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "compile/skeleton/code.h"

namespace hemiola::compile::skeleton {

class Assembler {
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

  void statements(const Node& block);
  void statement(const Node& node);
  void with_statement(const Node& node);
  void expression_statement(const Node& node);
  void assignment(const Node& node);
  void store_to(const Node& target);
  void augmented(const Node& node);
  void if_statement(const Node& node, const Node& part, std::size_t next);
  void while_statement(const Node& node);
  void for_statement(const Node& node);
  void return_statement(const Node& node);
  void loop(const Node& node, int id, int head, int test);

  void expression(const Node& node);
  bool literal(const Node& node);
  void composite(const Node& node);
  void operation(const Node& node);
  void name(const Node& node);
  void constant_of(const Node& node, const Module* home, const Node* value);
  void attribute(const Node& node);
  void subscript(const Node& node);
  void comparison(const Node& node);
  void logical(const Node& node);
  void conditional(const Node& node);
  void text_of(const Node& node);

  void call(const Node& node);
  void enter(const Node& node, const Function& helper);
  void call_word(const Node& node, Call made, const Node* receiver = nullptr);
  void call_word(const Node& node, const std::string& name);
  /// "triton.language.load" of what is called, imports of the module looked up.
  std::string dotted(const Node& callee) const;
  const Function* function_of(const Node& callee) const;
  int slot(const std::string& name);

  int emit(Op op, const Node& node, int a = 0, int b = 0);
  int here() const { return static_cast<int>(code_.steps.size()); }
  void land(int step) { code_.steps[step].a = here(); }
  int name_index(std::string_view name);
  void constant(const Node& node, Value value);
  void unknown(const Node& node) { constant(node, Value{}); }
  std::string_view text(const Node& node) const { return frame_->module->source.text(node); }

  Library& library_;
  const Vocabulary& vocabulary_;
  Code code_;
  Frame* frame_ = nullptr;
  std::vector<Loop> loops_;
  int ifs_ = 0, depth_ = 0;
  std::set<const Node*> open_constants_;
};

}  // namespace hemiola::compile::skeleton

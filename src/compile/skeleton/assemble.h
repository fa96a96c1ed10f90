// Makes steps of a kernel's text: statements here, expressions and calls in the sources beside it.
#pragma once

#include <map>
#include <optional>
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
  void if_statement(const Node& node);
  void else_of(const Node& node, std::size_t from);
  void while_statement(const Node& node);
  void for_statement(const Node& node);
  void return_statement(const Node& node);
  void body_of_loop(const Node& node);

  void expression(const Node& node);
  bool literal(const Node& node);
  void composite(const Node& node);
  void operation(const Node& node);
  void name(const Node& node);
  void attribute(const Node& node);
  void subscript(const Node& node);
  void comparison(const Node& node);
  void logical(const Node& node);
  void conditional(const Node& node);
  void text_of(const Node& node);

  void call(const Node& node);
  void enter(const Node& node, const Function& helper);
  void built_in(const Node& node, Builtin builtin, std::string name, const Node* receiver,
                const Word* word = nullptr);
  void method(const Node& node, const std::string& name, const Node& object);
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
  std::set<std::string> open_constants_;
};

/// What a name of triton.language or of Python does.
std::optional<Builtin> builtin_of(std::string_view dotted);
std::optional<Builtin> method_of(std::string_view name);

}  // namespace hemiola::compile::skeleton

// Follows a kernel statement by statement with symbolic values. Only sources of the evaluator
// include this.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "compile/describe/builtins.h"
#include "compile/python/interpreter.h"

namespace hemiola::compile {

class Evaluator : private Interpreter<Evaluator, Ref> {
 public:
  Evaluator(Library& library, Trace& trace)
      : library_(library), trace_(trace), algebra_(trace.algebra), here_(trace), builtins_(here_) {}

  void run(const Function& kernel, const ParameterValues& values);

 private:
  static constexpr int kMostSteps = 300'000;  ///< nodes looked at
  static constexpr int kDeepestCall = 12;
  static constexpr int kDeepest = 700;  ///< levels of this program's own recursion
  static constexpr int kMostUnrolled = 16;

  friend Interpreter;
  // Statements (evaluator_statements.cc, evaluator_loops.cc).
  Flow statement(const Node& node);
  Flow choose(const Branch& branch);
  Flow other_statement(const Node& node);
  Flow for_statement(const Node& node);
  Flow while_statement(const Node& node);
  void suppose(const Expr& condition, bool holds);
  std::optional<bool> known(const Expr& condition) const;
  void bind(const Node& name, const Ref& value, const Node& statement);
  void assign_other(const Node& target, const Ref& value, const Node& statement);
  void note_merged(const Environment& a, const Environment& b);
  Ref merge(const Expr& condition, const Ref& a, const Ref& b);
  Environment merge(const Expr& condition, const Environment& a, const Environment& b);

  struct Carried;
  struct LoopPlan;
  LoopPlan plan_loop(const Node& node, int loop);
  void first_pass(const Node& node, LoopPlan& plan, const std::function<void()>& begin);
  void run_loop(const Node& node, LoopPlan& plan, const std::function<void()>& begin);
  Ref with_parts(const Ref& value, const std::vector<Expr>& parts) const;
  static std::vector<Expr> parts_of(const Value& value);
  static void assigned_names(const Source& source, const Node& node, std::set<std::string>& names);

  // Expressions (evaluator_expressions.cc).
  Ref evaluate(const Node& node);
  Ref literal(const Node& node) const;
  Ref identifier(const Node& node);
  Ref global(const Module& module, const std::string& name, const Node& node);
  Ref attribute(const Node& node);
  Ref subscript(const Node& node);
  Ref comparison(const Node& node);
  Ref binary(std::string_view op, const Ref& a, const Ref& b, const Node& node);
  Ref boolean(const Node& node);
  Ref unary(std::string_view sign, const Ref& value, const Node& node);
  Ref conditional(const Node& node);
  Ref other_expression(const Node& node);

  // Calls (evaluator_calls.cc).
  Ref call(const Node& node);
  Arguments arguments(const Node& node);
  Ref inlined(const Function& function, const Arguments& given, const Node& node);

  const Source& source() const { return here_.source(); }
  std::string_view text_of(const Node& node) const { return source().text(node); }
  bool tired();

  Library& library_;
  Trace& trace_;
  Algebra& algebra_;
  Here here_;
  Builtins builtins_;
  std::vector<const Function*> calls_;
  int steps_ = 0;
  int depth_ = 0;
  Here::Ids loop_ids_, path_ids_;
  std::set<std::string> constants_open_;
};

}  // namespace hemiola::compile

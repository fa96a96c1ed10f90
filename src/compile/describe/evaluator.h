// Follows a kernel statement by statement with symbolic values. Only sources of the evaluator
// include this.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "compile/describe/trace.h"
#include "compile/python/interpreter.h"

namespace hemiola::compile {

using Environment = std::map<std::string, Ref, std::less<>>;

struct Frame {
  const Function* function = nullptr;
  const Module* module = nullptr;
  Environment names;
  std::vector<Ref> returns;
  int path = 0;  ///< 0: the kernel itself
};

/// Arguments of a call, evaluated.
struct Arguments {
  std::vector<Ref> positional;
  std::map<std::string, Ref, std::less<>> named;
  bool complete = true;  ///< false: * or ** was among them

  /// By name or position; null: it is not given.
  Ref get(std::string_view name, std::size_t position) const;
};

class Evaluator : private Interpreter<Evaluator, Ref> {
 public:
  Evaluator(Library& library, Trace& trace)
      : library_(library), trace_(trace), algebra_(trace.algebra) {}

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
  Expr under_facts(const Expr& e);
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
  void align(Value& a, Value& b);

  // Calls (evaluator_calls.cc, evaluator_memory.cc).
  Ref call(const Node& node);
  Arguments arguments(const Node& node);
  Ref inlined(const Function& function, const Arguments& given, const Node& node);
  Ref builtin(std::string_view name, const Arguments& given, const Node& node);
  Ref method(const Ref& object, std::string_view name, const Arguments& given, const Node& node);
  Ref reduction(std::string_view name, const Arguments& given, const Node& node);
  Ref dot(const Arguments& given, const Node& node);
  Ref shape_change(std::string_view name, const Arguments& given, const Node& node);
  Ref minimum_of(std::string_view name, const Arguments& given, const Node& node);
  Ref memory(std::string_view name, const Arguments& given, const Node& node);
  Ref make_block_pointer(const Arguments& given, const Node& node);
  Ref make_descriptor(const Arguments& given, const Node& node);
  Ref advance(const Arguments& given);
  Ref descriptor_access(const Ref& descriptor, std::string_view name, const Arguments& given,
                        const Node& node);
  Ref record(RawAccess access, const Ref& value, const Node& node);

  // Values.
  static Ref number(Expr e, std::vector<Expr> shape = {});
  static Ref nothing();
  static Ref text(std::string value);
  static Ref other(std::string name);
  static Ref tuple(std::vector<Ref> items);
  Ref opaque(const std::string& why, const Node& node);
  /// Computed from all of `from`.
  Ref data_of(const std::vector<Ref>& from, std::vector<Expr> shape, bool dot = false,
              bool exp = false);
  static bool is_number(const Ref& value) { return value && value->type == Value::Type::number; }
  Expr number_of(const Ref& value, const Node& node);
  std::vector<Expr> numbers_of(const Ref& value, const Node& node);
  Traits traits_of(const Value& value) const;
  Ref literal(std::string_view text) const;

  const Source& source() const { return frame_->module->source; }
  std::string_view text_of(const Node& node) const { return source().text(node); }
  int key(std::map<std::pair<const Node*, int>, int>& ids, const Node& node, int path);
  bool is_silent() const { return muted_ > 0; }
  bool tired();

  Library& library_;
  Trace& trace_;
  Algebra& algebra_;
  Frame* frame_ = nullptr;
  std::vector<const Function*> calls_;
  std::vector<const Node*> statements_;  ///< of the kernel itself, outermost first
  std::vector<int> loops_;
  std::map<AtomId, bool> facts_;  ///< conditions that hold, or not, where the evaluator is
  int conditions_ = 0;            ///< ifs around that are not decided
  int muted_ = 0;
  int steps_ = 0;
  int depth_ = 0;
  std::map<std::pair<const Node*, int>, int> access_ids_, loop_ids_, path_ids_, place_ids_;
  std::map<int, std::size_t> recorded_accesses_;
  std::map<int, std::vector<int>> load_loops_;  ///< loops that a load is in
  std::set<std::string> constants_open_;
};

}  // namespace hemiola::compile

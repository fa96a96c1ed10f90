// Values of a kernel that is followed, and where it is followed. Only sources of the evaluator
// include this.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compile/describe/trace.h"

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

namespace values {

Ref number(Expr e, std::vector<Expr> shape = {});
Ref nothing();
Ref text(std::string content);
Ref other(std::string name);
Ref tuple(std::vector<Ref> items);
inline bool is_number(const Ref& value) {
  return value && value->type == Value::Type::number;
}

}  // namespace values

/// Where the evaluator is, and what it makes of values there.
struct Here {
  explicit Here(Trace& of) : trace(of), algebra(of.algebra) {}

  Ref opaque(const std::string& why, const Node& node);
  /// Computed from all of `from`.
  Ref data_of(const std::vector<Ref>& from, std::vector<Expr> shape, bool dot = false,
              bool exp = false);
  Expr number_of(const Ref& value, const Node& node);
  std::vector<Expr> numbers_of(const Ref& value, const Node& node);
  Traits traits_of(const Value& value) const;
  Ref literal(std::string_view text) const;
  void align(Value& a, Value& b);
  Expr under_facts(const Expr& e);

  /// Whether what is met is not noted.
  bool is_silent() const { return muted > 0; }
  const Source& source() const { return frame->module->source; }
  /// The same number for the same node in the same path; from 0.
  using Ids = std::map<std::pair<const Node*, int>, int>;
  static int key(Ids& ids, const Node& node, int path);

  Trace& trace;
  Algebra& algebra;
  Frame* frame = nullptr;
  std::vector<const Node*> statements{};  ///< of the kernel itself, outermost first
  std::vector<int> loops{};
  std::map<AtomId, bool> facts{};  ///< conditions that hold, or not
  int conditions = 0;              ///< ifs around that are not decided
  int muted = 0;
  Ids place_ids{};
};

}  // namespace hemiola::compile

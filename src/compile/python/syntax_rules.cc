// What Python's own parser refuses and the grammar of tree-sitter, which is made for editors, lets
// through: lines that are further in or out than their block, blocks without a statement, keywords
// as names. A text that is edited and written again has to be Python.
#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "compile/python/syntax.h"

namespace hemiola::compile {
namespace {

constexpr std::array<std::string_view, 35> kKeywords = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};

bool is_clause(Kind kind) {
  return kind == Kind::elif_clause || kind == Kind::else_clause || kind == Kind::except_clause ||
         kind == Kind::finally_clause;
}

/// What ends in a colon and a block.
bool has_block(const Node& node) {
  switch (node.kind) {
    case Kind::class_definition:
    case Kind::for_statement:
    case Kind::function_definition:
    case Kind::if_statement:
    case Kind::try_statement:
    case Kind::while_statement:
    case Kind::with_statement:
      return true;
    default:
      return is_clause(node.kind);
  }
}

class PythonRules {
 public:
  explicit PythonRules(const Source& source) : source_(source) {}

  void check() { block(source_.root(), "", true); }

 private:
  [[noreturn]] void refuse(const Node& node, const std::string& what) const {
    throw Failure("not Python: " + what, source_.where(node.begin));
  }

  /// The blanks before a statement that begins its line; nothing: it stands behind something.
  std::optional<std::string_view> indentation(const Node& node) const {
    const std::string_view text = source_.text();
    const std::uint32_t begin = source_.line_begin(node.begin);
    const std::string_view before = text.substr(begin, node.begin - begin);
    if (before.find_first_not_of(" \t\f") != before.npos) return std::nullopt;
    // A comment ends with its line, whatever stands there.
    const auto is_there = [&](const Comment& one) { return one.end + 1 == begin; };
    const bool goes_on =
        begin > 1 && text[begin - 2] == '\\' && std::ranges::none_of(source_.comments(), is_there);
    return goes_on ? std::nullopt : std::optional(before);
  }

  /// `outer`: indentation of the statement that it belongs to.
  void block(const Node& node, std::string_view outer, bool is_module = false) {
    std::optional<std::string_view> inner;
    if (is_module) inner = "";
    bool is_behind = false;  // `if x: y`
    for (const Node* child : node.children) {
      const auto own = indentation(*child);
      if (!own) {
        is_behind = is_behind || child == node.children.front();
      } else if (is_behind || (inner && *own != *inner)) {
        refuse(*child, "this line is further in, or out, than those before it");
      } else if (!inner) {
        if (own->size() <= outer.size() || !own->starts_with(outer))
          refuse(*child, "this line has to be further in than what it belongs to");
        inner = own;
      }
      statement(*child, inner.value_or(outer));
    }
  }

  void statement(const Node& node, std::string_view indentation_of_it) {
    if (has_block(node)) {
      const auto is_body = [](const Node* child) {
        return child->kind == Kind::block && !child->children.empty();
      };
      if (std::ranges::none_of(node.children, is_body))
        refuse(node, "a statement has to follow, further in");
    }
    if (node.kind == Kind::identifier &&
        std::ranges::find(kKeywords, source_.text(node)) != kKeywords.end())
      refuse(node, "'" + std::string(source_.text(node)) + "' is no name");
    // Of Python 2, and of languages with types that the grammar knows.
    static constexpr std::array<std::string_view, 3> kOthers = {
        "constrained_type", "exec_statement", "print_statement"};
    if (std::ranges::find(kOthers, node.name) != kOthers.end())
      refuse(node, "this is of another language");
    if (node.kind == Kind::argument_list) arguments(node);
    if (node.kind == Kind::parameters) parameters(node);
    for (const Node* child : node.children) {
      if (child->kind == Kind::dictionary_splat && node.kind != Kind::argument_list &&
          node.kind != Kind::dictionary)
        refuse(*child, "several values cannot stand here");
      if (takes_several(node)) several_at_ = child->begin;
      // The grammar takes `*a(b)` for a call of `*a`.
      if (child->kind == Kind::list_splat && child->begin != several_at_)
        refuse(*child, "several values cannot stand here");
      if (child->kind == Kind::block) {
        block(*child, indentation_of_it);
        continue;
      }
      if (is_clause(child->kind) || child->kind == Kind::decorator ||
          child->field == Field::definition) {
        const auto own = indentation(*child);
        if (own && *own != indentation_of_it)
          refuse(*child, "this line is further in, or out, than what it belongs to");
      }
      statement(*child, indentation_of_it);
    }
  }

  /// Whether `*x` may stand in it.
  static bool takes_several(const Node& node) {
    switch (node.kind) {
      case Kind::argument_list:
      case Kind::except_clause:
      case Kind::expression_list:
      case Kind::list:
      case Kind::subscript:
      case Kind::tuple:
        return true;
      default:
        return node.name == "set" || node.name == "type";
    }
  }

  void arguments(const Node& node) const {
    std::set<std::string_view> names;
    bool has_names = false, has_splat = false;
    for (const Node* child : node.children) {
      const bool is_names = child->kind == Kind::dictionary_splat;
      has_splat = has_splat || is_names;
      if (child->kind == Kind::keyword_argument) {
        has_names = true;
        const Node* name = child->child(Field::name);
        if (name != nullptr && !names.insert(source_.text(*name)).second)
          refuse(*child, "an argument is given twice");
      } else if (source_.text(*child).starts_with('*') ? has_splat && !is_names
                                                       : has_names || has_splat) {
        refuse(*child, "an argument without a name follows one with a name");
      }
    }
  }

  void parameters(const Node& node) const {
    std::set<std::string_view> names;
    bool has_default = false, is_by_name = false;
    for (const Node* child : node.children) {
      const bool has_own =
          child->kind == Kind::default_parameter || child->kind == Kind::typed_default_parameter;
      const bool is_rest = child->kind == Kind::list_splat_pattern ||
                           child->kind == Kind::keyword_separator ||
                           (child->kind == Kind::typed_parameter && !child->children.empty() &&
                            child->children.front()->kind == Kind::list_splat_pattern);
      is_by_name = is_by_name || is_rest;
      if (const Node* name = name_of(*child);
          name != nullptr && !names.insert(source_.text(*name)).second)
        refuse(*child, "a parameter stands twice");
      const bool is_plain = child->kind == Kind::identifier ||
                            (child->kind == Kind::typed_parameter && name_of(*child) != nullptr);
      if (is_plain && !is_by_name && has_default && !is_rest && !is_keyword_rest(*child))
        refuse(*child, "a parameter without a value follows one with a value");
      has_default = has_default || has_own;
    }
  }

  static bool is_keyword_rest(const Node& parameter) {
    return parameter.kind == Kind::dictionary_splat_pattern ||
           (!parameter.children.empty() &&
            parameter.children.front()->kind == Kind::dictionary_splat_pattern);
  }

  /// Null: it has none.
  static const Node* name_of(const Node& parameter) {
    const Node* at = &parameter;
    if (at->kind == Kind::default_parameter || at->kind == Kind::typed_default_parameter)
      at = at->child(Field::name);
    while (at != nullptr && at->kind != Kind::identifier)
      at = at->children.empty() ? nullptr : at->children.front();
    return at;
  }

  const Source& source_;
  std::uint32_t several_at_ = UINT32_MAX;  ///< where `*x` may stand
};

}  // namespace

void require_python(const Source& source) {
  PythonRules(source).check();
}

}  // namespace hemiola::compile

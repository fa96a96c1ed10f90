// The syntax tree of a Python file: what tree-sitter found, as plain nodes that know their bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostics.h"

namespace hemiola::compile {

/// The kinds of nodes that somebody looks at, named as the grammar names them.
enum class Kind : std::uint8_t {
  other,
  argument_list,
  assert_statement,
  assignment,
  attribute,
  augmented_assignment,
  binary_operator,
  block,
  boolean_operator,
  break_statement,
  call,
  class_definition,
  comparison_operator,
  concatenated_string,
  conditional_expression,
  continue_statement,
  decorated_definition,
  decorator,
  default_parameter,
  dictionary,
  dictionary_splat,
  dictionary_splat_pattern,
  aliased_import,
  elif_clause,
  else_clause,
  except_clause,
  expression_list,
  expression_statement,
  false_,
  finally_clause,
  float_,
  for_in_clause,
  for_statement,
  function_definition,
  generator_expression,
  identifier,
  if_clause,
  if_statement,
  import_from_statement,
  import_statement,
  integer,
  keyword_argument,
  keyword_separator,
  lambda,
  list,
  list_comprehension,
  list_pattern,
  list_splat,
  list_splat_pattern,
  named_expression,
  none,
  not_operator,
  pair,
  parameters,
  parenthesized_expression,
  pass_statement,
  pattern_list,
  return_statement,
  slice,
  string,
  subscript,
  true_,
  try_statement,
  tuple,
  tuple_pattern,
  typed_default_parameter,
  typed_parameter,
  unary_operator,
  while_statement,
  wildcard_import,
  with_statement,
};

/// The role of a node in its parent, where the grammar gives it one that somebody asks for.
enum class Field : std::uint8_t {
  none,
  alias,
  alternative,
  arguments,
  attribute,
  body,
  condition,
  consequence,
  definition,
  function,
  key,
  left,
  module_name,
  name,
  object,
  parameters,
  right,
  subscript,
  type,
  value,
};

/// A named node without the comments in it. Tokens such as operators are not nodes: they are the
/// text between children.
struct Node {
  Kind kind = Kind::other;
  Field field = Field::none;
  std::string_view name;             ///< the grammar's name of the kind, for messages
  std::uint32_t begin = 0, end = 0;  ///< bytes [begin, end) of the file
  std::vector<const Node*> children;

  /// The first child of that role; null: there is none.
  const Node* child(Field role) const;
};

struct Comment {
  std::uint32_t begin = 0, end = 0;
};

/// Whether this build can read Python. Without tree-sitter and its grammar everything else of the
/// layer is there, and parse() throws.
bool can_parse();
/// Why it cannot, or "".
std::string why_it_cannot_parse();

/// A file and its tree. Nodes and views live as long as the object, which does not move.
class Source {
 public:
  /// Failure at the first syntax error, for nesting beyond what Python itself takes, and where
  /// can_parse() is false.
  Source(std::string file, std::string text);
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const std::string& file() const { return file_; }
  std::string_view text() const { return text_; }
  std::string_view text(const Node& node) const {
    return std::string_view(text_).substr(node.begin, node.end - node.begin);
  }
  const Node& root() const { return *root_; }
  const std::vector<Comment>& comments() const { return comments_; }

  int line(std::uint32_t offset) const;    ///< 1-based
  int column(std::uint32_t offset) const;  ///< 1-based, in bytes
  SourceLocation where(std::uint32_t offset) const;
  /// Offset of the first byte of the line that `offset` is in.
  std::uint32_t line_begin(std::uint32_t offset) const;
  /// Offset behind the line break of the line that `offset` is in, or the end of the text.
  std::uint32_t line_end(std::uint32_t offset) const;
  /// What stands between children `i` and `i + 1`, without blanks: an operator.
  std::string between(const Node& node, std::size_t i) const;

 private:
  friend class TreeReader;

  std::string file_, text_;
  std::deque<Node> nodes_;
  std::vector<Comment> comments_;
  std::vector<std::uint32_t> lines_;  ///< where lines begin
  const Node* root_ = nullptr;
};

/// Failure, with its place, for what tree-sitter's grammar takes and Python does not
/// (syntax_rules.cc). A Source has been through it.
void require_python(const Source& source);

/// Adds every name that stands for something: no attributes, and no names of keyword arguments.
void names_in(const Source& source, const Node& node, std::set<std::string>& names);

}  // namespace hemiola::compile

// Everything that knows of tree-sitter: its tree is copied into nodes of our own once, and is gone
// then.
#include "compile/python/syntax.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/names.h"

#if HEMIOLA_TREE_SITTER
#include <tree_sitter/api.h>

extern "C" const TSLanguage* tree_sitter_python(void);
#endif

namespace hemiola::compile {

const Node* Node::child(Field role) const {
  for (const Node* node : children)
    if (node->field == role) return node;
  return nullptr;
}

int Source::line(std::uint32_t offset) const {
  return static_cast<int>(std::ranges::upper_bound(lines_, offset) - lines_.begin());
}

int Source::column(std::uint32_t offset) const {
  return static_cast<int>(offset - line_begin(offset)) + 1;
}

SourceLocation Source::where(std::uint32_t offset) const {
  return {.file = file_, .line = line(offset), .column = column(offset)};
}

std::uint32_t Source::line_begin(std::uint32_t offset) const {
  return *std::prev(std::ranges::upper_bound(lines_, offset));
}

std::uint32_t Source::line_end(std::uint32_t offset) const {
  const auto next = std::ranges::upper_bound(lines_, offset);
  return next == lines_.end() ? static_cast<std::uint32_t>(text_.size()) : *next;
}

std::string Source::between(const Node& node, std::size_t i) const {
  const std::uint32_t begin = node.children[i]->end;
  std::string found;
  for (std::uint32_t at = begin; at < node.children[i + 1]->begin; ++at) {
    const char c = text_[at];
    if (c == '#') {  // a comment between an operator and its operand
      while (at < node.children[i + 1]->begin && text_[at] != '\n') ++at;
      continue;
    }
    if (c == '\\' || std::strchr(" \t\r\n\f", c) != nullptr) {
      if (!found.empty() && found.back() != ' ') found += ' ';
    } else {
      found += c;
    }
  }
  while (!found.empty() && found.back() == ' ') found.pop_back();
  return found;
}

#if HEMIOLA_TREE_SITTER
namespace {

/// In the order of Kind and of Field; what nobody looks at has no name.
constexpr std::array<std::string_view, 71> kKinds{"",
                                                  "argument_list",
                                                  "assert_statement",
                                                  "assignment",
                                                  "attribute",
                                                  "augmented_assignment",
                                                  "binary_operator",
                                                  "block",
                                                  "boolean_operator",
                                                  "break_statement",
                                                  "call",
                                                  "class_definition",
                                                  "comparison_operator",
                                                  "concatenated_string",
                                                  "conditional_expression",
                                                  "continue_statement",
                                                  "decorated_definition",
                                                  "decorator",
                                                  "default_parameter",
                                                  "dictionary",
                                                  "dictionary_splat",
                                                  "dictionary_splat_pattern",
                                                  "aliased_import",
                                                  "elif_clause",
                                                  "else_clause",
                                                  "except_clause",
                                                  "expression_list",
                                                  "expression_statement",
                                                  "false",
                                                  "finally_clause",
                                                  "float",
                                                  "for_in_clause",
                                                  "for_statement",
                                                  "function_definition",
                                                  "generator_expression",
                                                  "identifier",
                                                  "if_clause",
                                                  "if_statement",
                                                  "import_from_statement",
                                                  "import_statement",
                                                  "integer",
                                                  "keyword_argument",
                                                  "keyword_separator",
                                                  "lambda",
                                                  "list",
                                                  "list_comprehension",
                                                  "list_pattern",
                                                  "list_splat",
                                                  "list_splat_pattern",
                                                  "named_expression",
                                                  "none",
                                                  "not_operator",
                                                  "pair",
                                                  "parameters",
                                                  "parenthesized_expression",
                                                  "pass_statement",
                                                  "pattern_list",
                                                  "return_statement",
                                                  "slice",
                                                  "string",
                                                  "subscript",
                                                  "true",
                                                  "try_statement",
                                                  "tuple",
                                                  "tuple_pattern",
                                                  "typed_default_parameter",
                                                  "typed_parameter",
                                                  "unary_operator",
                                                  "while_statement",
                                                  "wildcard_import",
                                                  "with_statement"};
constexpr std::array<std::string_view, 20> kFields = {
    "",           "alias",     "alternative", "arguments",  "attribute",
    "body",       "condition", "consequence", "definition", "function",
    "key",        "left",      "module_name", "name",       "object",
    "parameters", "right",     "subscript",   "type",       "value"};

/// Symbols and fields of the grammar as ours, looked up once per file.
struct Vocabulary {
  explicit Vocabulary(const TSLanguage* language) {
    kinds.resize(ts_language_symbol_count(language), Kind::other);
    for (std::uint32_t i = 0; i < kinds.size(); ++i) {
      const auto symbol = static_cast<TSSymbol>(i);
      if (ts_language_symbol_type(language, symbol) != TSSymbolTypeRegular) continue;
      const char* name = ts_language_symbol_name(language, symbol);
      kinds[i] = value_named<Kind>(kKinds, name).value_or(Kind::other);
    }
    fields.resize(ts_language_field_count(language) + 1, Field::none);
    for (std::uint32_t i = 1; i < fields.size(); ++i) {
      const char* name = ts_language_field_name_for_id(language, static_cast<TSFieldId>(i));
      if (name != nullptr) fields[i] = value_named<Field>(kFields, name).value_or(Field::none);
    }
  }

  std::vector<Kind> kinds;
  std::vector<Field> fields;
};

}  // namespace

/// Copies one tree.
class TreeReader {
 public:
  explicit TreeReader(Source& source) : source_(source), vocabulary_(tree_sitter_python()) {}

  void read() {
    using Parser = std::unique_ptr<TSParser, decltype(&ts_parser_delete)>;
    using Tree = std::unique_ptr<TSTree, decltype(&ts_tree_delete)>;
    const Parser parser(ts_parser_new(), &ts_parser_delete);
    ts_parser_set_language(parser.get(), tree_sitter_python());
    const Tree tree(ts_parser_parse_string(parser.get(), nullptr, source_.text_.data(),
                                           static_cast<std::uint32_t>(source_.text_.size())),
                    &ts_tree_delete);
    const TSNode root = ts_tree_root_node(tree.get());
    if (ts_node_has_error(root)) report_error(root);
    TSTreeCursor cursor = ts_tree_cursor_new(root);
    try {
      source_.root_ = copy(cursor, 0);
    } catch (...) {
      ts_tree_cursor_delete(&cursor);
      throw;
    }
    ts_tree_cursor_delete(&cursor);
  }

 private:
  // Python's own parser stops at a few hundred levels too.
  static constexpr int kDeepest = 300;

  const Node* copy(TSTreeCursor& cursor, int depth) {
    const TSNode found = ts_tree_cursor_current_node(&cursor);
    Node& node = source_.nodes_.emplace_back();
    node.kind = vocabulary_.kinds.at(ts_node_symbol(found));
    node.field = vocabulary_.fields.at(ts_tree_cursor_current_field_id(&cursor));
    node.name = ts_node_type(found);
    node.begin = ts_node_start_byte(found);
    node.end = ts_node_end_byte(found);
    if (depth > kDeepest)
      throw Failure("the code is nested more than " + std::to_string(kDeepest) + " levels deep",
                    source_.where(node.begin), "no kernel is; is this generated text?");
    if (!ts_tree_cursor_goto_first_child(&cursor)) return &node;
    do {
      const TSNode child = ts_tree_cursor_current_node(&cursor);
      if (ts_node_is_extra(child)) {
        if (std::strcmp(ts_node_type(child), "comment") == 0)
          source_.comments_.push_back({ts_node_start_byte(child), ts_node_end_byte(child)});
        continue;
      }
      if (ts_node_is_named(child)) node.children.push_back(copy(cursor, depth + 1));
    } while (ts_tree_cursor_goto_next_sibling(&cursor));
    ts_tree_cursor_goto_parent(&cursor);
    return &node;
  }

  /// Failure at the first node that is an error, or that the parser had to add.
  [[noreturn]] void report_error(TSNode node) {
    for (;;) {
      if (ts_node_is_missing(node))
        throw Failure("not Python: '" + std::string(ts_node_type(node)) + "' is missing",
                      source_.where(ts_node_start_byte(node)));
      if (std::strcmp(ts_node_type(node), "ERROR") == 0) break;
      const std::uint32_t count = ts_node_child_count(node);
      bool went_on = false;
      for (std::uint32_t i = 0; i < count && !went_on; ++i) {
        const TSNode child = ts_node_child(node, i);
        if (!ts_node_has_error(child) && !ts_node_is_missing(child)) continue;
        node = child;
        went_on = true;
      }
      if (!went_on) break;
    }
    const std::uint32_t begin = ts_node_start_byte(node);
    std::string_view text = source_.text();
    text = text.substr(begin, std::min<std::size_t>(ts_node_end_byte(node) - begin, 40));
    text = text.substr(0, text.find('\n'));
    std::string shown;
    for (const char c : text) shown += static_cast<unsigned char>(c) < 32 ? '?' : c;
    throw Failure("not Python: this cannot be read" + (shown.empty() ? "" : ": '" + shown + "'"),
                  source_.where(begin));
  }

  Source& source_;
  Vocabulary vocabulary_;
};

bool can_parse() {
  return why_it_cannot_parse().empty();
}

std::string why_it_cannot_parse() {
  const std::uint32_t version = ts_language_version(tree_sitter_python());
  if (version >= TREE_SITTER_MIN_COMPATIBLE_LANGUAGE_VERSION &&
      version <= TREE_SITTER_LANGUAGE_VERSION)
    return {};
  return "the grammar of Python has ABI " + std::to_string(version) +
         ", the tree-sitter library takes " +
         std::to_string(TREE_SITTER_MIN_COMPATIBLE_LANGUAGE_VERSION) + " to " +
         std::to_string(TREE_SITTER_LANGUAGE_VERSION);
}

#else

class TreeReader {
 public:
  explicit TreeReader(Source& /*source*/) {}
  void read() {}
};

bool can_parse() {
  return false;
}

std::string why_it_cannot_parse() {
  return "this build has no parser of Python";
}

#endif

Source::Source(std::string file, std::string text)
    : file_(std::move(file)), text_(std::move(text)) {
  if (!can_parse())
    throw Failure(
        "kernels cannot be read: " + why_it_cannot_parse(), {},
        "install libtree-sitter-dev and npm, and configure the build again (docs/compile.md)");
  lines_.push_back(0);
  for (std::uint32_t i = 0; i < text_.size(); ++i)
    if (text_[i] == '\n') lines_.push_back(i + 1);
  if (text_.size() > (std::size_t{16} << 20))
    throw Failure("the file has more than 16 MiB", {.file = file_},
                  "no kernel has; is this Python?");
  if (text_.find('\0') != std::string::npos)
    throw Failure("not Python: the file has zero bytes",
                  where(static_cast<std::uint32_t>(text_.find('\0'))));
  TreeReader(*this).read();
  require_python(*this);
}

void names_in(const Source& source, const Node& node, std::set<std::string>& names) {
  if (node.kind == Kind::identifier && node.field != Field::attribute && node.field != Field::name)
    names.emplace(source.text(node));
  for (const Node* child : node.children) names_in(source, *child, names);
}

}  // namespace hemiola::compile

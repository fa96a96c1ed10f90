// Expressions without calls.
#include "compile/python/formula.h"
#include "compile/skeleton/assemble.h"

namespace hemiola::compile::skeleton {
namespace {

constexpr int kDeepestExpressions = 200;

}  // namespace

void Assembler::expression(const Node& node) {
  if (depth_ > kDeepestExpressions) return unknown(node);
  ++depth_;
  if (!literal(node)) composite(node);
  --depth_;
}

/// False: it is none.
bool Assembler::literal(const Node& node) {
  switch (node.kind) {
    case Kind::integer: {
      const auto number = integer_in(text(node));
      constant(node, number ? Value::of(*number) : Value{});
      break;
    }
    case Kind::true_:
    case Kind::false_:
      constant(node, Value::of(node.kind == Kind::true_ ? 1 : 0));
      break;
    case Kind::none:
      constant(node, {.kind = Value::Kind::none});
      break;
    case Kind::string:
    case Kind::concatenated_string:
      text_of(node);
      break;
    default:
      return false;
  }
  return true;
}

void Assembler::composite(const Node& node) {
  switch (node.kind) {
    case Kind::identifier:
      return name(node);
    case Kind::parenthesized_expression:
      return node.children.empty() ? unknown(node) : expression(*node.children.front());
    case Kind::tuple:
    case Kind::list:
    case Kind::expression_list:
    case Kind::pattern_list:
      for (const Node* one : node.children) expression(*one);
      emit(Op::tuple, node, static_cast<int>(node.children.size()));
      break;
    case Kind::attribute:
      return attribute(node);
    case Kind::subscript:
      return subscript(node);
    case Kind::call:
      return call(node);
    case Kind::comparison_operator:
      return comparison(node);
    case Kind::boolean_operator:
      return logical(node);
    case Kind::conditional_expression:
      return conditional(node);
    default:
      return operation(node);
  }
}

void Assembler::operation(const Node& node) {
  const std::size_t count = node.children.size();
  if (node.kind == Kind::binary_operator && count == 2) {
    expression(*node.children[0]);
    expression(*node.children[1]);
    emit(Op::binary, node, name_index(frame_->module->source.between(node, 0)));
    return;
  }
  const bool negates = node.kind == Kind::not_operator;
  if ((negates || node.kind == Kind::unary_operator) && count == 1) {
    expression(*node.children[0]);
    emit(Op::unary, node, name_index(negates ? "not" : text(node).substr(0, 1)));
    return;
  }
  const Node *to = node.child(Field::name), *value = node.child(Field::value);
  if (node.kind != Kind::named_expression || to == nullptr || value == nullptr)
    return unknown(node);
  expression(*value);
  emit(Op::twice, node);
  store_to(*to);
}

void Assembler::name(const Node& node) {
  const std::string word(text(node));
  if (const auto found = frame_->slots.find(word); found != frame_->slots.end()) {
    emit(Op::local, node, found->second);
    return;
  }
  const Module* home = nullptr;
  const Node* value = library_.constant(*frame_->module, word, home);
  constant_of(node, home, value);
}

/// What a module gives a name; unknown: nothing, or something that needs itself.
void Assembler::constant_of(const Node& node, const Module* home, const Node* value) {
  if (value == nullptr || !open_constants_.insert(value).second) return unknown(node);
  Frame frame{.module = home, .site = static_cast<int>(code_.sites.size())};
  code_.sites.push_back({.module = home, .call = &node, .parent = frame_->site});
  Frame* const outer = std::exchange(frame_, &frame);
  const std::size_t known = code_.not_followed.size();
  expression(*value);
  code_.not_followed.resize(known);  // what the host computes
  frame_ = outer;
  open_constants_.erase(value);
}

void Assembler::text_of(const Node& node) {
  std::string content;
  bool is_format = false;
  const auto add = [&](const Node& one) {
    const std::string_view written = text(one);
    const std::string_view prefix = written.substr(0, written.find_first_of("\"'"));
    is_format = is_format || prefix.find_first_of("fF") != prefix.npos;
    content += content_of(written);
  };
  if (node.kind == Kind::string)
    add(node);
  else
    for (const Node* one : node.children) add(*one);
  if (!is_format) return constant(node, Value::of_text(std::move(content)));
  Format format{.text = std::move(content)};
  for (const auto& [name, slot] : frame_->slots)
    if (format.text.find("{" + name + "}") != std::string::npos)
      format.slots.emplace_back(name, slot);
  code_.formats.push_back(std::move(format));
  emit(Op::format, node, static_cast<int>(code_.formats.size()) - 1);
}

void Assembler::attribute(const Node& node) {
  const Node *object = node.child(Field::object), *what = node.child(Field::attribute);
  if (object == nullptr || what == nullptr) return unknown(node);
  const Node* root = object;
  while (root->kind == Kind::attribute && root->child(Field::object) != nullptr)
    root = root->child(Field::object);
  if (root->kind == Kind::identifier && !frame_->slots.contains(text(*root))) {
    const auto import = frame_->module->imports.find(text(*root));
    const Module* module = import == frame_->module->imports.end()
                               ? nullptr
                               : library_.module_of(*frame_->module, import->second);
    const Node* value = nullptr;
    if (module != nullptr && object == root)
      if (const auto found = module->constants.find(text(*what)); found != module->constants.end())
        value = found->second;
    if (value == nullptr) return constant(node, Value::of_text(dotted(node)));
    return constant_of(node, module, value);
  }
  expression(*object);
  emit(Op::attribute, node, name_index(text(*what)));
}

void Assembler::subscript(const Node& node) {
  const Node* object = node.children.empty() ? nullptr : node.children.front();
  if (object == nullptr) return unknown(node);
  expression(*object);
  std::string pattern;
  bool is_reshape = node.children.size() > 1;
  const auto look = [&](const Node& one) {
    if (one.kind == Kind::slice)
      pattern += ':';
    else if (one.kind == Kind::none)
      pattern += 'n';
    else
      is_reshape = false;
  };
  std::vector<const Node*> indices(node.children.begin() + 1, node.children.end());
  if (indices.size() == 1 && indices[0]->kind == Kind::tuple) indices = indices[0]->children;
  for (const Node* one : indices) look(*one);
  if (is_reshape) {
    emit(Op::reshape, node, name_index(pattern));
    return;
  }
  for (const Node* one : indices) expression(*one);
  emit(Op::subscript, node, static_cast<int>(indices.size()));
}

void Assembler::comparison(const Node& node) {
  if (node.children.size() < 2) return unknown(node);
  for (std::size_t i = 0; i + 1 < node.children.size(); ++i) {
    expression(*node.children[i]);
    expression(*node.children[i + 1]);
    emit(Op::binary, node, name_index(frame_->module->source.between(node, i)));
    if (i > 0) emit(Op::binary, node, name_index("and"));
  }
}

void Assembler::logical(const Node& node) {
  if (node.children.size() != 2) return unknown(node);
  const std::string op = frame_->module->source.between(node, 0);
  expression(*node.children[0]);
  const int jump = emit(Op::shortcut, node, 0, op == "or" ? 1 : 0);
  expression(*node.children[1]);
  emit(Op::binary, node, name_index(op));
  land(jump);
}

void Assembler::conditional(const Node& node) {
  if (node.children.size() != 3) return unknown(node);
  expression(*node.children[1]);
  const int test = emit(Op::unless, *node.children[1], 0, -1);
  expression(*node.children[0]);
  const int over = emit(Op::jump, node);
  land(test);
  expression(*node.children[2]);
  land(over);
}

}  // namespace hemiola::compile::skeleton

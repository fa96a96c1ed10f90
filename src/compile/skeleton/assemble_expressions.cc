// Expressions without calls.
#include "compile/python/formula.h"
#include "compile/skeleton/assemble.h"

namespace hemiola::compile::skeleton {
namespace {

constexpr int kDeepestExpressions = 200;

}  // namespace

Pushed Assembler::evaluate(const Node& node) {
  if (depth_ > kDeepestExpressions) return unknown(node);
  ++depth_;
  expression(node);
  --depth_;
  return {};
}

Pushed Assembler::literal(const Node& node) {
  if (node.kind == Kind::none) return constant(node, {.kind = Value::Kind::none});
  if (node.kind == Kind::true_ || node.kind == Kind::false_)
    return constant(node, Value::of(node.kind == Kind::true_ ? 1 : 0));
  if (node.kind != Kind::string && node.kind != Kind::concatenated_string) {
    const auto number = integer_in(text(node));
    return constant(node, number ? Value::of(*number) : Value{});
  }
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
  return pushed(Op::format, node, static_cast<int>(code_.formats.size()) - 1);
}

Pushed Assembler::binary(std::string_view op, Pushed, Pushed, const Node& node) {
  return pushed(Op::binary, node, name_index(op));
}

Pushed Assembler::unary(std::string_view sign, Pushed, const Node& node) {
  return pushed(Op::unary, node, name_index(sign));
}

Pushed Assembler::other_expression(const Node& node) {
  switch (node.kind) {
    case Kind::tuple:
    case Kind::list:
    case Kind::expression_list:
    case Kind::pattern_list:
      for (const Node* one : node.children) evaluate(*one);
      return pushed(Op::tuple, node, static_cast<int>(node.children.size()));
    case Kind::named_expression:
      evaluate(*node.child(Field::value));
      assign(*node.child(Field::name), pushed(Op::twice, node), node);
      return {};
    default:
      return unknown(node);
  }
}

Pushed Assembler::identifier(const Node& node) {
  const std::string word(text(node));
  if (const auto found = frame_->slots.find(word); found != frame_->slots.end())
    return pushed(Op::local, node, found->second);
  const Module* home = nullptr;
  const Node* value = library_.constant(*frame_->module, word, home);
  return constant_of(node, home, value);
}

/// What a module gives a name; unknown: nothing, or something that needs itself.
Pushed Assembler::constant_of(const Node& node, const Module* home, const Node* value) {
  if (value == nullptr || !open_constants_.insert(value).second) return unknown(node);
  Frame frame{.module = home, .site = static_cast<int>(code_.sites.size())};
  code_.sites.push_back({.module = home, .call = &node, .parent = frame_->site});
  Frame* const outer = std::exchange(frame_, &frame);
  const std::size_t known = code_.not_followed.size();
  evaluate(*value);
  code_.not_followed.resize(known);  // what the host computes
  frame_ = outer;
  open_constants_.erase(value);
  return {};
}

Pushed Assembler::attribute(const Node& node) {
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
  evaluate(*object);
  return pushed(Op::attribute, node, name_index(text(*what)));
}

Pushed Assembler::subscript(const Node& node) {
  const Node* object = node.children.empty() ? nullptr : node.children.front();
  if (object == nullptr) return unknown(node);
  evaluate(*object);
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
  if (is_reshape) return pushed(Op::reshape, node, name_index(pattern));
  for (const Node* one : indices) evaluate(*one);
  return pushed(Op::subscript, node, static_cast<int>(indices.size()));
}

Pushed Assembler::comparison(const Node& node) {
  for (std::size_t i = 0; i + 1 < node.children.size(); ++i) {
    evaluate(*node.children[i]);
    evaluate(*node.children[i + 1]);
    emit(Op::binary, node, name_index(source().between(node, i)));
    if (i > 0) emit(Op::binary, node, name_index("and"));
  }
  return {};
}

Pushed Assembler::boolean(const Node& node) {
  const std::string op = source().between(node, 0);
  const Pushed first = evaluate(*node.children[0]);
  const int jump = emit(Op::shortcut, node, 0, op == "or" ? 1 : 0);
  binary(op, first, evaluate(*node.children[1]), node);
  land(jump);
  return {};
}

Pushed Assembler::conditional(const Node& node) {
  evaluate(*node.children[1]);
  const int test = emit(Op::unless, *node.children[1], 0, -1);
  evaluate(*node.children[0]);
  const int over = emit(Op::jump, node);
  land(test);
  evaluate(*node.children[2]);
  land(over);
  return {};
}

}  // namespace hemiola::compile::skeleton

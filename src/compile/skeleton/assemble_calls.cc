// Calls: helpers in place, words of the vocabulary.
#include "compile/skeleton/assemble.h"

namespace hemiola::compile::skeleton {
namespace {

constexpr int kDeepestCalls = 24;
constexpr std::size_t kMostSteps = 60'000;

}  // namespace

std::string Assembler::dotted(const Node& callee) const {
  if (callee.kind == Kind::attribute) {
    const Node *object = callee.child(Field::object), *what = callee.child(Field::attribute);
    if (object == nullptr || what == nullptr) return {};
    const std::string before = dotted(*object);
    return before.empty() ? "" : before + "." + std::string(text(*what));
  }
  if (callee.kind != Kind::identifier) return {};
  const std::string word(text(callee));
  const auto import = frame_->module->imports.find(word);
  if (import == frame_->module->imports.end()) return word == "tl" ? "triton.language" : word;
  const Import& one = import->second;
  if (one.name.empty()) return one.module;
  return one.module.empty() || one.module.back() == '.' ? one.module + one.name
                                                        : one.module + "." + one.name;
}

const Function* Assembler::function_of(const Node& callee) const {
  if (callee.kind == Kind::identifier) {
    const std::string word(text(callee));
    if (const auto handed = frame_->functions.find(word); handed != frame_->functions.end())
      return handed->second;
    return frame_->slots.contains(word) ? nullptr : library_.function(*frame_->module, word);
  }
  const Node* object = callee.child(Field::object);
  const Node* what = callee.child(Field::attribute);
  if (object == nullptr || what == nullptr || object->kind != Kind::identifier ||
      frame_->slots.contains(text(*object)))
    return nullptr;
  const auto import = frame_->module->imports.find(text(*object));
  if (import == frame_->module->imports.end()) return nullptr;
  const Module* module = library_.module_of(*frame_->module, import->second);
  return module == nullptr ? nullptr : library_.function_in(*module, std::string(text(*what)));
}

Pushed Assembler::call(const Node& node) {
  const Node* callee = node.child(Field::function);
  if (callee == nullptr || node.child(Field::arguments) == nullptr) return unknown(node);
  const Node* root = callee;
  while (root->kind == Kind::attribute && root->child(Field::object) != nullptr)
    root = root->child(Field::object);
  const bool is_method = callee->kind == Kind::attribute &&
                         (root->kind != Kind::identifier || frame_->slots.contains(text(*root)));
  if (is_method) {
    std::string name(text(*callee->child(Field::attribute)));
    const Word* word = vocabulary_.find("<method>." + name);
    return call_word(node, {.name = std::move(name), .word = word}, callee->child(Field::object));
  }
  const std::string full = dotted(*callee);
  const Function* function = function_of(*callee);
  const bool is_here = function != nullptr && function->module == code_.sites[0].module;
  const Word* word = is_here ? nullptr : vocabulary_.find(full);
  if (word == nullptr && function != nullptr) return enter(node, *function);
  if (word == nullptr && full.find('.') == std::string::npos)
    word = vocabulary_.find("<builtins>." + full);
  Call made{.name = std::string(text(*callee)), .word = word};
  if (word == nullptr && !Vocabulary::only_computes(full)) {
    code_.not_followed.push_back({made.name + "()", span_of(frame_->module->source, node)});
    made.meaning = Word::Meaning::unknown;
  }
  return call_word(node, std::move(made));
}

/// With the arguments that stand there, behind the object whose method it is.
Pushed Assembler::call_word(const Node& node, Call made, const Node* receiver) {
  if (made.word != nullptr) made.meaning = made.word->meaning, made.name = made.word->name;
  if (receiver != nullptr) {
    evaluate(*receiver);
    ++made.positional;
  }
  for (const Node* argument : node.child(Field::arguments)->children) {
    if (argument->kind == Kind::keyword_argument || argument->kind == Kind::list_splat ||
        argument->kind == Kind::dictionary_splat)
      continue;
    evaluate(*argument);
    ++made.positional;
  }
  for (const Node* argument : node.child(Field::arguments)->children) {
    if (argument->kind != Kind::keyword_argument) continue;
    evaluate(*argument->child(Field::value));
    made.keywords.emplace_back(text(*argument->child(Field::name)));
  }
  code_.calls.push_back(std::move(made));
  return pushed(Op::call, node, static_cast<int>(code_.calls.size()) - 1);
}

/// Without arguments.
Pushed Assembler::call_word(const Node& node, const std::string& name) {
  const Word* word = vocabulary_.find(name);
  code_.calls.push_back({.meaning = word->meaning, .name = word->name, .word = word});
  return pushed(Op::call, node, static_cast<int>(code_.calls.size()) - 1);
}

/// A helper's statements where it is called; pushes what it returns.
Pushed Assembler::enter(const Node& node, const Function& helper) {
  int depth = 0;
  for (int site = frame_->site; site >= 0; site = code_.sites[site].parent) ++depth;
  if (depth > kDeepestCalls || code_.steps.size() > kMostSteps) {
    code_.not_followed.push_back(
        {helper.name + "(), called too deep", span_of(frame_->module->source, node)});
    return unknown(node);
  }
  Frame frame{.module = helper.module, .site = static_cast<int>(code_.sites.size())};
  code_.sites.push_back(
      {.module = helper.module, .function = helper.name, .call = &node, .parent = frame_->site});
  std::map<std::string, const Node*> given;
  std::size_t position = 0;
  for (const Node* argument : node.child(Field::arguments)->children) {
    if (argument->kind == Kind::keyword_argument)
      given[std::string(text(*argument->child(Field::name)))] = argument->child(Field::value);
    else if (position < helper.parameters.size())
      given[helper.parameters[position++].name] = argument;
  }
  for (const compile::Parameter& one : helper.parameters) {
    const auto found = given.find(one.name);
    frame.slots[one.name] = code_.slots++;
    if (found == given.end()) continue;
    evaluate(*found->second);
    emit(Op::set, node, frame.slots[one.name]);
    const Kind kind = found->second->kind;
    if (kind == Kind::identifier || kind == Kind::attribute)
      if (const Function* handed = function_of(*found->second)) frame.functions[one.name] = handed;
  }
  frame.result = code_.slots++;
  Frame* const outer = std::exchange(frame_, &frame);
  for (const compile::Parameter& one : helper.parameters) {
    if (given.contains(one.name)) continue;
    if (one.default_value != nullptr)
      evaluate(*one.default_value);
    else
      unknown(*helper.node);
    emit(Op::set, *helper.node, frame.slots[one.name]);
  }
  constant(*helper.node, {.kind = Value::Kind::none});
  emit(Op::set, *helper.node, frame.result);
  std::vector<Loop> loops = std::exchange(loops_, {});
  block(helper.body());
  loops_ = std::move(loops);
  for (const int step : frame.returns) land(step);
  frame_ = outer;
  return pushed(Op::local, node, frame.result);
}

}  // namespace hemiola::compile::skeleton

// Calls: helpers in place, functions of triton.language, words of libraries.
#include <algorithm>
#include <array>

#include "compile/skeleton/assemble.h"

namespace hemiola::compile::skeleton {
namespace {

constexpr int kDeepestCalls = 24;
constexpr std::size_t kMostSteps = 60'000;

using Named = std::pair<std::string_view, Builtin>;

constexpr std::array kLanguage{Named{"load", Builtin::load},
                               Named{"store", Builtin::store},
                               Named{"program_id", Builtin::program_id},
                               Named{"num_programs", Builtin::num_programs},
                               Named{"arange", Builtin::arange},
                               Named{"full", Builtin::full},
                               Named{"zeros", Builtin::zeros},
                               Named{"cdiv", Builtin::cdiv},
                               Named{"minimum", Builtin::fold},
                               Named{"maximum", Builtin::fold},
                               Named{"where", Builtin::where},
                               Named{"sum", Builtin::reduce},
                               Named{"max", Builtin::reduce},
                               Named{"min", Builtin::reduce},
                               Named{"xor_sum", Builtin::reduce},
                               Named{"cast", Builtin::cast},
                               Named{"pointer_type", Builtin::pointer_type},
                               Named{"range", Builtin::range},
                               Named{"static_range", Builtin::range},
                               Named{"debug_barrier", Builtin::barrier},
                               Named{"barrier", Builtin::barrier},
                               Named{"inline_asm_elementwise", Builtin::assembly},
                               Named{"trans", Builtin::transpose},
                               Named{"permute", Builtin::transpose},
                               Named{"make_tensor_descriptor", Builtin::descriptor},
                               Named{"_experimental_make_tensor_descriptor", Builtin::descriptor},
                               Named{"load_tensor_descriptor", Builtin::descriptor_load},
                               Named{"store_tensor_descriptor", Builtin::descriptor_store},
                               Named{"make_block_ptr", Builtin::block_pointer},
                               Named{"advance", Builtin::advance},
                               Named{"multiple_of", Builtin::first},
                               Named{"max_contiguous", Builtin::first},
                               Named{"max_constancy", Builtin::first},
                               Named{"constexpr", Builtin::first},
                               Named{"to_tensor", Builtin::first},
                               Named{"broadcast_to", Builtin::first},
                               Named{"reshape", Builtin::first},
                               Named{"view", Builtin::first},
                               Named{"ravel", Builtin::first}};

constexpr std::array kPython{Named{"range", Builtin::range},    Named{"min", Builtin::fold},
                             Named{"max", Builtin::fold},       Named{"int", Builtin::first},
                             Named{"bool", Builtin::first},     Named{"str", Builtin::first},
                             Named{"len", Builtin::pure},       Named{"abs", Builtin::pure},
                             Named{"float", Builtin::pure},     Named{"print", Builtin::pure},
                             Named{"isinstance", Builtin::pure}};

constexpr std::array kMethods{Named{"to", Builtin::cast},
                              Named{"cast", Builtin::cast},
                              Named{"load", Builtin::descriptor_load},
                              Named{"gather", Builtin::descriptor_load},
                              Named{"store", Builtin::descriptor_store},
                              Named{"scatter", Builtin::descriptor_store},
                              Named{"trans", Builtin::transpose},
                              Named{"permute", Builtin::transpose},
                              Named{"sum", Builtin::reduce},
                              Named{"max", Builtin::reduce},
                              Named{"min", Builtin::reduce},
                              Named{"advance", Builtin::advance},
                              Named{"reshape", Builtin::first},
                              Named{"view", Builtin::first},
                              Named{"broadcast_to", Builtin::first}};

std::optional<Builtin> found_in(const auto& table, std::string_view name) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const Named& one) { return one.first == name; });
  if (found == table.end()) return {};
  return found->second;
}

std::string_view last_part(std::string_view dotted) {
  const std::size_t dot = dotted.rfind('.');
  return dot == dotted.npos ? dotted : dotted.substr(dot + 1);
}

}  // namespace

std::optional<Builtin> builtin_of(std::string_view dotted) {
  const std::string_view name = last_part(dotted);
  if (dotted.find('.') == dotted.npos) return found_in(kPython, name);
  const std::string_view root = dotted.substr(0, dotted.find('.'));
  if (root == "math" || root == "torch" || dotted.find("libdevice") != dotted.npos)
    return Builtin::pure;
  if (root != "triton" || dotted.find("experimental") != dotted.npos ||
      dotted.find("distributed") != dotted.npos)
    return {};
  if (const auto known = found_in(kLanguage, name)) return known;
  if (name == "atomic_poll") return Builtin::atomic_poll;
  if (name.starts_with("atomic_")) return Builtin::atomic;
  if (name.find("descriptor") != name.npos || name.find("tensormap") != name.npos) return {};
  return Builtin::pure;
}

std::optional<Builtin> method_of(std::string_view name) {
  if (name.starts_with("atomic_")) return Builtin::descriptor_store;
  return found_in(kMethods, name);
}

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

void Assembler::call(const Node& node) {
  const Node* callee = node.child(Field::function);
  if (callee == nullptr || node.child(Field::arguments) == nullptr) return unknown(node);
  const Node* root = callee;
  while (root->kind == Kind::attribute && root->child(Field::object) != nullptr)
    root = root->child(Field::object);
  const bool is_method = callee->kind == Kind::attribute &&
                         (root->kind != Kind::identifier || frame_->slots.contains(text(*root)));
  if (is_method)
    return method(node, std::string(text(*callee->child(Field::attribute))),
                  *callee->child(Field::object));
  const std::string full = dotted(*callee);
  const Function* function = function_of(*callee);
  const bool is_here = function != nullptr && function->module == code_.sites[0].module;
  const Word* word = is_here ? nullptr : vocabulary_.find(full);
  if (word != nullptr) return built_in(node, Builtin::word, word->name, nullptr, word);
  if (function != nullptr) return enter(node, *function);
  if (const auto builtin = builtin_of(full))
    return built_in(node, *builtin, std::string(last_part(full)), nullptr);
  code_.not_followed.push_back(
      {std::string(text(*callee)) + "()", span_of(frame_->module->source, node)});
  built_in(node, Builtin::unknown, std::string(text(*callee)), nullptr);
}

void Assembler::method(const Node& node, const std::string& name, const Node& object) {
  const auto builtin = method_of(name);
  built_in(node, builtin.value_or(Builtin::pure), name, &object);
}

void Assembler::built_in(const Node& node, Builtin builtin, std::string name, const Node* receiver,
                         const Word* word) {
  Call made{.builtin = builtin, .name = std::move(name), .word = word};
  if (receiver != nullptr) {
    expression(*receiver);
    ++made.positional;
  }
  for (const Node* argument : node.child(Field::arguments)->children) {
    if (argument->kind == Kind::keyword_argument || argument->kind == Kind::list_splat ||
        argument->kind == Kind::dictionary_splat)
      continue;
    expression(*argument);
    ++made.positional;
  }
  for (const Node* argument : node.child(Field::arguments)->children) {
    if (argument->kind != Kind::keyword_argument) continue;
    expression(*argument->child(Field::value));
    made.keywords.emplace_back(text(*argument->child(Field::name)));
  }
  code_.calls.push_back(std::move(made));
  emit(Op::call, node, static_cast<int>(code_.calls.size()) - 1);
}

/// A helper's statements where it is called; pushes what it returns.
void Assembler::enter(const Node& node, const Function& helper) {
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
    expression(*found->second);
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
      expression(*one.default_value);
    else
      unknown(*helper.node);
    emit(Op::set, *helper.node, frame.slots[one.name]);
  }
  constant(*helper.node, {.kind = Value::Kind::none});
  emit(Op::set, *helper.node, frame.result);
  std::vector<Loop> loops = std::exchange(loops_, {});
  statements(helper.body());
  loops_ = std::move(loops);
  for (const int step : frame.returns) land(step);
  frame_ = outer;
  emit(Op::local, node, frame.result);
}

}  // namespace hemiola::compile::skeleton

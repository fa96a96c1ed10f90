#include "compile/python/kernel_needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace hemiola::compile {
namespace {

const Node* program_number_in(const Source& source, const Node& node) {
  std::vector<const Node*> calls;
  find_all(node, Kind::call, calls);
  const auto found = std::ranges::find_if(
      calls, [&](const Node* call) { return asks_for_program(source, *call); });
  return found == calls.end() ? nullptr : *found;
}

/// What asks for the program's number is other text in the end.
void names_but_programs(const Source& source, const Node& node, std::set<std::string>& names) {
  if (node.kind == Kind::call && asks_for_program(source, node)) return;
  if (node.children.empty()) names_in(source, node, names);
  for (const Node* child : node.children) names_but_programs(source, *child, names);
}

/// Names that a function gives values: they are its own wherever they stand in it.
void locals_in(const Source& source, const Node& node, std::set<std::string>& names) {
  const Node* given = nullptr;
  if (node.kind == Kind::assignment || node.kind == Kind::augmented_assignment ||
      node.kind == Kind::for_statement || node.kind == Kind::for_in_clause)
    given = node.child(Field::left);
  if (node.kind == Kind::named_expression) given = node.child(Field::name);
  if (given != nullptr && given->kind != Kind::attribute && given->kind != Kind::subscript)
    names_in(source, *given, names);
  for (const Node* child : node.children) locals_in(source, *child, names);
}

/// Whether a module is there wherever the kernel runs.
bool is_everywhere(const std::string& module) {
  static constexpr std::array kRoots{"triton", "torch", "math", "typing", "os", "sys", "functools"};
  const std::string root = module.substr(0, module.find('.'));
  return std::ranges::find(kRoots, root) != kRoots.end();
}

std::string verbatim(const Function& function) {
  const Source& source = function.module->source;
  // A decorator's node is what stands behind its sign.
  const std::uint32_t begin = source.line_begin(
      function.decorators.empty() ? function.node->begin : function.decorators.front()->begin);
  return std::string(source.text().substr(begin, function.node->end - begin));
}

}  // namespace

void find_all(const Node& node, Kind kind, std::vector<const Node*>& found) {
  if (node.kind == kind) found.push_back(&node);
  for (const Node* child : node.children) find_all(*child, kind, found);
}

bool asks_for_program(const Source& source, const Node& call) {
  const std::string_view name = last_name(source, call);
  return name == "program_id" || name == "num_programs";
}

KernelNeeds::KernelNeeds(Library& library, const Function& kernel, std::string prefix)
    : library_(library), kernel_(kernel), prefix_(std::move(prefix)) {
  collect(kernel);
}

void KernelNeeds::collect(const Function& function) {
  const Source& source = function.module->source;
  std::set<std::string> names;
  if (&function == &kernel_) {
    names_but_programs(source, *function.node, names);
  } else {
    names_in(source, *function.node, names);
    for (const Node* decorator : function.decorators) names_in(source, *decorator, names);
    if (const Node* asks = program_number_in(source, function.body()))
      throw Failure("helper '" + function.name + "' asks for the program's number",
                    source.where(asks->begin), "the kernel itself has to, and hand it on");
  }
  std::set<std::string> own;
  for (const Parameter& parameter : function.parameters) own.insert(parameter.name);
  locals_in(source, function.body(), own);
  for (const std::string& name : names) {
    if (name.starts_with(prefix_))
      throw Failure("'" + name + "' begins with " + prefix_ + ", as names that are put in do",
                    source.where(function.node->begin));
    if (!own.contains(name)) need(*function.module, name);
  }
}

void KernelNeeds::need(const Module& from, const std::string& name) {
  if (name == kernel_.name || !seen_.insert(from.source.file() + ':' + name).second) return;
  if (const Function* function = library_.function(from, name)) {
    if (function != &kernel_ && !function->is_jit && in_constant_) {
      // A constant is what this function returns.
      collect(*function);
      constants_.push_back('\n' + verbatim(*function) + "\n\n");
      return;
    }
    if (function == &kernel_ || !function->is_jit ||
        std::ranges::find(helpers_, function) != helpers_.end())
      return;
    collect(*function);
    helpers_.push_back(function);
    return;
  }
  const Module* home = nullptr;
  if (const Node* value = library_.constant(from, name, home)) {
    std::set<std::string> inner;
    names_in(home->source, *value, inner);
    const bool was = std::exchange(in_constant_, true);
    for (const std::string& one : inner) need(*home, one);
    in_constant_ = was;
    constants_.push_back(name + " = " + std::string(home->source.text(*value)));
    return;
  }
  const auto import = from.imports.find(name);
  if (import == from.imports.end()) return;
  if (!is_everywhere(import->second.module))
    throw Failure(
        fmt::format("'{}' comes from '{}', which is not found", name, import->second.module),
        from.source.where(kernel_.node->begin), "--helper FILE names the file that it is in");
  imports_.emplace(name, import->second);
}

std::string KernelNeeds::imports() const {
  std::string lines;
  for (const auto& [name, import] : imports_) {
    const bool is_written =
        (name == "triton" && import.module == "triton" && import.name.empty()) ||
        (name == "tl" && (import.module == "triton.language" ||
                          (import.module == "triton" && import.name == "language")));
    if (is_written) continue;
    lines += import.name.empty() ? "import " + import.module
                                 : "from " + import.module + " import " + import.name;
    if ((import.name.empty() ? import.module : import.name) != name) lines += " as " + name;
    lines += '\n';
  }
  return lines;
}

std::string KernelNeeds::constants() const {
  std::string lines;
  for (const std::string& constant : constants_) lines += constant + '\n';
  return lines;
}

std::string KernelNeeds::helpers() const {
  std::string text;
  for (const Function* helper : helpers_) text += verbatim(*helper) + "\n\n\n";
  return text;
}

}  // namespace hemiola::compile

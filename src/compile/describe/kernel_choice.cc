#include "compile/describe/kernel_choice.h"

#include <set>

#include "core/lists.h"

namespace hemiola::compile {
namespace {

/// Names that are called in a function, or given away as values.
void collect_names(const Source& source, const Node& node,
                   std::set<std::string, std::less<>>& names) {
  if (node.kind == Kind::identifier) names.emplace(source.text(node));
  for (const Node* child : node.children) collect_names(source, *child, names);
}

std::string listed(const std::vector<KernelName>& kernels, bool helpers_too) {
  constexpr std::size_t kMost = 12;
  std::vector<std::string> names;
  for (const KernelName& kernel : kernels)
    if (helpers_too || !kernel.is_helper) names.push_back(kernel.name);
  const std::size_t more = names.size() > kMost ? names.size() - kMost : 0;
  names.resize(names.size() - more);
  return joined(names) + (more > 0 ? " and " + std::to_string(more) + " more" : "");
}

}  // namespace

Span span_of(const Source& source, std::uint32_t begin, std::uint32_t end) {
  return {.file = source.file(),
          .begin = begin,
          .end = end,
          .line = source.line(begin),
          .column = source.column(begin),
          .last_line = source.line(end > begin ? end - 1 : end)};
}

Span span_of(const Source& source, const Node& node) {
  return span_of(source, node.begin, node.end);
}

std::vector<KernelName> kernels_of(const Module& module) {
  std::vector<KernelName> kernels;
  for (const auto& function : module.functions) {
    if (function->is_jit)
      kernels.push_back(
          {.name = function->name, .line = module.source.line(function->node->begin)});
  }
  std::set<std::string, std::less<>> called;
  for (const auto& function : module.functions) {
    if (!function->is_jit) continue;
    std::set<std::string, std::less<>> names;
    collect_names(module.source, function->body(), names);
    names.erase(function->name);
    called.merge(names);
  }
  for (KernelName& kernel : kernels) kernel.is_helper = called.contains(kernel.name);
  return kernels;
}

const Function& choose_kernel(const Module& module, const std::string& name) {
  const std::vector<KernelName> kernels = kernels_of(module);
  const std::string& file = module.source.file();
  if (kernels.empty())
    throw Failure(
        "there is no kernel in it: no function is decorated with @triton.jit",
        {.file = file, .line = 1, .column = 1},
        "the file must hold the kernel itself; where it is imported, give the file that it is in");
  if (!name.empty()) {
    const Function* found = module.find(name);
    if (found != nullptr && found->is_jit) return *found;
    if (found != nullptr)
      throw Failure("'" + name + "' is no kernel: it is not decorated with @triton.jit",
                    module.source.where(found->node->begin), "there are: " + listed(kernels, true));
    std::vector<std::string> names;
    for (const KernelName& kernel : kernels) names.push_back(kernel.name);
    std::string hint = suggest(name, names);
    if (hint.empty()) hint = "there are: " + listed(kernels, true);
    throw Failure("there is no kernel '" + name + "'", {.file = file, .line = 1, .column = 1},
                  hint);
  }
  const KernelName* only = nullptr;
  int count = 0;
  for (const KernelName& kernel : kernels) {
    if (kernel.is_helper) continue;
    only = &kernel;
    ++count;
  }
  if (count == 1) return *module.find(only->name);
  if (kernels.size() == 1) return *module.find(kernels[0].name);
  throw Failure("it has " + std::to_string(count > 0 ? count : static_cast<int>(kernels.size())) +
                    " kernels: " + listed(kernels, count == 0),
                {.file = file, .line = kernels[0].line, .column = 1},
                "--kernel NAME says which one is meant");
}

}  // namespace hemiola::compile

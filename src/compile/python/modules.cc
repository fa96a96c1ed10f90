#include "compile/python/modules.h"

#include <algorithm>
#include <filesystem>

#include "core/text.h"

namespace hemiola::compile {
namespace {

/// Reads the statements of a module that always run, or that an if or try chooses.
class ModuleReader {
 public:
  explicit ModuleReader(Module& module) : module_(module), source_(module.source) {}

  void read() {
    read_statements(module_.source.root());
    std::map<std::string, const Node*, std::less<>> around;
    read_nested(module_.source.root(), around);
    for (const auto& [name, value] : around)
      if (value != nullptr) module_.constants.emplace(name, value);
    for (const std::string& name : assigned_again_) {
      module_.constants.erase(name);
      module_.additions.erase(name);
    }
  }

 private:
  void read_statements(const Node& parent) {
    for (const Node* child : parent.children) read_statement(*child);
  }

  void read_statement(const Node& node) {
    switch (node.kind) {
      case Kind::function_definition:
        add(node, {});
        break;
      case Kind::decorated_definition: {
        const Node* definition = node.child(Field::definition);
        if (definition != nullptr && definition->kind == Kind::function_definition)
          add(*definition, decorators_of(node));
        break;
      }
      case Kind::import_statement:
      case Kind::import_from_statement:
        read_import(node);
        break;
      case Kind::expression_statement:
        for (const Node* child : node.children) read_assignment(*child);
        break;
      case Kind::if_statement:
      case Kind::else_clause:
      case Kind::elif_clause:
      case Kind::try_statement:
      case Kind::except_clause:
      case Kind::with_statement:
      case Kind::block:
        ++branches_;
        read_statements(node);
        --branches_;
        break;
      default:
        break;
    }
  }

  static std::vector<const Node*> decorators_of(const Node& decorated) {
    std::vector<const Node*> decorators;
    for (const Node* child : decorated.children)
      if (child->kind == Kind::decorator && !child->children.empty())
        decorators.push_back(child->children.front());
    return decorators;
  }

  /// Kernels inside of functions and classes, and what the functions around them assign once
  /// (null: several do).
  void read_nested(const Node& parent, std::map<std::string, const Node*, std::less<>>& around) {
    for (const Node* child : parent.children) {
      const Node* definition =
          child->kind == Kind::decorated_definition ? child->child(Field::definition) : child;
      const bool holds_more =
          definition != nullptr && (definition->kind == Kind::function_definition ||
                                    definition->kind == Kind::class_definition);
      const Node* body = holds_more ? definition->child(Field::body) : nullptr;
      if (body == nullptr) continue;
      const std::size_t before = module_.functions.size();
      for (const Node* inner : body->children)
        if (inner->kind == Kind::decorated_definition) add_kernel(*inner);
      read_nested(*body, around);
      if (module_.functions.size() == before) continue;
      for (const Node* statement : body->children) {
        const Node* one =
            statement->kind == Kind::expression_statement && !statement->children.empty()
                ? statement->children.front()
                : nullptr;
        if (one == nullptr || one->kind != Kind::assignment) continue;
        const Node *left = one->child(Field::left), *right = one->child(Field::right);
        if (left == nullptr || right == nullptr || left->kind != Kind::identifier) continue;
        const auto [known, is_new] = around.emplace(source_.text(*left), right);
        if (!is_new) known->second = nullptr;
      }
    }
  }

  void add_kernel(const Node& decorated) {
    const Node* definition = decorated.child(Field::definition);
    if (definition == nullptr || definition->kind != Kind::function_definition) return;
    auto function = read_function(module_, *definition, decorators_of(decorated));
    if (function && function->is_jit) add(std::move(function));
  }

  void add(const Node& definition, std::vector<const Node*> decorators) {
    add(read_function(module_, definition, std::move(decorators)));
  }

  void add(std::unique_ptr<Function> function) {
    if (!function) return;
    module_.by_name.insert_or_assign(function->name, function.get());
    module_.functions.push_back(std::move(function));
  }

  void read_import(const Node& node) {
    const Node* from = node.child(Field::module_name);
    const std::string module = from == nullptr ? "" : without_blanks(source_.text(*from));
    for (const Node* child : node.children) {
      if (child->kind == Kind::wildcard_import) module_.stars.push_back(module);
      if (child->field != Field::name) continue;
      std::string name, alias;
      if (child->kind == Kind::aliased_import) {
        const Node* inner = child->child(Field::name);
        const Node* as = child->child(Field::alias);
        if (inner == nullptr || as == nullptr) continue;
        name = without_blanks(source_.text(*inner));
        alias = source_.text(*as);
      } else {
        name = without_blanks(source_.text(*child));
        alias = name;
      }
      if (from != nullptr)
        module_.imports.insert_or_assign(alias, Import{module, name});
      else
        module_.imports.insert_or_assign(alias, Import{name, ""});
    }
  }

  void read_assignment(const Node& node) {
    if (node.kind == Kind::augmented_assignment) {
      const Node* left = node.child(Field::left);
      const Node* right = node.child(Field::right);
      if (left != nullptr && right != nullptr && left->kind == Kind::identifier)
        module_.additions[std::string(source_.text(*left))].push_back(right);
      return;
    }
    if (node.kind != Kind::assignment) return;
    const Node* left = node.child(Field::left);
    const Node* right = node.child(Field::right);
    if (left == nullptr || right == nullptr || left->kind != Kind::identifier) return;
    const std::string name(source_.text(*left));
    const auto [known, is_new] = module_.constants.emplace(name, right);
    if (is_new) return;
    // Where one branch says None, the other one says what the name stands for.
    if (right->kind == Kind::none) return;
    // Where branches look for what this Triton or PyTorch has, the first place where it is now.
    const bool is_choice =
        branches_ > 0 && (is_of_library(*known->second) || is_of_library(*right));
    if (known->second->kind == Kind::none || (is_choice && !is_of_library(*known->second)))
      known->second = right;
    else if (!is_choice)
      assigned_again_.push_back(name);
  }

  /// triton.language.extra.libdevice, tl.math; not what Triton keeps to itself, and drops again.
  bool is_of_library(const Node& value) const {
    const std::string_view text = source_.text(value);
    return value.kind == Kind::attribute && text.find("._") == text.npos &&
           (text.starts_with("triton.") || text.starts_with("tl.") || text.starts_with("torch."));
  }

  static std::string without_blanks(std::string_view text) {
    std::string clean;
    for (const char c : text)
      if (c != ' ' && c != '\t' && c != '\n' && c != '\\' && c != '\r') clean += c;
    return clean;
  }

  Module& module_;
  const Source& source_;
  std::vector<std::string> assigned_again_;
  int branches_ = 0;  ///< how deep in an if or a try
};

bool mentions_constexpr(const Source& source, const Node* type) {
  return type != nullptr && source.text(*type).find("constexpr") != std::string_view::npos;
}

}  // namespace

const Function* Module::find(std::string_view name) const {
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

std::string_view last_name(const Source& source, const Node& expression) {
  const Node* at = &expression;
  if (at->kind == Kind::call) at = at->child(Field::function);
  if (at != nullptr && at->kind == Kind::attribute) at = at->child(Field::attribute);
  if (at == nullptr || at->kind != Kind::identifier) return {};
  return source.text(*at);
}

std::unique_ptr<Function> read_function(const Module& module, const Node& definition,
                                        std::vector<const Node*> decorators) {
  const Source& source = module.source;
  const Node* name = definition.child(Field::name);
  const Node* parameters = definition.child(Field::parameters);
  if (name == nullptr || parameters == nullptr || definition.child(Field::body) == nullptr)
    return nullptr;
  auto function = std::make_unique<Function>();
  function->name = source.text(*name);
  function->module = &module;
  function->node = &definition;
  function->decorators = std::move(decorators);
  for (const Node* decorator : function->decorators)
    if (last_name(source, *decorator) == "jit") function->is_jit = true;
  for (const Node* child : parameters->children) {
    Parameter parameter{.node = child};
    const Node* named = child;
    if (child->kind == Kind::default_parameter || child->kind == Kind::typed_default_parameter) {
      named = child->child(Field::name);
      parameter.default_value = child->child(Field::value);
    } else if (child->kind == Kind::typed_parameter && !child->children.empty()) {
      named = child->children.front();
    }
    if (named == nullptr) continue;
    parameter.is_constexpr = mentions_constexpr(source, child->child(Field::type));
    if (named->kind == Kind::list_splat_pattern || named->kind == Kind::dictionary_splat_pattern) {
      parameter.is_rest = true;
      if (!named->children.empty()) named = named->children.front();
    }
    if (named->kind != Kind::identifier) continue;
    parameter.name = source.text(*named);
    function->parameters.push_back(std::move(parameter));
  }
  return function;
}

Library::Library(const std::vector<std::string>& helpers) {
  for (const std::string& file : helpers) helpers_.push_back(&load(file));
}

const Module& Library::add(const std::string& file, std::string text) {
  auto module = std::make_unique<Module>(file, std::move(text));
  ModuleReader(*module).read();
  const Module* added = module.get();
  modules_.push_back(std::move(module));
  by_file_[file] = added;
  return *added;
}

const Module& Library::load(const std::string& file) {
  if (const auto known = by_file_.find(file); known != by_file_.end() && known->second != nullptr)
    return *known->second;
  return add(file, read_file(file));
}

const Module* Library::try_file(const std::string& file) {
  if (const auto known = by_file_.find(file); known != by_file_.end()) return known->second;
  by_file_[file] = nullptr;
  if (modules_.size() >= kMostFiles || !is_file(file)) return nullptr;
  try {
    return &add(file, read_file(file));
  } catch (const Failure&) {
    return nullptr;  // what is imported is a help, and only looked at where it can be read
  }
}

const Module* Library::find_dotted(const std::string& from_file, const std::string& dotted) {
  namespace fs = std::filesystem;
  fs::path folder = fs::path(from_file).parent_path();
  std::size_t dots = 0;
  while (dots < dotted.size() && dotted[dots] == '.') ++dots;
  std::string path = dotted.substr(dots);
  std::ranges::replace(path, '.', '/');
  const auto in = [&](const fs::path& base) -> const Module* {
    const fs::path whole = path.empty() ? base : base / path;
    if (!path.empty()) {
      if (const Module* found = try_file(whole.string() + ".py")) return found;
    }
    return try_file((whole / "__init__.py").string());
  };
  if (dots > 0) {
    for (std::size_t i = 1; i < dots; ++i) folder = folder.empty() ? fs::path("..") : folder / "..";
    return in(folder.lexically_normal());
  }
  // A module of the standard library or an installed package is not in a folder above the kernel.
  constexpr int kMostLevels = 8;
  for (int level = 0; level < kMostLevels; ++level) {
    if (const Module* found = in(folder)) return found;
    if (folder.empty() || folder == folder.root_path()) break;
    folder = folder.parent_path();
  }
  return nullptr;
}

const Module* Library::module_of(const Module& from, const Import& import) {
  if (import.module.starts_with("triton") || import.module.starts_with("torch")) return nullptr;
  if (import.name.empty()) return find_dotted(from.source.file(), import.module);
  // A name of a package may be a module of it.
  const std::string glue = import.module.ends_with('.') ? "" : ".";
  if (const Module* found = find_dotted(from.source.file(), import.module + glue + import.name))
    return found;
  return nullptr;
}

const Function* Library::function(const Module& from, const std::string& name) {
  return function_in(from, name);
}

const Function* Library::function_in(const Module& module, const std::string& name, int depth) {
  constexpr int kMostReexports = 6;
  if (const Function* found = module.find(name)) return found;
  if (depth > kMostReexports) return nullptr;
  if (const auto import = module.imports.find(name); import != module.imports.end()) {
    const Import& what = import->second;
    if (what.module.starts_with("triton")) return nullptr;
    if (!what.name.empty()) {
      if (const Module* home = find_dotted(module.source.file(), what.module)) {
        if (const Function* found = function_in(*home, what.name, depth + 1)) return found;
      }
      for (const Module* helper : helpers_)
        if (const Function* found = helper->find(what.name)) return found;
    }
    return nullptr;
  }
  for (const std::string& star : module.stars) {
    if (star.starts_with("triton")) continue;
    const Module* home = find_dotted(module.source.file(), star);
    if (home == nullptr) continue;
    if (const Function* found = function_in(*home, name, depth + 1)) return found;
  }
  if (depth == 0) {
    for (const Module* helper : helpers_)
      if (const Function* found = helper->find(name)) return found;
  }
  return nullptr;
}

const Node* Library::constant(const Module& from, const std::string& name, const Module*& home,
                              int depth) {
  constexpr int kMostReexports = 6;
  if (const auto found = from.constants.find(name); found != from.constants.end()) {
    home = &from;
    return found->second;
  }
  const auto import = from.imports.find(name);
  if (depth > kMostReexports || import == from.imports.end() || import->second.name.empty() ||
      import->second.module.starts_with("triton"))
    return nullptr;
  const Module* next = find_dotted(from.source.file(), import->second.module);
  return next == nullptr ? nullptr : constant(*next, import->second.name, home, depth + 1);
}

}  // namespace hemiola::compile

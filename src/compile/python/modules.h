// Python files as modules: their functions, what they import, their constants. Nothing is executed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compile/python/syntax.h"

namespace hemiola::compile {

struct Module;

struct Parameter {
  std::string name;
  const Node* node = nullptr;
  const Node* default_value = nullptr;  ///< null: there is none
  bool is_constexpr = false;
  bool is_rest = false;  ///< *args or **kwargs
};

struct Function {
  std::string name;
  const Module* module = nullptr;
  const Node* node = nullptr;           ///< the function_definition
  std::vector<const Node*> decorators;  ///< in the order they stand, the outermost first
  std::vector<Parameter> parameters;
  bool is_jit = false;  ///< has a decorator whose last name is jit

  const Node& body() const { return *node->child(Field::body); }
};

/// `from module import name` or `import module`, for one name that it binds.
struct Import {
  std::string module;  ///< "triton.language", "..utils"
  std::string name;    ///< empty: the module itself
};

struct Module {
  explicit Module(std::string file, std::string text) : source(std::move(file), std::move(text)) {}

  Source source;
  std::vector<std::unique_ptr<Function>>
      functions;  ///< in the order of the file, then kernels inside of others
  std::map<std::string, const Function*, std::less<>> by_name;  ///< the last of a name
  std::map<std::string, Import, std::less<>> imports;
  std::vector<std::string> stars;  ///< modules of which all is imported
  std::map<std::string, const Node*, std::less<>>
      constants;  ///< names assigned once, to their expressions
  /// Expressions that are appended to a list constant later: `configs += [...]`.
  std::map<std::string, std::vector<const Node*>, std::less<>> additions;

  const Function* find(std::string_view name) const;
};

/// The function that a definition is, with its decorators.
std::unique_ptr<Function> read_function(const Module& module, const Node& definition,
                                        std::vector<const Node*> decorators);
/// The last name of `triton.jit` and of `triton.jit(...)`; empty for anything else.
std::string_view last_name(const Source& source, const Node& expression);

/// All files that a kernel may need: itself, those that were given, those that its imports lead to
/// in folders above it.
class Library {
 public:
  /// Files that were given are looked into for names that are imported from modules that are not
  /// found.
  explicit Library(const std::vector<std::string>& helpers = {});

  /// Failure for what cannot be read or is not Python.
  const Module& load(const std::string& file);
  /// A text that stands for a file.
  const Module& add(const std::string& file, std::string text);

  /// What `import` names, seen from `from`. Null: a file that is not there, or is not Python.
  const Module* module_of(const Module& from, const Import& import);
  /// A function by a name that it has in `from`, through imports and re-exports. Null: none is
  /// found.
  const Function* function(const Module& from, const std::string& name);
  const Function* function_in(const Module& module, const std::string& name, int depth = 0);
  /// A constant likewise; `home` is the module it stands in.
  const Node* constant(const Module& from, const std::string& name, const Module*& home,
                       int depth = 0);

 private:
  static constexpr std::size_t kMostFiles = 200;

  const Module* try_file(const std::string& file);
  const Module* find_dotted(const std::string& from_file, const std::string& dotted);

  std::vector<std::unique_ptr<Module>> modules_;
  std::map<std::string, const Module*> by_file_;  ///< null: looked for and not there
  std::vector<const Module*> helpers_;
};

}  // namespace hemiola::compile

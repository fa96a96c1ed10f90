// Decorators: configurations of autotuners, heuristics, wrappers. Lists are read as far as they are
// made of constants.
#include <algorithm>
#include <optional>

#include "compile/describe/describe.h"

namespace hemiola::compile {
namespace {

/// A constant, as Python, or a list of such.
struct Constant {
  std::string text;
  std::optional<std::vector<Constant>> items;
};
using Constants = std::map<std::string, Constant, std::less<>>;

class ConfigurationReader {
 public:
  ConfigurationReader(Library& library, Tuning& tuning) : library_(library), tuning_(tuning) {}

  void read(const Module& module, const Node& node, const Constants& names) {
    if (depth_ > 40 || !tuning_.unknown.empty()) return;
    ++depth_;
    read_inner(module, node, names);
    --depth_;
  }

 private:
  static constexpr std::size_t kMost = 4096;

  void unknown(const Module& module, const Node& node, const std::string& why) {
    if (tuning_.unknown.empty())
      tuning_.unknown = why + " (" + module.source.file() + ':' +
                        std::to_string(module.source.line(node.begin)) + ')';
  }

  void read_inner(const Module& module, const Node& node, const Constants& names) {
    const Source& source = module.source;
    switch (node.kind) {
      case Kind::parenthesized_expression:
      case Kind::list:
      case Kind::tuple:
        for (const Node* child : node.children) read(module, *child, names);
        return;
      case Kind::list_splat:
        if (!node.children.empty()) read(module, *node.children.front(), names);
        return;
      case Kind::binary_operator:
        if (node.children.size() == 2 && source.between(node, 0) == "+") {
          for (const Node* child : node.children) read(module, *child, names);
          return;
        }
        break;
      case Kind::list_comprehension:
      case Kind::generator_expression:
        comprehension(module, node, names, 1);
        return;
      case Kind::conditional_expression:
        unknown(module, node, "they depend on a condition");
        return;
      case Kind::identifier: {
        const std::string name(source.text(node));
        const Module* home = nullptr;
        const Node* constant = library_.constant(module, name, home);
        if (constant == nullptr)
          return unknown(module, node, "'" + name + "' is no constant of the text");
        read(*home, *constant, {});
        const auto more = home->additions.find(name);
        if (more == home->additions.end()) return;
        for (const Node* addition : more->second) read(*home, *addition, {});
        return;
      }
      case Kind::call:
        return call(module, node, names);
      default:
        break;
    }
    unknown(module, node, "they are computed in a way that is not followed");
  }

  void call(const Module& module, const Node& node, const Constants& names) {
    const Source& source = module.source;
    const std::string_view name = last_name(source, node);
    const Node* arguments = node.child(Field::arguments);
    if (name == "Config" && arguments != nullptr)
      return configuration(module, node, *arguments, names);
    const Node* callee = node.child(Field::function);
    const Function* function = nullptr;
    if (callee != nullptr && callee->kind == Kind::identifier)
      function = library_.function(module, std::string(name));
    if (function == nullptr)
      return unknown(module, node, "they come from a call of '" + std::string(name) + "'");
    const Node* found = nullptr;
    int count = 0;
    for (const Node* statement : function->body().children) {
      if (statement->kind == Kind::return_statement && !statement->children.empty())
        found = statement->children.front(), ++count;
      if (statement->kind != Kind::return_statement &&
          statement->kind != Kind::expression_statement)
        ++count;
    }
    if (found == nullptr || count != 1)
      return unknown(*function->module, *function->node,
                     "'" + std::string(name) + "' makes them by more than one expression");
    if (found->kind == Kind::identifier)
      return unknown(*function->module, *found,
                     "'" + std::string(name) + "' makes them step by step");
    read(*function->module, *found, {});
  }

  std::optional<Constant> constant(const Module& module, const Node& node, const Constants& names,
                                   int depth = 0) {
    const Source& source = module.source;
    if (depth > 8) return std::nullopt;
    switch (node.kind) {
      case Kind::integer:
      case Kind::float_:
      case Kind::string:
      case Kind::true_:
      case Kind::false_:
      case Kind::none:
      case Kind::unary_operator:
        return Constant{std::string(source.text(node)), std::nullopt};
      case Kind::parenthesized_expression:
        return node.children.empty() ? std::nullopt
                                     : constant(module, *node.children.front(), names, depth + 1);
      case Kind::identifier: {
        if (const auto found = names.find(source.text(node)); found != names.end())
          return found->second;
        const Module* home = nullptr;
        const Node* value = library_.constant(module, std::string(source.text(node)), home);
        return value == nullptr ? std::nullopt : constant(*home, *value, {}, depth + 1);
      }
      case Kind::list:
      case Kind::tuple: {
        Constant all{"", std::vector<Constant>()};
        for (const Node* child : node.children) {
          std::optional<Constant> item = constant(module, *child, names, depth + 1);
          if (!item) return std::nullopt;
          all.items->push_back(std::move(*item));
        }
        return all;
      }
      default:
        return std::nullopt;
    }
  }

  void configuration(const Module& module, const Node& node, const Node& arguments,
                     const Constants& names) {
    if (tuning_.configurations.size() >= kMost)
      return unknown(module, node, "there are more than " + std::to_string(kMost));
    const Source& source = module.source;
    Configuration made{.span = span_of(source, node)};
    for (const Node* argument : arguments.children) {
      const Node* value = argument;
      std::string_view name = "kwargs";
      if (argument->kind == Kind::keyword_argument) {
        const Node* named = argument->child(Field::name);
        value = argument->child(Field::value);
        if (named == nullptr || value == nullptr) continue;
        name = source.text(*named);
      } else if (argument != arguments.children.front()) {
        continue;
      }
      if (name == "kwargs" && value->kind == Kind::dictionary) {
        for (const Node* pair : value->children) {
          const Node* key = pair->child(Field::key);
          const Node* content = pair->child(Field::value);
          if (key == nullptr || content == nullptr || key->kind != Kind::string) {
            unknown(module, *pair, "its constants are not written out");
            return;
          }
          const std::optional<Constant> known = constant(module, *content, names);
          std::string_view written = source.text(*key);
          written = written.substr(1, written.size() - 2);
          made.constants[std::string(written)] =
              known && !known->items ? known->text : std::string(source.text(*content));
        }
      } else if (name == "kwargs") {
        return unknown(module, *value, "its constants are not written out");
      } else if (name == "num_warps" || name == "num_stages") {
        const std::optional<Constant> known = constant(module, *value, names);
        (name == "num_warps" ? made.warps : made.stages) =
            known && !known->items ? known->text : std::string(source.text(*value));
      }
    }
    tuning_.configurations.push_back(std::move(made));
  }

  /// child 0 is what is made; clauses follow.
  void comprehension(const Module& module, const Node& node, const Constants& names,
                     std::size_t clause) {
    if (tuning_.configurations.size() >= kMost || !tuning_.unknown.empty()) return;
    if (clause >= node.children.size()) return read(module, *node.children.front(), names);
    const Node& next = *node.children[clause];
    if (next.kind != Kind::for_in_clause)
      return unknown(module, next, "they are chosen by a condition");
    const Node* target = next.child(Field::left);
    const Node* over = next.child(Field::right);
    if (target == nullptr || over == nullptr)
      return unknown(module, next, "a loop makes them that is not followed");
    const std::optional<Constant> list = constant(module, *over, names);
    if (!list || !list->items)
      return unknown(
          module, *over,
          "a loop over '" + std::string(module.source.text(*over)).substr(0, 60) + "' makes them");
    for (const Constant& item : *list->items) {
      Constants inner = names;
      if (target->kind == Kind::identifier) {
        inner.insert_or_assign(std::string(module.source.text(*target)), item);
      } else if (item.items && item.items->size() == target->children.size()) {
        for (std::size_t i = 0; i < target->children.size(); ++i)
          inner.insert_or_assign(std::string(module.source.text(*target->children[i])),
                                 (*item.items)[i]);
      } else {
        return unknown(module, next, "a loop makes them that is not followed");
      }
      comprehension(module, node, inner, clause + 1);
    }
  }

  Library& library_;
  Tuning& tuning_;
  int depth_ = 0;
};

const Node* argument_of(const Source& source, const Node& call, std::string_view name,
                        std::size_t position) {
  const Node* arguments = call.child(Field::arguments);
  if (arguments == nullptr) return nullptr;
  std::size_t at = 0;
  for (const Node* child : arguments->children) {
    if (child->kind == Kind::keyword_argument) {
      const Node* named = child->child(Field::name);
      if (named != nullptr && source.text(*named) == name) return child->child(Field::value);
    } else if (at++ == position) {
      return child;
    }
  }
  return nullptr;
}

}  // namespace

Tuning read_tuning(Library& library, const Function& kernel) {
  Tuning tuning;
  const Module& module = *kernel.module;
  const Source& source = module.source;
  for (const Node* decorator : kernel.decorators) {
    const std::string_view name = last_name(source, *decorator);
    if (name == "jit") continue;
    const Node* configurations =
        decorator->kind == Kind::call
            ? argument_of(source, *decorator, "configs", name == "autotune" ? 0 : 99)
            : nullptr;
    if (configurations != nullptr) {
      tuning.line = source.line(decorator->begin);
      ConfigurationReader(library, tuning).read(module, *configurations, {});
      if (!tuning.unknown.empty()) tuning.configurations.clear();
      if (const Node* keys = argument_of(source, *decorator, "key", 1)) {
        for (const Node* key : keys->children) {
          std::string_view written = source.text(*key);
          if (key->kind == Kind::string && written.size() >= 2)
            tuning.keys.emplace_back(written.substr(1, written.size() - 2));
        }
      }
    } else if (name == "heuristics") {
      const Node* values = argument_of(source, *decorator, "values", 0);
      if (values != nullptr && values->kind == Kind::dictionary) {
        for (const Node* pair : values->children) {
          const Node* key = pair->child(Field::key);
          const Node* value = pair->child(Field::value);
          if (key == nullptr || value == nullptr || key->kind != Kind::string) continue;
          const std::string_view written = source.text(*key);
          tuning.heuristics[std::string(written.substr(1, written.size() - 2))] =
              source.text(*value);
        }
      } else if (values != nullptr) {
        tuning.heuristics["*"] = source.text(*values);
      }
      continue;
    }
    if (name != "autotune") tuning.wrappers.emplace_back(name);
  }
  return tuning;
}

}  // namespace hemiola::compile

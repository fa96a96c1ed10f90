#include "compile/rules/launch.h"

#include <algorithm>
#include <cctype>

#include "compile/python/formula.h"
#include "compile/rules/names.h"
#include "compile/skeleton/vocabulary.h"

namespace hemiola::compile::rules {
namespace {

constexpr int kLargestNumber = 16;  ///< that is taken as it stands: sizes of data change nothing

std::string lower_text(std::string_view written) {
  std::string text;
  for (const char c : written) {
    const auto lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0 || c == '#';
    if (!blank)
      text += lower;
    else if (!text.empty() && text.back() != ' ')
      text += ' ';
  }
  return text;
}

bool says(std::string_view text, const char* what) {
  const std::vector<std::string>& phrases = skeleton::Vocabulary::own().list(what);
  return std::ranges::any_of(phrases,
                             [&](const std::string& one) { return text.find(one) != text.npos; });
}

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Launches of one kernel: `kernel[grid](...)`.
class Reader {
 public:
  Reader(const Function& kernel, Host& host)
      : kernel_(kernel), source_(kernel.module->source), host_(host) {}

  /// The last launch counts, which is what the file's main part ends with.
  void look(const Node& node, const Node* around) {
    if (node.kind == Kind::for_statement || node.kind == Kind::while_statement ||
        node.kind == Kind::function_definition)
      around = &node;
    if (node.kind == Kind::call && is_launch(node)) read(node, around);
    for (const Node* one : node.children) look(*one, around);
  }

 private:
  bool is_launch(const Node& call) const {
    const Node* callee = call.child(Field::function);
    return callee != nullptr && callee->kind == Kind::subscript && callee->children.size() > 1 &&
           source_.text(*callee->children[0]) == kernel_.name;
  }

  void read(const Node& call, const Node* around) {
    around_ = around == nullptr ? &source_.root() : around;
    if (around_->kind == Kind::for_statement) {
      host_.counter = source_.text(*around_->child(Field::left));
      const std::string_view over = source_.text(*around_->child(Field::right));
      const bool from_zero = over.find(',') == over.npos;
      if (over.starts_with("range(")) host_.counter_is = from_zero ? "call" : "call + 1";
    }
    host_.launches = true;
    host_.arguments.clear();
    host_.grid.clear();
    std::size_t position = 0;  // of an argument; behind *arguments nobody knows it
    for (const Node* one : call.child(Field::arguments)->children) {
      if (one->kind == Kind::keyword_argument)
        take(std::string(source_.text(*one->child(Field::name))), *one->child(Field::value));
      else if (one->kind == Kind::list_splat)
        position = kernel_.parameters.size();
      else if (position < kernel_.parameters.size())
        take(kernel_.parameters[position++].name, *one);
    }
    const Node& callee = *call.child(Field::function);
    const Node* grid = assigned(*callee.children[1]);
    if (grid->kind == Kind::tuple)
      for (const Node* one : grid->children) host_.grid.emplace_back(source_.text(*assigned(*one)));
    if (callee.children.size() > 2)
      for (std::size_t i = 1; i < callee.children.size(); ++i)
        host_.grid.emplace_back(source_.text(*assigned(*callee.children[i])));
    host_.meets = rules::says(lower_text(source_.text(*around_)), "meets");
  }

  void take(const std::string& parameter, const Node& value) {
    const std::string written(source_.text(value));
    const std::string known = number_of(host_, written);
    const Node* from = known.empty() ? assigned(value) : &value;
    host_.arguments[parameter] = std::string(source_.text(*from));
    const std::string text(source_.text(*around_));
    const bool is_zeroed =
        text.find(written + ".zero_()") != text.npos ||
        text.find(written + ".fill_(0)") != text.npos ||
        (from != &value && host_.arguments[parameter].find("zeros(") != std::string::npos);
    if (is_zeroed) host_.zeroed.insert(parameter);
  }

  /// What a name stands for that is given a value once around the launch.
  const Node* assigned(const Node& value) const {
    const Node* found = nullptr;
    if (value.kind == Kind::identifier) find_assignment(*around_, source_.text(value), found);
    return found == nullptr ? &value : found;
  }

  void find_assignment(const Node& node, std::string_view name, const Node*& found) const {
    const Node* left = node.kind == Kind::assignment ? node.child(Field::left) : nullptr;
    if (left != nullptr && left->kind == Kind::identifier && source_.text(*left) == name)
      found = node.child(Field::right) == nullptr ? found : node.child(Field::right);
    for (const Node* one : node.children) find_assignment(*one, name, found);
  }

  const Function& kernel_;
  const Source& source_;
  Host& host_;
  const Node* around_ = nullptr;
};

}  // namespace

bool Host::says(const char* what) const {
  return rules::says(text, what);
}

Host read_host(const Function& kernel) {
  Host host{.text = lower_text(kernel.module->source.text())};
  Reader(kernel, host).look(kernel.module->source.root(), nullptr);
  return host;
}

std::string number_of(const Host& host, const std::string& host_text) {
  std::string made;
  for (std::size_t i = 0; i < host_text.size();) {
    if (!is_name(host_text[i])) {
      made += host_text[i++];
      continue;
    }
    // `hdl.world_size`, `shmem.get_rank()`: by the last of its names.
    std::size_t end = i, last = i;
    while (end < host_text.size() && (is_name(host_text[end]) || host_text[end] == '.')) {
      if (host_text[end] == '.') last = end + 1;
      ++end;
    }
    const std::string name = host_text.substr(last, end - last);
    i = host_text.substr(end, 2) == "()" ? end + 2 : end;
    if (std::isdigit(static_cast<unsigned char>(name.empty() ? 'x' : name[0])) != 0) {
      made += name;
      continue;
    }
    const std::string number = name == host.counter ? host.counter_is : number_by_name(name, false);
    if (number.empty() || number == "stride") return {};
    made += "(" + number + ")";
  }
  const auto number = number_in(made);
  if (number && (*number > kLargestNumber || *number < 0)) return {};
  if (number && *number == 0 && host_text != "0") return {};
  return Formula(made).is_known() ? made : "";
}

}  // namespace hemiola::compile::rules

#include "core/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/checked.h"
#include "core/text.h"

namespace hemiola {
namespace {

using nlohmann::json;

/// Walks well-formed JSON text without building anything.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  /// Failure for an object with the same key twice.
  void check_keys(const std::string& file) {
    blanks();
    check_value(file, 0);
  }

  std::size_t find(std::string_view pointer) {
    blanks();
    while (!pointer.empty()) {
      const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
      if (!step_into(pointer.substr(1, end - 1))) return std::string_view::npos;
      pointer.remove_prefix(end);
    }
    return at_;
  }

 private:
  bool more() const { return at_ < text_.size(); }
  bool is(char c) const { return more() && text_[at_] == c; }
  void blanks() {
    while (more() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }

  /// Moves to the member or element `name` of the container here.
  bool step_into(std::string_view name) {
    const bool object = is('{');
    if (!object && !is('[')) return false;
    ++at_;
    for (std::size_t index = 0; more(); ++index) {
      blanks();
      if (is('}') || is(']')) return false;
      std::string_view key;
      if (object) {
        const std::size_t begin = at_;
        skip_string();
        key = text_.substr(begin + 1, at_ - begin - 2);
        blanks();
        ++at_;  // the colon
        blanks();
      }
      if (object ? key == name : std::to_string(index) == name) return true;
      skip_value();
      blanks();
      if (is(',')) ++at_;
    }
    return false;
  }

  /// Passes the value here.
  void check_value(const std::string& file, int depth) {
    const bool object = is('{');
    if ((!object && !is('[')) || depth > kDeepest) return skip_value();
    ++at_;
    std::set<std::string_view> keys;
    for (;;) {
      blanks();
      if (is('}') || is(']')) break;
      if (object) {
        const std::size_t begin = at_;
        skip_string();
        const std::string_view key = text_.substr(begin + 1, at_ - begin - 2);
        if (!keys.insert(key).second)
          throw Failure(fmt::format("the key '{}' stands twice in one object", key),
                        locate(file, text_, begin), "leave one of them out");
        blanks();
        ++at_;  // the colon
        blanks();
      }
      check_value(file, depth + 1);
      blanks();
      if (is(',')) ++at_;
    }
    ++at_;
  }

  void skip_string() {
    for (++at_; more() && text_[at_] != '"'; ++at_)
      if (text_[at_] == '\\') ++at_;
    at_ = std::min(at_ + 1, text_.size());
  }

  void skip_value() {
    std::size_t depth = 0;
    while (more()) {
      const char c = text_[at_];
      if (c == '"') {
        skip_string();
        if (depth == 0) return;
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') {
        if (depth == 0) return;
        if (--depth == 0) {
          ++at_;
          return;
        }
      }
      if (c == ',' && depth == 0) return;
      ++at_;
    }
  }

  static constexpr int kDeepest = 200;  ///< nothing that is read here nests as deeply
  std::string_view text_;
  std::size_t at_ = 0;
};

std::string_view kind_of(const json& value) {
  if (value.is_number_float()) return "a fraction";
  if (value.is_number()) return "a number";
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  if (value.is_string()) return "a string";
  if (value.is_boolean()) return "true or false";
  return "null";
}

}  // namespace

std::size_t find_pointer(std::string_view json, std::string_view pointer) {
  return Scanner(json).find(pointer);
}

/// Nothing that we read nests deeper, and what does would fill the stack.
void refuse_deep(const JsonFile& file) {
  constexpr int kDeepest = 1000;
  int depth = 0;
  bool in_text = false;
  for (std::size_t at = 0; at < file.text.size(); ++at) {
    const char c = file.text[at];
    if (in_text) {
      if (c == '\\') ++at;
      in_text = c != '"';
      continue;
    }
    in_text = c == '"';
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (depth > kDeepest)
      throw Failure(fmt::format("the JSON text nests deeper than {} levels", kDeepest),
                    locate(file.name, file.text, at));
  }
}

json parse_json(const JsonFile& file) {
  refuse_deep(file);
  try {
    json parsed = json::parse(file.text);
    Scanner(file.text).check_keys(file.name);
    return parsed;
  } catch (const json::exception&) {
    throw json_failure(file.name, file.text, 0, file.text.size())
        .value_or(Failure("the JSON text cannot be read", {.file = file.name}));
  }
}

SourceLocation JsonValue::where() const {
  SourceLocation where{.file = file_->name};
  const std::size_t at = find_pointer(file_->text, pointer_);
  if (at != std::string_view::npos) where = locate(file_->name, file_->text, at);
  where.pointer = pointer_.empty() ? "/" : pointer_;
  return where;
}

void JsonValue::fail(const std::string& message, const std::string& hint) const {
  throw Failure(message, where(), hint);
}

void JsonValue::allow_keys(std::initializer_list<std::string_view> known) const {
  const std::vector<std::string> names(known.begin(), known.end());
  allow_keys(std::span<const std::string>(names));
}

void JsonValue::allow_keys(std::span<const std::string> known) const {
  if (!value_->is_object()) fail(fmt::format("an object is needed here, not {}", kind_of(*value_)));
  for (const auto& [key, value] : value_->items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    JsonValue(value, *file_, pointer_ + "/" + key)
        .fail(fmt::format("unknown key '{}'", key), suggest(key, {known.begin(), known.end()}));
  }
}

bool JsonValue::has(std::string_view key) const {
  return value_->is_object() && value_->contains(key);
}

std::vector<std::string> JsonValue::keys() const {
  if (!value_->is_object()) fail(fmt::format("an object is needed here, not {}", kind_of(*value_)));
  std::vector<std::string> names;
  for (const auto& [key, value] : value_->items()) names.push_back(key);
  return names;
}

JsonValue JsonValue::at(std::string_view key) const {
  if (!value_->is_object()) fail(fmt::format("an object is needed here, not {}", kind_of(*value_)));
  const auto found = value_->find(key);
  if (found == value_->end()) fail(fmt::format("the key '{}' is missing", key));
  return {*found, *file_, fmt::format("{}/{}", pointer_, key)};
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  return has(key) ? std::optional(at(key)) : std::nullopt;
}

std::vector<JsonValue> JsonValue::items() const {
  if (!value_->is_array()) fail(fmt::format("an array is needed here, not {}", kind_of(*value_)));
  std::vector<JsonValue> out;
  out.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i)
    out.emplace_back((*value_)[i], *file_, fmt::format("{}/{}", pointer_, i));
  return out;
}

std::vector<JsonValue> JsonValue::items(std::string_view key) const {
  return has(key) ? at(key).items() : std::vector<JsonValue>{};
}

std::string JsonValue::text() const {
  if (!value_->is_string()) fail(fmt::format("a string is needed here, not {}", kind_of(*value_)));
  return value_->get<std::string>();
}

bool JsonValue::boolean() const {
  if (!value_->is_boolean())
    fail(fmt::format("true or false is needed here, not {}", kind_of(*value_)));
  return value_->get<bool>();
}

std::int64_t JsonValue::integer(std::int64_t least, std::int64_t most) const {
  if (!value_->is_number_integer())
    fail(fmt::format("a whole number is needed here, not {}", kind_of(*value_)));
  const bool huge = value_->is_number_unsigned() &&
                    value_->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
  const std::int64_t number = huge ? INT64_MAX : value_->get<std::int64_t>();
  if (huge || number < least || number > most)
    fail(fmt::format("{} is not in the range {} to {}", value_->dump(), least, most));
  return number;
}

std::uint64_t JsonValue::unsigned_integer() const {
  if (!value_->is_number_unsigned())
    fail(fmt::format("a whole number of at least 0 is needed here, not {}", kind_of(*value_)));
  return value_->get<std::uint64_t>();
}

double JsonValue::number() const {
  if (!value_->is_number()) fail(fmt::format("a number is needed here, not {}", kind_of(*value_)));
  return value_->get<double>();
}

}  // namespace hemiola

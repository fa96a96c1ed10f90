#include "report/values/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "core/lists.h"
#include "report/values/numbers.h"

namespace hemiola::report {

std::string json_of(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
std::string json_of(const std::string& text) {
  return json_of(std::string_view(text));
}
std::string json_of(const char* text) {
  return json_of(std::string_view(text));
}
std::string json_of(double number) {
  return std::isfinite(number) ? fmt::format("{}", number) : "null";
}
std::string json_of(bool truth) {
  return truth ? "true" : "false";
}
std::string json_of(Time time) {
  return std::to_string(time.fs);
}
std::string json_of(Bytes bytes) {
  return std::to_string(bytes.count);
}
std::string json_of(const JsonText& value) {
  return value.text;
}

JsonObject::JsonObject(const std::string& indent)
    : open_('\n' + indent),
      between_(",\n" + indent),
      close_('\n' + indent.substr(std::min<std::size_t>(2, indent.size()))) {}

JsonObject JsonObject::compact() {
  JsonObject object;
  object.between_ = ",";
  object.colon_ = ":";
  return object;
}

JsonObject& JsonObject::on_new_line(std::string_view blanks) {
  (next_ = ",\n") += blanks;
  return *this;
}

JsonText JsonObject::json() const {
  return {text_.empty() ? "{}" : "{" + open_ + text_ + close_ + "}"};
}

void JsonObject::write(std::string_view name, const BothUnits& value) {
  write_text(std::string(name) + "_fs", json_of(value.time));
  text_ += ", " + json_of(std::string(name) + "_ns") + ": " + exact_ns(value.time);
}

void JsonObject::write_text(std::string_view name, std::string_view value) {
  if (!text_.empty()) text_ += next_.empty() ? between_ : std::exchange(next_, {});
  (text_ += json_of(name) + colon_) += value;
}

JsonText json_brackets(const std::vector<std::string>& elements, const std::string& before,
                       const std::string& between, const std::string& behind) {
  if (elements.empty()) return {"[]"};
  return {"[" + before + joined(elements, between) + behind + "]"};
}

}  // namespace hemiola::report

#include "report/values/node_names.h"

#include <algorithm>

namespace hemiola::report {

std::size_t common_prefix(const std::vector<std::string>& names) {
  if (names.size() < 2) return 0;
  std::size_t length = names.front().size();
  for (const std::string& name : names) {
    const auto differs =
        std::mismatch(names.front().begin(), names.front().end(), name.begin(), name.end());
    length = std::min(length, static_cast<std::size_t>(differs.first - names.front().begin()));
  }
  const std::size_t dot = names.front().rfind('.', length == 0 ? 0 : length - 1);
  return length == 0 || dot == std::string::npos ? 0 : dot + 1;
}

std::pair<std::string, std::vector<std::int64_t>> parts_of_name(const std::string& name) {
  std::pair<std::string, std::vector<std::int64_t>> parts;
  bool in_number = false;
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) {
      parts.first += c;
    } else {
      if (!in_number) parts.second.push_back(0);
      std::int64_t& number = parts.second.back();
      if (number < 1'000'000'000'000) number = 10 * number + (c - '0');
    }
    in_number = digit;
  }
  return parts;
}

}  // namespace hemiola::report

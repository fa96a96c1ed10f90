#include "compile/rules/names.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "compile/skeleton/vocabulary.h"

namespace hemiola::compile::rules {
namespace {

using Words = std::set<std::string>;

/// "peer_flags", "peerFlags" and "PEER_FLAGS" have the words peer and flags.
Words words_of(const std::string& name) {
  Words words;
  std::string word;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    const bool ends = i == name.size() || name[i] == '_' ||
                      (i > 0 && std::isupper(name[i]) != 0 && std::islower(name[i - 1]) != 0);
    if (ends && !word.empty()) words.insert(std::exchange(word, {}));
    if (i < name.size() && name[i] != '_')
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return words;
}

bool has_any(const Words& words, const std::vector<std::string>& of) {
  return std::ranges::any_of(of, [&](const std::string& one) { return words.contains(one); });
}

bool has_any(const Words& words, const char* list) {
  return has_any(words, skeleton::Vocabulary::own().list(list));
}

}  // namespace

std::string number_by_name(const std::string& name, bool is_constexpr) {
  const Words words = words_of(name);
  const bool is_rank = has_any(words, "of_ranks");
  if (has_any(words, "measure")) return "";
  if (is_rank && has_any(words, "how_many")) return "world";
  if (words.contains("sms")) return "programs";  // PRODUCER_SMS
  if (is_rank && words.contains("target")) return "(rank + 1) % world";
  for (const skeleton::NumberName& one : skeleton::Vocabulary::own().numbers())
    if (has_any(words, one.names)) return one.expression;
  if (!is_constexpr && words == Words{"step"}) return "call + 1";
  if (is_constexpr && !words.contains("num") && has_any(words, "block")) return "4";
  return words == Words{"k"} ? "8" : "";
}

bool is_of_ring(const std::string& name) {
  return has_any(words_of(name), "ring");
}

bool names_a_peer(const std::string& name) {
  return has_any(words_of(name), "peer");
}

Words core_of(const std::string& name) {
  Words core;
  for (std::string word : words_of(name)) {
    if (has_any({word}, "whose")) continue;
    const bool is_plural = word.size() > 2 && word.back() == 's';
    if (is_plural) word.pop_back();
    for (const char* end : {"xe", "she", "che", "se"})
      if (is_plural && word.ends_with(end)) {
        word.pop_back();
        break;
      }
    core.insert(std::move(word));
  }
  return core;
}

}  // namespace hemiola::compile::rules

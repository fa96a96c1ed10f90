#include "compile/skeleton/vocabulary.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "core/embedded.h"

namespace hemiola::compile::skeleton {
namespace {

using Meaning = Word::Meaning;

constexpr std::array<std::pair<std::string_view, Meaning>, 17> kMeanings{{
    {"none", Meaning::none},
    {"pure", Meaning::none},
    {"wait", Meaning::wait},
    {"signal", Meaning::signal},
    {"put", Meaning::put},
    {"get", Meaning::get},
    {"load", Meaning::load},
    {"store", Meaning::store},
    {"atomic", Meaning::atomic},
    {"address", Meaning::address},
    {"rank", Meaning::rank},
    {"world", Meaning::world},
    {"barrier_threads", Meaning::barrier_threads},
    {"barrier_ranks", Meaning::barrier_ranks},
    {"barrier_programs", Meaning::barrier_programs},
    {"fence", Meaning::fence},
    {"lane", Meaning::lane},
}};

/// How many threads do it together, and whether it returns early, changes nothing here.
std::string without_width(std::string_view name) {
  std::string plain(name);
  for (const char* part : {"_nbi", "_block", "_warp", "_wave", "_wg", "_rma", "_vec"}) {
    const std::size_t at = plain.find(part);
    if (at != std::string::npos) plain.erase(at, std::string_view(part).size());
  }
  return plain;
}

}  // namespace

const Vocabulary& Vocabulary::own() {
  static const Vocabulary made = [] {
    Vocabulary words;
    const EmbeddedFile* file = find_embedded("data/kernel_words.yaml");
    const YAML::Node root = YAML::Load(std::string(file->content));
    for (const YAML::Node& one : root["words"]) {
      Word word{.name = {}, .arguments = {}, .fixed = {}};
      const std::string meaning = one["meaning"].as<std::string>();
      const auto known = std::find_if(kMeanings.begin(), kMeanings.end(),
                                      [&](const auto& pair) { return pair.first == meaning; });
      word.meaning = known->second;
      for (const YAML::Node& argument : one["arguments"])
        word.arguments.push_back(argument.as<std::string>());
      for (const auto& pair : one["fixed"])
        word.fixed[pair.first.as<std::string>()] = pair.second.as<std::string>();
      std::istringstream names(one["name"].as<std::string>());
      while (std::getline(names, word.name, '|')) {
        words.words_.emplace_back(one["module"].as<std::string>(), word);
      }
    }
    return words;
  }();
  return made;
}

const Word* Vocabulary::find(std::string_view dotted) const {
  const std::size_t dot = dotted.rfind('.');
  const std::string_view module = dot == dotted.npos ? "" : dotted.substr(0, dot);
  const std::string_view last = dot == dotted.npos ? dotted : dotted.substr(dot + 1);
  // A library's prefix may stand in the name itself: nvshmem_quiet.
  const std::size_t prefix = last.find("shmem_") == last.npos ? 0 : last.find("shmem_") + 6;
  const bool is_prefixed = prefix > 0;
  std::string plain = without_width(last.substr(prefix));
  if (plain.starts_with("x_")) plain = plain.substr(2);
  for (const auto& [where, word] : words_) {
    const bool here =
        where.empty() || module.find(where) != module.npos || (is_prefixed && where == "shmem");
    if (here && (word.name == plain || word.name == last)) return &word;
  }
  return nullptr;
}

}  // namespace hemiola::compile::skeleton

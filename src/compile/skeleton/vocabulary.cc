#include "compile/skeleton/vocabulary.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "core/embedded.h"

namespace hemiola::compile::skeleton {
namespace {

/// In the order of Word::Meaning.
constexpr std::array<std::string_view, 34> kMeanings{"none",
                                                     "unknown",
                                                     "wait",
                                                     "signal",
                                                     "put",
                                                     "get",
                                                     "load",
                                                     "store",
                                                     "atomic",
                                                     "address",
                                                     "rank",
                                                     "world",
                                                     "barrier_threads",
                                                     "barrier_ranks",
                                                     "barrier_programs",
                                                     "fence",
                                                     "lane",
                                                     "first",
                                                     "program_id",
                                                     "num_programs",
                                                     "arange",
                                                     "full",
                                                     "cdiv",
                                                     "fold",
                                                     "where",
                                                     "reduce",
                                                     "cast",
                                                     "pointer_type",
                                                     "range",
                                                     "assembly",
                                                     "transpose",
                                                     "descriptor",
                                                     "advance"};

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
  using Strings = std::vector<std::string>;
  static const Vocabulary made = [] {
    Vocabulary all;
    const EmbeddedFile* file = find_embedded("data/kernel_words.yaml");
    const YAML::Node root = YAML::Load(std::string(file->content));
    for (const YAML::Node& one : root["words"]) {
      Word word;
      const auto* known = std::ranges::find(kMeanings, one["meaning"].as<std::string>());
      word.meaning = static_cast<Word::Meaning>(known - kMeanings.begin());
      word.arguments = one["arguments"].as<Strings>(Strings{});
      for (const auto& pair : one["fixed"])
        word.fixed[pair.first.as<std::string>()] = pair.second.as<std::string>();
      std::istringstream names(one["name"].as<std::string>());
      while (std::getline(names, word.name, '|'))
        all.words_.emplace_back(one["module"].as<std::string>(), word);
    }
    for (const YAML::Node& one : root["numbers"])
      all.numbers_.push_back({one["names"].as<Strings>(), one["is"].as<std::string>()});
    for (const auto& pair : root["lists"])
      all.lists_[pair.first.as<std::string>()] = pair.second.as<Strings>();
    return all;
  }();
  return made;
}

const Word* Vocabulary::find(std::string_view dotted) const {
  if (dotted.find("libdevice") != dotted.npos) return nullptr;
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

bool Vocabulary::only_computes(std::string_view dotted) {
  const auto has = [&](std::string_view what) { return dotted.find(what) != dotted.npos; };
  const std::string_view root = dotted.substr(0, dotted.find('.'));
  if (root == "math" || root == "torch" || has("libdevice")) return true;
  return root == "triton" && !has("experimental") && !has("distributed") && !has("descriptor") &&
         !has("tensormap");
}

}  // namespace hemiola::compile::skeleton

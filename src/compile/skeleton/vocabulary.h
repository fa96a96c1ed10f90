// What calls of communication libraries mean, from data/kernel_words.yaml.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hemiola::compile::skeleton {

/// One function of a library.
struct Word {
  enum class Meaning : std::uint8_t {
    none,     ///< nothing that others notice
    wait,     ///< until words have a value
    signal,   ///< sets or adds to a word, at a peer where one is named
    put,      ///< loads here, stores there
    get,      ///< loads there, stores here
    load,     ///< of a peer's memory
    store,    ///< to a peer's memory
    atomic,   ///< on a peer's memory, as tl's of the same name
    address,  ///< the address of the same place at a peer
    rank,
    world,
    barrier_threads,
    barrier_ranks,     ///< of the same program of all ranks
    barrier_programs,  ///< of all programs of a GPU
    fence,             ///< of this program's stores before what it tells next
    lane               ///< an index of a thread: code for each thread
  };
  Meaning meaning = Meaning::none;
  std::string name;
  std::vector<std::string> arguments;  ///< in order; "flag", "peer", "value", "pointer", "source",
                                       ///< "count", "sem", "scope", "size", "signal", "op", ...
  std::map<std::string, std::string> fixed;  ///< what no argument says: sem, scope, op, comparison

  std::string fixed_of(const std::string& key, const std::string& otherwise) const {
    const auto found = fixed.find(key);
    return found == fixed.end() ? otherwise : found->second;
  }
};

class Vocabulary {
 public:
  /// The one that is built in.
  static const Vocabulary& own();
  /// By its full name, "iris.put"; null: there is none.
  const Word* find(std::string_view dotted) const;

 private:
  std::vector<std::pair<std::string, Word>> words_;  ///< by the end of the full name
};

}  // namespace hemiola::compile::skeleton

// What calls mean, of communication libraries, Triton's language and Python:
// data/kernel_words.yaml.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hemiola::compile::skeleton {

/// One function of a library.
struct Word {
  enum class Meaning : std::uint8_t {
    none,     ///< nothing that others notice: arithmetic on data
    unknown,  ///< not followed
    wait,     ///< until words have a value
    signal,   ///< sets or adds to a word, at a peer where one is named
    put,      ///< loads here, stores there
    get,      ///< loads there, stores here
    load,     ///< here, or of a peer's memory
    store,
    atomic,
    address,  ///< the address of the same place at a peer
    rank,
    world,
    barrier_threads,
    barrier_ranks,     ///< of the same program of all ranks
    barrier_programs,  ///< of all programs of a GPU
    fence,             ///< of this program's stores before what it tells next
    lane,              ///< an index of a thread: code for each thread
    first,             ///< its first argument
    program_id,
    num_programs,
    arange,
    full,
    cdiv,
    fold,  ///< minimum, maximum
    where,
    reduce,
    cast,
    pointer_type,
    range,
    assembly,
    transpose,
    descriptor,
    advance
  };
  Meaning meaning = Meaning::none;
  std::string name;
  std::vector<std::string> arguments;  ///< in order; "flag", "peer", "value", "pointer", "source",
                                       ///< "count", "sem", "scope", "size", "signal", "op", ...
  std::map<std::string, std::string, std::less<>>
      fixed;  ///< what no argument says: sem, scope, op, comparison

  bool names_a_peer() const {
    return std::ranges::any_of(arguments,
                               [](const std::string& role) { return role.starts_with("peer"); });
  }
  std::string_view fixed_of(std::string_view key, std::string_view otherwise) const {
    const auto found = fixed.find(key);
    return found == fixed.end() ? otherwise : std::string_view(found->second);
  }
};

/// What a number is whose name has one of some words.
struct NumberName {
  std::vector<std::string> names;
  std::string expression;  ///< of rank, world, call and programs; "stride": of memory
};

class Vocabulary {
 public:
  /// The one that is built in.
  static const Vocabulary& own();
  /// By its full name, "iris.put"; null: there is none.
  const Word* find(std::string_view dotted) const;
  /// Whether a function that has no word does nothing that others notice.
  static bool only_computes(std::string_view dotted);
  /// Words of names, or phrases, that say something.
  const std::vector<std::string>& list(const char* what) const { return lists_.at(what); }
  const std::vector<NumberName>& numbers() const { return numbers_; }

 private:
  std::vector<std::pair<std::string, Word>> words_;  ///< by the end of the full name
  std::map<std::string, std::vector<std::string>> lists_;
  std::vector<NumberName> numbers_;
};

}  // namespace hemiola::compile::skeleton

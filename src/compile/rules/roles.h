// What the parameters of a kernel are when it is run: ranks, numbers of calls, sizes, memory of
// this rank or of a peer. From the protocol file, from --constexpr, from the text, from names.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compile/python/formula.h"
#include "compile/skeleton/survey.h"
#include "compile/skeleton/world.h"

namespace hemiola::compile::rules {

/// A protocol file.
struct Protocol {
  std::vector<int> ranks;                      ///< empty: 2 and 4
  int programs = 0, residents = 0, calls = 0;  ///< 0: not said
  bool meets_between = false, is_said = false;
  std::map<std::string, std::string> parameters;  ///< "rank": "rank", "far": "flags at rank + 1"
};
/// Failure for a file that is none, and for keys and parameters that there are not.
Protocol read_protocol(const std::string& file, const std::vector<std::string>& parameters);

/// What is done with an array, near (by its own rank) and far.
struct Use {
  bool is_told[2]{}, is_awaited[2]{}, is_loaded[2]{}, is_stored[2]{};
};

/// One way to read the parameters that the text leaves open.
struct Setting {
  std::vector<std::string> expressions;  ///< by parameter, of rank, world, call, programs
  std::vector<std::string> at;           ///< of memory of a peer: whose, likewise
  std::map<int, int> aliases;            ///< arrays that are another one
  int programs = 2;
};

/// What the kernel does, for all ranks and programs of a small run.
class Survey {
 public:
  Survey(const skeleton::Code& code, const ParameterValues& constants, const Protocol& protocol);

  skeleton::Arrays arrays;
  std::vector<skeleton::Trace> traces;
  std::set<int> not_followed;     ///< steps
  bool knows_ranks = false;       ///< the kernel is told of its rank or of peers
  std::vector<int> worlds{2, 4};  ///< numbers of ranks to run on
  std::vector<std::string> assumed;
  Setting setting;              ///< the likeliest
  std::vector<Setting> others;  ///< tried if that does not hold

  /// Programs along each axis of the grid.
  std::vector<int> grid(int programs) const;
  /// Values of a program's parameters.
  std::vector<skeleton::Value> start(const Setting& setting, int world, int rank, int call) const;
  int canonical(int array) const {
    const auto known = setting.aliases.find(array);
    return known == setting.aliases.end() ? array : known->second;
  }

 private:
  void type_parameters();
  void choose_numbers(const ParameterValues& constants);
  using Choices = std::vector<std::vector<std::function<void(Setting&)>>>;
  void choose_arrays();
  void match_peers(Choices& choices);
  Use of_peer(int parameter, Use use);
  std::pair<std::vector<int>, std::vector<int>> own_for(int array, const std::string& name,
                                                        const Use& use,
                                                        std::map<int, Use>& uses) const;
  void match_numbers(Choices& choices);
  void record(bool keeps);
  std::string expression_of(int parameter);
  void choose_worlds();
  bool is_told_or_awaited(const std::string& name) const;

  std::optional<std::int64_t> value_of(const std::string& text, const Names& names) const;

  const skeleton::Code& code_;
  const Protocol& protocol_;
  mutable std::map<std::string, Formula> formulas_;  ///< by their text: read once
};

/// The words of a name without those that only say whose it is: {"flag"} of "peer_flags".
std::set<std::string> core_of(const std::string& name);
bool names_a_peer(const std::string& name);

}  // namespace hemiola::compile::rules

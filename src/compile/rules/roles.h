// What the parameters of a kernel are when it is run: ranks, numbers of calls, sizes, memory of
// this rank or of a peer. From the protocol file, from --constexpr, from the text, from names.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compile/python/formula.h"
#include "compile/rules/launch.h"
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

class Reading;
struct ArrayUse;

/// One way to read the parameters that the text leaves open.
struct Setting {
  std::vector<std::string> expressions;  ///< by parameter, of rank, world, call, programs
  std::vector<std::string> at;           ///< of memory of a peer: whose, likewise
  std::map<int, int> aliases;            ///< arrays that are another one
  std::array<std::string, 3> axes;       ///< of the grid: "world", "1"; empty: what is tried
  bool is_unmatched = false;             ///< memory of a peer that is none of the own
  std::string left_out;  ///< "`far[]` is `inbox` of a peer": what is taken as not so

  bool operator==(const Setting&) const = default;
};

/// How many ranks, and programs of each, the kernel runs with.
struct Size {
  int world = 2;
  std::vector<int> grid{4, 1, 1};

  int programs() const { return grid[0] * grid[1] * grid[2]; }
};

/// What the kernel does, for all ranks and programs of a small run.
class Survey {
 public:
  Survey(const skeleton::Code& code, const ParameterValues& constants, const Protocol& protocol,
         const Host& host);

  skeleton::Arrays arrays;
  std::vector<skeleton::Trace> traces;
  std::set<int> not_followed;  ///< steps
  bool knows_ranks = false;    ///< the kernel is told of its rank or of peers
  std::vector<std::string> assumed;
  Setting setting;              ///< the likeliest
  int surveyed = 2;             ///< ranks of the traces
  int inferred_ranks = 0;       ///< numbers that only their use says to be ranks
  std::vector<Setting> others;  ///< tried if that does not hold

  /// Readings with other sizes of data, of which nothing says what they are.
  std::vector<Setting> resized(const Setting& chosen) const;
  /// Traces of another reading.
  void use(const Setting& chosen);
  /// Numbers of ranks and programs to run with.
  std::vector<Size> sizes(const Setting& chosen) const;
  /// Values of a program's parameters.
  std::vector<skeleton::Value> start(const Setting& chosen, const Size& size, int rank,
                                     int call) const;
  int canonical(int array) const {
    const auto known = setting.aliases.find(array);
    return known == setting.aliases.end() ? array : known->second;
  }

 private:
  using Change = std::function<void(Setting&)>;
  using Choices = std::vector<std::vector<Change>>;
  void type_parameters();
  void choose_numbers(const ParameterValues& constants);
  std::string text_of_number(int parameter, const ParameterValues& constants) const;
  std::string handed_over(int parameter) const;
  void take_from_protocol(int parameter);
  void share_programs();
  void choose_axes();
  void infer_ranks();
  void infer_by_tables();
  int strays_of(const Setting& setting);
  bool differs_by_rank(const Setting& setting);
  void choose_arrays();
  void match_peers(Choices& choices);
  ArrayUse of_peer(int parameter, ArrayUse use);
  std::vector<int> own_for(int array, const std::string& name, const ArrayUse& use,
                           const Reading& reading, bool& is_named) const;
  std::set<int> inputs() const;
  void match_numbers(Choices& choices);
  void record(const Setting& setting);
  std::string expression_of(int parameter) const;
  void choose_worlds();
  bool knows(const char* what, skeleton::Word::Meaning meaning) const;
  void add_names(const skeleton::Event& event, std::set<std::string>& names,
                 std::set<std::string>& counted) const;
  std::set<std::string> told_or_awaited(std::set<std::string>& counted) const;
  Size size_of(const Setting& chosen, int world, int programs) const;

  std::optional<std::int64_t> value_of(const std::string& text, const Names& names) const;

  const skeleton::Code& code_;
  const Protocol& protocol_;
  const Host& host_;
  std::vector<int> worlds_{2, 4};
  std::set<int> guessed_;  ///< numbers of which nothing says what they are
  std::set<int> axes_;     ///< of the grid, that the kernel asks for
  mutable std::map<std::string, Formula> formulas_;  ///< by their text: read once
};

}  // namespace hemiola::compile::rules

// Parameters of parts: what `--param NAME=VALUE` sets.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hemiola::parts {

/// A parameter of a part: a word out of `choices`, or, where there are none, an integer >= 0; a
/// text that the part reads where the default is no integer. Every parameter has a default.
struct Parameter {
  std::string name;
  std::string default_value;
  std::vector<std::string> choices{};
  std::string description{};
  std::string unit{};  ///< of a number: "bytes", "ranks"; empty: a count, a word, or said with it

  bool is_text() const;
};

/// Name, value; the last one wins.
using Parameters = std::vector<std::pair<std::string, std::string>>;

}  // namespace hemiola::parts

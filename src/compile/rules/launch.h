// What the kernel's file says of its host: how it is launched, and what happens between calls.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compile/python/modules.h"

namespace hemiola::compile::rules {

struct Host {
  std::string text;       ///< of the file, in lower case, blanks and comments' marks as one blank
  bool launches = false;  ///< the file has a launch of this kernel, of which the rest is
  std::map<std::string, std::string> arguments;  ///< by parameter: what is handed over
  std::vector<std::string> grid;                 ///< sizes along the axes; empty: a function
  std::string counter, counter_is;               ///< of the loop around it: "i", "call + 1"
  bool meets = false;                            ///< all ranks meet before or after each call
  std::set<std::string> zeroed;                  ///< parameters whose memory is zeroed before it

  /// Whether one of the vocabulary's phrases stands there.
  bool says(const char* what) const;
};

Host read_host(const Function& kernel);

/// A number that the host hands over, of rank, world, call and programs; empty: nobody knows.
std::string number_of(const Host& host, const std::string& text);

}  // namespace hemiola::compile::rules

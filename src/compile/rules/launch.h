// What the kernel's file says of its host: how it is launched, and what happens between calls.
#pragma once

#include <initializer_list>
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
  bool meets = false;                            ///< all ranks meet before or after each call
  std::set<std::string> zeroed;                  ///< parameters whose memory is zeroed before it

  bool says(std::initializer_list<const char*> phrases) const;
};

Host read_host(const Function& kernel);

/// A number that the host hands over, of rank, world, call and programs; empty: nobody knows.
std::string number_of(const std::string& host_text);

}  // namespace hemiola::compile::rules

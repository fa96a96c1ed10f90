// What names of parameters say: of numbers, and of whose memory it is.
#pragma once

#include <set>
#include <string>

namespace hemiola::compile::rules {

/// A number by what its name says, of rank, world, call and programs ("stride": of memory); empty:
/// it says nothing.
std::string number_by_name(const std::string& name, bool is_constexpr);
/// The words of a name without those that only say whose it is: {"flag"} of "peer_flags".
std::set<std::string> core_of(const std::string& name);
bool names_a_peer(const std::string& name);
bool is_of_ring(const std::string& name);

}  // namespace hemiola::compile::rules

// What a row of a profile is: requests that one GPU gets from others, and answers to its own.
#pragma once

#include <cstdint>
#include <string_view>

namespace hemiola::sim {

enum class ProfileKind : std::uint8_t {
  write,
  add,              ///< atomic, of `value`
  packet,           ///< a store of data that carry their flag, `value` (LL)
  read,             ///< somebody reads the destination's memory
  response,         ///< data for a load of the destination's own
  acknowledgement,  ///< of a store, or burst, of its own
  burst             ///< what a copy engine or a NIC sends: any number of bytes
};
std::string_view name_of(ProfileKind kind);

}  // namespace hemiola::sim

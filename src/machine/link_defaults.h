// What a link is taken for where the file gives no numbers, or only some.
#pragma once

#include <string_view>

#include "core/time.h"
#include "core/units.h"

namespace hemiola::machine {

struct LinkDefault {
  std::string_view words;  ///< a link is of this kind when its name or description has one of them
  std::string_view name;   ///< as messages call it: "NVLink 4"
  Rate bandwidth;          ///< per direction
  bool per_gpu;            ///< the bandwidth of all such links of one GPU together
  Time latency;            ///< per direction; assumed
  Bytes max_payload, header;
  std::string_view source;
};

/// By the name, else by the description, else Ethernet.
const LinkDefault& link_default(std::string_view name, std::string_view description);
/// By LinkDefault::name. Throws std::out_of_range for a name that is not in the table.
const LinkDefault& link_default_named(std::string_view name);

}  // namespace hemiola::machine

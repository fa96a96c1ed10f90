// Attributes of Chakra's nodes: a name and a value of one of thirty kinds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chakra.pb.h"

namespace hemiola::workload {

/// The whole number in an attribute of any numeric kind, or in a text of digits; nothing for what
/// is none, or does not fit.
std::optional<std::int64_t> integer_of(const chakra::AttributeProto& attribute);
/// Of any list kind of numbers.
std::optional<std::vector<std::int64_t>> integers_of(const chakra::AttributeProto& attribute);
/// Of a text or bytes, or the digits of a whole number.
std::optional<std::string> text_of(const chakra::AttributeProto& attribute);

/// Those that the reader takes; others are of no use to it.
enum class ChakraAttribute : std::uint8_t {
  is_cpu_op,
  comm_type,
  comm_size,
  comm_src,
  comm_dst,
  comm_tag,
  pg_name,
  involved_dim,
  num_ops,
  tensor_size,
  // What Chakra has no name for: see traces/chakra/writer.h.
  bytes,
  type,
  kind,
  stream,
  host,
  begin,
  duration,
  compute,
  splits,
  count
};
/// "comm_size", "hemiola.bytes"
std::string_view name_of(ChakraAttribute attribute);

/// The attributes of a node by name; of several with one name the last.
class ChakraAttributes {
 public:
  explicit ChakraAttributes(const chakra::Node& node);
  const chakra::AttributeProto* find(ChakraAttribute attribute) const {
    return known_[static_cast<std::size_t>(attribute)];
  }

 private:
  std::array<const chakra::AttributeProto*, static_cast<std::size_t>(ChakraAttribute::count)>
      known_{};
};

}  // namespace hemiola::workload

// Chakra execution traces as JSON, in the two forms that Chakra's own tools have: what its jsonizer
// writes (protobuf's JSON, one object after the other), and what its feeder reads
// ({"workload_graph": [{"Id": 0, "Name": ..., "NodeType": 4, ...}]}).
#pragma once

#include <string>
#include <string_view>

namespace hemiola::workload {

/// The same trace as protobuf, for read_chakra(). Keys that Chakra does not define are ignored, as
/// protobuf ignores unknown fields. Failure with the place of what is no JSON, or with the node and
/// key whose value cannot be one.
std::string chakra_from_json(const std::string& file, std::string_view content);

}  // namespace hemiola::workload

// What a workload has and Chakra has no name for, as attributes whose names begin with "hemiola.".
//
// Of a file: `hemiola.class`, the name of the rank's class; and in the file of the first rank
// `hemiola.workload`, an object in JSON: the workload's name, its streams, families, names of
// classes, facts, amounts of uneven all-to-alls, and the GPU on which it was recorded.
//
// Of a node: its `hemiola.stream` by number; times that are no whole microseconds
// (`hemiola.begin_fs`, `hemiola.duration_fs`) and `hemiola.host_fs`; `hemiola.kind` where the type
// does not tell; `hemiola.compute`, all numbers of a kernel; `hemiola.bytes` and `hemiola.type` of
// a collective, and `hemiola.splits` where it is uneven.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chakra.pb.h"
#include "workload/traces/assembly.h"
#include "workload/traces/chakra/attributes.h"
#include "workload/traces/groups.h"

namespace hemiola::workload {

struct ChakraExtension {
  std::string class_name;
};

/// Nothing for a file that we did not write. Makes the streams and families that it names.
std::optional<ChakraExtension> read_extension(const chakra::GlobalMetadata& metadata,
                                              TraceAssembly& assembly, ProcessGroups& groups,
                                              const std::string& file);
void write_extension(chakra::GlobalMetadata& metadata, const Workload& workload,
                     const std::string& class_name, bool is_first);

/// Times and kind of a node whose work was read. Failure: a number out of range.
void extend_node(Node& node, const chakra::Node& message, const ChakraAttributes& attributes,
                 TraceAssembly& assembly, const NodeOfFile& at);
void extend_call(CollectiveCall& call, const ChakraAttributes& attributes, const NodeOfFile& at);
/// Nothing if the node has none.
std::optional<Compute> extended_compute(const ChakraAttributes& attributes, const NodeOfFile& at);
std::vector<std::int64_t> numbers_of(const Compute& compute);

/// The name of each group of each family in files: "1", "2", ...; ASTRA-sim wants numbers.
std::vector<std::vector<std::string>> group_names(const Workload& workload);

}  // namespace hemiola::workload

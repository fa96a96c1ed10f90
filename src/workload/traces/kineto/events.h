// The events of a Kineto trace that matter: what the GPU did, what the host launched, and the
// operators around it.
//
// Format: the Trace Event Format of Chrome with Kineto's categories and arguments (pytorch/kineto,
// libkineto/src/output_json.cpp; pytorch, torch/csrc/profiler/).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workload/traces/groups.h"
#include "workload/traces/pytorch_calls.h"

namespace hemiola::workload {

/// Texts refer to the file's content. Times are nanoseconds since whenever.
struct KinetoArguments : CallArguments {
  std::string_view group_ranks;
  std::optional<std::int64_t> source, destination;
  std::string_view sent_splits, received_splits;  ///< "In split size", "Out split size"
  std::string_view dims, types;                   ///< "Input Dims", "Input type": JSON
  bool empty() const { return collective.empty() && dims.empty(); }
};

struct GpuEvent {
  enum class Kind : std::uint8_t { kernel, copy, set };
  Kind kind = Kind::kernel;
  std::string_view name;
  std::int64_t begin = 0, duration = 0;
  std::int64_t stream = 0;
  std::int64_t device = 0;
  std::int64_t correlation = -1;  ///< of the launch; -1: not said
  std::int64_t bytes = 0;         ///< of a copy
  std::int32_t arguments = -1;    ///< of KinetoEvents::arguments, of a collective
};

/// An operator of PyTorch or an annotation.
struct HostEvent {
  std::string_view name;
  std::int64_t begin = 0, duration = 0;
  std::int32_t thread = 0;
  std::int32_t arguments = -1;
  bool is_operator = false;  ///< an annotation else
};

/// A call of the GPU's runtime.
struct RuntimeEvent {
  std::string_view name;
  std::int64_t begin = 0, duration = 0;
  std::int32_t thread = 0;
  std::int64_t correlation = -1;
};

struct KinetoEvents {
  std::vector<GpuEvent> gpu;
  std::vector<HostEvent> host;
  std::vector<RuntimeEvent> runtime;
  std::vector<KinetoArguments> arguments;
  std::vector<std::string> threads;  ///< "4037"
  std::optional<std::int64_t> rank, world;
  std::vector<ProcessGroup> groups;
  bool has_unread_groups = false;       ///< pg_config is something else than a list of them
  std::vector<RecordedDevice> devices;  ///< of the node, by number
  std::shared_ptr<const void> texts;    ///< what they refer to
};

/// `content`: of the file. Failure with line and column for what is no such JSON.
KinetoEvents parse_kineto(const std::string& file, std::string content);

/// Indices of the events of each stream, by their begins.
std::map<std::int64_t, std::vector<std::int32_t>> events_of_streams(
    const std::vector<GpuEvent>& events);

/// The rank that `distributedInfo` at the beginning of a file says; nothing if it says none.
std::optional<std::int64_t> kineto_rank(std::string_view start);

}  // namespace hemiola::workload

// What the GPUs of an MSCCL++ plan declare: channels, remote buffers, semaphores.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.h"
#include "program/formats/mscclpp/channels.h"
#include "program/program.h"

namespace hemiola::program {

constexpr std::int64_t kMaximumChunks = INT32_MAX;
/// The buffers of a plan in Program::buffers.
constexpr std::int32_t kInput = 0, kOutput = 1, kScratch = 2;

struct MscclppGpu {
  std::array<std::int64_t, 3> chunks{};  ///< by buffer
  std::vector<int> memory_peers;         ///< by flattened memory channel
  std::vector<int> port_peers;
  struct Switch {
    std::int32_t buffer = 0;
    std::vector<int> ranks;
  };
  std::vector<Switch> switches;
  struct Remote {
    int rank = 0;
    std::int32_t buffer = 0;
    bool memory = false;  ///< may be accessed through memory channels
    bool port = false;
  };
  std::vector<Remote> remotes;
  std::vector<std::int32_t> semaphores;  ///< by id in the file: index into local_semaphores
};

struct MscclppDeclarations {
  std::vector<MscclppGpu> gpus;
  PairedChannels memory;
  PairedChannels port;
  /// (id in the file, initial value): semaphores with the same id but another initial value are
  /// kept apart.
  std::vector<std::pair<std::int64_t, std::int64_t>> local_semaphores;

  /// Program semaphores: those of memory channels, of port channels, then the local ones.
  std::int32_t first_port_semaphore() const { return memory.semaphores; }
  std::int32_t first_local_semaphore() const { return memory.semaphores + port.semaphores; }
  std::int64_t most_chunks(std::int32_t buffer) const;
};

/// Reads all but the thread blocks; Failure at what is wrong.
MscclppDeclarations read_declarations(const std::vector<JsonValue>& gpus);

Channel read_channel_type(const JsonValue& value);
std::int32_t read_buffer_type(const JsonValue& value);
/// An index below `count`; `what` and `owner` are for the message.
std::int64_t read_index(const JsonValue& value, std::size_t count, std::string_view what,
                        std::string_view owner);

}  // namespace hemiola::program

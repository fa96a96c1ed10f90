// What an engine does for the parts of a device: it queues their events and takes their requests
// from a CU to memory and back.
#pragma once

#include <cstdint>

namespace hemiola::sim {

struct Passage;
struct Request;

/// What happens; `a` and `b` of push() are what Cores::handle_core() says.
enum EventKind : std::int32_t {
  // Of requests under way; `a`: a request.
  kHop,
  kLegEnd,
  kMemory,
  kFill,
  kComplete,
  kPick,
  kAdmit,
  kCredit,
  kSwitch,
  kAnswer,
  // Of one rank's host, wavefronts and engines.
  kWave,
  kWaves,  ///< `b` wavefronts of a workgroup, from `a` on
  kDispatch,
  kKernelStart,
  kStreamNext,
  kProxy,
  kEngine,
  kEngineDone,
  kRetry,
  kQueue,
  kComputed,
  kPosted,
  kNap
};

constexpr std::uint32_t kFirstWaveTag = 1U << 16;  ///< completions have lower ones
// Order tags at slices, of what comes from engines: behind those of CUs and ports.
constexpr std::uint32_t kFlagsOfNics = 1U << 26;
constexpr std::uint32_t kFlagsOfCopies = kFlagsOfNics + 1;
constexpr std::uint32_t kLocalBursts = kFlagsOfNics + 2;  ///< that have read their source
constexpr std::uint32_t kFromEngines = kFlagsOfNics + 3;

/// Times are fs. Of what happens at the same time lower order tags come first, then what was pushed
/// first.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  virtual void push(std::int64_t time, EventKind kind, std::int32_t a, std::int32_t b = 0,
                    std::uint32_t tag = 0) = 0;
  /// A request that its CU has issued goes its way.
  virtual void depart(std::int32_t id, Request& request, std::int64_t departure) = 0;
  /// A request of an engine of the GPU goes out to another one.
  virtual void leave(std::int32_t id, std::int64_t now) = 0;
  /// What a slice or memory says at `time` goes to the CU that asked.
  virtual void answer_at(std::int32_t id, std::int64_t time) = 0;
  /// Of a slice, to memory.
  virtual void to_memory(std::int32_t id, std::int64_t time) = 0;
  /// Requests that nobody simulates have been over their links (skips.h).
  virtual void carry(const Passage& passage) = 0;
  /// When something of a wavefront may happen at the earliest.
  virtual std::int64_t open_from() const = 0;
};

}  // namespace hemiola::sim

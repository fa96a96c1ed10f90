// Nodes of a module: its instructions in the order in which they are launched. Private to its
// reader.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "workload/hlo/groups.h"
#include "workload/hlo/loops.h"
#include "workload/hlo/module.h"
#include "workload/hlo/work.h"
#include "workload/traces/assembly.h"
#include "workload/workload.h"

namespace hemiola::workload::hlo {

/// Streams, each in order.
enum class Lane : std::uint8_t { compute, communication, send, receive, copy, side };
constexpr std::size_t kLanes = 6;

/// Of each lane the last node that has to be over, and with it all nodes before it; -1: none.
class Moment {
 public:
  Moment() { last_.fill(-1); }
  static Moment of(Lane lane, std::int32_t node) {
    Moment moment;
    moment[lane] = node;
    return moment;
  }
  std::int32_t& operator[](Lane lane) { return last_[index(lane)]; }
  std::int32_t operator[](Lane lane) const { return last_[index(lane)]; }
  Moment& operator|=(const Moment& other) {
    for (std::size_t i = 0; i < kLanes; ++i) last_[i] = std::max(last_[i], other.last_[i]);
    return *this;
  }

 private:
  std::array<std::int32_t, kLanes> last_;
};

/// When a value is there; of a tuple each element may be known on its own.
struct Value {
  Moment ready;
  std::shared_ptr<const std::vector<Value>> elements;
};

/// A message that some ranks send and some receive, as works of their nodes by rank; -1: does not.
struct Permute {
  std::vector<std::int32_t> sends, receives;
};

/// Walks a module once, as any rank would.
class ModuleWalk {
 public:
  /// Refers to what it is given.
  ModuleWalk(const Module& module, const Devices& devices, bool lenient, WorkloadBuilder& builder,
             Tally& tally);

  /// Failure as read_hlo().
  void run();

  /// Nodes of kind send and receive have as `work` the index of their Permute, once for each set
  /// of pairs without a rank that is there twice.
  const Trace& trace() const { return trace_; }
  const std::vector<Permute>& permutes() const { return permutes_; }
  /// "while.3 6 times".
  const std::vector<std::string>& loops() const { return loops_; }

 private:
  using Values = std::vector<Value>;

  /// What an instruction is, found once however often it runs.
  struct Known {
    std::uint32_t name = 0;
    NodeKind kind = NodeKind::nothing;
    std::int32_t work = -1;
    std::vector<std::int32_t> permutes;
  };

  Value visit(const Computation& computation, const Values& arguments);
  Value visit(const Computation& computation, const Instruction& instruction, const Values& values,
              const Values& arguments);
  Value visit_plain(const Computation& computation, const Instruction& instruction,
                    const Values& values);
  Value nothing(const Instruction& instruction, const Values& values, const Values& arguments);
  Value loop(const Computation& computation, const Instruction& instruction, const Values& values);
  Value conditional(const Instruction& instruction, const Values& values);
  Value start(const Computation& computation, const Instruction& instruction, const Moment& after,
              const Values& values);
  Value kernel(const Known& known, const Moment& after, Lane lane);
  Value communicate(const Known& known, const Moment& after, bool is_whole);
  Value host(const Instruction& instruction, const Moment& after);

  /// The collective of a fusion that hands it slices; null: there is none in it.
  const Instruction* fused_collective(const Computation& fused);
  const Known& known_kernel(const Computation& computation, const Instruction& instruction);
  const Known& known_call(const Computation& computation, const Instruction& instruction);
  const Known& known_message(const Instruction& instruction, std::int64_t bytes);
  std::vector<std::int32_t> permutes_of(const Instruction& instruction, std::int64_t bytes);
  std::vector<std::pair<int, int>> send_recv_pairs(const Instruction& instruction) const;

  Moment operands_ready(const Instruction& instruction, const Values& values) const;
  std::int32_t add(Lane lane, NodeKind kind, std::uint32_t name, std::int32_t work,
                   const Moment& after);
  [[noreturn]] void refuse_length();
  std::string place(const Instruction& instruction) const;

  const Module& module_;
  const Devices& devices_;
  bool lenient_;
  WorkloadBuilder& builder_;
  Tally& tally_;
  KernelWork work_;
  Extents extents_;
  bool is_scheduled_;
  Lane kernel_lane_ = Lane::compute;

  Trace trace_;
  std::vector<Permute> permutes_;
  std::vector<std::string> loops_;
  std::unordered_map<const Instruction*, Known> known_;
  std::unordered_map<const Computation*, const Instruction*> fused_collectives_;
  Moment last_;                        ///< node of each lane
  std::array<Moment, kLanes> waited_;  ///< what each lane has waited for
  std::array<std::int32_t, kLanes> stream_of_;
  Moment controls_;  ///< control predecessors of the instruction that is visited
  Moment stall_;     ///< what the compute lane waits for before it goes on
};

}  // namespace hemiola::workload::hlo

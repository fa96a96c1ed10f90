// What a program of a kernel does, as operations of a workgroup. Private to readback/.
#pragma once

#include <optional>
#include <vector>

#include "compile/readback/moves.h"

namespace hemiola::compile::readback {

/// What one program of a kernel does.
class TileWriter : public BodyWriter {
 public:
  /// `trace`: where its tiles, waits and signals are listed; may be null.
  TileWriter(const BodyTarget& target, program::Body& body, const LaunchFacts& facts,
             const WorkObject& work, std::int64_t program, std::vector<TraceEvent>* trace)
      : BodyWriter(target, body), facts_(facts), work_(work), program_(program), trace_(trace) {}

  void add(KernelEvent& event);
  void finish() { flush(); }

 private:
  [[noreturn]] void refuse_other(const KernelEvent& event) const;
  void access(KernelEvent& event);
  void sum(const KernelEvent& event, const std::vector<program::Operand>& operands);
  void take(const KernelEvent& event, const Region& region);
  void give(const KernelEvent& event, const Region& region);
  void product(const KernelEvent& event);
  void count(const KernelEvent& event);
  void tell(const KernelEvent& event);
  void move(const KernelEvent& event);
  void close_share(const KernelEvent& event);
  void close_loads(const Node* node);
  void flush();
  int line(const KernelEvent& event) const {
    return target_.reading.walker.module().source.line(event.node->begin);
  }
  void note(TraceEvent event) {
    if (trace_ != nullptr) trace_->push_back(std::move(event));
  }

  const LaunchFacts& facts_;
  const WorkObject& work_;
  std::int64_t program_, turn_ = -1;
  std::vector<TraceEvent>* trace_;
  std::vector<program::Operand> loads_;  ///< since the last product
  std::vector<program::Op> steps_;       ///< computes that are not written yet
  std::optional<Share> share_;           ///< of the movement that is under way
  ShareWriter moved_;
  std::int64_t part_ = -1, ticket_ = -1;  ///< of the last count that nobody waited for
  std::int64_t counted_part_ = -1;
  const Node* node_ = nullptr;  ///< of the last event
};

}  // namespace hemiola::compile::readback

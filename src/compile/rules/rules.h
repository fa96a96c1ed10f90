// The order of memory in a kernel's text: waits, signals and counters between programs, GPUs and
// copy engines, judged by rules. The text may be ours or anybody's (docs/kernel_rules.md).
#pragma once

#include <string>
#include <vector>

#include "compile/describe/describe.h"

namespace hemiola::compile {

/// A place where a kernel is wrong.
struct Violation {
  std::string rule;  ///< "wait-acquire"
  std::string what;
  std::string hint;
  Span span;
};

/// What a kernel does with memory that others wait for or write, in the order of its text, calls of
/// its helpers in place.
struct MemoryEvent {
  enum class Kind : std::uint8_t {
    load,         ///< of a block
    store,        ///< of a block
    bulk_store,   ///< of a block, by a descriptor: by TMA on the target that has it
    bulk_wait,    ///< until bulk stores are complete
    barrier,      ///< of the program's threads
    poll,         ///< a look at a signal, again and again
    plain_poll,   ///< likewise, by a load
    count,        ///< a counter of tiles, whose value decides what follows
    signal,       ///< told by an atomic
    plain_signal  ///< told by a store, to where others look
  };
  Kind kind = Kind::load;
  std::string operand;       ///< parameter of the kernel; empty: an address that was loaded
  std::string sem;           ///< "acquire", "release", "acq_rel", "relaxed"; "?": not in the text
  std::string scope;         ///< "cta", "gpu", "sys"; "?"
  bool is_remote = false;    ///< through an address that was loaded from a table: a peer's
  bool frees = false;        ///< of a signal: atomic_xchg with 0, which gives a turn on
  bool may_be_data = false;  ///< of a signal: an atomic sum without an order or a scope
  Span span;
};

struct RuleReport {
  std::string kernel;
  std::vector<MemoryEvent> events;
  std::vector<Violation> violations;  ///< in the order of the text

  int count(MemoryEvent::Kind kind) const;
};

/// Judges one kernel. `request` as for describe(); `target` decides what descriptors are.
RuleReport check_rules(Library& library, const Module& module, const DescribeRequest& request);

std::string_view name_of(MemoryEvent::Kind kind);

}  // namespace hemiola::compile

// The order of memory in a kernel: who tells whom what, by which word, and whether the protocol
// holds for any order in which ranks and programs run (docs/kernel_rules.md). The text may be ours
// or anybody's.
#pragma once

#include <string>
#include <vector>

#include "compile/describe/kernel_choice.h"

namespace hemiola::compile {

/// A place where a kernel is wrong.
struct Violation {
  std::string rule;  ///< "wait-acquire"
  std::string what;
  std::string hint;
  Span span;
  std::vector<Span> calls;         ///< of helpers that lead there, the outermost first
  std::vector<std::string> notes;  ///< who waits for what, which ranks and calls
  bool is_endless = false;         ///< a wait that cannot end (exit code 4)
  bool is_of_run = false;          ///< found when the protocol was run
};

/// What a kernel does with memory that others wait for or write, in the order of its text, calls of
/// its helpers in place.
struct MemoryEvent {
  enum class Kind : std::uint8_t {
    load,          ///< of a block
    store,         ///< of a block
    bulk_store,    ///< of a block, by a descriptor: by TMA on the target that has it
    bulk_wait,     ///< until bulk stores are complete
    barrier,       ///< of the program's threads, or of all ranks
    poll,          ///< a look at a signal, again and again
    plain_poll,    ///< likewise, by a load
    count,         ///< a counter of tiles, whose value decides what follows
    signal,        ///< told by an atomic
    plain_signal,  ///< told by a store, to where others look
    look,          ///< of a load or an atomic at a table or a word, which waits for nothing
    other          ///< a counter that gives out work, or is set back
  };
  Kind kind = Kind::load;
  std::string operand;     ///< the array: a parameter, or "peers[]": what a table's addresses reach
  std::string sem;         ///< "acquire", "release", "acq_rel", "relaxed"; "?": not in the text
  std::string scope;       ///< "cta", "gpu", "sys"; "?"
  bool is_remote = false;  ///< at a peer
  Span span;
};

struct RuleRequest {
  std::string kernel;           ///< empty: the only one of the file
  ParameterValues constants;    ///< BLOCK_M: "128"
  std::string target = "cuda";  ///< cuda, cdna, rdna
  std::string triton;           ///< "3.9"; empty: all that are known
  std::string protocol;         ///< a file (docs/kernel_rules.md); empty: what the text lets assume
};

struct RuleReport {
  std::string kernel;
  std::vector<MemoryEvent> events;
  std::vector<Violation> violations;    ///< in the order of the text
  bool communicates = false;            ///< it touches memory that others wait for or exchange
  std::vector<std::string> assumed;     ///< what the verdict rests on
  std::vector<std::string> not_judged;  ///< and why
  bool has_open_scope = false;          ///< ... of a wait, which no proof of programs says either

  int count(MemoryEvent::Kind kind) const;
};

/// Judges one kernel. Failure as of choose_kernel() and check_constants(), and for a protocol file
/// that is none.
RuleReport check_rules(Library& library, const Module& module, const RuleRequest& request);

std::string_view name_of(MemoryEvent::Kind kind);

}  // namespace hemiola::compile

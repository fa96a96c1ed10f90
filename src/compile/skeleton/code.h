// A kernel as a list of steps for a stack machine: calls of helpers in place, with the chain of
// calls that led to each step.
#pragma once

#include <string>
#include <vector>

#include "compile/describe/kernel_choice.h"
#include "compile/skeleton/value.h"
#include "compile/skeleton/vocabulary.h"

namespace hemiola::compile::skeleton {

enum class Op : std::uint8_t {
  constant,  ///< pushes constants[a]
  local,     ///< pushes slot a
  set,       ///< pops into slot a
  pop,
  twice,         ///< pushes the top again
  unary,         ///< by names[a]
  binary,        ///< by names[a]
  tuple,         ///< of a values
  unpack,        ///< into a values, the first on top
  subscript,     ///< by a values
  reshape,       ///< by names[a]
  attribute,     ///< names[a]
  format,        ///< text with slots put in: formats[a]
  call,          ///< calls[a]
  jump,          ///< to a
  leave,         ///< to a: break, continue, return
  over_else,     ///< to a, behind the `then` of if b
  again,         ///< to a, the head of loop b
  unless,        ///< pops; to a if it is false; of statement b (-1: an expression)
  unless_while,  ///< pops; to a if it is false; of loop b
  shortcut,      ///< to a if the top decides already; b: 1 of `or`
  if_end,        ///< of b
  loop_begin,    ///< b
  loop_end,      ///< b
  next           ///< the next value of slot b, or to a
};

struct Step {
  Op op = Op::constant;
  int a = 0, b = 0;
  const Node* node = nullptr;
  int site = 0;
};

struct Call {
  Word::Meaning meaning = Word::Meaning::none;
  std::string name;    ///< "atomic_add", "put"
  int positional = 0;  ///< arguments on the stack, before those with names
  std::vector<std::string> keywords;
  const Word* word = nullptr;  ///< null: of what only computes, or is not followed
};

/// A function in place: where it was called from.
struct Site {
  const Module* module = nullptr;
  std::string function;
  const Node* call = nullptr;  ///< in the module of `parent`; null: the kernel itself
  int parent = -1;
};

struct Format {
  std::string text;
  std::vector<std::pair<std::string, int>> slots;  ///< "sem": slot
};

struct Parameter {
  std::string name;
  bool is_constexpr = false;
  std::string default_text;  ///< empty: none
};

struct NotFollowed {
  std::string what;  ///< "lib.send()"
  Span span;
};

struct Code {
  std::vector<Step> steps;
  std::vector<Value> constants;
  std::vector<std::string> names;
  std::vector<Call> calls;
  std::vector<Format> formats;
  std::vector<Site> sites;
  std::vector<Parameter> parameters;  ///< slots 0, 1, ...
  std::vector<NotFollowed> not_followed;
  int slots = 0, loops = 0;
  std::vector<bool> loop_may_wait;  ///< what ends it may be what it looks at

  Span span(int step) const;
  /// Calls that led to a step, the outermost first: "called at kernel.py:12".
  std::vector<Span> chain(int step) const;
};

/// Failure only for a kernel without a body.
Code assemble(Library& library, const Function& kernel, const Vocabulary& vocabulary);

}  // namespace hemiola::compile::skeleton

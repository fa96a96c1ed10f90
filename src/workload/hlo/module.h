// HLO modules as text: what XLA dumps with --xla_dump_hlo_as_text, and JAX prints with
// compiled.as_text(). docs/hlo.md is the manual.
//
// The text format is public and has no version. Names, opcodes and attributes stay as they are
// written, as views of the text, which the module keeps: so attributes that nobody knows are kept,
// too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/diagnostics.h"

namespace hemiola::workload::hlo {

/// "f32[8,128]{1,0}", or a tuple of shapes.
struct Shape {
  std::string_view type;    ///< "bf16", "s4", "token"; empty: a tuple
  std::string_view layout;  ///< between the braces, "1,0:T(8,128)"; empty: none is said
  std::vector<std::int64_t> dimensions;
  std::vector<Shape> elements;  ///< of a tuple

  bool is_tuple() const { return type.empty(); }
};

/// Elements of an array, its dimensions multiplied; of a tuple the sum. At most 2^60.
std::int64_t elements_of(const Shape& shape);
/// The same in bytes, elements of less than 8 bits packed. Tokens have none.
std::int64_t bytes_of(const Shape& shape);
/// Bits of an element; 0 for "token" and "opaque", and for what is no element type.
int bits_of(std::string_view type);
/// "f32[8,128]", without layouts.
std::string text_of(const Shape& shape);

struct Attribute {
  std::string_view name;
  std::string_view value;  ///< as written, with its braces or quotes
};

struct Instruction {
  std::string_view name;  ///< without "%"
  std::string_view opcode;
  Shape shape;
  std::vector<std::uint32_t> operands;  ///< of Computation::instructions, all before this one
  std::string_view literal;             ///< of parameter and constant: what is in parentheses
  std::uint32_t first_attribute = 0;    ///< of Module::attributes
  std::uint32_t attributes = 0;
  std::size_t offset = 0;  ///< of its name in the text
};

struct Computation {
  std::string_view name;
  std::vector<Instruction> instructions;  ///< each behind its operands
  std::uint32_t root = 0;
  std::size_t offset = 0;

  const Instruction& root_instruction() const { return instructions[root]; }
};

/// A line of a program that an instruction comes from.
struct SourceLine {
  std::string_view file, function;
  std::int64_t line = 0;
};

struct Module {
  std::string file;  ///< for messages
  std::shared_ptr<const std::string> text;
  std::string_view name;
  std::vector<Computation> computations;
  std::uint32_t entry = 0;
  std::vector<Attribute> attributes;
  std::vector<Attribute> header;  ///< the module's own
  std::unordered_map<std::string_view, std::uint32_t> by_name;
  std::unordered_map<std::int64_t, SourceLine> frames;  ///< by stack_frame_id, innermost
  std::vector<std::size_t> lines;                       ///< where each line of the text begins

  const Computation& entry_computation() const { return computations[entry]; }
  /// As written; empty: there is none.
  std::string_view attribute(const Instruction& instruction, std::string_view name) const;
  std::string_view header_attribute(std::string_view name) const;
  /// The computation that an attribute names. Failure: there is no such attribute, or computation.
  const Computation& called(const Instruction& instruction, std::string_view attribute) const;
  /// The computations of a list: `{%a, %b}`.
  std::vector<const Computation*> called_list(const Instruction& instruction,
                                              std::string_view attribute) const;
  /// "model.py:12 in layer" and the operation's name, as far as they are said.
  std::string origin(const Instruction& instruction) const;

  SourceLocation at(std::size_t offset) const;  ///< in time of a logarithm, as there are many
  [[noreturn]] void fail(const Instruction& instruction, const std::string& message,
                         const std::string& hint = {}) const;
};

/// Reads a module. Linear in the text, in time and in memory.
///
/// Failure, with line and column: text that is no HLO, or is cut short; a name that is there twice,
/// or is used before it is there (of computations too: so calls come to an end); a shape of unknown
/// type or size; no ENTRY computation, or two; calls more than a hundred deep.
Module parse(std::string file, std::string text);

}  // namespace hemiola::workload::hlo

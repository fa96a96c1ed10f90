// What following a kernel symbolically leaves behind: every memory access with its address, loops,
// products, comparisons.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compile/describe/expression.h"
#include "compile/describe/kernel_choice.h"

namespace hemiola::compile {

struct Value;
using Ref = std::shared_ptr<const Value>;

/// What an expression of a kernel stands for.
struct Value {
  enum class Type : std::uint8_t {
    nothing,  ///< None
    number,   ///< a scalar or a block of numbers, or addresses
    tuple,
    text,           ///< a string
    block_pointer,  ///< tl.make_block_ptr
    descriptor,     ///< tl.make_tensor_descriptor
    function,
    other,  ///< a type, a module, ...: nothing that an address is made of
  };
  Type type = Type::other;
  Expr number;              ///< of a number; of block pointers and descriptors the base address
  std::vector<Expr> shape;  ///< of a number: extents of the block; empty: a scalar
  std::vector<Ref> items;
  std::string text;  ///< of a string; of `other` its name
  const Function* function = nullptr;
  std::vector<Expr> sizes, strides, offsets, block;  ///< of block pointers and descriptors
};

enum class Action : std::uint8_t { load, store, atomic };
enum class Mechanism : std::uint8_t { pointer, block_pointer, descriptor };

/// A place in a file.
struct Place {
  const Source* source = nullptr;
  const Node* node = nullptr;
  SourceLocation where() const { return source->where(node->begin); }
};

struct RawAccess {
  int id = 0;
  Action action = Action::load;
  Mechanism mechanism = Mechanism::pointer;
  std::string function;  ///< "tl.load", "tl.atomic_add", ...
  Expr address;          ///< of pointers the whole, of the others the base
  std::vector<Expr> shape;
  std::vector<Expr> sizes, strides, offsets, block;
  Place call;
  std::vector<const Node*> statements;  ///< of the kernel itself, outermost first, that it is in
  std::vector<int> loops;               ///< outermost first
  bool conditional = false;             ///< under an if of which it is not known how it goes
  std::vector<int> value_loads;         ///< of a store: what the value was computed from
};

struct RawLoop {
  int id = 0;
  Place statement;
  std::string variable;   ///< empty: a while loop without a counter
  Expr begin, end, step;  ///< of a while loop only where has_range
  bool is_while = false;
  bool has_range = false;
  bool in_kernel = false;  ///< it stands in the kernel itself, not in a helper
  std::vector<int> outer;  ///< loops it is in, outermost first
};

struct RawDot {
  Place call;
  std::vector<int> left, right;  ///< accesses that the operands were computed from
  int left_access = -1,
      right_access =
          -1;  ///< where an operand is one access as it was read, at most transposed and cast
  bool left_transposed = false, right_transposed = false;
  bool left_has_dot = false, left_has_exp = false;
  std::vector<int> loops;
};

struct RawReduction {
  Place call;
  std::string function;    ///< "sum", "max"
  std::vector<int> loads;  ///< what is reduced was computed from
  int axis = -1;           ///< -1: all, or not known
  Expr extent;             ///< of the block along it; 0: not known
  std::vector<int> loops;
};

struct Comparison {
  std::string op;
  Expr left, right;
};

struct RawAssignment {
  std::string name;
  const Node* statement = nullptr;  ///< the assignment
  int path = 0;                     ///< 0: in the kernel itself
  Expr value;
  int rank = 0;
  std::vector<const Node*> statements;  ///< of the kernel that it is in
};

struct ProgramUse {
  int axis = 0;
  Place call;
  bool in_kernel = false;
  std::vector<const Node*> statements;
};

/// Something that could not be followed.
struct Puzzle {
  std::string what;
  Place place;
};

struct Trace {
  Algebra algebra;
  const Function* kernel = nullptr;
  std::vector<RawAccess> accesses;  ///< in the order of the kernel
  std::map<int, RawLoop> loops;
  std::vector<RawDot> dots;
  std::vector<RawReduction> reductions;
  std::vector<Comparison> comparisons;
  std::vector<RawAssignment> assignments;
  std::vector<ProgramUse> programs;
  std::vector<Puzzle> puzzles;  ///< `number` of an opaque atom is an index; -1 is none
  bool exhausted = false;       ///< the kernel needs more work than one is given
};

/// Follows a kernel. Never fails: what is not understood is in the values, and in `puzzles`.
std::unique_ptr<Trace> follow(Library& library, const Function& kernel,
                              const ParameterValues& values);

}  // namespace hemiola::compile

// What is known of a Triton kernel from its text: what a transformation of the text stands on.
//
// Every place is in bytes of the file as it was read, so that edits are exact: do them from the
// back to the front. Expressions are Python that may stand in the kernel where the place says;
// names in them are parameters or variables of the kernel, unless they come from a helper that is
// called.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compile/describe/trace.h"

namespace hemiola::compile {

enum class Provenance : std::uint8_t { inferred, annotated };
enum class Role : std::uint8_t {
  none,
  consumer,  ///< chunks arrive: the kernel waits before it reads
  producer   ///< tiles leave: the kernel signals after it wrote
};
enum class Target : std::uint8_t { cuda, hip };

struct KernelParameter {
  enum class Use : std::uint8_t { operand, scalar, constant };
  std::string name;
  Use use = Use::scalar;
  std::string default_value;  ///< Python; empty: there is none
  std::string value;          ///< given by the user with --constexpr; empty: it is not
  Span span;
};

/// One axis along which the programs of the grid divide the work.
struct TileAxis {
  std::string name;  ///< "M": the size, or what the variable is called
  std::string
      coordinate;  ///< the tile's number: a variable of the kernel ("pid_m") or an expression
  bool is_variable = false;
  std::vector<std::string> aliases;  ///< all variables of the kernel that have its value
  Expr value;                        ///< the coordinate, in the algebra of the trace
  std::string formula;               ///< the same as Python, in program ids or the tile's number
  std::string block;                 ///< elements that one tile has: "BLOCK_SIZE_M", "1"
  std::string size;                  ///< elements; empty: not in the text of the kernel
  std::string tiles;                 ///< how many: "tl.cdiv(M, BLOCK_SIZE_M)", "tl.num_programs(0)"
  std::vector<int> program_axes;     ///< axes of the grid that it is computed from
  std::optional<Span> assigned;      ///< the statement that gives the variable its value
  bool is_problem = false;           ///< its tiles are whole problems of a grouped product
  bool splits_reduction = false;     ///< programs along it sum up to one output: split-K
  bool can_be_cut = false;           ///< into ranges of tiles, one per chunk
  std::string why_not;
  Provenance provenance = Provenance::inferred;
};

struct LoopDescription {
  int id = 0;
  std::string variable;           ///< empty: it has none
  std::string begin, end, step;   ///< Python; empty: not known
  std::string axis;               ///< what it goes along: "K", "KV"; empty: not known
  bool is_persistent = false;     ///< its iterations are tiles
  bool is_over_problems = false;  ///< its iterations are products of their own (grouped GEMM)
  bool in_helper = false;
  Span statement, body;
  int indentation = 0;  ///< columns before the statements of the body
};

enum class IndexKind : std::uint8_t {
  tile,      ///< tile coordinate x block, and usually tl.arange(block)
  loop,      ///< a loop goes along the axis
  whole,     ///< tl.arange over all of it (or as much as a block may have)
  fixed,     ///< the same element in all programs
  indirect,  ///< the index was loaded
  unknown
};

/// How one axis of a tensor is indexed in one access.
struct AxisIndex {
  struct TilePart {
    int axis = 0;       ///< of Description::axes
    std::string block;  ///< elements per tile
  };
  struct LoopPart {
    int loop = 0;      ///< LoopDescription::id
    std::string step;  ///< elements per iteration
    std::string
        begin;  ///< elements before the first iteration, where that depends on the tile; else empty
  };
  IndexKind kind = IndexKind::unknown;
  std::string stride;  ///< in elements; empty: that of a descriptor which the host made
  std::string index;   ///< the whole index without the range
  std::vector<TilePart> tiles;
  std::vector<LoopPart> loops;
  std::vector<int> indirect;  ///< accesses whose values are in the index
  std::string range;          ///< extent of the block along it; empty: one element
  int dimension = -1;         ///< of the block that the range is; -1: none
  std::string offset;         ///< what is added that is the same everywhere; empty: 0
  std::string size;           ///< elements of the axis, where a mask, a shape or a modulus tells
  bool wraps = false;         ///< indices beyond the size begin again: % size
  bool clamps = false;        ///< indices beyond the size stand for another element that is there
  bool is_derived = false;    ///< // or % of an index: an element's number taken apart
  std::string unknown;        ///< why the kind is unknown
};

struct AccessDescription {
  int id = 0;
  std::string operand;  ///< name of the parameter, or "*table" for a tensor whose address is loaded
  bool is_loaded_address = false;
  Action action = Action::load;
  Mechanism mechanism = Mechanism::pointer;
  std::string function;  ///< "tl.load", "descriptor.store", ...
  std::vector<AxisIndex>
      axes;  ///< in the order of the block's dimensions, then others by their strides
  Span call;
  Span statement;               ///< the innermost statement of the kernel itself that it is in
  std::vector<int> loops;       ///< outermost first
  bool conditional = false;     ///< under an if that is not decided by constants
  std::string offset;           ///< elements that no axis has a stride for
  std::vector<int> value_from;  ///< of a store: loads that the value depends on
  std::string unknown;          ///< why it is not understood; empty: it is
};

/// A tensor that the kernel reads or writes.
struct OperandDescription {
  std::string name;
  std::string bound_as;  ///< --bind: the plan's name for it; empty: none was given
  Role role = Role::none;
  bool is_read = false, is_written = false, is_added_to = false;
  std::vector<Mechanism> mechanisms;
  std::vector<std::string>
      axes;  ///< of the tile or loop that runs along each axis: "M", "K"; "": neither
  std::vector<int> accesses;
  Provenance provenance = Provenance::inferred;
};

struct ReductionDescription {
  std::string function;  ///< "tl.dot", "tl.sum"
  std::string axis;      ///< what is summed over: "K"; empty: not known
  int loop = -1;         ///< that goes along it; -1: none
  std::vector<std::string> operands;
  Span call;
};

/// Where text can be put in: before the byte `offset`, which begins a line.
struct Site {
  std::string operand;
  Span
      statement;  ///< wait: the statement that it comes before; signal: the one that it comes after
  std::uint32_t offset = 0;
  int indentation = 0;          ///< columns, in the characters that stand before the statement
  bool is_inside_loop = false;  ///< of the tile: it would run once per iteration
  bool is_conditional = false;  ///< the statement is only reached under a condition
  bool is_own_line = true;  ///< false: the statement shares its line, and nothing can be put there
};

/// The code that turns the program's number into tile coordinates.
struct Dispatch {
  Span region;                   ///< whole lines: first to last statement of it
  std::vector<Span> statements;  ///< those that take part, in order
  std::string
      tile_id;  ///< the variable that numbers tiles; empty: the program ids are used as they are
  std::optional<Span> tile_id_assigned;
  std::vector<std::string> copies;  ///< variables that always have the value of `tile_id`
  std::vector<Span> repeated;  ///< statements further down that give the coordinates other values
                               ///< (an epilogue that lags behind)
  std::vector<Span> program_ids;  ///< calls of tl.program_id, in the kernel and in helpers
  bool is_in_loop = false;        ///< of the persistent loop
  int indentation = 0;
  Provenance provenance = Provenance::inferred;
};

struct Scheduler {
  enum class Order : std::uint8_t {
    none,     ///< not found
    plain,    ///< each coordinate is a program id
    linear,   ///< one id, taken apart by // and %
    grouped,  ///< one id, in groups of rows
    other     ///< one id, in an order that is neither
  };
  Order order = Order::none;
  bool is_persistent = false;
  int loop = -1;           ///< the persistent loop
  std::string group_size;  ///< of a grouped order
  std::string tiles;       ///< of a persistent loop: how many there are
  std::string workers;     ///< of a persistent loop: its step
};

enum class Family : std::uint8_t {
  product,
  attention,
  grouped_product,
  row,
  element_wise,
  reduction,
  other
};

struct Configuration {
  std::map<std::string, std::string> constants;  ///< BLOCK_SIZE_M: "128"
  std::string warps, stages;                     ///< empty: Triton's default
  Span span;
};

struct Tuning {
  std::vector<Configuration> configurations;
  std::vector<std::string> keys;
  std::map<std::string, std::string> heuristics;  ///< name: the function's text
  std::vector<std::string> wrappers;              ///< other decorators
  std::string unknown;                            ///< why the configurations are not in the text
  int line = 0;
};

struct Unknown {
  std::string what;
  Span span;
  std::string hint;  ///< the annotation or option that would help
};

struct Description {
  std::string file, kernel;
  Span definition;  ///< from the first decorator to the last byte
  Span body;
  Target target = Target::cuda;
  std::vector<KernelParameter> parameters;
  std::vector<std::string> helpers;  ///< functions that were followed: "file:name"
  Family family = Family::other;
  bool is_split_k = false;
  Scheduler scheduler;
  Dispatch dispatch;
  std::vector<TileAxis> axes;
  std::vector<LoopDescription> loops;
  std::vector<AccessDescription> accesses;
  std::vector<OperandDescription> operands;
  std::vector<ReductionDescription> reductions;
  std::vector<Site> waits, signals;
  Tuning tuning;
  std::vector<Unknown> unknown;  ///< in the order of the text
  /// The scheduler is found, every access has its operand and its axes, and some axis can be cut.
  bool is_understood = false;

  const KernelParameter* parameter(std::string_view name) const;  ///< null: there is none
  const LoopDescription* loop(int id) const;
};

}  // namespace hemiola::compile

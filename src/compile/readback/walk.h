// Follows a text of Python statement by statement with numbers: what our files consist of, no more.
// What it does not know it refuses, with its place. Private to readback/.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compile/python/interpreter.h"
#include "compile/readback/value.h"

namespace hemiola::compile::readback {

/// No position: an argument that is given by name alone.
constexpr std::size_t kByName = SIZE_MAX;

/// Arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
  const Node* node = nullptr;

  /// By name or position; null: it is not given.
  const Value* find(std::string_view name, std::size_t position) const;
};

/// One of the texts between brackets: a number, or a range [begin, end) with what is left out.
struct Index {
  bool is_range = false;
  Value value{};
  std::optional<Value> begin{}, end{};
};

/// Whether it is Python's or Triton's range.
bool names_range(std::string_view name);

class Walker;

/// What a text meets that is no Python: the modules that it imports, objects of the host, memory.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  /// `tl.load(...)`, by its name; nothing: not known.
  virtual std::optional<Value> call(std::string_view name, const Arguments& given) = 0;
  virtual std::optional<Value> method(const Value& object, std::string_view name,
                                      const Arguments& given) = 0;
  virtual std::optional<Value> attribute(const Value& object, std::string_view name) = 0;
  virtual bool assign(const Value& object, std::string_view name, const Value& value) = 0;
  virtual std::optional<Value> subscript(const Value& object, const std::vector<Index>& at,
                                         const Node& node) = 0;
  /// `while condition: pass` of something that is no number; false: it is not followed.
  virtual bool wait(std::string_view op, const Value& left, const Value& right,
                    const Node& node) = 0;
};

class Walker : private Interpreter<Walker, Value> {
 public:
  /// What is refused beyond.
  struct Limits {
    std::int64_t steps = 0;  ///< expressions and turns of loops
    std::int64_t words = 0;  ///< of memory, 8 bytes each
  };
  /// Both outlive it.
  Walker(Library& library, const Module& module, const Limits& limits)
      : library_(library), module_(module), limits_(limits) {}

  /// Whoever answers from now on.
  void surround(Surroundings& surroundings) { surroundings_ = &surroundings; }

  /// The value that it returns. Failure: something is not read back, with its place.
  Value run(const Function& function, const Arguments& given);
  /// Of a function or a lambda.
  Value apply(const Value& function, const Arguments& given);
  /// A constant of the file.
  Value constant(std::string_view name, const Node& node);

  [[noreturn]] void refuse(const Node& node, const std::string& what,
                           const std::string& hint = {}) const;
  /// Python would raise an error here, or the file does not do what it says.
  [[noreturn]] void wrong(const Node& node, const std::string& what, const std::string& hint = {},
                          ExitCode code = ExitCode::wrong_program) const;
  /// A whole number, or a refusal that says `what` is none.
  std::int64_t whole(const Value& value, const Node& node, std::string_view what) const;
  /// Of a list, or of one number.
  std::vector<std::int64_t> wholes(const Value& value, const Node& node,
                                   std::string_view what) const;
  /// The call in the outermost function that is being followed: where a reader would look.
  const Node& place(const Node& inside) const;
  const Module& module() const { return module_; }

  /// Counts what takes time, or what is remembered until the file is read. Failure: too much.
  void step(const Node& node, std::int64_t count = 1);
  void remember(const Node& node, std::int64_t words);

 private:
  friend Interpreter;
  struct Frame {
    const Module* module = nullptr;
    std::map<std::string, Value, std::less<>> names;
    Value returned;
    const Node* call = nullptr;  ///< where it is called from
    std::int64_t held = 0;       ///< what its names take
  };

  /// Takes part in what is held until it is gone: what an expression has while it computes the
  /// rest.
  class Holding {
   public:
    explicit Holding(Walker& walker) : walker_(walker) {}
    ~Holding() { walker_.held_ -= held_; }
    Holding(const Holding&) = delete;
    Holding& operator=(const Holding&) = delete;
    void add(const Value& value, const Node& node);

   private:
    Walker& walker_;
    std::int64_t held_ = 0;
  };
  /// One level deeper until it is gone. Failure: too deep.
  class Level {
   public:
    Level(Walker& walker, const Node& node);
    ~Level() { --walker_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Walker& walker_;
  };
  /// Turns of a loop over numbers.
  struct Turns {
    std::int64_t begin = 0, count = 0, step = 1;
  };

  static constexpr std::size_t kDeepest = 60;  ///< calls
  static constexpr int kDeepestLevel = 400;    ///< expressions and blocks in each other

  Flow block(const Node& node);
  Flow choose(const Branch& branch);
  Flow other_statement(const Node& node);
  Flow for_statement(const Node& node);
  Flow while_statement(const Node& node);
  bool holds(const Value& value, const Node& node) const;
  void bind(const Node& name, const Value& value, const Node&) {
    give(frames_.back(), words(name), value, name);
  }
  void assign_other(const Node& target, const Value& value, const Node& statement);
  bool is_range(const Node& call);
  Flow turns(const Node& loop, const Turns& turns);
  const std::vector<Value>& items_of(const Value& value, const Node& node) const;
  void push(Frame frame, const Node& node);
  void pop();
  /// Names of a frame count as long as it is there.
  void give(Frame& frame, std::string_view name, const Value& value, const Node& node);
  void hold(std::int64_t words, const Node& node);

  Value evaluate(const Node& node);
  Value literal(const Node& node) const;
  Value other_expression(const Node& node);
  Value identifier(const Node& node);
  Value attribute(const Node& node);
  Value subscript(const Node& node);
  std::vector<Index> indices_of(const Node& node);
  void assign_entry(const Node& target, const Value& value);
  Index index_of(const Node& node);
  Value call(const Node& node);
  Arguments arguments(const Node& node);
  std::optional<Value> builtin(std::string_view name, const Arguments& given);
  Turns range(const Arguments& given) const;
  Value comparison(const Node& node);
  Value boolean(const Node& node);
  Value unary(std::string_view sign, const Value& value, const Node& node);
  Value operation(const Node& node);
  Value binary(std::string_view op, const Value& a, const Value& b, const Node& node);
  Value comprehension(const Node& node);
  Value global(const Module& module, const std::string& name, const Node& node);

  const Source& source() const {
    return frames_.empty() ? module_.source : frames_.back().module->source;
  }
  std::string_view words(const Node& node) const { return source().text(node); }
  /// What stands between two children.
  const std::string& sign(const Node& node, std::size_t i);

  Library& library_;
  const Module& module_;
  Surroundings* surroundings_ = nullptr;
  std::vector<Frame> frames_;
  std::map<std::pair<const Module*, std::string>, Value> constants_;
  std::map<std::pair<const Node*, std::size_t>, std::string> signs_;
  Limits limits_;
  std::int64_t steps_ = 0, held_ = 0, remembered_ = 0;
  int depth_ = 0;
};

/// An argument by name or position, or a refusal that says it is not given.
const Value& need(const Walker& walker, const Arguments& given, std::string_view name,
                  std::size_t position);

}  // namespace hemiola::compile::readback

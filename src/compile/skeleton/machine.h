// Executes the steps of a kernel for one program of one rank. What touches memory goes through
// `Shared`: a recorder that knows no values (survey.h), or memory with values and clocks (world.h).
#pragma once

#include <string>
#include <vector>

#include "compile/skeleton/code.h"

namespace hemiola::compile::skeleton {

/// What a program does: to one element of memory, or beside memory.
struct Access {
  enum class Kind : std::uint8_t {
    load,
    store,
    atomic,
    poll,        ///< of a recorder: atomics that are done until what they see changes
    plain_poll,  ///< likewise by loads
    barrier,
    fence,
    proxy_fence,
    bulk_wait,
    ranks,  ///< a barrier of all ranks or of all programs, of a library
    not_followed
  };
  Kind kind = Kind::load;
  std::string_view op;  ///< of an atomic: add, sub, xchg, cas, and, or, xor, max, min, load
  Element place;        ///< an address
  Element value, compare;
  std::string sem = "acq_rel", scope = "gpu";
  bool is_block = false;     ///< one of several elements
  bool is_bulk = false;      ///< by a descriptor
  bool may_be_data = false;  ///< an atomic that is a plain store, unless somebody waits for it
  int step = 0;

  bool is_zero() const { return value.is_number() && value.number == 0; }
  /// Gives a word back, or a turn on.
  bool sets_back() const { return op == "xchg" && is_zero(); }
  /// An atomic that changes nothing.
  bool only_looks() const {
    return op == "load" || (is_zero() && (op == "add" || op == "or" || op == "sub")) ||
           (op == "cas" && value.is_number() && value == compare);
  }
};

struct Process;

class Shared {
 public:
  virtual ~Shared() = default;
  /// What was there before.
  virtual Element access(Process& who, const Access& access) = 0;
  /// Whether a wait for `access.compare` is over; "cas" then stores `access.value`. Where it is
  /// not, it adds what it looked at to `who.watched`.
  virtual bool try_wait(Process& who, const Access& access, std::string_view comparison) = 0;
  /// A lane that is masked off.
  virtual void skip(Process&, const Access&) {}
  /// Of the same program of all ranks, or of all programs of a rank. False: not all are there.
  virtual bool barrier_of(Process& who, bool of_ranks, bool releases, bool acquires, int step) = 0;
  /// A barrier, a fence, a wait for bulk stores, what is not followed.
  virtual void mark(Process& who, Access::Kind kind, int step, std::string_view scope = "sys") = 0;
  /// A loop ended that goes on until what it looks at changes.
  virtual void loop_ended(Process&, std::size_t /*first_event*/, int /*step*/) {}
  virtual std::size_t events(const Process&) const { return 0; }
  /// Whether steps [begin, end) tell or wait, or may leave out what does.
  virtual bool matters(int begin, int end) const = 0;
  virtual bool is_survey() const = 0;
};

struct Process {
  int rank = 0, program = 0, index = 0;
  int pc = 0;
  std::vector<Value> slots, stack;
  enum class State : std::uint8_t { ready, blocked, ended, failed } state = State::ready;
  std::string why;  ///< it failed
  int last_step = 0;
  int left_step = -1;  ///< where it returned from the kernel before its end
  std::int64_t steps = 0;

  using Looks = std::vector<std::pair<std::size_t, std::int64_t>>;  ///< words, and their versions
  struct Loop {
    std::size_t first_event = 0;
    int turns = 0;
    bool is_open =
        false;  ///< nobody knows how often it turns: it ends when what it looks at changes
    std::size_t begin = 0;    ///< in `looks`, of this turn
    std::int64_t writes = 0;  ///< before this turn
    Looks before;             ///< looks of the turn before
  };
  std::vector<Loop> loops;
  std::vector<int> open_ifs;  ///< whose condition nobody knows: both sides are gone through
  std::vector<std::pair<int, Value>> masks;  ///< lanes that go through if (id) or loop (-1 - id)
  std::vector<bool> lanes_done;              ///< of a wait for several words
  Looks looks;                               ///< since the outermost loop began
  std::int64_t writes = 0;                   ///< that changed something
  Looks watched;                             ///< it is blocked until one of them changes
  int open_loops = 0;
};

class Machine {
 public:
  Machine(const Code& code, Arrays& arrays, Shared& shared)
      : code_(code), arrays_(arrays), shared_(shared) {}
  std::vector<int> programs{2, 1, 1};  ///< along axes

  /// Until it has touched what others see, waits, ends or fails.
  void go(Process& who);

 private:
  enum class Next : std::uint8_t { on, yield };
  Next step(Process& who);
  bool step_of_values(Process& who, const Step& step);
  void over_else(Process& who, const Step& step);
  void end_loop(Process& who, const Step& step);
  void jump_unless(Process& who, const Step& step, bool is_loop);
  bool masked_jump(Process& who, const Step& step, const Value& condition, bool is_loop);
  void again(Process& who, const Step& step);
  void next(Process& who, const Step& step);
  void leave(Process& who, const Step& step);
  void subscript(Process& who, int count);
  void attribute(Process& who, const std::string& name);
  Next call(Process& who, const Call& call);

  struct Arguments {
    const Call& call;
    const Value* values = nullptr;
    std::size_t count = 0;
    const Value* role(std::string_view role) const;
    std::string said(const char* which, const char* otherwise) const;
  };
  /// False: it waits, and is called again.
  bool perform(Process& who, const Arguments& given, Value& result, Next& after);
  Value computed(const Process& who, const Arguments& given);
  Value of_first(const Arguments& given, const Value& a);
  Value arange(const Arguments& given) const;
  Value folded(const Arguments& given);
  Value range(const Arguments& given);
  Value chosen(const Arguments& given, const Value& condition);
  Value cast(const Arguments& given, const Value& a);
  Value program(const Process& who, const Arguments& given) const;
  bool barrier(Process& who, const Arguments& given);
  bool wait_word(Process& who, const Arguments& given);
  Value move(Process& who, const Arguments& given);
  void copy(Process& who, const Arguments& given);
  Value lanes() const;
  Value there(const Process& who, const Arguments& given, const char* name);
  bool assembly(Process& who, const Arguments& given, Value& result);
  bool instruction(Process& who, const Arguments& given, const std::string& text, Value& result);
  Value descriptor(const Arguments& given);
  /// Addresses of a block of a descriptor, at `offsets`.
  Value block_of(const Value& descriptor, const Value& offsets);
  Value touch(Process& who, const Value& where, Access access, const Value* value = nullptr,
              const Value* compare = nullptr, const Value* mask = nullptr);
  bool wait(Process& who, const Value& where, Access access, const Value& value,
            std::string_view comparison);
  Value at_peer(const Process& who, const Value& where, const Value& peer);
  Element addressed(const Process& who, const Element& element);

  const Code& code_;
  Arrays& arrays_;
  Shared& shared_;
};

}  // namespace hemiola::compile::skeleton

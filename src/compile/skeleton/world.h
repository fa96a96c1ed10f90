// Memory of several ranks with values and vector clocks, on which the programs of a kernel run in
// some order. Two accesses of data that no chain of releases and acquires orders are a race; what
// nothing wakes waits for ever.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compile/skeleton/machine.h"

namespace hemiola::compile::skeleton {

using Clock = std::vector<std::int32_t>;
inline void join(Clock& into, const Clock& other) {
  if (into.size() < other.size()) into.resize(other.size());
  for (std::size_t i = 0; i < other.size(); ++i) into[i] = std::max(into[i], other[i]);
}

/// How the kernel is run.
struct Scene {
  int world = 2, programs = 2, residents = 2, calls = 3;
  std::vector<int> grid{2, 1, 1};  ///< programs along its axes
  bool meets_between = false;      ///< all ranks meet between calls
  bool zeroes_all = false;         ///< ... and all words are 0 again
  std::set<int> zeroed;            ///< words that each rank's host sets back before each call
  std::set<int> flags;             ///< arrays of words
  std::set<int> mixed;             ///< ... with data between them
  std::set<int> outside;           ///< words that somebody else tells: waits for them are over
  std::set<int> from_host;         ///< data that are new before each call
  std::set<int> filled;            ///< data that are there before the first call
  std::set<int> for_host;          ///< data of others that are read after each call
  std::set<int> steps_that_matter;
  std::set<int> tracked;       ///< data of which every access is looked at
  std::map<int, int> aliases;  ///< an array that is another one
  std::set<int> fresh;         ///< counters that are 0 at the begin of each call
  bool only_near = false;      ///< who looks at other ranks' data waits outside of the kernel
  int mute_from = -1;          ///< from this call on nothing is told; -1: never
  bool is_strict = true;       ///< orders and scopes count as they are written
};

struct Fault {
  enum class Kind : std::uint8_t {
    none,
    race,     ///< two accesses without an order
    endless,  ///< a wait that nothing ends
    not_run   ///< it could not go on: why
  };
  Kind kind = Kind::none;
  int step = -1;        ///< what is wrong
  int other_step = -1;  ///< the other access, or the wait; -1: the host
  std::string rule, what;
  std::vector<Element> first;    ///< words that are awaited when nobody has told any of their array
  std::vector<std::string> who;  ///< "rank 1, program 0, call 2 waits for flags[3] at line 18"
};

class World : public Shared {
 public:
  using Start = std::function<std::vector<Value>(int rank, int program, int call)>;

  World(const Code& code, Arrays& arrays, const Scene& scene);

  /// All calls on all ranks. The seed decides who goes on; `start` gives the values of a program's
  /// parameters.
  Fault run(std::uint64_t seed, const Start& start);

  /// After a run: the step at which each program waits in call `call`, and for a word of which
  /// array; -1: it does not.
  std::vector<std::pair<int, int>> stops(int call) const;
  /// Whether a word of the array was set back to 0.
  bool is_set_back(int array) const;
  std::int64_t steps() const { return steps_; }
  const std::set<int>& reached() const { return reached_; }  ///< steps that touched words

  Element access(Process& who, const Access& access) override;
  bool try_wait(Process& who, const Access& access, std::string_view comparison) override;
  void skip(Process& who, const Access& access) override;
  bool barrier_of(Process& who, bool of_ranks, bool releases, bool acquires, int step) override;
  void mark(Process& who, Access::Kind kind, int step, std::string_view scope) override;
  bool matters(int begin, int end) const override;
  bool is_survey() const override { return false; }

 private:
  friend class Blame;

  /// The last word that a program saw: of which array, which rank told it, where.
  struct Seen {
    int array = -1, of = -1, step = -1;
    bool is_zero = false;
  };
  struct Point {
    int thread = -1;
    std::int32_t time = 0;
    int step = -1, call = 0;
    bool is_atomic = false;
    Seen seen;     ///< before
    int turn = 0;  ///< how often it was written, or read by this thread, anew
  };
  struct Written {
    std::int64_t value = 0;
    int thread = 0, step = 0, call = 0;
    bool replaces = false;  ///< what was there, whatever it was
    std::set<int> seen_by;
  };
  struct Cell {
    std::optional<std::int64_t> value;
    std::int64_t version = 0;
    Point write;
    std::vector<Point> reads;
    std::map<int, Point> latest;  ///< reads by thread, those before the last write too
    bool is_read = false;         ///< since the last write
    Clock for_all, for_gpu;       ///< what an acquire takes over, by the scope of who released
    std::vector<Written> history;
    int array = 0, rank = 0;
    std::int64_t number = 0;
    bool is_word = false;
    int reset_step = -1;  ///< who sets it back to 0
  };
  struct Gathering {  ///< a barrier of ranks
    int arrived = 0;
    Clock clock;
  };
  struct Runner {
    Process process;
    Clock clock, pending;  ///< pending: seen without acquire, taken over at the kernel's end
    int call = 0;
    int stale_step = -1, reset_step = -1;  ///< a wait that was over by what an earlier call told
    Clock fenced;  ///< as of its last fence: what relaxed stores behind it give
    Seen seen;
    int left_step = -1;      ///< it returned here and had told nothing
    int gatherings[2] = {};  ///< barriers of ranks, of programs, that it has left behind
    bool arrived = false, is_active = false;
    std::uint64_t priority = 0;
  };

  void begin(std::uint64_t seed);
  void start_call(int rank);
  void admit(int rank);
  void end_program(Runner& runner);
  void end_call(int rank);
  int choose();
  void wake();
  bool would_pass(const Runner& runner, std::size_t cell, std::int64_t value);
  std::size_t cell_of(const Element& where);
  Element resolved(const Element& where) const;
  void see(Runner& runner, Cell& cell, int step);
  void tell(Runner& runner, Cell& cell, const Access& access, std::int64_t made);
  Element word(Runner& runner, const Access& access, std::size_t index);
  Element data(Runner& runner, const Access& access, std::size_t index);
  Element flag_or_data(Runner& runner, const Access& access, const Element& where);
  bool is_left_out(const Point& earlier, const Point& later, bool both_write) const;
  void race(const Point& earlier, bool earlier_writes, const Point& later, bool later_writes,
            const Cell& cell);
  void write_data(Cell& cell, const Clock& clock, const Point& now);
  void read_data(Cell& cell, const Clock& clock, const Point& now, bool is_kept);
  void take_over(Runner& runner, const Cell& cell, const Access& access);
  void give(Runner& runner, Cell& cell, const Access& access);
  void not_run(int step, std::string why);
  void found(int step, const char* rule, std::string what, const Runner& by);
  int rank_of(int thread) const;
  std::string named(const Cell& cell) const;
  std::string named(int thread, int call) const;

  const Code& code_;
  Arrays& arrays_;
  const Scene& scene_;
  Machine machine_;
  const Start* start_ = nullptr;
  std::vector<Runner> runners_;
  std::vector<Clock> hosts_;
  std::vector<int> calls_, next_program_, running_;
  std::vector<Cell> cells_;
  std::map<std::tuple<int, int, std::int64_t>, std::size_t> index_;
  std::map<std::pair<int, int>, Point> host_writes_;     ///< by array and rank
  std::map<std::pair<int, int>, Gathering> gatherings_;  ///< by program and how many before
  int met_ = 0;                                          ///< ranks whose call ended
  bool is_trial_ = false;
  std::int64_t steps_ = 0;
  std::set<int> reached_;
  std::map<std::size_t, int> masked_;  ///< words, and the step that would tell them but for a mask
  std::uint64_t random_ = 0;
  Fault fault_;
};

}  // namespace hemiola::compile::skeleton

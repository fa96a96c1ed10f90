// What a kernel does, program by program, without knowing what memory holds: every wait is over at
// once, both sides of a condition that depends on data are gone through, loops turn twice.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "compile/skeleton/machine.h"

namespace hemiola::compile::skeleton {

struct Event : Access {
  std::vector<Element> where;  ///< addresses; unknown elements where they are not known
};

/// Records events of one program after the other.
class Recorder : public Shared {
 public:
  std::vector<Event> taken;
  std::set<int> not_followed;  ///< steps

  Element access(Process& who, const Access& access) override;
  bool try_wait(Process& who, const Access& access, std::string_view comparison) override;
  bool barrier_of(Process& who, bool of_ranks, bool releases, bool acquires, int step) override;
  void mark(Process& who, Access::Kind kind, int step, std::string_view scope) override;
  void loop_ended(Process& who, std::size_t first_event, int step) override;
  std::size_t events(const Process&) const override { return taken.size(); }
  bool matters(int, int) const override { return false; }
  bool is_survey() const override { return true; }
};

struct Trace {
  int rank = 0, program = 0;
  std::vector<Event> events;
  std::string failure;
  int failed_step = 0;
};

}  // namespace hemiola::compile::skeleton

// Which step is wrong when a program waits for ever, or when two accesses have no order.
#pragma once

#include "compile/skeleton/world.h"

namespace hemiola::compile::skeleton {

class Blame {
 public:
  explicit Blame(World& world) : world_(world) {}

  /// Nobody goes on: who waits for what, and who is to blame.
  Fault stuck();
  /// The reader was let through by a word of an earlier call, which somebody sets back too late.
  void stale_word(Fault& fault, const World::Point& reader, const std::string& place) const;
  /// Who reads tells that it has read, but not the one who stores.
  void word_back(Fault& fault, const World::Point& write, const World::Point& read) const;

 private:
  using Cell = World::Cell;
  using Runner = World::Runner;

  const Cell& cell(std::size_t index) const { return world_.cells_[index]; }
  bool waits_for_word(const Runner& runner) const;
  const Runner* list_waits(Fault& fault) const;
  void list_first(Fault& fault, const Runner& runner) const;
  void taken_away(Fault& fault, const Runner& runner) const;
  void lost(Fault& fault) const;
  bool returned(Fault& fault, const Runner& runner) const;
  bool masked(Fault& fault, const Runner& runner) const;
  void teller(Fault& fault, const Runner& runner) const;
  bool all_began() const;

  World& world_;
};

}  // namespace hemiola::compile::skeleton

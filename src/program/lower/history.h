// Who has touched memory, and who knows of it: shared by all lowerings. Private to lower/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace hemiola::program::general {

/// One row of memory: who wrote each unit last, and who has read it since. A default Writer stands
/// for whatever was there before the start.
template <class Writer, class Reader>
class MemoryMap {
 public:
  struct Cell {
    std::int64_t end = 0;
    Writer writer{};
    std::vector<Reader> readers{};  ///< in the order of their first reads, mostly each once

    void read_by(const Reader& reader) {
      if (readers.empty() || readers.back() != reader) readers.push_back(reader);
    }
  };

  /// Visits the cells of [begin, end) as `visit(begin, cell)`, cut there.
  template <class Visit>
  void each(std::int64_t begin, std::int64_t end, Visit&& visit) {
    cut(begin);
    cut(end);
    for (std::int64_t at = begin; at < end;) {
      auto cell = cells_.lower_bound(at);
      if (cell == cells_.end() || cell->first > at) {  // nobody has been here
        const std::int64_t until = cell == cells_.end() ? end : std::min(end, cell->first);
        cell = cells_.emplace_hint(cell, at, Cell{.end = until});
      }
      visit(at, cell->second);
      at = cell->second.end;
    }
  }

  /// [begin, end) is the writer's; nobody has read it yet.
  void write(std::int64_t begin, std::int64_t end, Writer writer) {
    cut(begin);
    cut(end);
    cells_.erase(cells_.lower_bound(begin), cells_.lower_bound(end));
    cells_[begin] = {end, std::move(writer), {}};
  }

 private:
  void cut(std::int64_t at) {
    const auto next = cells_.upper_bound(at);
    if (next == cells_.begin()) return;
    auto& [begin, cell] = *std::prev(next);
    if (begin == at || cell.end <= at) return;
    Cell rest = cell;
    cell.end = at;
    cells_.emplace_hint(next, at, std::move(rest));
  }
  std::map<std::int64_t, Cell> cells_;  // by begin; disjoint
};

/// What is known to be complete: of an actor, all that it does up to a number.
template <class Actor, class Number>
class Known {
 public:
  bool knows(const Actor& actor, Number last) const {
    const auto found = find(newest_, actor);
    return found != newest_.end() && found->first == actor && found->second >= last;
  }
  void learn(const Actor& actor, Number last) {
    const auto found = find(newest_, actor);
    if (found == newest_.end() || found->first != actor)
      newest_.insert(found, {actor, last});
    else if (found->second < last)
      found->second = last;
  }
  void learn(const Known& other) {
    Entries both;
    both.reserve(newest_.size() + other.newest_.size());
    auto own = newest_.begin();
    for (const auto& theirs : other.newest_) {
      while (own != newest_.end() && own->first < theirs.first) both.push_back(*own++);
      both.push_back(theirs);
      if (own != newest_.end() && own->first == theirs.first) {
        both.back().second = std::max(both.back().second, own->second);
        ++own;
      }
    }
    both.insert(both.end(), own, newest_.end());
    newest_ = std::move(both);
  }

  /// The last number of an actor of which something is known.
  Number at(const Actor& actor) const { return find(newest_, actor)->second; }
  /// The first of the actors from this one on; end() if nothing is known of any.
  auto from(const Actor& actor) const { return find(newest_, actor); }
  auto begin() const { return newest_.begin(); }  ///< pairs of actor and number, by actor
  auto end() const { return newest_.end(); }

 private:
  using Entries = std::vector<std::pair<Actor, Number>>;  // by actor
  template <class List>
  static auto find(List& list, const Actor& actor) {
    return std::lower_bound(list.begin(), list.end(), actor,
                            [](const auto& entry, const Actor& a) { return entry.first < a; });
  }
  Entries newest_;
};

}  // namespace hemiola::program::general

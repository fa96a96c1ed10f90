// Rules of order, scope and barriers, one program's trace after the other.
#pragma once

#include "compile/rules/roles.h"
#include "compile/rules/rules.h"

namespace hemiola::compile::rules {

using skeleton::Element;
using skeleton::Event;
using EventKind = skeleton::Access::Kind;
using skeleton::Trace;

/// What is done with an array, all ranks and programs together: near, by its own rank, and far.
struct ArrayUse {
  bool told[2]{}, awaited[2]{}, loaded[2]{}, stored[2]{};
  bool is_word = false;             ///< an atomic, or what waits, touches it
  bool is_taken = false;            ///< touched by what does not only set it back
  bool has_generic_stores = false;  ///< by no descriptor
  bool is_counted = false;          ///< its value decides an `if`
  std::set<std::int64_t> elements;  ///< that are awaited
  bool is_vague = false;            ///< ... and others, which depend on data
  /// As what its events are: data that are loaded or stored, a word that is told, a number that is
  /// counted and told nobody.
  bool has_loads = false, has_stores = false, has_tells = false, has_counts = false;

  bool is_awaited() const { return awaited[0] || awaited[1]; }
  bool is_told() const { return told[0] || told[1]; }
  bool awaits(const Event& event) const;
};

/// Which events are waits, signals, counters and data.
class Reading {
 public:
  using Part = MemoryEvent::Kind;

  Reading(const skeleton::Code& code, const Survey& survey);

  Part part_of(const skeleton::Trace& trace, const skeleton::Event& event) const;
  /// What is done with an array, or nothing.
  const ArrayUse& use_of(int array) const;
  const std::map<int, ArrayUse>& uses() const { return uses_; }
  /// The array of an event, aliases looked up; -1: not known.
  int array_of(const skeleton::Event& event) const;
  bool is_far(const skeleton::Trace& trace, const skeleton::Event& event) const;
  bool is_data(const skeleton::Trace& trace, const skeleton::Event& event) const {
    const Part part = part_of(trace, event);
    return part == Part::load || part == Part::store;
  }
  /// Data that one rank stores or loads at another.
  const std::set<int>& exchanged() const { return exchanged_; }
  bool communicates() const { return has_words_ || !exchanged_.empty(); }
  bool has_words() const { return has_words_; }

 private:
  bool is_send(const skeleton::Trace& trace, const skeleton::Event& event) const;
  bool decides(int step) const;
  bool compares(const skeleton::Step& step) const;
  bool leads_to_if(std::size_t from, bool is_equal = false) const;
  void note_use(const Trace& trace, const Event& event);
  void note_part(const Trace& trace, const Event& event);
  Part part_of_atomic(const Trace& trace, const Event& event, const ArrayUse& use) const;

  const skeleton::Code& code_;
  const Survey& survey_;
  std::map<int, ArrayUse> uses_;
  std::set<int> exchanged_;
  std::map<int, bool> decides_;
  bool has_words_ = false;
};

/// "kernel.py:12: "
std::string place_of(const Span& span);
void add_once(std::vector<std::string>& to, std::string what);

void judge_order(const skeleton::Code& code, const Survey& survey, const Reading& reading,
                 const RuleRequest& request, RuleReport& report);

/// What repairs a fault of the protocol.
std::string hint_of(const std::string& rule);

/// Judges order and runs the protocol, for several numbers of ranks and many orders, in every
/// reading of the parameters until one holds (explore.cc).
void run_protocol(const skeleton::Code& code, Survey& survey, const RuleRequest& request,
                  const Protocol& protocol, const Host& host, RuleReport& report);

}  // namespace hemiola::compile::rules

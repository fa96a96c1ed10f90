// Rules of order, scope and barriers, one program's trace after the other.
#pragma once

#include "compile/rules/roles.h"
#include "compile/rules/rules.h"

namespace hemiola::compile::rules {

using skeleton::Element;
using skeleton::Event;
using skeleton::Trace;

/// What a word is for, all ranks and programs together.
struct WordUse {
  bool is_awaited = false;      ///< by anybody
  bool is_awaited_far = false;  ///< by a rank that is not its owner
  bool is_told = false, is_told_far = false;
  bool is_counted = false;          ///< its value decides an `if`
  bool is_looked_at = false;        ///< in any way
  std::set<std::int64_t> elements;  ///< that are awaited
  bool is_vague = false;            ///< ... and others, which depend on data

  bool has(const Event& event) const;
};

/// Which events are waits, signals, counters and data.
class Reading {
 public:
  Reading(const skeleton::Code& code, const Survey& survey);

  enum class Part : std::uint8_t {
    data_load,
    data_store,
    wait,
    plain_wait,
    count,
    tell,
    plain_tell,
    look,
    other
  };
  Part part_of(const skeleton::Trace& trace, const skeleton::Event& event) const;
  const std::map<int, WordUse>& words() const { return words_; }
  /// The array of an event, aliases looked up; -1: not known.
  int array_of(const skeleton::Event& event) const;
  bool is_far(const skeleton::Trace& trace, const skeleton::Event& event) const;
  /// Data that one rank stores or loads at another.
  const std::set<int>& exchanged() const { return exchanged_; }
  bool communicates() const { return has_words_ || !exchanged_.empty(); }
  bool has_words() const { return has_words_; }

 private:
  bool is_send(const skeleton::Trace& trace, const skeleton::Event& event) const;
  bool decides(int step) const;
  bool compares(const skeleton::Step& step) const;
  bool leads_to_if(std::size_t from, bool is_equal = false) const;
  void note_word(const Trace& trace, const Event& event);
  Part part_of_atomic(const Trace& trace, const Event& event, const WordUse& use) const;

  const skeleton::Code& code_;
  const Survey& survey_;
  std::map<int, WordUse> words_;
  std::set<int> exchanged_;
  std::map<int, bool> decides_;
  bool has_words_ = false;
};

void judge_order(const skeleton::Code& code, const Survey& survey, const Reading& reading,
                 const RuleRequest& request, RuleReport& report);

/// What repairs a fault of the protocol.
std::string hint_of(const std::string& rule);

/// Judges order and runs the protocol, for several numbers of ranks and many orders, in every
/// reading of the parameters until one holds (explore.cc).
void run_protocol(const skeleton::Code& code, Survey& survey, const RuleRequest& request,
                  const Protocol& protocol, const Host& host, RuleReport& report);

}  // namespace hemiola::compile::rules

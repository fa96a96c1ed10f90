#include <algorithm>

#include "compile/rules/judge.h"

namespace hemiola::compile::rules {

using skeleton::Op;

namespace {

/// An atomic that changes nothing.
bool only_looks(const Event& event) {
  if (event.op == "load") return true;
  const bool zero = event.value.is_number() && event.value.number == 0;
  return zero && (event.op == "add" || event.op == "or" || event.op == "sub");
}

/// Sums and extremes of one element are data unless something says otherwise.
bool may_be_data(const Event& event) {
  return event.op != "xchg" && event.op != "cas" && event.scope == "gpu" &&
         (event.sem == "acq_rel" || event.sem == "relaxed");
}

}  // namespace

bool WordUse::has(const Event& event) const {
  return is_awaited &&
         (is_vague || std::any_of(event.where.begin(), event.where.end(), [&](const Element& one) {
            return one.is_vague || elements.contains(one.number);
          }));
}

Reading::Reading(const skeleton::Code& code, const Survey& survey) : code_(code), survey_(survey) {
  for (const Trace& trace : survey.traces)
    for (const Event& event : trace.events)
      if (event.kind == Event::Kind::atomic && !decides_.contains(event.step))
        decides_[event.step] = decides(event.step);
  for (const Trace& trace : survey.traces)
    for (const Event& event : trace.events) {
      const int array = array_of(event);
      const bool far = is_far(trace, event);
      if (event.kind == Event::Kind::ranks) has_words_ = true;
      if (event.kind != Event::Kind::poll && event.kind != Event::Kind::plain_poll &&
          event.kind != Event::Kind::atomic)
        continue;
      WordUse& word = words_[array];
      const bool waits = event.kind != Event::Kind::atomic;
      word.is_looked_at = true;
      if (waits && (event.op != "cas" || !is_send(trace, event))) {
        word.is_awaited = true;
        word.is_awaited_far = word.is_awaited_far || far;
        for (const Element& one : event.where) {
          word.elements.insert(one.number);
          word.is_vague = word.is_vague || one.is_vague || one.kind != Element::Kind::address;
        }
      }
      const bool takes = event.value.is_number() && event.value.number == 0;
      const bool tells = waits ? event.op == "cas" && !takes : !only_looks(event);
      word.is_told = word.is_told || tells;
      word.is_told_far = word.is_told_far || (tells && far);
      if (!waits && decides_.at(event.step)) word.is_counted = true;
      if (only_looks(event) && !waits) word.is_looked_at = true;
    }
  for (const Trace& trace : survey.traces)
    for (const Event& event : trace.events) {
      const Part part = part_of(trace, event);
      if (part == Part::plain_tell) {
        words_[array_of(event)].is_told = true;
      }
      if (part == Part::data_load || part == Part::data_store)
        if (is_far(trace, event) && array_of(event) >= 0) exchanged_.insert(array_of(event));
      has_words_ = has_words_ || part == Part::wait || part == Part::plain_wait ||
                   part == Part::count || part == Part::tell;
    }
  // A table in a kernel that neither knows ranks nor tells anybody holds addresses of its own GPU.
  if (!has_words_ && !survey.knows_ranks) exchanged_.clear();
}

int Reading::array_of(const Event& event) const {
  for (const Element& where : event.where)
    if (where.kind == Element::Kind::address) return survey_.canonical(where.array);
  return -1;
}

bool Reading::is_far(const Trace& trace, const Event& event) const {
  return std::any_of(event.where.begin(), event.where.end(), [&](const Element& where) {
    return where.kind == Element::Kind::address && where.rank != trace.rank;
  });
}

/// A loop of compare-and-swap at a peer puts a word there once there is room for it.
bool Reading::is_send(const Trace& trace, const Event& event) const {
  const bool sets = event.value.is_number() && event.value.number != 0;
  if (event.op != "cas" || !sets) return false;
  return event.sem == "release" ||
         (is_far(trace, event) && (event.sem == "acq_rel" || event.sem == "relaxed"));
}

/// Whether `before` of `before = tl.atomic_add(...)` is compared with one value in an `if`: the
/// program that comes last goes another way.
bool Reading::decides(int step) const {
  const auto& steps = code_.steps;
  const auto leads_to_if = [&](std::size_t from) {
    bool is_equal = false;
    for (std::size_t at = from; at < steps.size(); ++at) {
      const Op op = steps[at].op;
      if (op == Op::unless) return is_equal && steps[at].b >= 0;
      if (op == Op::binary) {
        const std::string& name = code_.names[steps[at].a];
        is_equal = is_equal || name == "==" || name == "!=" || name == ">=";
      } else if (op != Op::constant && op != Op::local && op != Op::unary && op != Op::call) {
        return false;
      }
    }
    return false;
  };
  const auto first = static_cast<std::size_t>(step) + 1;
  if (first >= steps.size()) return false;
  if (leads_to_if(first)) return true;
  // Through results of helpers: set, local, set, ... and then the variable.
  std::set<int> slots;
  for (std::size_t at = first; at < steps.size() && at < first + 400; ++at) {
    if (steps[at].op == Op::set &&
        (at == first || (steps[at - 1].op == Op::local && slots.contains(steps[at - 1].a))))
      slots.insert(steps[at].a);
    if (steps[at].op == Op::local && slots.contains(steps[at].a) && leads_to_if(at + 1))
      return true;
    if (slots.empty()) return false;
  }
  return false;
}

Reading::Part Reading::part_of(const Trace& trace, const Event& event) const {
  const int array = array_of(event);
  const auto found = words_.find(array);
  const WordUse use = found == words_.end() ? WordUse{} : found->second;
  switch (event.kind) {
    case Event::Kind::load:
      if (array >= 0 && survey_.arrays[array].is_table) return Part::look;
      return array >= 0 && use.has(event) ? Part::look : Part::data_load;
    case Event::Kind::store:
      if (array >= 0 && use.has(event) && !event.is_bulk) return Part::plain_tell;
      // A count that is set back.
      return array >= 0 && use.is_counted && !use.is_awaited ? Part::other : Part::data_store;
    case Event::Kind::poll:
      return is_send(trace, event) ? Part::tell : Part::wait;
    case Event::Kind::plain_poll: {
      const bool is_table = array >= 0 && survey_.arrays[array].is_table;
      return is_table ? Part::data_load : Part::plain_wait;
    }
    case Event::Kind::atomic: {
      if (only_looks(event)) return Part::look;
      // Who counted last sets the count back.
      const bool sets_back =
          event.op == "xchg" && event.value.is_number() && event.value.number == 0;
      if (sets_back && use.is_counted && !use.is_awaited) return Part::other;
      const bool matters = array < 0 || use.is_awaited || use.is_counted || is_far(trace, event) ||
                           !may_be_data(event);
      if (!matters || (event.is_block && !event.value.is_number())) return Part::data_store;
      if (decides_.contains(event.step) && decides_.at(event.step) && event.op != "xchg")
        return Part::count;
      // The result of a counter that gives out work is used, and nobody waits for it.
      const bool is_used = code_.steps[event.step + 1].op != Op::pop;
      const bool is_own_affair = !use.is_awaited && !is_far(trace, event) && array >= 0;
      if (is_own_affair && (is_used || use.is_counted) && event.op != "xchg") return Part::other;
      return Part::tell;
    }
    default:
      return Part::other;
  }
}

}  // namespace hemiola::compile::rules

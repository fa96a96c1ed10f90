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

bool sets_to_zero(const Event& event) {
  return event.value.is_number() && event.value.number == 0;
}

/// Sums and extremes of one element are data unless something says otherwise.
bool may_be_data(const Event& event) {
  return event.op != "xchg" && event.op != "cas" && event.scope == "gpu" &&
         (event.sem == "acq_rel" || event.sem == "relaxed");
}

/// Who counted last sets the count back.
bool sets_back(const Event& event) {
  return event.op == "xchg" && sets_to_zero(event);
}

bool is_data(const Event& event, bool is_word, bool is_near) {
  const bool depends_on_data = !event.value.is_number();
  if (event.may_be_data && !is_word) return true;
  if (depends_on_data && (event.is_block || (!is_word && event.op != "cas"))) return true;
  return is_near && !is_word && may_be_data(event);
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
    for (const Event& event : trace.events) note_word(trace, event);
  for (const Trace& trace : survey.traces)
    for (const Event& event : trace.events) {
      const Part part = part_of(trace, event);
      const int array = array_of(event);
      if (part == Part::plain_tell && !sets_to_zero(event)) words_[array].is_told = true;
      const bool is_data = part == Part::data_load || part == Part::data_store;
      if (is_data && array >= 0 && is_far(trace, event)) exchanged_.insert(array);
      has_words_ = has_words_ || event.kind == Event::Kind::ranks || part == Part::wait ||
                   part == Part::plain_wait || part == Part::count || part == Part::tell;
    }
  // A table in a kernel that neither knows ranks nor tells anybody holds addresses of its own GPU.
  if (!has_words_ && !survey.knows_ranks) exchanged_.clear();
}

void Reading::note_word(const Trace& trace, const Event& event) {
  const bool waits = event.kind == Event::Kind::poll || event.kind == Event::Kind::plain_poll;
  if (!waits && event.kind != Event::Kind::atomic) return;
  if (!decides_.contains(event.step)) decides_[event.step] = !waits && decides(event.step);
  const bool far = is_far(trace, event);
  WordUse& word = words_[array_of(event)];
  if (waits && !is_send(trace, event)) {
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
  word.is_counted = word.is_counted || decides_.at(event.step);
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

bool Reading::compares(const skeleton::Step& step) const {
  if (step.op != Op::binary) return false;
  const std::string& name = code_.names[step.a];
  return name == "==" || name == "!=" || name == ">=";
}

/// Whether what is on the stack at `from` is compared for being one value, in an `if`.
bool Reading::leads_to_if(std::size_t from, bool is_equal) const {
  for (std::size_t at = from; at < code_.steps.size(); ++at) {
    const skeleton::Step& step = code_.steps[at];
    if (step.op == Op::unless) return is_equal && step.b >= 0;
    if (step.op == Op::binary) {
      is_equal = is_equal || compares(step);
    } else if (step.op != Op::constant && step.op != Op::local && step.op != Op::unary &&
               step.op != Op::call) {
      return false;
    }
  }
  return false;
}

/// Whether `before` of `before = tl.atomic_add(...)` decides an `if`: the program that comes last
/// goes another way.
bool Reading::decides(int step) const {
  constexpr std::size_t kMostBetween = 400;
  const auto& steps = code_.steps;
  const auto first = static_cast<std::size_t>(step) + 1;
  if (first >= steps.size() || leads_to_if(first)) return first < steps.size();
  std::set<int> slots;        // its name, and through results of helpers
  std::size_t begin = first;  // behind what it is compared with
  while (begin < steps.size() && (steps[begin].op == Op::constant || steps[begin].op == Op::local ||
                                  steps[begin].op == Op::binary))
    ++begin;
  const bool is_compared = begin > first && compares(steps[begin - 1]);
  for (std::size_t at = is_compared ? begin : first;
       at < std::min(steps.size(), first + kMostBetween); ++at) {
    const bool is_handed = at == (is_compared ? begin : first) ||
                           (steps[at - 1].op == Op::local && slots.contains(steps[at - 1].a));
    if (steps[at].op == Op::set && is_handed) slots.insert(steps[at].a);
    if (slots.empty()) return false;
    if (steps[at].op == Op::local && slots.contains(steps[at].a) &&
        leads_to_if(at + 1, is_compared))
      return true;
  }
  return false;
}

Reading::Part Reading::part_of(const Trace& trace, const Event& event) const {
  const int array = array_of(event);
  const auto found = words_.find(array);
  const WordUse use = found == words_.end() || array < 0 ? WordUse{} : found->second;
  const bool is_table = array >= 0 && survey_.arrays[array].is_table;
  switch (event.kind) {
    case Event::Kind::load:
      return is_table || use.has(event) ? Part::look : Part::data_load;
    case Event::Kind::store:
      if (use.has(event) && !event.is_bulk) return Part::plain_tell;
      // A count that is set back.
      return use.is_counted && !use.is_awaited ? Part::other : Part::data_store;
    case Event::Kind::poll:
      return is_send(trace, event) ? Part::tell : Part::wait;
    case Event::Kind::plain_poll:
      return is_table ? Part::look : Part::plain_wait;
    case Event::Kind::atomic:
      return part_of_atomic(trace, event, found == words_.end() ? WordUse{} : found->second);
    default:
      return Part::other;
  }
}

Reading::Part Reading::part_of_atomic(const Trace& trace, const Event& event,
                                      const WordUse& use) const {
  if (only_looks(event)) return Part::look;
  const bool is_near = array_of(event) >= 0 && !is_far(trace, event);
  if (sets_back(event) && use.is_counted && !use.is_awaited) return Part::other;
  if (is_data(event, use.is_awaited || use.is_counted, is_near)) return Part::data_store;
  if (event.op != "xchg" && decides_.at(event.step)) return Part::count;
  // The result of a counter that gives out work is used, and nobody waits for it.
  const bool is_used = code_.steps[event.step + 1].op != Op::pop;
  const bool gives_out = is_near && !use.is_awaited && (is_used || use.is_counted);
  return gives_out && event.op != "xchg" ? Part::other : Part::tell;
}

}  // namespace hemiola::compile::rules

#include <fmt/format.h>

#include <algorithm>

#include "compile/rules/judge.h"

namespace hemiola::compile::rules {

using skeleton::Op;

namespace {

/// Sums and extremes of one element are data unless something says otherwise.
bool may_be_data(const Event& event) {
  return event.op != "xchg" && event.op != "cas" && event.scope == "gpu" &&
         (event.sem == "acq_rel" || event.sem == "relaxed");
}

bool holds_data(const Event& event, bool is_word, bool is_near) {
  const bool depends_on_data = !event.value.is_number();
  if (event.may_be_data && !is_word) return true;
  if (depends_on_data && (event.is_block || (!is_word && event.op != "cas"))) return true;
  return is_near && !is_word && may_be_data(event);
}

}  // namespace

bool ArrayUse::awaits(const Event& event) const {
  return is_awaited() && (is_vague || std::ranges::any_of(event.where, [&](const Element& one) {
                            return one.is_vague || elements.contains(one.number);
                          }));
}

const ArrayUse& Reading::use_of(int array) const {
  static const ArrayUse none;
  const auto found = uses_.find(array);
  return found == uses_.end() ? none : found->second;
}

Reading::Reading(const skeleton::Code& code, const Survey& survey) : code_(code), survey_(survey) {
  for (const Trace& trace : survey.traces)
    for (const Event& event : trace.events) note_use(trace, event);
  for (const Trace& trace : survey.traces)
    for (const Event& event : trace.events) note_part(trace, event);
  // A table in a kernel that neither knows ranks nor tells anybody holds addresses of its own GPU.
  if (!has_words_ && !survey.knows_ranks) exchanged_.clear();
}

void Reading::note_part(const Trace& trace, const Event& event) {
  const Part part = part_of(trace, event);
  const int array = array_of(event);
  ArrayUse& use = uses_[array];
  if (part == Part::plain_signal && !event.is_zero()) use.told[0] = true;
  use.has_loads |= part == Part::load;
  use.has_stores |= part == Part::store;
  use.has_tells |= part == Part::signal || part == Part::plain_signal || part == Part::count;
  use.has_counts |=
      part == Part::other && event.kind == EventKind::atomic && event.value.is_number();
  if (is_data(trace, event) && array >= 0 && is_far(trace, event)) exchanged_.insert(array);
  has_words_ = has_words_ || event.kind == EventKind::ranks || part == Part::poll ||
               part == Part::plain_poll || part == Part::count || part == Part::signal;
}

void Reading::note_use(const Trace& trace, const Event& event) {
  const bool waits = event.kind == EventKind::poll || event.kind == EventKind::plain_poll;
  const bool is_word = waits || event.kind == EventKind::atomic;
  if (is_word && !decides_.contains(event.step))
    decides_[event.step] = !waits && decides(event.step);
  const bool tells = !event.only_looks() && (waits ? event.op == "cas" && !event.is_zero()
                                                   : event.kind == EventKind::atomic);
  const bool awaits = waits && !is_send(trace, event);
  ArrayUse& use = uses_[array_of(event)];
  use.is_word |= is_word;
  use.is_taken |= event.kind != EventKind::atomic || !event.sets_back();
  use.has_generic_stores |= event.kind == EventKind::store && !event.is_bulk;
  use.is_counted |= is_word && decides_.at(event.step);
  for (const Element& one : event.where) {
    const int far = one.kind == Element::Kind::address && one.rank != trace.rank ? 1 : 0;
    use.told[far] |= tells;
    use.awaited[far] |= awaits;
    use.loaded[far] |= event.kind == EventKind::load;
    use.stored[far] |= event.kind == EventKind::store;
    if (!awaits) continue;
    use.elements.insert(one.number);
    use.is_vague |= one.is_vague || one.kind != Element::Kind::address;
  }
}

int Reading::array_of(const Event& event) const {
  for (const Element& where : event.where)
    if (where.kind == Element::Kind::address) return survey_.canonical(where.array);
  return -1;
}

bool Reading::is_far(const Trace& trace, const Event& event) const {
  return std::ranges::any_of(event.where, [&](const Element& where) {
    return where.kind == Element::Kind::address && where.rank != trace.rank;
  });
}

/// A loop of compare-and-swap at a peer puts a word there once there is room for it.
bool Reading::is_send(const Trace& trace, const Event& event) const {
  const bool sets = event.value.is_number() && event.value.number != 0;
  if (event.op != "cas" || !sets || event.only_looks()) return false;
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
  const ArrayUse& use = use_of(array);
  const bool is_table = array >= 0 && survey_.arrays[array].is_table;
  const bool is_awaited = array >= 0 && use.awaits(event);
  switch (event.kind) {
    case EventKind::load:
      return is_table || is_awaited ? Part::look : Part::load;
    case EventKind::store:
      if (is_awaited && !event.is_bulk) return Part::plain_signal;
      // A count that is set back.
      return array >= 0 && use.is_counted && !use.is_awaited() ? Part::other : Part::store;
    case EventKind::poll:
      return is_send(trace, event) ? Part::signal : Part::poll;
    case EventKind::plain_poll:
      return is_table ? Part::look : Part::plain_poll;
    case EventKind::atomic:
      return part_of_atomic(trace, event, use);
    case EventKind::bulk_wait:
      return Part::bulk_wait;
    default:
      return Part::barrier;
  }
}

Reading::Part Reading::part_of_atomic(const Trace& trace, const Event& event,
                                      const ArrayUse& use) const {
  if (event.only_looks()) return Part::look;
  const bool is_near = array_of(event) >= 0 && !is_far(trace, event);
  if (event.sets_back() && use.is_counted && !use.is_awaited()) return Part::other;
  if (holds_data(event, use.is_awaited() || use.is_counted, is_near)) return Part::store;
  if (event.op != "xchg" && decides_.at(event.step)) return Part::count;
  // The result of a counter that gives out work is used, and nobody waits for it.
  const bool is_used = code_.steps[event.step + 1].op != Op::pop;
  const bool gives_out = is_near && !use.is_awaited() && (is_used || use.is_counted);
  return gives_out && event.op != "xchg" ? Part::other : Part::signal;
}

std::string place_of(const Span& span) {
  return fmt::format("{}:{}: ", span.file, span.line);
}

void add_once(std::vector<std::string>& to, std::string what) {
  if (std::ranges::find(to, what) == to.end()) to.push_back(std::move(what));
}

}  // namespace hemiola::compile::rules

// Control: jumps, loops, tuples. Calls are in machine_calls.cc.
#include "compile/skeleton/machine.h"

#include <algorithm>

namespace hemiola::compile::skeleton {
namespace {

constexpr int kSurveyTurns = 2;  ///< of a loop whose count nobody knows
constexpr int kMostTurns = 4096;
constexpr std::int64_t kMostStepsOfProcess = 400'000;

Value pop(Process& who) {
  Value top = std::move(who.stack.back());
  who.stack.pop_back();
  return top;
}

/// Nothing: some of it is not known.
int truth(const Value& value) {
  if (value.kind == Value::Kind::none) return 0;
  if (value.kind == Value::Kind::text) return value.text.empty() ? 0 : 1;
  if (value.kind == Value::Kind::tuple) return value.items.empty() ? 0 : 1;
  if (!value.is_number()) return -1;
  return value.number() != 0 ? 1 : 0;
}

bool is_vector(const Value& value) {
  return value.kind == Value::Kind::elements && value.elements.size() > 1 && !value.has_unknown();
}

void fail(Process& who, std::string why) {
  who.state = Process::State::failed;
  who.why = std::move(why);
}

Value formatted(const Process& who, const Format& format) {
  std::string text = format.text;
  for (const auto& [name, slot] : format.slots) {
    const std::string key = "{" + name + "}";
    for (std::size_t at = text.find(key); at != text.npos; at = text.find(key))
      text.replace(at, key.size(), who.slots[slot].text);
  }
  return Value::of_text(std::move(text));
}

void unpack(Process& who, int count) {
  const Value whole = pop(who);
  for (int i = count; i-- > 0;) {
    const bool has = whole.kind == Value::Kind::tuple && i < static_cast<int>(whole.items.size());
    who.stack.push_back(has ? whole.items[i] : Value{});
  }
}

/// What a name has after it was given a value by the lanes that go through a condition: the others
/// keep what they had.
Value merged(const Process& who, Value made, const Value& before) {
  if (who.masks.empty() || made == before || before == Value{}) return made;
  const Value& lanes = who.masks.back().second;
  const auto fits = [&](const Value& one) {
    return one.kind == Value::Kind::elements &&
           (one.is_scalar() || one.elements.size() == lanes.elements.size());
  };
  if (!fits(made) || !fits(before)) return made;
  const Value there = broadcast(before, lanes.shape);
  made = broadcast(made, lanes.shape);
  for (std::size_t i = 0; i < lanes.elements.size(); ++i)
    if (lanes.elements[i].number == 0) made.elements[i] = there.elements[i];
  return made;
}

}  // namespace

void Machine::go(Process& who) {
  if (who.loops.empty()) who.loops.resize(static_cast<std::size_t>(code_.loops));
  while (who.state == Process::State::ready) {
    if (who.pc >= static_cast<int>(code_.steps.size())) {
      who.state = Process::State::ended;
      return;
    }
    if (++who.steps > kMostStepsOfProcess) return fail(who, "it takes more work than one is given");
    who.last_step = who.pc;
    if (step(who) == Next::yield) return;
  }
}

/// What only moves values. False: it is something else.
bool Machine::step_of_values(Process& who, const Step& step) {
  switch (step.op) {
    case Op::constant:
      who.stack.push_back(code_.constants[step.a]);
      break;
    case Op::local:
      who.stack.push_back(who.slots[step.a]);
      break;
    case Op::set:
      who.slots[step.a] = merged(who, pop(who), who.slots[step.a]);
      break;
    case Op::pop:
      who.stack.pop_back();
      break;
    case Op::twice:
      who.stack.push_back(who.stack.back());
      break;
    case Op::unary:
      who.stack.back() = unary(arrays_, code_.names[step.a], who.stack.back());
      break;
    case Op::binary: {
      const Value b = pop(who);
      who.stack.back() = binary(arrays_, code_.names[step.a], who.stack.back(), b);
      who.steps += static_cast<std::int64_t>(who.stack.back().elements.size()) / 4;
      break;
    }
    case Op::tuple: {
      const auto first = who.stack.end() - step.a;
      Value made = Value::of_items({first, who.stack.end()});
      who.stack.erase(first, who.stack.end());
      who.stack.push_back(std::move(made));
      break;
    }
    case Op::unpack:
      unpack(who, step.a);
      break;
    case Op::subscript:
      subscript(who, step.a);
      break;
    case Op::reshape:
      who.stack.back() = reshaped(who.stack.back(), code_.names[step.a]);
      break;
    case Op::attribute:
      attribute(who, code_.names[step.a]);
      break;
    case Op::format:
      who.stack.push_back(formatted(who, code_.formats[step.a]));
      break;
    default:
      return false;
  }
  return true;
}

Machine::Next Machine::step(Process& who) {
  const Step& step = code_.steps[who.pc++];
  if (step_of_values(who, step)) return Next::on;
  switch (step.op) {
    case Op::call:
      return call(who, code_.calls[step.a]);
    case Op::jump:
      who.pc = step.a;
      break;
    case Op::leave:
      leave(who, step);
      break;
    case Op::over_else:
      over_else(who, step);
      break;
    case Op::if_end:
      if (!who.open_ifs.empty() && who.open_ifs.back() == step.b) who.open_ifs.pop_back();
      if (!who.masks.empty() && who.masks.back().first == step.b) who.masks.pop_back();
      break;
    case Op::unless:
    case Op::unless_while:
      jump_unless(who, step, step.op == Op::unless_while);
      break;
    case Op::shortcut: {
      const int decided = truth(who.stack.back());
      if (decided == step.b) who.pc = step.a;
      break;
    }
    case Op::loop_begin: {
      if (who.open_loops++ == 0) who.looks.clear();
      who.loops[step.b] = {
          .first_event = shared_.events(who), .begin = who.looks.size(), .writes = who.writes};
      break;
    }
    case Op::loop_end:
      end_loop(who, step);
      break;
    case Op::again:
      again(who, step);
      break;
    case Op::next:
      next(who, step);
      break;
    default:
      break;
  }
  return Next::on;
}

/// The end of an `if`: the other side is gone through where nobody knows, or by the other lanes.
void Machine::over_else(Process& who, const Step& step) {
  if (!who.open_ifs.empty() && who.open_ifs.back() == step.b) return;
  if (who.masks.empty() || who.masks.back().first != step.b) {
    who.pc = step.a;
    return;
  }
  for (Element& one : who.masks.back().second.elements)
    one = number_element(one.number == 0 ? 1 : 0);
}

void Machine::end_loop(Process& who, const Step& step) {
  const Process::Loop& loop = who.loops[step.b];
  who.open_loops = std::max(0, who.open_loops - 1);
  while (!who.masks.empty() && who.masks.back().first == -1 - step.b) who.masks.pop_back();
  if (loop.is_open) shared_.loop_ended(who, loop.first_event, who.pc - 1);
}

void Machine::leave(Process& who, const Step& step) {
  if (who.open_ifs.empty()) {
    if (step.a == static_cast<int>(code_.steps.size())) who.left_step = who.pc - 1;
    who.pc = step.a;
    return;
  }
  // Left under a condition that nobody knows: what is behind it is gone through too.
  for (int at = who.pc; at < static_cast<int>(code_.steps.size()); ++at) {
    const Step& later = code_.steps[at];
    if (later.op != Op::again) continue;
    if (later.a < who.pc && step.a >= at) who.loops[later.b].is_open = true;
    break;
  }
}

bool Machine::masked_jump(Process& who, const Step& step, const Value& condition, bool is_loop) {
  if (!is_vector(condition)) return false;
  Value active = condition;
  if (!who.masks.empty()) active = binary(arrays_, "and", condition, who.masks.back().second);
  const bool any =
      std::ranges::any_of(active.elements, [](const Element& one) { return one.number != 0; });
  const int id = is_loop ? -1 - step.b : step.b;
  if (is_loop && !who.masks.empty() && who.masks.back().first == id) {
    who.masks.back().second = active;
  } else if (any) {
    who.masks.emplace_back(id, active);
  }
  if (!any) who.pc = step.a;
  return true;
}

void Machine::jump_unless(Process& who, const Step& step, bool is_loop) {
  const Value condition = pop(who);
  const int decided = truth(condition);
  if (decided >= 0) {
    if (decided == 0) who.pc = step.a;
    return;
  }
  if (step.b >= 0 && masked_jump(who, step, condition, is_loop)) return;
  if (!is_loop && step.b < 0) return;  // of an expression: the first of the two
  if (is_loop) {
    Process::Loop& loop = who.loops[step.b];
    loop.is_open = true;
    const bool matters = shared_.matters(who.pc, step.a);
    if (!shared_.is_survey() && matters)
      return fail(who, "how often this loop turns depends on data");
    if (loop.turns >= (shared_.is_survey() ? kSurveyTurns : 1)) who.pc = step.a;
    return;
  }
  if (shared_.is_survey()) return who.open_ifs.push_back(step.b);
  if (shared_.matters(who.pc, step.a)) return fail(who, "this condition depends on data");
  who.pc = step.a;
}

void Machine::again(Process& who, const Step& step) {
  Process::Loop& loop = who.loops[step.b];
  ++loop.turns;
  const bool survey = shared_.is_survey();
  if (loop.turns > (survey ? 64 : kMostTurns) ||
      (survey && loop.is_open && loop.turns >= kSurveyTurns)) {
    if (!survey) return fail(who, "this loop turns too often");
    // Stop here: the head's test is not asked again.
    for (int at = who.pc; at < static_cast<int>(code_.steps.size()); ++at)
      if (code_.steps[at].op == Op::loop_end && code_.steps[at].b == step.b) {
        who.pc = at;
        return;
      }
  }
  Process::Looks looks(
      who.looks.begin() + static_cast<std::ptrdiff_t>(std::min(loop.begin, who.looks.size())),
      who.looks.end());
  const bool wrote = who.writes != loop.writes;
  if (!survey && code_.loop_may_wait[step.b] && !looks.empty() && !wrote && looks == loop.before) {
    // Twice the same, and nothing changed: it waits for what it looks at.
    who.state = Process::State::blocked;
    who.watched = looks;
  }
  loop.before = wrote ? Process::Looks{} : std::move(looks);
  loop.begin = who.looks.size();
  loop.writes = who.writes;
  who.pc = step.a;
}

void Machine::next(Process& who, const Step& step) {
  const Value& over = who.slots[step.b];
  const std::int64_t turn = who.slots[step.b + 1].number();
  who.slots[step.b + 1] = Value::of(turn + 1);
  if (over.kind == Value::Kind::tuple && over.text != "range") {
    if (turn >= static_cast<std::int64_t>(over.items.size()))
      who.pc = step.a;
    else
      who.stack.push_back(over.items[turn]);
    return;
  }
  const bool known = over.text == "range" && over.items.size() == 3 && over.items[0].is_number() &&
                     over.items[1].is_number() && over.items[2].is_number() &&
                     over.items[2].number() != 0;
  if (known) {
    const std::int64_t begin = over.items[0].number(), end = over.items[1].number(),
                       by = over.items[2].number(), at = begin + turn * by;
    if (by > 0 ? at < end : at > end)
      who.stack.push_back(Value::of(at));
    else
      who.pc = step.a;
    return;
  }
  if (!shared_.is_survey() && shared_.matters(who.pc, step.a))
    return fail(who, "how often this loop turns depends on data");
  if (turn >= (shared_.is_survey() ? kSurveyTurns : 1))
    who.pc = step.a;
  else
    who.stack.emplace_back(turn == 0 && over.text == "range" && !over.items.empty() &&
                                   over.items[0].is_number()
                               ? over.items[0]
                               : Value{});
}

void Machine::subscript(Process& who, int count) {
  const Value index = pop(who);
  for (int i = 1; i < count; ++i) who.stack.pop_back();
  Value& object = who.stack.back();
  if (object.kind == Value::Kind::tuple && index.is_number()) {
    const auto size = static_cast<std::int64_t>(object.items.size());
    const std::int64_t at = index.number() < 0 ? index.number() + size : index.number();
    object = at >= 0 && at < size ? Value(object.items[at]) : Value{};
    return;
  }
  Element base = object.kind == Value::Kind::elements ? object.elements[0] : Element{};
  if (base.kind == Element::Kind::open || base.kind == Element::Kind::address) {
    // A tuple of buffers, one for each rank.
    arrays_[base.array].is_pointer = true;
    const Element slot{.kind = Element::Kind::loaded,
                       .is_vague = !index.is_number(),
                       .array = base.array,
                       .rank = who.rank,
                       .number = index.is_number() ? index.number() : 0};
    arrays_[base.array].is_indexed = true;
    object = Value::of(arrays_.target(slot));
    return;
  }
  object = Value{};
}

void Machine::attribute(Process& who, const std::string& name) {
  Value& object = who.stack.back();
  if (name == "T") {
    object = transposed(object);
    return;
  }
  if (name == "element_ty" || name == "dtype" || name == "type") {
    if (object.kind == Value::Kind::elements)
      for (Element& one : object.elements)
        if (one.kind == Element::Kind::open && name == "element_ty")
          arrays_[one.array].is_pointer = true;
    if (name == "element_ty") object = Value{};
    return;
  }
  if (name == "shape" && object.kind == Value::Kind::elements && !object.shape.empty()) {
    std::vector<Value> sizes;
    for (const int one : object.shape) sizes.push_back(Value::of(one));
    object = Value::of_items(std::move(sizes));
    return;
  }
  if (name != "value" && name != "handle") object = Value{};
}

Machine::Next Machine::call(Process& who, const Call& call) {
  const std::size_t count = static_cast<std::size_t>(call.positional) + call.keywords.size();
  const Arguments given{call, who.stack.data() + (who.stack.size() - count), count};
  Value result;
  Next after = Next::on;
  // The arguments stay where they are while it waits: it is called again.
  if (!perform(who, given, result, after)) {
    who.state = Process::State::blocked;
    --who.pc;
    return Next::yield;
  }
  who.stack.resize(who.stack.size() - count);
  who.stack.push_back(std::move(result));
  return after;
}

}  // namespace hemiola::compile::skeleton

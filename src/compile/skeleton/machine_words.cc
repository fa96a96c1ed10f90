// What calls mean by the vocabulary, of Triton's language and of libraries, and inline assembly.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "compile/skeleton/machine.h"

namespace hemiola::compile::skeleton {
namespace {

using Meaning = Word::Meaning;

/// By the library's own names of comparisons: NVSHMEM_CMP_GE, "ge", 5.
std::string comparison_of(const Value* given, std::string_view otherwise) {
  static constexpr std::array kByNumber{"eq", "ne", "gt", "le", "lt", "ge"};
  if (given != nullptr && given->is_number() && given->number() >= 0 && given->number() < 6)
    return kByNumber[static_cast<std::size_t>(given->number())];
  if (given == nullptr || given->kind != Value::Kind::text) return std::string(otherwise);
  for (const char* one : {"GE", "GT", "LE", "LT", "NE", "EQ"})
    if (given->text.ends_with(one)) {
      std::string name(one);
      for (char& c : name) c = static_cast<char>(std::tolower(c));
      return name;
    }
  return given->text;
}

bool adds(const Value* op, std::string_view otherwise) {
  const std::string_view text =
      op != nullptr && op->kind == Value::Kind::text ? op->text : otherwise;
  return text.ends_with("add") || text.ends_with("ADD");
}

bool is_given(const Value* value) {
  return value != nullptr && value->kind != Value::Kind::none;
}

/// "acquire" of "atom.global.acquire.sys.cas.b32"; what it does not say is `otherwise`.
std::string said(const std::string& text, std::initializer_list<const char*> words,
                 const char* otherwise) {
  for (const char* one : words)
    if (text.find(std::string(".") + one) != text.npos) return one;
  return otherwise;
}

const char* reach_of_fence(std::string_view text) {
  for (const char* near : {".gpu", ".cta", "membar.gl"})
    if (text.find(near) != text.npos) return "gpu";
  return "sys";
}

/// "$2" of an instruction is an input, "1" a number.
Value operand_of(const std::string& text, std::size_t from, std::int64_t outputs,
                 const std::vector<Value>& inputs) {
  while (from < text.size() && (text[from] == ' ' || text[from] == ',')) ++from;
  const bool is_input = from < text.size() && text[from] == '$';
  std::int64_t number = -1;
  const char* begin = text.data() + from + (is_input ? 1 : 0);
  if (std::from_chars(begin, text.data() + text.size(), number).ec != std::errc{}) return {};
  if (!is_input) return Value::of(number);
  const std::int64_t at = number - outputs;
  return at >= 0 && at < static_cast<std::int64_t>(inputs.size()) ? inputs[at] : Value{};
}

/// What a loop of instructions waits for: "ge" of one that branches back while it is less, and
/// where that value is written.
struct LoopTest {
  std::string comparison;  ///< empty: it is not understood
  std::size_t operand = 0;
};
LoopTest loop_test(const std::string& text) {
  static constexpr std::array<std::pair<const char*, const char*>, 6> kInverse{
      {{"eq", "ne"}, {"ne", "eq"}, {"lt", "ge"}, {"ge", "lt"}, {"le", "gt"}, {"gt", "le"}}};
  const std::size_t test = text.find("setp."), branch = text.find("bra");
  if (test == text.npos || branch == text.npos) return {};
  const std::size_t at = text.rfind('@', branch), last = text.rfind(',', text.find(';', test));
  const bool is_negated = at != text.npos && text[at + 1] == '!';
  for (const auto& [name, inverse] : kInverse)
    if (text.compare(test + 5, 2, name) == 0 && last > test)
      return {is_negated ? name : inverse, last + 1};
  return {};
}

}  // namespace

Value Machine::at_peer(const Process& who, const Value& where, const Value& peer) {
  Value there = where;
  if (there.kind != Value::Kind::elements) return there;
  for (std::size_t i = 0; i < there.elements.size(); ++i) {
    Element& one = there.elements[i];
    one = addressed(who, one);
    if (one.kind == Element::Kind::address) arrays_[one.array].is_symmetric = true;
    if (peer.kind == Value::Kind::elements && peer.elements.size() > 1 &&
        there.elements.size() == 1) {
      // One word of several peers.
      there.shape = peer.shape;
      const Element base = one;
      there.elements.assign(peer.elements.size(), base);
      for (std::size_t j = 0; j < peer.elements.size(); ++j)
        there.elements[j].rank =
            peer.elements[j].is_number() ? static_cast<int>(peer.elements[j].number) : -1;
      return there;
    }
    if (peer.kind == Value::Kind::elements && peer.elements[0].kind == Element::Kind::open)
      arrays_[peer.elements[0].array].is_number = true;
    one.rank = peer.is_number() ? static_cast<int>(peer.number()) : -1;
  }
  return there;
}

/// "peer|pe": the argument's role, and the name that callers give it.
const Value* Machine::Arguments::role(std::string_view role) const {
  if (call.word == nullptr) return nullptr;
  for (std::size_t i = 0; i < call.word->arguments.size(); ++i) {
    const std::string_view written = call.word->arguments[i];
    const std::size_t bar = written.find('|');
    if (written.substr(0, bar) != role) continue;
    const std::string_view name = bar == written.npos ? role : written.substr(bar + 1);
    for (std::size_t k = 0; k < call.keywords.size(); ++k)
      if (call.keywords[k] == name) return values + call.positional + k;
    return i < static_cast<std::size_t>(call.positional) ? values + i : nullptr;
  }
  return nullptr;
}

/// An order or a scope, as the call or else the vocabulary says.
std::string Machine::Arguments::said(const char* which, const char* otherwise) const {
  const Value* here = role(which);
  if (!is_given(here)) return std::string(call.word->fixed_of(which, otherwise));
  if (here->kind != Value::Kind::text) return "?";
  return here->text == "system" ? "sys" : here->text == "agent" ? "gpu" : here->text;
}

bool Machine::perform(Process& who, const Arguments& given, Value& result, Next& after) {
  const Meaning meaning = given.call.meaning;
  if (meaning == Meaning::barrier_threads || meaning == Meaning::fence) {
    shared_.mark(who, meaning == Meaning::fence ? Access::Kind::fence : Access::Kind::barrier,
                 who.pc - 1);
    return true;
  }
  if (meaning != Meaning::load) after = Next::yield;
  switch (meaning) {
    case Meaning::assembly:
      return assembly(who, given, result);
    case Meaning::barrier_ranks:
    case Meaning::barrier_programs:
      return barrier(who, given);
    case Meaning::wait:
      result = Value::of(1);
      return wait_word(who, given);
    case Meaning::put:
    case Meaning::get:
      copy(who, given);
      [[fallthrough]];
    case Meaning::load:
    case Meaning::store:
    case Meaning::atomic:
    case Meaning::signal:
      result = move(who, given);
      return true;
    default:
      after = Next::on;
      result = computed(who, given);
      return true;
  }
}

bool Machine::barrier(Process& who, const Arguments& given) {
  const Word& word = *given.call.word;
  if (word.meaning == Meaning::barrier_programs)
    return shared_.barrier_of(who, false, true, true, who.pc - 1);
  // Where the library leaves the choice, what is not asked for is not done.
  const auto asks = [&](const char* name) {
    const Value* here = given.role(name);
    return here == nullptr ? word.arguments.empty() || word.fixed.contains("order")
                           : here->is_number() && here->number() != 0;
  };
  return shared_.barrier_of(who, true, asks("hasPreviousMemAccess"), asks("hasSubsequentMemAccess"),
                            who.pc - 1);
}

/// An index for each of as many threads as there are ranks.
Value Machine::lanes() const {
  Value result{.shape = {arrays_.world}, .elements = {}};
  for (int i = 0; i < arrays_.world; ++i) result.elements.push_back(number_element(i));
  return result;
}

Value Machine::there(const Process& who, const Arguments& given, const char* name) {
  const Value *where = given.role(name), *peer = given.role("peer");
  const Value* bases = given.role("bases");
  if (bases != nullptr && bases->is_scalar() && bases->elements[0].kind == Element::Kind::open)
    arrays_[bases->elements[0].array].is_pointer = true;
  if (where == nullptr) return {};
  return peer == nullptr ? *where : at_peer(who, *where, *peer);
}

bool Machine::wait_word(Process& who, const Arguments& given) {
  const Value* value = given.role("value");
  Value where = there(who, given, "flag");
  if (const Value* count = given.role("count");
      count != nullptr && count->is_number() && count->number() > 1 && where.is_scalar()) {
    Value several{.shape = {static_cast<int>(std::min<std::int64_t>(count->number(), 1024))},
                  .elements = {}};
    for (int i = 0; i < several.shape[0]; ++i) several.elements.push_back(number_element(i));
    where = binary(arrays_, "+", where, several);
  }
  const Access access{.kind = Access::Kind::atomic,
                      .op = "load",
                      .sem = given.said("sem", "acquire"),
                      .scope = given.said("scope", "sys")};
  return wait(who, where, access, value == nullptr ? Value::of(1) : *value,
              comparison_of(given.role("compare"), given.call.word->fixed_of("compare", "eq")));
}

/// A put, or a get.
void Machine::copy(Process& who, const Arguments& given) {
  const bool puts = given.call.meaning == Meaning::put;
  const Value *source = given.role("source"), *target = given.role("destination");
  if (source == nullptr || target == nullptr) return;
  const Value from = puts ? *source : there(who, given, "source");
  const Value to = puts ? there(who, given, "destination") : *target;
  if (!(from == to)) {  // memory that is put onto itself does not change
    const Value* mask = given.role("mask");
    Access access{.sem = "", .scope = ""};
    touch(who, from, access, nullptr, nullptr, mask);
    access.kind = Access::Kind::store;
    touch(who, to, access, nullptr, nullptr, mask);
  }
  shared_.mark(who, Access::Kind::barrier, who.pc - 1);  // the library's own
}

/// Loads, stores, atomics, signals.
Value Machine::move(Process& who, const Arguments& given) {
  const Word& word = *given.call.word;
  const Value *mask = given.role("mask"), *value = given.role("value");
  const Value one = Value::of(1);
  if (value == nullptr) value = &one;
  Access access{.kind = Access::Kind::atomic,
                .op = "xchg",
                .sem = given.said("sem", "acq_rel"),
                .scope = given.said("scope", "sys")};
  if (const Value* reach = given.role("comm_scope"); reach != nullptr && reach->text == "gpu")
    access.scope = "gpu";
  if (given.role("flag") != nullptr) {
    if (adds(given.role("op"), word.fixed_of("op", "set"))) access.op = "add";
    touch(who, there(who, given, "flag"), access, value);
  }
  Value where = there(who, given, "pointer");
  if (word.meaning == Meaning::atomic) {
    const std::string_view name = word.name;
    access.op = word.fixed_of("op", name.starts_with("atomic_") ? name.substr(7) : "xchg");
    access.may_be_data = name.starts_with("st") && access.sem == "relaxed";
    return touch(who, where, access, value, given.role("compare"), mask);
  }
  const bool loads = word.meaning == Meaning::load;
  if (!loads && word.meaning != Meaning::store) return {};
  access = {.kind = loads ? Access::Kind::load : Access::Kind::store, .sem = "", .scope = ""};
  access.is_bulk = word.fixed.contains("bulk");
  if (where.kind == Value::Kind::descriptor) {
    const Value* offsets = given.role("offsets");
    access.is_bulk = where.text == "true";
    where = block_of(where, offsets == nullptr ? where.items[3] : *offsets);
  }
  return touch(who, where, access, loads ? nullptr : value, nullptr, mask);
}

bool Machine::assembly(Process& who, const Arguments& given, Value& result) {
  const Value *text = given.role("asm"), *pure = given.role("is_pure");
  if (text == nullptr || text->kind != Value::Kind::text) return true;
  const auto has = [&](const char* what) { return text->text.find(what) != text->text.npos; };
  const auto mark = [&](Access::Kind one) {
    shared_.mark(who, one, who.pc - 1);
    return true;
  };
  for (const char* barrier : {"bar.sync", "barrier.sync", "s_barrier"})
    if (has(barrier)) return mark(Access::Kind::barrier);
  if (has("fence.proxy")) return mark(Access::Kind::proxy_fence);
  if (has("cp.async.bulk.wait_group") || has("bulk.wait"))
    return has("wait_group.read") ? true : mark(Access::Kind::bulk_wait);
  if (has("%tid") || has("%laneid")) {
    result = has("%tid.y") ? Value::of_items({lanes(), Value::of(0), Value::of(0)}) : lanes();
    return true;
  }
  if (instruction(who, given, text->text, result)) return who.lanes_done.empty();
  for (const char* fence : {"fence.", "membar", "threadfence"})
    if (has(fence)) {
      shared_.mark(who, Access::Kind::fence, who.pc - 1, reach_of_fence(text->text));
      return true;
    }
  const bool computes = pure != nullptr && pure->is_number() && pure->number() == 1;
  return computes || !has("[") ? true : mark(Access::Kind::not_followed);
}

/// An access of memory with an order, whose address is an input. False: there is none.
bool Machine::instruction(Process& who, const Arguments& given, const std::string& text,
                          Value& result) {
  static constexpr std::array<std::pair<const char*, std::string_view>, 6> kKinds{
      {{"cas.", "cas"},
       {"exch", "xchg"},
       {"atom.", "add"},
       {"red.", "add"},
       {"st.", "xchg"},
       {"ld.", "load"}}};
  const std::string order =
      said(text, {"acq_rel", "acquire", "release", "relaxed", "volatile"}, "");
  if (order.empty()) return false;
  Access access{.kind = Access::Kind::atomic,
                .sem = order == "volatile" ? "relaxed" : order,
                .scope = said(text, {"sys", "gpu", "cta"}, "?")};
  for (const auto& [pattern, op] : kKinds)
    if (access.op.empty() && text.find(pattern) != text.npos) access.op = op;
  const std::size_t open = text.find('[');
  if (access.op.empty() || open == text.npos) return false;
  const Value *constraints = given.role("constraints"), *arguments = given.role("args");
  if (constraints == nullptr || arguments == nullptr) return false;
  const auto outputs = std::ranges::count(constraints->text, '=');
  const auto operand = [&](std::size_t from) {
    return operand_of(text, from, static_cast<std::int64_t>(outputs), arguments->items);
  };
  const Value where = operand(open + 1);
  const std::size_t close = text.find(']', open);
  if (close == text.npos) return false;
  const Value first = operand(close + 1);
  const std::size_t comma = text.find(',', text.find_first_not_of(" ,", close + 1));
  const Value second = comma == text.npos ? Value{} : operand(comma + 1);
  const bool loops = text.find("bra") != text.npos;
  if (access.op == "cas" && loops) {
    access.value = second.kind == Value::Kind::elements ? second.elements[0] : Element{};
    wait(who, where, access, first, "cas");
    return true;
  }
  if (access.op == "load" && loops) {
    const LoopTest test = loop_test(text);
    if (!test.comparison.empty()) wait(who, where, access, operand(test.operand), test.comparison);
    return !test.comparison.empty();
  }
  const bool compares = access.op == "cas";
  result = touch(who, where, access, compares ? &second : &first, compares ? &first : nullptr);
  return true;
}

}  // namespace hemiola::compile::skeleton

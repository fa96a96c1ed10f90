// Calls of communication libraries, by the vocabulary, and inline assembly.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "compile/skeleton/machine.h"

namespace hemiola::compile::skeleton {
namespace {

using Meaning = Word::Meaning;

/// By the library's own names of comparisons: NVSHMEM_CMP_GE, "ge", 5.
std::string comparison_of(const Value* given, const std::string& otherwise) {
  if (given == nullptr || given->kind != Value::Kind::text) return otherwise;
  for (const char* one : {"GE", "GT", "LE", "LT", "NE", "EQ"})
    if (given->text.ends_with(one)) {
      std::string name(one);
      for (char& c : name) c = static_cast<char>(std::tolower(c));
      return name;
    }
  return given->text;
}

bool adds(const Value* op, const std::string& otherwise) {
  const std::string text = op != nullptr && op->kind == Value::Kind::text ? op->text : otherwise;
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

}  // namespace

Value Machine::at_peer(const Process& who, const Value& where, const Value& peer) {
  Value there = where;
  if (there.kind != Value::Kind::elements) return there;
  for (std::size_t i = 0; i < there.elements.size(); ++i) {
    Element& one = there.elements[i];
    one = addressed(who, one);
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

bool Machine::word(Process& who, const Arguments& given, Value& result) {
  const Word& word = *given.call.word;
  // "peer|pe": the argument's role, and the name that callers give it.
  const auto find = [&](std::string_view role) -> const Value* {
    for (std::size_t i = 0; i < word.arguments.size(); ++i) {
      const std::string_view written = word.arguments[i];
      const std::size_t bar = written.find('|');
      if (written.substr(0, bar) != role) continue;
      return given.find(i, bar == written.npos ? role : written.substr(bar + 1));
    }
    return nullptr;
  };
  const auto order = [&](const char* name, const char* otherwise) {
    const Value* said_here = find(name);
    if (is_given(said_here)) {
      if (said_here->kind != Value::Kind::text) return std::string("?");
      return said_here->text == "system"  ? "sys"
             : said_here->text == "agent" ? "gpu"
                                          : said_here->text;
    }
    return word.fixed_of(name, otherwise);
  };
  const auto there = [&](const char* name) -> Value {
    const Value *where = find(name), *peer = find("peer");
    if (where == nullptr) return {};
    return peer == nullptr ? *where : at_peer(who, *where, *peer);
  };
  Access access{.kind = Access::Kind::atomic,
                .op = "load",
                .sem = order("sem", "acq_rel"),
                .scope = order("scope", "sys")};
  if (const Value* reach = find("comm_scope");
      reach != nullptr && reach->kind == Value::Kind::text && reach->text == "gpu")
    access.scope = "gpu";
  const auto plain = [](Access::Kind kind) { return Access{.kind = kind, .sem = "", .scope = ""}; };
  const Value one = Value::of(1);
  const Value* value = find("value");
  if (value == nullptr) value = &one;
  switch (word.meaning) {
    case Meaning::none:
      if (!word.arguments.empty() && find("pointer") != nullptr) result = *find("pointer");
      return true;
    case Meaning::rank:
      result = Value::of(who.rank);
      return true;
    case Meaning::world:
      result = Value::of(arrays_.world);
      return true;
    case Meaning::lane:
      result = {.shape = {arrays_.world}, .elements = {}};
      for (int i = 0; i < arrays_.world; ++i) result.elements.push_back(number_element(i));
      return true;
    case Meaning::barrier_threads:
    case Meaning::fence:
      shared_.mark(who, word.meaning == Meaning::fence ? Mark::fence : Mark::barrier, who.pc - 1);
      return true;
    case Meaning::barrier_ranks: {
      const auto flag = [&](const char* name) {
        const Value* said_here = find(name);
        // Where the library leaves the choice, what is not asked for is not done.
        return said_here == nullptr ? word.arguments.empty() || word.fixed.contains("order")
                                    : said_here->is_number() && said_here->number() != 0;
      };
      return shared_.barrier_of(who, true, flag("hasPreviousMemAccess"),
                                flag("hasSubsequentMemAccess"), who.pc - 1);
    }
    case Meaning::barrier_programs:
      return shared_.barrier_of(who, false, true, true, who.pc - 1);
    case Meaning::address:
      result = there("pointer");
      return true;
    case Meaning::load:
      result =
          touch(who, there("pointer"), plain(Access::Kind::load), nullptr, nullptr, find("mask"));
      return true;
    case Meaning::store:
      touch(who, there("pointer"), plain(Access::Kind::store), value, nullptr, find("mask"));
      return true;
    case Meaning::get:
    case Meaning::put: {
      const bool puts = word.meaning == Meaning::put;
      const Value* source = find("source");
      const Value* target = find("destination");
      if (source == nullptr || target == nullptr) return true;
      touch(who, puts ? *source : there("source"), plain(Access::Kind::load), nullptr, nullptr,
            find("mask"));
      touch(who, puts ? there("destination") : *target, plain(Access::Kind::store), nullptr,
            nullptr, find("mask"));
      if (find("flag") == nullptr) return true;
      shared_.mark(who, Mark::barrier, who.pc - 1);  // the library's own
      access.op = adds(find("op"), word.fixed_of("op", "set")) ? "add" : "xchg";
      touch(who, there("flag"), access, value, nullptr, nullptr);
      return true;
    }
    case Meaning::signal:
      access.op = adds(find("op"), word.fixed_of("op", "set")) ? "add" : "xchg";
      touch(who, there("flag"), access, value, nullptr, nullptr);
      return true;
    case Meaning::atomic: {
      static constexpr std::array<std::string_view, 9> kOps{"load", "add", "sub", "xchg", "cas",
                                                            "and",  "or",  "max", "min"};
      const std::string op = word.fixed_of("op", "xchg");
      const auto known = std::find(kOps.begin(), kOps.end(), op);
      access.op = known == kOps.end() ? "xchg" : *known;
      result = touch(who, there("pointer"), access, value, find("compare"), find("mask"));
      return true;
    }
    case Meaning::wait: {
      Value where = there("flag");
      if (const Value* count = find("count");
          count != nullptr && count->is_number() && count->number() > 1 && where.is_scalar()) {
        Value lanes{.shape = {static_cast<int>(std::min<std::int64_t>(count->number(), 1024))},
                    .elements = {}};
        for (int i = 0; i < lanes.shape[0]; ++i) lanes.elements.push_back(number_element(i));
        where = binary(arrays_, "+", where, lanes);
      }
      result = Value::of(1);
      return wait(who, where, access, *value,
                  comparison_of(find("compare"), word.fixed_of("compare", "eq")));
    }
  }
  return true;
}

bool Machine::assembly(Process& who, const Arguments& given, Value& result) {
  const Value* text = given.find(0, "asm");
  const Value* pure = given.find(4, "is_pure");
  if (text == nullptr || text->kind != Value::Kind::text) return true;
  const auto has = [&](const char* what) { return text->text.find(what) != text->text.npos; };
  const auto mark = [&](Mark one) {
    shared_.mark(who, one, who.pc - 1);
    return true;
  };
  if (has("bar.sync") || has("barrier.sync") || has("s_barrier")) return mark(Mark::barrier);
  if (has("fence.proxy")) return mark(Mark::proxy_fence);
  if (has("cp.async.bulk.wait_group") || has("bulk.wait"))
    return has("wait_group.read") ? true : mark(Mark::bulk_wait);
  if (has("%tid") || has("%laneid")) {
    result = {.shape = {arrays_.world}, .elements = {}};
    for (int i = 0; i < arrays_.world; ++i) result.elements.push_back(number_element(i));
    const std::string& spelled = text->text;
    if (spelled.find("%tid.y") != spelled.npos)
      result = Value::of_items({result, Value::of(0), Value::of(0)});
    return true;
  }
  if (instruction(who, given, text->text, result)) return who.lanes_done.empty();
  if (has("fence.") || has("membar") || has("threadfence")) return mark(Mark::fence);
  const bool computes = pure != nullptr && pure->is_number() && pure->number() == 1;
  return computes || !has("[") ? true : mark(Mark::not_followed);
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
  const bool is_ordered = text.find("acquire") != text.npos || text.find("release") != text.npos ||
                          text.find("relaxed") != text.npos || text.find("acq_rel") != text.npos ||
                          text.find("volatile") != text.npos;
  if (!is_ordered) return false;
  Access access{.kind = Access::Kind::atomic,
                .sem = said(text, {"acq_rel", "acquire", "release"}, "relaxed"),
                .scope = said(text, {"sys", "gpu", "cta"}, "?")};
  for (const auto& [pattern, op] : kKinds)
    if (access.op.empty() && text.find(pattern) != text.npos) access.op = op;
  const std::size_t open = text.find('[');
  if (access.op.empty() || open == text.npos) return false;
  const Value* constraints = given.find(1, "constraints");
  const Value* arguments = given.find(2, "args");
  if (constraints == nullptr || arguments == nullptr) return false;
  const auto outputs = std::count(constraints->text.begin(), constraints->text.end(), '=');
  /// "$2" is an input, "1" a number.
  const auto operand = [&](std::size_t from) -> Value {
    while (from < text.size() && (text[from] == ' ' || text[from] == ',')) ++from;
    const bool is_input = from < text.size() && text[from] == '$';
    std::int64_t number = -1;
    const char* begin = text.data() + from + (is_input ? 1 : 0);
    if (std::from_chars(begin, text.data() + text.size(), number).ec != std::errc{}) return {};
    if (!is_input) return Value::of(number);
    const std::int64_t at = number - outputs;
    return at >= 0 && at < static_cast<std::int64_t>(arguments->items.size()) ? arguments->items[at]
                                                                              : Value{};
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
  const bool compares = access.op == "cas";
  result =
      touch(who, where, access, compares ? &second : &first, compares ? &first : nullptr, nullptr);
  return true;
}

}  // namespace hemiola::compile::skeleton

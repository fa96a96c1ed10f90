#include "compile/rules/roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <utility>

namespace hemiola::compile::rules {
namespace {

using skeleton::Array;
using skeleton::Element;
using skeleton::Event;
using skeleton::Value;

constexpr std::size_t kMostSettings = 24;

using Words = std::set<std::string>;

/// "peer_flags", "peerFlags" and "PEER_FLAGS" have the words peer and flags.
Words words_of(const std::string& name) {
  Words words;
  std::string word;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    const bool ends = i == name.size() || name[i] == '_' ||
                      (i > 0 && std::isupper(name[i]) != 0 && std::islower(name[i - 1]) != 0);
    if (ends && !word.empty()) words.insert(std::exchange(word, {}));
    if (i < name.size() && name[i] != '_')
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return words;
}

/// What a number is whose name has one of these words.
struct ByName {
  std::vector<const char*> words;
  const char* expression;
};

bool has_any(const Words& words, const std::vector<const char*>& of) {
  return std::any_of(of.begin(), of.end(), [&](const char* one) { return words.contains(one); });
}

/// A number by what its name says; empty: it says nothing.
std::string number_by_name(const std::string& name, bool is_constexpr) {
  static const std::vector<ByName> kNames{
      {{"world", "nranks", "npes", "ws", "worldsize", "ngpus", "ranks", "peers", "pes", "gpus",
        "devices"},
       "world"},
      {{"stride", "pitch"}, "stride"},
      {{"prev", "previous", "left", "src", "from", "upstream", "source", "sender", "below"},
       "(rank + world - 1) % world"},
      {{"root", "producer", "leader", "owner"}, "0"},
      {{"consumer"}, "1"},
      {{"dst", "dest", "destination", "receiver"}, "(rank + 1) % world"}};
  static const std::vector<ByName> kOthers{
      {{"rank", "me", "mype", "pe", "myrank", "myself"}, "rank"},
      {{"epoch", "call", "iter", "iteration", "generation", "gen", "seq", "sequence", "round",
        "version", "phase", "tick", "ticket", "stamp", "launch", "era"},
       "call + 1"},
      {{"sms", "programs", "blocks", "grid", "ctas", "workers", "nprog", "nprograms", "tiles",
        "workgroups", "nblocks", "ntiles", "wgs", "nwg"},
       "programs"},
      {{"chunks", "pieces", "steps", "stages", "nchunks", "slots", "group"}, "2"},
      {{"xcds", "warps"}, "1"}};
  const Words words = words_of(name);
  const auto found_in = [&](const std::vector<ByName>& table) -> std::string {
    for (const ByName& one : table)
      if (has_any(words, one.words)) return one.expression;
    return "";
  };
  const bool is_rank = has_any(words, {"rank", "pe", "tp", "gpu"});
  if (is_rank && has_any(words, {"num", "n", "nr", "total", "size", "count", "number", "max"}))
    return "world";
  std::string text = found_in(kNames);
  const bool is_target = words.contains("target");
  if (text.empty() && (is_target ? is_rank : names_a_peer(name))) text = "(rank + 1) % world";
  if (text.empty()) text = found_in(kOthers);
  if (!text.empty()) return text;
  if (!is_constexpr && words == Words{"step"}) return "call + 1";
  if (is_constexpr && has_any(words, {"block", "bm", "bn", "bk", "tile", "width"})) return "4";
  return words == Words{"m"} || words == Words{"k"} ? "8" : "";
}

std::map<int, Use> uses_of(const std::vector<skeleton::Trace>& traces) {
  std::map<int, Use> uses;
  for (const skeleton::Trace& trace : traces)
    for (const Event& event : trace.events)
      for (const Element& where : event.where) {
        if (where.kind != Element::Kind::address) continue;
        Use& use = uses[where.array];
        const int far = where.rank == trace.rank ? 0 : 1;
        const bool looks =
            event.op == "load" || (event.value.is_number() && event.value.number == 0 &&
                                   event.op != "xchg" && event.op != "cas");
        use.is_awaited[far] |=
            event.kind == Event::Kind::poll || event.kind == Event::Kind::plain_poll;
        use.is_told[far] |= event.kind == Event::Kind::atomic && !looks;
        use.is_told[far] |= event.kind == Event::Kind::poll && event.op == "cas";
        use.is_loaded[far] |= event.kind == Event::Kind::load;
        use.is_stored[far] |= event.kind == Event::Kind::store;
      }
  return uses;
}

/// Whether what one sends is what the other takes.
bool fit(const Use& far, const Use& own) {
  return (far.is_told[1] && own.is_awaited[0]) || (far.is_awaited[1] && own.is_told[0]) ||
         (far.is_stored[1] && (own.is_loaded[0] || own.is_awaited[0])) ||
         (far.is_loaded[1] && own.is_stored[0]) || (far.is_awaited[1] && own.is_stored[0]);
}

bool is_of_ring(const std::string& name) {
  return has_any(words_of(name), {"next", "prev", "previous", "left", "right", "upstream",
                                  "downstream", "neighbor", "neighbour"});
}

}  // namespace

bool names_a_peer(const std::string& name) {
  return has_any(words_of(name), {"peer", "remote", "far", "next", "right", "neighbor", "neighbour",
                                  "other", "others", "partner", "buddy", "their", "theirs",
                                  "downstream", "prev", "previous", "left", "upstream"});
}

Words core_of(const std::string& name) {
  static const Words kWhose{
      "peer",    "peers",      "remote",   "far",    "near",   "next",     "right",    "left",
      "prev",    "ptr",        "ptrs",     "table",  "tables", "all",      "addr",     "addrs",
      "address", "addresses",  "base",     "bases",  "list",   "tuple",    "rank",     "ranks",
      "their",   "theirs",     "other",    "others", "of",     "symm",     "dev",      "my",
      "own",     "local",      "mine",     "at",     "p",      "to",       "neighbor", "neighbour",
      "dst",     "downstream", "upstream", "world",  "tab",    "previous", "target",   "pointers",
      "pointer", "out",        "in"};
  Words core;
  for (std::string word : words_of(name)) {
    if (kWhose.contains(word)) continue;
    if (word.size() > 2 && word.back() == 's') word.pop_back();
    core.insert(std::move(word));
  }
  return core;
}

Survey::Survey(const skeleton::Code& code, const ParameterValues& constants,
               const Protocol& protocol)
    : code_(code), protocol_(protocol) {
  for (std::size_t i = 0; i < code.parameters.size(); ++i)
    arrays.add({.name = code.parameters[i].name, .parameter = static_cast<int>(i)});
  setting.expressions.resize(code.parameters.size());
  setting.at.resize(code.parameters.size());
  const bool asks =
      std::any_of(code.calls.begin(), code.calls.end(), [](const skeleton::Call& one) {
        return one.builtin == skeleton::Builtin::program_id ||
               one.builtin == skeleton::Builtin::num_programs;
      });
  if (!asks) setting.programs = 1;
  if (protocol.programs > 0) setting.programs = protocol.programs;
  choose_numbers(constants);
  type_parameters();
  // A table of which only the first element is looked at: that of rank 0, where ranks are known.
  const bool has_ranks =
      std::any_of(setting.expressions.begin(), setting.expressions.end(),
                  [](const std::string& one) { return one.find("rank") != std::string::npos; });
  for (int i = 0; i < arrays.size(); ++i)
    if (has_ranks && arrays[i].table < 0 && !names_a_peer(arrays[i].name))
      arrays[i].is_indexed = true;
  record(true);
  choose_arrays();
}

std::optional<std::int64_t> Survey::value_of(const std::string& text, const Names& names) const {
  return formulas_.try_emplace(text, text).first->second.value(names);
}

std::vector<Value> Survey::start(const Setting& chosen, int world, int rank, int call) const {
  const Names names{
      {"rank", rank}, {"world", world}, {"call", call}, {"programs", chosen.programs}};
  std::vector<Value> values;
  for (std::size_t i = 0; i < code_.parameters.size(); ++i) {
    const Array& array = arrays[static_cast<int>(i)];
    const std::string& text = chosen.expressions[i];
    const bool may_point = !code_.parameters[i].is_constexpr && !array.is_number;
    if (array.is_pointer || (may_point && text.empty())) {
      int whose = rank;
      if (!chosen.at[i].empty())
        whose = static_cast<int>(value_of(chosen.at[i], names).value_or(rank));
      values.push_back(
          Value::of(Element{.kind = array.is_pointer ? Element::Kind::address : Element::Kind::open,
                            .array = static_cast<int>(i),
                            .rank = whose}));
    } else if (text == "None") {
      values.push_back({.kind = Value::Kind::none});
    } else if (!text.empty() && (text[0] == '"' || text[0] == '\'')) {
      values.push_back(Value::of_text(text.substr(1, text.size() - 2)));
    } else {
      const auto number = value_of(text, names);
      values.push_back(number ? Value::of(*number) : Value{});
    }
  }
  return values;
}

/// What is added to, looked at and multiplied says which parameters are addresses.
void Survey::type_parameters() {
  for (int pass = 0; pass < 3; ++pass) record(false);
  for (std::size_t i = 0; i < code_.parameters.size(); ++i) {
    Array& array = arrays[static_cast<int>(i)];
    if (array.is_number && array.is_pointer && setting.expressions[i].empty())
      array.is_number = false;
    if (array.is_pointer || !setting.expressions[i].empty()) continue;
    setting.expressions[i] = expression_of(static_cast<int>(i));
  }
}

std::string Survey::expression_of(int parameter) {
  const std::string& name = code_.parameters[parameter].name;
  std::string text = number_by_name(name, code_.parameters[parameter].is_constexpr);
  if (text.empty()) text = code_.parameters[parameter].is_constexpr ? "4" : "4 * programs";
  if (text != "stride") return text;
  const std::string group = name.substr(0, name.size() - 1);
  int behind = 0;
  for (std::size_t i = parameter + 1; i < code_.parameters.size(); ++i)
    if (code_.parameters[i].name.substr(0, code_.parameters[i].name.size() - 1) == group) ++behind;
  // So far apart that rows never meet, and an axis without a stride has room.
  return behind == 0 ? "64" : behind == 1 ? "8192" : "1048576";
}

void Survey::choose_numbers(const ParameterValues& constants) {
  for (std::size_t i = 0; i < code_.parameters.size(); ++i) {
    const skeleton::Parameter& one = code_.parameters[i];
    std::string& text = setting.expressions[i];
    if (const auto given = constants.find(one.name); given != constants.end()) {
      text = given->second;
    } else if (const auto said = protocol_.parameters.find(one.name);
               said != protocol_.parameters.end()) {
      const std::size_t at = said->second.find(" at ");
      if (at == std::string::npos)
        text = said->second;
      else
        setting.at[i] = said->second.substr(at + 4);
      for (std::size_t j = 0; j < code_.parameters.size(); ++j) {
        if (code_.parameters[j].name != said->second.substr(0, std::min(at, said->second.size())))
          continue;
        if (at == std::string::npos) text.clear();
        if (i != j) setting.aliases[static_cast<int>(i)] = static_cast<int>(j);
      }
    } else if (!one.default_text.empty() && one.default_text != "None") {
      text = one.default_text == "True"    ? "1"
             : one.default_text == "False" ? "0"
                                           : one.default_text;
      if (text.starts_with("tl.constexpr(")) text = text.substr(13, text.size() - 14);
    } else if (one.is_constexpr) {
      text = one.default_text == "None" ? "None" : expression_of(static_cast<int>(i));
    } else if (one.default_text == "None") {
      text = "";
    }
    if (text == "True") text = "1";
    if (text == "False") text = "0";
  }
}

bool Survey::is_told_or_awaited(const std::string& name) const {
  for (const skeleton::Trace& trace : traces)
    for (const Event& event : trace.events) {
      if (event.kind != Event::Kind::poll && event.kind != Event::Kind::atomic &&
          event.kind != Event::Kind::plain_poll)
        continue;
      const std::vector<Span> chain = code_.chain(event.step);
      const Span span = chain.empty() ? code_.span(event.step) : chain.front();
      const skeleton::Site& site = code_.sites[0];
      if (span.file != site.module->source.file()) continue;
      const Source& source = site.module->source;
      const std::string_view line = source.text().substr(
          source.line_begin(span.begin), source.line_end(span.end) - source.line_begin(span.begin));
      for (std::size_t at = line.find(name); at != line.npos; at = line.find(name, at + 1)) {
        const auto inside = [&](std::size_t i) {
          return i < line.size() &&
                 (std::isalnum(static_cast<unsigned char>(line[i])) != 0 || line[i] == '_');
        };
        if (!inside(at - 1) && !inside(at + name.size())) return true;
      }
    }
  return false;
}

/// Which memory of a peer is which of the own parameters, and what else may be read in two ways.
void Survey::choose_arrays() {
  Choices choices;
  match_peers(choices);
  match_numbers(choices);
  if (protocol_.programs == 0 && setting.programs > 1) {
    const auto by = [](int count) { return [count](Setting& to) { to.programs = count; }; };
    choices.push_back({by(2), by(4)});
  }
  std::vector<Setting> all{setting};
  for (const auto& options : choices) {
    std::vector<Setting> more;
    for (const auto& option : options)
      for (const Setting& one : all) {
        if (more.size() >= kMostSettings) break;
        more.push_back(one);
        option(more.back());
      }
    all = std::move(more);
  }
  setting = all.front();
  others.assign(all.begin() + 1, all.end());
  for (std::size_t i = 0; i < code_.parameters.size(); ++i) {
    const std::string& text = setting.expressions[i];
    const bool says = text.find("rank") != text.npos || text.find("world") != text.npos ||
                      text.find("call") != text.npos;
    if (says && !arrays[static_cast<int>(i)].is_pointer)
      assumed.push_back(fmt::format("`{}` is {}", code_.parameters[i].name, text));
  }
  choose_worlds();
  traces.clear();
  record(true);
}

/// A parameter that is memory of a peer: whose, and what is done with it, which looked near as long
/// as nobody knew.
Use Survey::of_peer(int parameter, Use use) {
  std::string& at = setting.at[parameter];
  if (at.empty()) {
    const std::string whose = number_by_name(arrays[parameter].name, false);
    at = whose.find("world - 1") != whose.npos ? whose : "(rank + 1) % world";
    assumed.push_back(fmt::format("`{}` is memory of rank {}", arrays[parameter].name, at));
  }
  for (auto* one : {use.is_told, use.is_awaited, use.is_loaded, use.is_stored})
    std::swap(one[0], one[1]);
  return use;
}

/// Own parameters with the same name but for whose it is, and those that take what is sent there.
std::pair<std::vector<int>, std::vector<int>> Survey::own_for(int array, const std::string& name,
                                                              const Use& use,
                                                              std::map<int, Use>& uses) const {
  std::vector<int> named, fitting;
  const std::set<std::string> core = core_of(name);
  for (int own = 0; own < static_cast<int>(code_.parameters.size()); ++own) {
    const Array& one = arrays[own];
    if (own == array || !one.is_pointer || one.is_table || names_a_peer(one.name)) continue;
    if (!core.empty() && core == core_of(one.name)) named.push_back(own);
    if (fit(use, uses[own])) fitting.push_back(own);
  }
  return {named, fitting};
}

void Survey::match_peers(Choices& choices) {
  std::map<int, Use> uses = uses_of(traces);
  for (int i = 0; i < arrays.size(); ++i) {
    const bool is_child = arrays[i].table >= 0;
    const std::string name = arrays[is_child ? arrays[i].parameter : i].name;
    const bool is_peers =
        is_child || (names_a_peer(name) && !arrays[i].is_table && arrays[i].is_pointer);
    if (!uses.contains(i) || setting.aliases.contains(i) || !is_peers) continue;
    Use use = uses[i];
    if (!is_child) use = of_peer(i, use);
    const auto [named, fitting] = own_for(i, name, use, uses);
    const bool is_near =
        use.is_awaited[0] || use.is_loaded[0] || use.is_told[0] || use.is_stored[0];
    if (named.size() == 1) {
      setting.aliases[i] = named[0];
      assumed.push_back(
          fmt::format("`{}` is `{}` of a peer", arrays[i].name, arrays[named[0]].name));
    } else if (fitting.size() == 1 && !is_near) {
      const int own = fitting[0];
      choices.push_back({[i, own](Setting& one) { one.aliases[i] = own; }, [](Setting&) {}});
      assumed.push_back(
          fmt::format("`{}` is `{}` of a peer, if that holds", arrays[i].name, arrays[own].name));
    }
  }
}

void Survey::match_numbers(Choices& choices) {
  for (std::size_t i = 0; i < code_.parameters.size(); ++i) {
    const std::string& name = code_.parameters[i].name;
    if (setting.expressions[i] != "4 * programs" || !is_told_or_awaited(name)) continue;
    std::vector<std::function<void(Setting&)>> values;
    for (const char* one : {"call + 1", "world", "programs", "1", "world - 1", "world * (call + 1)",
                            "programs * (call + 1)", "(world - 1) * (call + 1)"})
      values.push_back([i, one](Setting& to) { to.expressions[i] = one; });
    choices.push_back(std::move(values));
    assumed.push_back(fmt::format("`{}` is what makes the protocol hold, if anything does", name));
  }
}

/// Two who exchange know no number of ranks.
void Survey::choose_worlds() {
  const auto speaks_of = [&](const char* what) {
    return std::any_of(setting.expressions.begin(), setting.expressions.end(),
                       [&](const std::string& one) { return one.find(what) != std::string::npos; });
  };
  const auto asks_for = [&](skeleton::Word::Meaning meaning) {
    return std::any_of(code_.calls.begin(), code_.calls.end(), [&](const skeleton::Call& one) {
      return one.word != nullptr && one.word->meaning == meaning;
    });
  };
  const bool has_peers =
      std::any_of(code_.parameters.begin(), code_.parameters.end(),
                  [](const skeleton::Parameter& one) { return names_a_peer(one.name); });
  const bool is_ring =
      std::any_of(code_.parameters.begin(), code_.parameters.end(),
                  [](const skeleton::Parameter& one) { return is_of_ring(one.name); });
  const bool asks = asks_for(skeleton::Word::Meaning::world);
  knows_ranks = speaks_of("rank") || speaks_of("world") || asks || has_peers ||
                asks_for(skeleton::Word::Meaning::rank);
  if (!speaks_of("world") && !is_ring && !asks) worlds = {2};
  if (!protocol_.ranks.empty()) worlds = protocol_.ranks;
}

std::vector<int> Survey::grid(int programs) const {
  std::set<std::int64_t> axes;
  for (std::size_t i = 1; i < code_.steps.size(); ++i) {
    const skeleton::Step &step = code_.steps[i], &before = code_.steps[i - 1];
    if (step.op != skeleton::Op::call || before.op != skeleton::Op::constant ||
        code_.calls[step.a].builtin != skeleton::Builtin::program_id)
      continue;
    if (const Value& axis = code_.constants[before.a]; axis.is_number()) axes.insert(axis.number());
  }
  if (programs >= 4 && axes.contains(1)) return {programs / 2, 2, 1};
  if (programs >= 4 && axes.contains(2)) return {programs / 2, 1, 2};
  if (axes.size() == 1 && *axes.begin() == 1) return {1, programs, 1};
  return {programs, 1, 1};
}

void Survey::record(bool keeps) {
  const int world = arrays.world;
  for (int rank = 0; rank < world; ++rank) {
    for (int program = 0; program < setting.programs; ++program) {
      skeleton::Recorder recorder;
      skeleton::Machine machine(code_, arrays, recorder);
      machine.launch.programs = grid(setting.programs);
      skeleton::Process process{.rank = rank, .program = program};
      process.slots = start(setting, world, rank, 0);
      process.slots.resize(static_cast<std::size_t>(code_.slots));
      while (process.state == skeleton::Process::State::ready) machine.go(process);
      if (!keeps) continue;
      not_followed.insert(recorder.not_followed.begin(), recorder.not_followed.end());
      traces.push_back({.rank = rank,
                        .program = program,
                        .events = std::move(recorder.taken),
                        .failure = process.why,
                        .failed_step = process.last_step});
    }
  }
}

}  // namespace hemiola::compile::rules

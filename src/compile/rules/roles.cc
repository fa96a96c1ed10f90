#include "compile/rules/roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "compile/rules/judge.h"
#include "compile/rules/names.h"

namespace hemiola::compile::rules {
namespace {

using skeleton::Array;
using skeleton::Element;
using skeleton::Event;
using skeleton::Value;

constexpr std::size_t kMostSettings = 24;
constexpr int kPrograms = 4;  ///< of a survey

/// Whether what one sends is what the other takes.
bool fit(const ArrayUse& far, const ArrayUse& own) {
  return (far.told[1] && own.awaited[0]) || (far.awaited[1] && own.told[0]) ||
         (far.stored[1] && (own.loaded[0] || own.awaited[0])) || (far.loaded[1] && own.stored[0]) ||
         (far.awaited[1] && own.stored[0]);
}

}  // namespace

Survey::Survey(const skeleton::Code& code, const ParameterValues& constants,
               const Protocol& protocol, const Host& host)
    : code_(code), protocol_(protocol), host_(host) {
  for (std::size_t i = 0; i < code.parameters.size(); ++i)
    arrays.add({.name = code.parameters[i].name, .parameter = static_cast<int>(i)});
  setting.expressions.resize(code.parameters.size());
  setting.at.resize(code.parameters.size());
  choose_axes();
  choose_numbers(constants);
  type_parameters();
  arrays.keep(static_cast<int>(code.parameters.size()));
  record(setting);
  infer_ranks();
  // A table of which only the first element is looked at: that of rank 0, where ranks are known.
  const bool has_ranks = std::ranges::any_of(setting.expressions, [](const std::string& one) {
    return one.find("rank") != std::string::npos;
  });
  arrays.keep(static_cast<int>(code.parameters.size()));
  bool has_indexed = false;  // and so, whatever its name, where others are looked into by rank
  for (int i = 0; i < arrays.size(); ++i) has_indexed = has_indexed || arrays[i].is_indexed;
  for (int i = 0; i < arrays.size(); ++i)
    if (has_ranks && (has_indexed || !names_a_peer(arrays[i].name))) arrays[i].is_indexed = true;
  record(setting);
  const auto before = std::pair(setting, assumed);
  choose_arrays();
  // Two ranks have none between the first and the last, which may be who tells.
  const Reading reading(code_, *this);
  const bool is_open = std::ranges::any_of(reading.uses(), [](const auto& one) {
    return one.second.is_awaited() && !one.second.is_told();
  });
  if (!is_open || worlds_.back() == surveyed) return;
  surveyed = worlds_.back();
  std::tie(setting, assumed) = before;
  record(setting);
  choose_arrays();
}

/// Which memory of a peer is which of the own parameters, and what else may be read in two ways.
void Survey::choose_arrays() {
  Choices choices;
  match_peers(choices);
  match_numbers(choices);
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
  // Calls are counted from 1, or from 0 if that holds.
  for (std::size_t i = 0, count = all.size(); i < count; ++i) {
    Setting from_zero = all[i];
    for (std::size_t k = 0; k < code_.parameters.size(); ++k) {
      std::string& text = from_zero.expressions[k];
      const std::size_t at = text.find("call + 1");
      if (at != text.npos && !protocol_.parameters.contains(code_.parameters[k].name))
        text.replace(at, 8, "call");
    }
    if (!(from_zero == all[i])) all.push_back(std::move(from_zero));
  }
  others.assign(all.begin() + 1, all.end());
  for (std::size_t i = 0; i < code_.parameters.size(); ++i) {
    const std::string& text = setting.expressions[i];
    const bool says = text.find("rank") != text.npos || text.find("world") != text.npos ||
                      text.find("call") != text.npos;
    if (says && !arrays[static_cast<int>(i)].is_pointer)
      assumed.push_back(fmt::format("`{}` is {}", code_.parameters[i].name, text));
  }
  choose_worlds();
  record(setting);
}

/// A parameter that is memory of a peer: whose, and what is done with it, which looked near as long
/// as nobody knew.
ArrayUse Survey::of_peer(int parameter, ArrayUse use) {
  std::string& at = setting.at[parameter];
  if (at.empty()) {
    const std::string whose = number_by_name(arrays[parameter].name, false);
    at = whose.find("world - 1") != whose.npos ? whose : "(rank + 1) % world";
    assumed.push_back(fmt::format("`{}` is memory of rank {}", arrays[parameter].name, at));
  }
  for (auto* one : {use.told, use.awaited, use.loaded, use.stored}) std::swap(one[0], one[1]);
  return use;
}

/// Arrays that are read before anything was waited for: what comes in from others is none of them.
std::set<int> Survey::inputs() const {
  std::set<int> arrays;
  for (const skeleton::Trace& trace : traces)
    for (const Event& event : trace.events) {
      if (event.kind == Event::Kind::poll || event.kind == Event::Kind::plain_poll ||
          event.kind == Event::Kind::ranks)
        break;
      if (event.kind != Event::Kind::load) continue;
      for (const Element& where : event.where)
        if (where.kind == Element::Kind::address) arrays.insert(where.array);
    }
  return arrays;
}

/// Own parameters that take what is sent there: with the same name but for whose it is, or else
/// with words of it, or else all.
std::vector<int> Survey::own_for(int array, const std::string& name, const ArrayUse& use,
                                 const Reading& reading, bool& is_named) const {
  std::vector<int> named, alike, fitting;
  const std::set<std::string> core = core_of(name);
  const std::set<int> read_first = inputs();
  for (int own = 0; own < static_cast<int>(code_.parameters.size()); ++own) {
    const Array& one = arrays[own];
    const bool is_unused = !one.is_number && !code_.parameters[own].is_constexpr;
    if (own == array || !(one.is_pointer || is_unused) || one.is_table || names_a_peer(one.name))
      continue;
    const std::set<std::string> words = core_of(one.name);
    if (!core.empty() && core == words) named.push_back(own);
    if (!one.is_pointer || !fit(use, reading.use_of(own))) continue;
    const bool shares = std::ranges::any_of(
        core, [&](const std::string& word) { return word.size() > 1 && words.contains(word); });
    if (shares) alike.push_back(own);
    if (!read_first.contains(own) || reading.use_of(own).stored[0]) fitting.push_back(own);
  }
  // What is read at once is rather an input.
  std::stable_partition(fitting.begin(), fitting.end(),
                        [&](int own) { return !read_first.contains(own); });
  std::stable_partition(fitting.begin(), fitting.end(), [&](int own) {
    const std::set<std::string> words = core_of(arrays[own].name);
    return std::ranges::any_of(core, [&](const std::string& word) { return words.contains(word); });
  });
  is_named = named.size() == 1 || (named.empty() && alike.size() == 1);
  if (is_named) return named.empty() ? alike : named;
  return fitting;
}

void Survey::match_peers(Choices& choices) {
  const Reading reading(code_, *this);
  std::set<int> taken;
  std::vector<std::pair<int, std::vector<int>>> open;
  for (int i = 0; i < arrays.size(); ++i) {
    const bool is_child = arrays[i].table >= 0;
    const std::string name = arrays[is_child ? arrays[i].parameter : i].name;
    const bool is_peers = is_child || (names_a_peer(name) && !arrays[i].is_table &&
                                       !arrays[i].is_symmetric && arrays[i].is_pointer);
    if (!reading.uses().contains(i) || setting.aliases.contains(i) || !is_peers) continue;
    ArrayUse use = reading.use_of(i);
    if (!is_child) use = of_peer(i, use);
    bool is_named = false;
    std::vector<int> own = own_for(i, name, use, reading, is_named);
    if (is_named) {
      setting.aliases[i] = own[0];
      taken.insert(own[0]);
      assumed.push_back(fmt::format("`{}` is `{}` of a peer", arrays[i].name, arrays[own[0]].name));
    } else if (!own.empty() && !use.awaited[0] && !use.loaded[0] && !use.stored[0]) {
      open.emplace_back(i, std::move(own));
    }
  }
  for (auto& [array, fitting] : open) {
    // Rather what no other one of a peer's has the name of.
    std::stable_partition(fitting.begin(), fitting.end(),
                          [&](int own) { return !taken.contains(own); });
    std::vector<Change> readings;
    for (const int own : fitting)
      readings.push_back([array, own](Setting& one) { one.aliases[array] = own; });
    const std::string is_own =
        fmt::format("`{}` is `{}` of a peer", arrays[array].name, arrays[fitting[0]].name);
    readings.push_back([is_own](Setting& one) {
      one.left_out = is_own;
      one.is_unmatched = true;
    });
    choices.push_back(std::move(readings));
    assumed.push_back(is_own + ", if that holds");
  }
}

/// Whether a number is one of ranks, by what a parameter is or what a library says.
bool Survey::knows(const char* what, skeleton::Word::Meaning meaning) const {
  return std::ranges::any_of(
             setting.expressions,
             [&](const std::string& one) { return one.find(what) != std::string::npos; }) ||
         std::ranges::any_of(code_.calls,
                             [&](const skeleton::Call& one) { return one.meaning == meaning; });
}

/// Two who exchange know no number of ranks.
void Survey::choose_worlds() {
  const bool has_peers = std::ranges::any_of(
      code_.parameters, [](const skeleton::Parameter& one) { return names_a_peer(one.name); });
  const bool is_ring = std::ranges::any_of(
      code_.parameters, [](const skeleton::Parameter& one) { return is_of_ring(one.name); });
  const bool knows_world = knows("world", skeleton::Word::Meaning::world);
  const bool names_peers = std::ranges::any_of(code_.calls, [](const skeleton::Call& one) {
    return one.word != nullptr && one.word->names_a_peer();
  });
  knows_ranks =
      knows_world || has_peers || names_peers || knows("rank", skeleton::Word::Meaning::rank);
  if (!knows_world && !is_ring) worlds_ = {2};
  if (!protocol_.ranks.empty()) worlds_ = protocol_.ranks;
}

/// Traces of all programs of all ranks of a small run.
void Survey::record(const Setting& chosen) {
  traces.clear();
  not_followed.clear();
  arrays.world = surveyed;
  const Size size = size_of(chosen, surveyed, kPrograms);
  for (int rank = 0; rank < size.world; ++rank) {
    for (int program = 0; program < size.programs(); ++program) {
      skeleton::Recorder recorder;
      skeleton::Machine machine(code_, arrays, recorder);
      machine.programs = size.grid;
      skeleton::Process process{.rank = rank, .program = program};
      process.slots = start(chosen, size, rank, 0);
      process.slots.resize(static_cast<std::size_t>(code_.slots));
      while (process.state == skeleton::Process::State::ready) machine.go(process);
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

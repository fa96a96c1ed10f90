// Numbers that a kernel is given: what each of them is, and how many programs there are.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compile/rules/names.h"
#include "compile/rules/roles.h"

namespace hemiola::compile::rules {
namespace {

using skeleton::Array;
using skeleton::Element;
using skeleton::Event;
using Meaning = skeleton::Word::Meaning;
using skeleton::Value;

/// Adds what `names` are made of, by assignments and loops of a function.
void add_sources(const Source& source, const Node& node, std::set<std::string>& names) {
  const bool gives = node.kind == Kind::assignment || node.kind == Kind::augmented_assignment ||
                     node.kind == Kind::for_statement;
  const Node *left = node.child(Field::left), *right = node.child(Field::right);
  if (gives && left != nullptr && right != nullptr) {
    std::set<std::string> given;
    names_in(source, *left, given);
    if (std::ranges::any_of(given, [&](const auto& one) { return names.contains(one); }))
      names_in(source, *right, names);
  }
  for (const Node* one : node.children) add_sources(source, *one, names);
}

/// Adds what stands in conditions with a call, or with a name that its value has there.
void add_conditions(const Source& source, const Node& node, const Node& call,
                    std::set<std::string>& names) {
  const auto holds = [&](const Node* one) {
    return one != nullptr && one->begin <= call.begin && call.end <= one->end;
  };
  std::set<std::string> given;
  for (const Node* one : node.children) {
    std::set<std::string> asked;
    const Node* condition =
        one->kind == Kind::if_statement ? one->child(Field::condition) : nullptr;
    if (condition != nullptr) names_in(source, *condition, asked);
    if (holds(condition) ||
        std::ranges::any_of(asked, [&](const std::string& name) { return given.contains(name); }))
      names.insert(asked.begin(), asked.end());
    const Node* inner = one->children.empty() ? nullptr : one->children.front();
    if (inner != nullptr && inner->kind == Kind::assignment && holds(inner))
      names_in(source, *inner->child(Field::left), given);
    if (holds(one)) add_conditions(source, *one, call, names);
  }
}

/// The innermost loop around a node.
const Node* loop_around(const Node& from, const Node& node) {
  const Node* found = nullptr;
  for (const Node* at = &from; at != nullptr;) {
    if (at->kind == Kind::while_statement || at->kind == Kind::for_statement) found = at;
    const Node* inner = nullptr;
    for (const Node* one : at->children)
      if (one->begin <= node.begin && node.end <= one->end && one != &node) inner = one;
    at = inner;
  }
  return found;
}

bool has_words(const std::vector<skeleton::Trace>& traces) {
  return std::ranges::any_of(traces, [](const skeleton::Trace& trace) {
    return std::ranges::any_of(trace.events, [](const Event& event) {
      return event.kind == Event::Kind::atomic || event.kind == Event::Kind::poll ||
             event.kind == Event::Kind::plain_poll || event.kind == Event::Kind::ranks;
    });
  });
}

/// Names in the arguments of a call but for the first, which is an address.
void names_of_values(const Source& source, const Node& call, std::size_t from,
                     std::set<std::string>& names) {
  const Node* arguments = call.child(Field::arguments);
  if (arguments == nullptr) return;
  for (std::size_t i = from; i < arguments->children.size(); ++i)
    names_in(source, *arguments->children[i], names);
}

}  // namespace

std::optional<std::int64_t> Survey::value_of(const std::string& text, const Names& names) const {
  return formulas_.try_emplace(text, text).first->second.value(names);
}

std::vector<Value> Survey::start(const Setting& chosen, const Size& size, int rank,
                                 int call) const {
  const Names names{
      {"rank", rank}, {"world", size.world}, {"call", call}, {"programs", size.programs()}};
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

/// Arguments of the call that the text's expression, the name and the kernel's own use leave open.
std::string Survey::expression_of(int parameter) const {
  const std::string& name = code_.parameters[parameter].name;
  const bool is_constexpr = code_.parameters[parameter].is_constexpr;
  const std::string text = number_by_name(name, is_constexpr);
  if (text != "stride") return text;
  const std::string group = name.substr(0, name.size() - 1);
  int behind = 0;
  for (std::size_t i = parameter + 1; i < code_.parameters.size(); ++i)
    if (code_.parameters[i].name.substr(0, code_.parameters[i].name.size() - 1) == group) ++behind;
  // So far apart that rows never meet, and an axis without a stride has room.
  return behind == 0 ? "64" : behind == 1 ? "8192" : "1048576";
}

/// Of several numbers of programs, one is of all of them and the others of parts.
void Survey::share_programs() {
  std::vector<int> parts;
  for (std::size_t i = 0; i < code_.parameters.size(); ++i) {
    const std::string& name = code_.parameters[i].name;
    if (code_.parameters[i].is_constexpr && setting.expressions[i] == "programs" &&
        number_by_name(name, true) == "programs")
      parts.push_back(static_cast<int>(i));
  }
  if (parts.size() < 2) return;
  for (const int one : parts)
    if (core_of(code_.parameters[one].name).size() > 2 ||
        code_.parameters[one].name.find("NUM") != 0)
      setting.expressions[one] = "programs // 2";
}

/// What is added to, looked at and multiplied says which parameters are addresses.
void Survey::type_parameters() {
  for (int pass = 0; pass < 3; ++pass) record(setting);
  for (std::size_t i = 0; i < code_.parameters.size(); ++i) {
    Array& array = arrays[static_cast<int>(i)];
    std::string& text = setting.expressions[i];
    if (array.is_number && array.is_pointer && text.empty()) array.is_number = false;
    if (array.is_pointer || !text.empty()) continue;
    text = handed_over(static_cast<int>(i));
    if (text.empty()) text = expression_of(static_cast<int>(i));
    if (text.empty() && array.is_number) {
      guessed_.insert(static_cast<int>(i));
      text = "4 * programs";
    }
  }
}

void Survey::take_from_protocol(int parameter) {
  const std::string& said = protocol_.parameters.at(code_.parameters[parameter].name);
  const std::size_t at = said.find(" at ");
  std::string& text = setting.expressions[parameter];
  if (at == std::string::npos)
    text = said;
  else
    setting.at[parameter] = said.substr(at + 4);
  for (std::size_t own = 0; own < code_.parameters.size(); ++own) {
    if (code_.parameters[own].name != said.substr(0, std::min(at, said.size()))) continue;
    if (at == std::string::npos) text.clear();
    if (parameter != static_cast<int>(own)) setting.aliases[parameter] = static_cast<int>(own);
  }
}

/// What the launch says of a number; empty: nothing.
std::string Survey::handed_over(int parameter) const {
  const skeleton::Parameter& one = code_.parameters[parameter];
  const auto handed = host_.arguments.find(one.name);
  if (handed == host_.arguments.end()) return "";
  if (handed->second == "True" || handed->second == "False") return handed->second;
  const std::string number = number_of(host_, handed->second),
                    named = number_by_name(one.name, false);
  // A rank that is written as a number is one of several; programs are fewer here.
  const bool is_of_rank = named.find("rank") != named.npos || named.find("world") != named.npos ||
                          (named.find("programs") != named.npos && !axes_.empty());
  return number_in(number) && is_of_rank ? "" : number;
}

/// By --constexpr, the launch, the default value, the name; empty: none of them says.
std::string Survey::text_of_number(int parameter, const ParameterValues& constants) const {
  const skeleton::Parameter& one = code_.parameters[parameter];
  if (const auto given = constants.find(one.name); given != constants.end()) return given->second;
  if (one.is_constexpr)
    if (std::string number = handed_over(parameter); !number.empty()) return number;
  if (!one.default_text.empty() && one.default_text != "None") {
    return one.default_text.starts_with("tl.constexpr(")
               ? one.default_text.substr(13, one.default_text.size() - 14)
               : one.default_text;
  }
  if (!one.is_constexpr) return "";
  return one.default_text == "None" ? "None" : expression_of(parameter);
}

void Survey::choose_numbers(const ParameterValues& constants) {
  for (std::size_t i = 0; i < code_.parameters.size(); ++i) {
    const int parameter = static_cast<int>(i);
    std::string& text = setting.expressions[i];
    if (protocol_.parameters.contains(code_.parameters[i].name))
      take_from_protocol(parameter);
    else
      text = text_of_number(parameter, constants);
    if (text == "True") text = "1";
    if (text == "False") text = "0";
    if (!text.empty() || !code_.parameters[i].is_constexpr) continue;
    guessed_.insert(parameter);
    text = "4";
  }
  share_programs();
}

/// Which axes of the grid the kernel asks for, and what the launch says of them.
void Survey::choose_axes() {
  for (std::size_t i = 0; i < code_.steps.size(); ++i) {
    const skeleton::Step& step = code_.steps[i];
    if (step.op != skeleton::Op::call) continue;
    const Meaning meaning = code_.calls[step.a].meaning;
    if (meaning != Meaning::program_id && meaning != Meaning::num_programs) continue;
    const bool says = i > 0 && code_.steps[i - 1].op == skeleton::Op::constant &&
                      code_.constants[code_.steps[i - 1].a].is_number();
    const std::int64_t axis = says ? code_.constants[code_.steps[i - 1].a].number() : 0;
    if (axis >= 0 && axis < 3) axes_.insert(static_cast<int>(axis));
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(3, host_.grid.size()); ++i) {
    const std::string number = number_of(host_, host_.grid[i]);
    const auto count = number_in(number);
    if ((count && *count > 0 && *count <= 8) || number.find("world") != number.npos)
      setting.axes[i] = number;
  }
}

Size Survey::size_of(const Setting& chosen, int world, int programs) const {
  Size size{.world = world, .grid = {1, 1, 1}};
  std::vector<int> free;
  for (const int axis : axes_) {
    const std::string& says = chosen.axes[axis];
    if (says.empty())
      free.push_back(axis);
    else
      size.grid[axis] = static_cast<int>(value_of(says, {{"world", world}}).value_or(1));
  }
  const bool both = free.size() > 1 && programs % 2 == 0 && programs > 2;
  if (!free.empty()) size.grid[free[0]] = both ? programs / 2 : programs;
  if (both) size.grid[free[1]] = 2;
  return size;
}

std::vector<Size> Survey::sizes(const Setting& chosen) const {
  std::vector<std::pair<int, int>> pairs;
  for (std::size_t i = 0; i < worlds_.size(); ++i) {
    if (protocol_.programs > 0)
      pairs.emplace_back(worlds_[i], protocol_.programs);
    else
      pairs.emplace_back(worlds_[i], i == 0 ? 4 : 2);
  }
  if (worlds_.size() == 1 && protocol_.programs == 0) pairs.insert(pairs.begin(), {worlds_[0], 2});
  std::vector<Size> made;
  for (const auto& [world, programs] : pairs) {
    const Size one = size_of(chosen, world, programs);
    if (made.empty() || made.back().world != world || made.back().grid != one.grid)
      made.push_back(one);
  }
  return made;
}

std::vector<Setting> Survey::resized(const Setting& chosen) const {
  std::vector<Setting> made;
  const std::pair<const char*, const char*> changes[] = {
      {"4 * programs", "64 * programs * world"}, {"4", "1"}, {"4", "64"}};
  for (const auto& [from, to] : changes) {
    Setting changed = chosen;
    for (const int one : guessed_)
      if (changed.expressions[one] == from) changed.expressions[one] = to;
    if (!(changed == chosen)) made.push_back(std::move(changed));
  }
  return made;
}

void Survey::use(const Setting& chosen) {
  setting = chosen;
  record(chosen);
}

/// How often a peer is named that there is not.
int Survey::strays_of(const Setting& chosen) {
  const skeleton::Arrays saved = arrays;
  record(chosen);
  int strays = 0;
  for (const skeleton::Trace& trace : traces)
    for (const Event& event : trace.events)
      for (const Element& where : event.where)
        if (where.kind == Element::Kind::address &&
            (where.rank >= arrays.world || arrays[where.array].kind != 0))
          ++strays;
  arrays = saved;
  return strays;
}

/// Whether two ranks do the same at memory of different peers, or tell different words there and
/// wait for the same ones.
bool Survey::differs_by_rank(const Setting& chosen) {
  const skeleton::Arrays saved = arrays;
  record(chosen);
  struct Touched {
    std::size_t events = 0;
    std::set<std::pair<int, int>> peers;
    std::set<std::int64_t> told, awaited;
  } touched[2];
  for (const skeleton::Trace& trace : traces) {
    if (trace.rank > 1) continue;
    Touched& one = touched[trace.rank];
    one.events += trace.events.size();
    for (const Event& event : trace.events)
      for (const Element& where : event.where) {
        if (where.kind != Element::Kind::address) continue;
        if (arrays[where.array].table >= 0) one.peers.insert({where.array, where.rank});
        const bool waits = event.kind == Event::Kind::poll;
        if (waits || event.kind == Event::Kind::atomic)
          (waits ? one.awaited : one.told).insert(where.number);
      }
  }
  arrays = saved;
  if (touched[0].events != touched[1].events) return false;
  return touched[0].peers != touched[1].peers ||
         (touched[0].told != touched[1].told && touched[0].awaited == touched[1].awaited);
}

/// A number that tables of addresses are looked into with is a rank, one that bounds it is how many
/// there are, whatever they are called.
void Survey::infer_ranks() {
  if (!has_words(traces)) return;  // a table of addresses of its own GPU
  infer_by_tables();
  std::set<std::string> counted;
  const bool has_rank = knows("rank", skeleton::Word::Meaning::rank);
  if (has_rank || told_or_awaited(counted).empty() || differs_by_rank(setting)) return;
  for (const int one : guessed_) {
    Setting changed = setting;
    changed.expressions[one] = "rank";
    if (changed == setting || !differs_by_rank(changed)) continue;
    setting = changed;
    assumed.push_back(fmt::format("`{}` is rank", code_.parameters[one].name));
    return;
  }
}

/// What has an index that no table of ranks has, until every index is one.
void Survey::infer_by_tables() {
  std::vector<std::pair<std::string, Change>> changes;
  for (const int one : guessed_)
    for (const char* number : {"world", "rank"})
      changes.emplace_back(fmt::format("`{}` is {}: it chooses in a table of ranks",
                                       code_.parameters[one].name, number),
                           [one, number](Setting& to) { to.expressions[one] = number; });
  for (const int axis : axes_)
    if (setting.axes[axis].empty() && protocol_.programs == 0)
      changes.emplace_back("a program for each rank: they choose in a table of ranks",
                           [axis](Setting& to) { to.axes[axis] = "world"; });
  for (int strays = strays_of(setting); strays > 0;) {
    const std::pair<std::string, Change>* best = nullptr;
    for (const auto& change : changes) {
      Setting changed = setting;
      change.second(changed);
      const int left = strays_of(changed);
      if (left >= strays) continue;
      strays = left;
      best = &change;
    }
    if (best == nullptr) break;
    best->second(setting);
    if (std::ranges::find(assumed, best->first) != assumed.end()) break;
    assumed.push_back(best->first);
    if (best->first.find("is rank") != std::string::npos) ++inferred_ranks;
  }
}

void Survey::add_names(const Event& event, std::set<std::string>& names,
                       std::set<std::string>& counted) const {
  const Source& source = code_.sites[0].module->source;
  int site = code_.steps[event.step].site;
  const Node* call = code_.steps[event.step].node;
  const bool is_own = site == 0, counts = event.kind == Event::Kind::atomic;
  for (; code_.sites[site].parent >= 0; site = code_.sites[site].parent)
    call = code_.sites[site].call;
  names_of_values(source, *call, is_own ? 1 : 0, names);
  if (is_own && counts) add_conditions(source, source.root(), *call, counted);
  const skeleton::Word* word = code_.calls[code_.steps[event.step].a].word;
  if (!is_own || counts ||
      (word != nullptr && (word->meaning == Meaning::wait || word->names_a_peer())))
    return;
  const Node* loop = loop_around(source.root(), *call);
  if (loop != nullptr) names_in(source, *loop, names);
  std::set<std::string> address;
  const Node* arguments = call->child(Field::arguments);
  if (arguments != nullptr && !arguments->children.empty())
    names_in(source, *arguments->children[0], address);
  for (const std::string& one : address) names.erase(one);
}

/// Names of the kernel that say what is told and what is waited for, and what counts are compared
/// with.
std::set<std::string> Survey::told_or_awaited(std::set<std::string>& counted) const {
  std::set<std::string> names;
  const skeleton::Site& kernel = code_.sites[0];
  const Source& source = kernel.module->source;
  for (const skeleton::Trace& trace : traces)
    for (const Event& event : trace.events)
      if (event.kind == Event::Kind::poll || event.kind == Event::Kind::atomic ||
          event.kind == Event::Kind::plain_poll)
        add_names(event, names, counted);
  for (std::size_t before = 0; before != names.size();) {
    before = names.size();
    for (const auto& function : kernel.module->functions)
      if (function->name == kernel.function) add_sources(source, function->body(), names);
  }
  return names;
}

/// What is told and awaited, of which nothing says what it is: one of several readings has to hold.
void Survey::match_numbers(Choices& choices) {
  std::set<std::string> counted;
  const std::set<std::string> names = told_or_awaited(counted);
  for (const int i : guessed_) {
    const std::string& text = setting.expressions[i];
    const bool is_told = names.contains(code_.parameters[i].name);
    if ((text != "4 * programs" && text != "4") ||
        (!is_told && !counted.contains(code_.parameters[i].name)))
      continue;
    const Change as_programs = [i](Setting& to) { to.expressions[i] = "programs"; };
    if (!is_told) {  // how many count, if that holds
      choices.push_back({[](Setting&) {}, as_programs});
      continue;
    }
    std::vector<Change> values;
    const std::string counts_calls =
        fmt::format("`{}` counts calls and nothing is between them", code_.parameters[i].name);
    for (const char* one : {"call + 1", "world", "programs", "1", "world - 1", "world * (call + 1)",
                            "programs * (call + 1)", "(world - 1) * (call + 1)"})
      values.push_back([i, one, counts_calls](Setting& to) {
        to.expressions[i] = one;
        if (std::string_view(one) == "1") to.left_out = counts_calls;
      });
    if (code_.parameters[i].is_constexpr) values.insert(values.begin(), [](Setting&) {});
    choices.push_back(std::move(values));
    assumed.push_back(fmt::format("`{}` is what makes the protocol hold, if anything does",
                                  code_.parameters[i].name));
  }
}

}  // namespace hemiola::compile::rules

#include "compile/rules/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "compile/python/kernel_needs.h"

namespace hemiola::compile {
namespace {

using Event = MemoryEvent::Kind;

constexpr int kDeepestCalls = 8;

/// Walks a kernel in the order of its text.
class EventReader {
 public:
  EventReader(Library& library, const Function& kernel, const Description& description)
      : library_(library), description_(description) {
    for (const KernelParameter& one : description.parameters)
      if (!one.value.empty()) texts_.back()[one.name] = one.value;
    for (const AccessDescription& access : description.accesses) {
      const bool is_block = std::any_of(access.axes.begin(), access.axes.end(),
                                        [](const AxisIndex& axis) { return !axis.range.empty(); });
      if (is_block) blocks_.insert({access.call.file, access.call.begin});
      accesses_[{access.call.file, access.call.begin}] = &access;
    }
    walk(*kernel.module, kernel.body());
    for (MemoryEvent& event : events_) settle(event);
  }

  std::vector<MemoryEvent> take() { return std::move(events_); }

 private:
  using Texts = std::map<std::string, std::string, std::less<>>;  ///< what parameters are

  /// `if` and loops in the order of their text: what may be skipped is looked at as if it were not.
  void walk(const Module& module, const Node& node) {
    switch (node.kind) {
      case Kind::function_definition:
      case Kind::lambda:
        return;
      case Kind::while_statement:
        return walk_while(module, node);
      case Kind::if_statement:
        return walk_if(module, node);
      case Kind::call:
        for (const Node* child : node.children) walk(module, *child);
        return call(module, node);
      default:
        for (const Node* child : node.children) walk(module, *child);
    }
  }

  /// A loop that does nothing but look again is a wait.
  void walk_while(const Module& module, const Node& node) {
    const Node* condition = node.child(Field::condition);
    const Node* body = node.child(Field::body);
    if (condition == nullptr || body == nullptr) return;
    std::set<std::string> looked_at;
    names_in(module.source, *condition, looked_at);
    const bool spins =
        std::all_of(body->children.begin(), body->children.end(), [&](const Node* statement) {
          if (statement->kind == Kind::pass_statement) return true;
          if (statement->kind != Kind::expression_statement || statement->children.size() != 1)
            return false;
          const Node& inner = *statement->children.front();
          const Node* left = inner.child(Field::left);
          return inner.kind == Kind::assignment && left != nullptr &&
                 looked_at.contains(std::string(module.source.text(*left)));
        });
    const bool was_spinning = spins_;
    spins_ = spins;
    walk(module, *condition);
    walk(module, *body);
    spins_ = was_spinning;
  }

  /// An atomic whose value decides what follows is a counter.
  void walk_if(const Module& module, const Node& node) {
    const Node* condition = node.child(Field::condition);
    if (condition == nullptr) return;
    std::set<std::string> names;
    names_in(module.source, *condition, names);
    const std::size_t before = events_.size();
    walk(module, *condition);
    for (std::size_t i = before; i < events_.size(); ++i)
      if (events_[i].kind == Event::signal) events_[i].kind = Event::count;
    for (auto event = events_.rbegin(); event != events_.rend(); ++event) {
      const auto found = results_.find(event->span.begin);
      if (event->kind == Event::signal && found != results_.end() &&
          event->span.file == module.source.file() && names.contains(found->second))
        event->kind = Event::count;
    }
    for (const Node* child : node.children)
      if (child != condition) walk(module, *child);
  }

  void call(const Module& module, const Node& node) {
    const Source& source = module.source;
    const Node* callee = node.child(Field::function);
    if (callee == nullptr) return;
    const std::string name(last_name(source, node));
    if (callee->kind == Kind::identifier) {
      if (const Function* helper = library_.function(module, name);
          helper != nullptr && helper->is_jit)
        return enter(module, node, *helper);
    }
    if (name == "debug_barrier" || name == "barrier") return add(Event::barrier, source, node);
    if (name == "inline_asm_elementwise") return assembly(source, node);
    const bool is_language = is_of_language(module, *callee);
    if (name == "load" && is_language) return load(source, node);
    if (name == "load") return add(Event::load, source, node);
    if (name == "store" && is_language)
      return add(is_block(source, node) ? Event::store : Event::plain_signal, source, node);
    if (name == "store" || name == "scatter")
      return add(description_.target == Target::cuda ? Event::bulk_store : Event::store, source,
                 node);
    if (name.starts_with("atomic_") && is_language) return atomic(source, node, name);
  }

  void enter(const Module& module, const Node& node, const Function& helper) {
    if (std::ssize(texts_) > kDeepestCalls) return;
    Texts texts;
    std::size_t position = 0;
    const Node* arguments = node.child(Field::arguments);
    for (const Node* argument : arguments->children) {
      const Node* value = argument;
      std::string parameter;
      if (argument->kind == Kind::keyword_argument) {
        parameter = module.source.text(*argument->child(Field::name));
        value = argument->child(Field::value);
      } else if (position < helper.parameters.size()) {
        parameter = helper.parameters[position++].name;
      }
      if (value != nullptr) texts[parameter] = text_of(module.source, *value);
    }
    for (const Parameter& parameter : helper.parameters)
      if (!texts.contains(parameter.name) && parameter.default_value != nullptr)
        texts[parameter.name] = helper.module->source.text(*parameter.default_value);
    texts_.push_back(std::move(texts));
    walk(*helper.module, helper.body());
    texts_.pop_back();
  }

  /// As text, parameters of helpers replaced by what they were called with.
  std::string text_of(const Source& source, const Node& node) const {
    const std::string text(source.text(node));
    const auto known = texts_.back().find(text);
    return known == texts_.back().end() ? text : known->second;
  }

  bool is_of_language(const Module& module, const Node& callee) const {
    if (callee.kind != Kind::attribute) return true;  // from triton.language import load
    const Node* object = callee.child(Field::object);
    if (object == nullptr) return false;
    const std::string text(module.source.text(*object));
    const auto import = module.imports.find(text);
    if (import != module.imports.end())
      return import->second.module.starts_with("triton") || import->second.name == "language";
    return text == "tl" || text.ends_with(".language");
  }

  bool is_block(const Source& source, const Node& node) const {
    return blocks_.contains({source.file(), node.begin});
  }

  void load(const Source& source, const Node& node) {
    if (spins_ && !is_block(source, node)) return add(Event::plain_poll, source, node);
    if (is_block(source, node)) add(Event::load, source, node);
  }

  void atomic(const Source& source, const Node& node, const std::string& name) {
    if (is_block(source, node)) return add(Event::store, source, node);  // a reduction of data
    add(name == "atomic_poll" || spins_ ? Event::poll : Event::signal, source, node);
    MemoryEvent& event = events_.back();
    // Sums and extremes of one element are data unless something says otherwise (Judge).
    event.may_be_data = name != "atomic_xchg" && name != "atomic_cas";
    const Node* arguments = node.child(Field::arguments);
    // Positions: pointer, value, mask, sem, scope; atomic_cas has two values and no mask.
    std::vector<const Node*> positional;
    event.sem = name == "atomic_poll" ? "acquire" : "acq_rel";
    event.scope = "gpu";
    for (const Node* argument : arguments->children) {
      if (argument->kind != Kind::keyword_argument) {
        positional.push_back(argument);
        continue;
      }
      const std::string_view key = source.text(*argument->child(Field::name));
      if (key == "sem" || key == "scope") event.may_be_data = false;
      if (key == "sem") event.sem = word(source, *argument->child(Field::value));
      if (key == "scope") event.scope = word(source, *argument->child(Field::value));
    }
    event.frees =
        name == "atomic_xchg" && positional.size() > 1 && text_of(source, *positional[1]) == "0";
    if (positional.size() > 3) event.sem = word(source, *positional[3]);
    if (positional.size() > 4) event.scope = word(source, *positional[4]);
    remember_result(source, node);
  }

  /// "acquire" of "\"acquire\"", and of a parameter that is it.
  std::string word(const Source& source, const Node& node) const {
    std::string text = text_of(source, node);
    if (text.size() < 2 || (text.front() != '"' && text.front() != '\'')) return "?";
    return text.substr(1, text.size() - 2);
  }

  /// The variable that an atomic's value is put into: `before = tl.atomic_add(...)`.
  void remember_result(const Source& source, const Node& node) {
    const std::string_view line = source.text().substr(source.line_begin(node.begin),
                                                       node.begin - source.line_begin(node.begin));
    const std::size_t equals = line.rfind('=');
    if (equals == line.npos) return;
    std::string name(line.substr(0, equals));
    name.erase(0, name.find_first_not_of(" \t"));
    name.erase(name.find_last_not_of(" \t") + 1);
    results_[node.begin] = name;
  }

  void assembly(const Source& source, const Node& node) {
    const std::string_view text = source.text(node);
    const auto has = [&](const char* what) { return text.find(what) != text.npos; };
    if (has("cp.async.bulk.wait_group") && !has("wait_group.read")) {
      add(Event::bulk_wait, source, node);
      return;
    }
    const bool reads = has("ld.") || has("atom."),
               writes = has("st.") || has("red.") || has("atom.");
    const bool is_flag = has("acquire") || has("release") || has("relaxed") || has("volatile");
    if (!is_flag || (!reads && !writes)) return;
    add(spins_ || (reads && has("acquire")) ? Event::poll : Event::signal, source, node);
    MemoryEvent& event = events_.back();
    event.sem = has("acq_rel")   ? "acq_rel"
                : has("acquire") ? "acquire"
                : has("release") ? "release"
                                 : "relaxed";
    event.scope = has(".sys") ? "sys" : has(".gpu") ? "gpu" : has(".cta") ? "cta" : "?";
  }

  void add(Event kind, const Source& source, const Node& node) {
    events_.push_back(
        {.kind = kind, .operand = {}, .sem = {}, .scope = {}, .span = span_of(source, node)});
  }

  void settle(MemoryEvent& event) const {
    const auto found = accesses_.find({event.span.file, event.span.begin});
    if (found == accesses_.end()) return;
    event.operand = found->second->is_loaded_address ? "" : found->second->operand;
    event.is_remote = found->second->is_loaded_address;
  }

  Library& library_;
  const Description& description_;
  std::set<std::pair<std::string, std::uint32_t>>
      blocks_;  ///< calls that touch more than one element
  std::map<std::pair<std::string, std::uint32_t>, const AccessDescription*> accesses_;
  std::map<std::uint32_t, std::string> results_;  ///< by an atomic's begin
  std::vector<Texts> texts_{1};                   ///< of the functions that are entered
  std::vector<MemoryEvent> events_;
  bool spins_ = false;
};

class Judge {
 public:
  explicit Judge(RuleReport& report) : report_(report), events_(report.events) {}

  void judge() {
    forget_data_stores();
    for (std::size_t i = 0; i < events_.size(); ++i) {
      switch (events_[i].kind) {
        case Event::poll:
          judge_poll(i);
          break;
        case Event::plain_poll:
          say(i, "plain-flag",
              "a flag is looked at with a plain load, which orders nothing behind it",
              "tl.atomic_add(flag, 0, sem=\"acquire\", scope=\"sys\") reads it and orders");
          break;
        case Event::count:
        case Event::signal:
          judge_signal(i);
          break;
        case Event::plain_signal:
          say(i, "plain-flag", "a flag is set with a plain store, which orders nothing before it",
              "tl.atomic_xchg(flag, value, sem=\"release\", scope=\"sys\") orders");
          break;
        default:
          break;
      }
    }
  }

 private:
  void say(std::size_t at, const char* rule, std::string what, std::string hint) {
    const Span& span = events_[at].span;
    const bool known = std::any_of(
        report_.violations.begin(), report_.violations.end(), [&](const Violation& one) {
          return one.rule == rule && one.span.begin == span.begin && one.span.file == span.file;
        });
    if (!known) report_.violations.push_back({rule, std::move(what), std::move(hint), span});
  }

  /// A store or a sum of one element is a flag only if somebody looks at it.
  void forget_data_stores() {
    std::set<std::string> looked_at;
    for (const MemoryEvent& event : events_)
      if (event.kind == Event::poll || event.kind == Event::plain_poll)
        looked_at.insert(event.operand);
    std::erase_if(events_, [&](const MemoryEvent& event) {
      return event.kind == Event::signal && event.may_be_data && !looked_at.contains(event.operand);
    });
    for (const MemoryEvent& event : events_)
      if (event.kind == Event::signal) looked_at.insert(event.operand);
    std::erase_if(events_, [&](const MemoryEvent& event) {
      return event.kind == Event::plain_signal &&
             (event.operand.empty() || !looked_at.contains(event.operand));
    });
  }

  bool is_told_here(const std::string& operand) const {
    return std::any_of(events_.begin(), events_.end(), [&](const MemoryEvent& event) {
      return event.kind == Event::signal && !event.is_remote && event.operand == operand;
    });
  }

  void judge_poll(std::size_t i) {
    const MemoryEvent& event = events_[i];
    if (event.sem == "relaxed" || event.sem == "release")
      say(i, "wait-acquire",
          fmt::format("a wait is {}: what comes behind it may be read before it", event.sem),
          "sem=\"acquire\"");
    const bool is_local = !event.operand.empty() && is_told_here(event.operand);
    if (event.scope == "cta" || (event.scope == "gpu" && !is_local))
      say(i, "scope",
          fmt::format("a wait has scope '{}', and who tells it may be another GPU or a copy engine",
                      event.scope),
          "scope=\"sys\"");
    for (std::size_t j = i + 1; j < events_.size(); ++j) {
      const Event kind = events_[j].kind;
      if (kind == Event::barrier) return;
      if (kind == Event::load || kind == Event::store || kind == Event::bulk_store ||
          kind == Event::count || kind == Event::signal) {
        say(i, "wait-barrier",
            "behind a wait there is no barrier: other threads may read what has not arrived",
            "tl.debug_barrier() behind the loop");
        return;
      }
    }
  }

  void judge_signal(std::size_t i) {
    const MemoryEvent& event = events_[i];
    const bool counts = event.kind == Event::count;
    const bool guarded = !counts && is_behind_count(i);
    if (counts && event.sem != "acq_rel" && event.sem != "?")
      say(i, "counter-acq-rel",
          fmt::format("a counter is {}: the program that counts last does not take over what the "
                      "others stored",
                      event.sem),
          "sem=\"acq_rel\"");
    if (!counts && (event.sem == "relaxed" || event.sem == "acquire"))
      say(i, "signal-release",
          fmt::format("a signal is {}: stores before it may come after it", event.sem),
          "sem=\"release\"");
    if (event.scope == "cta" || (!counts && event.scope == "gpu" && event.is_remote))
      say(i, "scope",
          fmt::format("{} has scope '{}', which is too narrow for a peer",
                      counts ? "a counter" : "a signal", event.scope),
          counts ? "scope=\"gpu\"" : "scope=\"sys\"");
    if (event.frees && !event.operand.empty() && !is_looked_at(event.operand) && stores_before(i))
      say(i, "turn-taken", "a turn is given on that the kernel never takes: others may have it",
          "while tl.atomic_cas(turn, 0, 1, sem=\"acquire\") != 0: pass, then a barrier");
    if (guarded) return;  // the counter stands for it
    bool has_barrier = false, has_bulk_wait = false;
    for (std::size_t j = i; j-- > 0;) {
      const Event kind = events_[j].kind;
      if (kind == Event::barrier) has_barrier = true;
      if (kind == Event::bulk_wait) has_bulk_wait = true;
      if (kind == Event::bulk_store && !has_bulk_wait) {
        say(i, "bulk-completion", "a bulk store (TMA) may not be complete when it is told of",
            "cp.async.bulk.wait_group 0 in tl.inline_asm_elementwise, then tl.debug_barrier()");
        return;
      }
      if (kind != Event::store && kind != Event::bulk_store) continue;
      if (!has_barrier)
        say(i, "signal-barrier",
            "between the stores and what tells of them there is no barrier: other threads may "
            "still store",
            "tl.debug_barrier() in front of it");
      return;
    }
  }

  /// Whether a flag decides anything in this kernel.
  bool is_looked_at(const std::string& operand) const {
    return std::any_of(events_.begin(), events_.end(), [&](const MemoryEvent& event) {
      const bool looks = event.kind == Event::poll || event.kind == Event::plain_poll ||
                         event.kind == Event::count || event.kind == Event::load ||
                         (event.kind == Event::signal && !event.frees);
      return looks && event.operand == operand;
    });
  }

  bool stores_before(std::size_t i) const {
    return std::any_of(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(i),
                       [](const MemoryEvent& event) { return event.kind == Event::store; });
  }

  /// Whether a counter is the last thing before a signal that orders.
  bool is_behind_count(std::size_t i) const {
    for (std::size_t j = i; j-- > 0;) {
      if (events_[j].kind == Event::count) return true;
      if (events_[j].kind == Event::store || events_[j].kind == Event::bulk_store) return false;
    }
    return false;
  }

  RuleReport& report_;
  std::vector<MemoryEvent>& events_;
};

}  // namespace

std::string_view name_of(MemoryEvent::Kind kind) {
  static constexpr std::array<std::string_view, 10> kNames{
      "load", "store",      "bulk store", "bulk wait", "barrier",
      "wait", "plain wait", "counter",    "signal",    "plain signal"};
  return kNames[static_cast<std::size_t>(kind)];
}

int RuleReport::count(MemoryEvent::Kind kind) const {
  return static_cast<int>(std::count_if(
      events.begin(), events.end(), [&](const MemoryEvent& event) { return event.kind == kind; }));
}

RuleReport check_rules(Library& library, const Module& module, const DescribeRequest& request) {
  const Function& kernel = choose_kernel(module, request.kernel);
  const Description description = describe(library, module, request);
  RuleReport report{.kernel = kernel.name, .events = {}, .violations = {}};
  report.events = EventReader(library, kernel, description).take();
  Judge(report).judge();
  std::stable_sort(
      report.violations.begin(), report.violations.end(),
      [](const Violation& a, const Violation& b) { return a.span.begin < b.span.begin; });
  return report;
}

}  // namespace hemiola::compile

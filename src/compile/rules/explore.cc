// Runs a kernel's protocol: several numbers of ranks, three calls in a row, many orders.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "compile/rules/judge.h"

namespace hemiola::compile::rules {
namespace {

using skeleton::Fault;
using skeleton::Scene;
using skeleton::World;
using Part = Reading::Part;

constexpr std::int64_t kStepsInAll = 1'500'000;  ///< of all orders of one setting
constexpr std::int64_t kMostOrders = 160, kFewestOrders = 12, kMoreOrders = 24;

bool speaks_of(const std::string& text, std::initializer_list<const char*> phrases) {
  return std::any_of(phrases.begin(), phrases.end(),
                     [&](const char* one) { return text.find(one) != text.npos; });
}

/// Comments, texts and host code of the kernel's file, in lower case, blanks as one.
std::string lower_text(const Module& module) {
  std::string text;
  for (const char c : module.source.text()) {
    const auto lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0 || c == '#';
    if (!blank)
      text += lower;
    else if (!text.empty() && text.back() != ' ')
      text += ' ';
  }
  return text;
}

class Explorer {
 public:
  Explorer(const skeleton::Code& code, Survey& survey, const RuleRequest& request,
           const Protocol& protocol, RuleReport& report)
      : code_(code), survey_(survey), request_(request), protocol_(protocol), report_(report) {}

  void explore() {
    text_ = lower_text(*code_.sites[0].module);
    std::vector<Setting> settings{survey_.setting};
    settings.insert(settings.end(), survey_.others.begin(), survey_.others.end());
    std::optional<Attempt> best;
    for (const Setting& setting : settings) {
      Attempt made = attempt(setting);
      const bool holds = made.fault.kind == Fault::Kind::none;
      // What could not be run says less than what was found.
      const bool is_better =
          !best || holds ||
          (best->fault.kind == Fault::Kind::not_run && made.fault.kind != Fault::Kind::not_run);
      if (is_better) best = std::move(made);
      if (holds) break;
    }
    survey_.setting = best->setting;
    report_.violations = std::move(best->report.violations);
    report_.assumed.insert(report_.assumed.end(), best->report.assumed.begin(),
                           best->report.assumed.end());
    if (best->fault.kind != Fault::Kind::none) report_fault(best->fault);
  }

 private:
  struct Attempt {
    Setting setting;
    RuleReport report;
    Fault fault;
  };

  /// One reading of the parameters: rules of order, then the protocol.
  Attempt attempt(const Setting& setting) {
    Attempt made{.setting = setting, .report = {}, .fault = {}};
    survey_.setting = setting;
    const Reading reading(code_, survey_);
    reading_ = &reading;
    judge_order(code_, survey_, reading, request_, made.report);
    scene_ = {};
    for (std::set<int>* one : {&told_, &loaded_, &stored_, &counted_}) one->clear();
    assumed_.clear();
    make_scene();
    scene_.is_strict = made.report.violations.empty();
    if (!scene_.flags.empty() || has_ranks_) {
      made.fault = fault_of(setting);
      if (made.fault.kind == Fault::Kind::none) assume_run(setting);
    }
    made.report.assumed = assumed_;
    return made;
  }

  void make_scene() {
    for (const Trace& trace : survey_.traces)
      for (const Event& event : trace.events) add_to_scene(trace, event);
    choose_words();
    choose_data();
    for (const Trace& trace : survey_.traces)
      for (const Event& event : trace.events) choose_step(trace, event);
    const bool awaits = std::any_of(scene_.flags.begin(), scene_.flags.end(), [&](int array) {
      return !scene_.outside.contains(array) && reading_->words().at(array).is_awaited;
    });
    if (!has_ranks_ && (told_.empty() || !awaits)) scene_.flags.clear();
  }

  void choose_words() {
    for (const auto& [array, use] : reading_->words()) {
      if (array < 0) continue;
      const bool is_word = use.is_awaited || use.is_counted || told_.contains(array);
      if (is_word || counted_.contains(array)) scene_.flags.insert(array);
      if (!is_word) scene_.fresh.insert(array);
      if (!use.is_awaited || use.is_told) continue;
      scene_.outside.insert(array);
      assume(fmt::format("`{}` is told by somebody else: another kernel, a copy engine, the host",
                         survey_.arrays[array].name));
    }
  }

  void choose_data() {
    for (const int array : reading_->exchanged()) {
      scene_.tracked.insert(array);
      if (!stored_.contains(array)) scene_.from_host.insert(array);
      if (!loaded_.contains(array)) scene_.for_host.insert(array);
    }
    for (const int array : stored_)
      if (loaded_.contains(array)) scene_.tracked.insert(array);
    for (const int array : scene_.flags) {
      if (!stored_.contains(array) && !loaded_.contains(array)) continue;
      scene_.mixed.insert(array);
      scene_.from_host.erase(array);
      scene_.for_host.erase(array);
    }
  }

  void choose_step(const Trace& trace, const Event& event) {
    const Part part = reading_->part_of(trace, event);
    const bool is_word = part != Part::data_load && part != Part::data_store && part != Part::other;
    const bool is_inside = !scene_.outside.contains(reading_->array_of(event));
    if (event.kind == Event::Kind::ranks || (is_word && is_inside))
      scene_.steps_that_matter.insert(event.step);
  }

  void add_to_scene(const Trace& trace, const Event& event) {
    if (event.kind == Event::Kind::ranks) has_ranks_ = true;
    const int array = reading_->array_of(event);
    if (array < 0) return;
    switch (reading_->part_of(trace, event)) {
      case Part::data_load:
        loaded_.insert(array);
        break;
      case Part::data_store:
        stored_.insert(array);
        break;
      case Part::tell:
      case Part::plain_tell:
      case Part::count:
        told_.insert(array);
        break;
      case Part::other:
        if (event.kind == Event::Kind::atomic && event.value.is_number()) counted_.insert(array);
        break;
      default:
        break;
    }
  }

  World::Start starting(const Setting& setting, int world) {
    return [this, &setting, world](int rank, int, int call) {
      return survey_.start(setting, world, rank, call);
    };
  }

  void stage(const Setting& setting, int world) {
    survey_.arrays.world = world;
    scene_.world = world;
    scene_.programs = setting.programs;
    scene_.residents = setting.programs;
    scene_.grid = survey_.grid(setting.programs);
    if (protocol_.residents > 0) scene_.residents = std::min(protocol_.residents, setting.programs);
    if (protocol_.residents == 0 && grid_outgrows()) {
      scene_.residents = std::max(1, setting.programs / 2);
      assume("a grid of a program for each tile: not all of them are resident at a time");
    }
    scene_.calls = protocol_.calls > 0 ? protocol_.calls : 3;
    scene_.aliases = setting.aliases;
  }

  bool grid_outgrows() const {
    const std::string name = code_.sites[0].function;
    std::string lower;
    for (const char c : name)
      lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const std::size_t launch = text_.find(" " + lower + "[");
    if (speaks_of(text_,
                  {"cooperative", "all resident", "co-resident", "all programs are resident"}))
      return false;
    if (speaks_of(text_, {"not resident", "more programs than", "more tiles than",
                          "larger than the gpu", "more blocks than", "than fit"}))
      return true;
    if (launch == std::string::npos) return false;
    const std::size_t end = text_.find('(', text_.find(']', launch));
    const std::string grid = text_.substr(launch + name.size() + 2, end - launch);
    return speaks_of(grid, {"cdiv", "tiles"}) && !speaks_of(grid, {"min(", "sms", "count"});
  }

  Fault fault_of(const Setting& setting) {
    const std::vector<int>& worlds = survey_.worlds;
    for (const int world : worlds) {
      stage(setting, world);
      const World::Start start = starting(setting, world);
      scene_.meets_between = protocol_.meets_between;
      if (!protocol_.is_said && replays(start)) {
        scene_.meets_between = !says_calls_in_a_row();
        assume(
            scene_.meets_between
                ? "between calls the host sets the words back to 0 and all ranks meet: a word that "
                  "was told once would let the next call through at once"
                : "calls follow each other and nobody sets words back");
        if (!scene_.meets_between) return replayed_;
      }
      std::int64_t orders = kFewestOrders;
      for (std::int64_t seed = 0; seed < orders; ++seed) {
        World run(code_, survey_.arrays, scene_);
        const Fault fault = run.run(static_cast<std::uint64_t>(seed), start);
        if (fault.kind != Fault::Kind::none) return first_cause(fault, seed, start);
        if (seed == 0)
          orders = std::clamp(kStepsInAll / std::max<std::int64_t>(1, run.steps()), kFewestOrders,
                              world == worlds.front() ? kMostOrders : kMostOrders / 4);
        orders_ = std::max(orders_, orders);
      }
    }
    return {};
  }

  /// Other orders may show what lies deeper: data that are read before they are there come before
  /// what is overwritten because of that.
  Fault first_cause(Fault found, std::int64_t seed, const World::Start& start) {
    const auto depth = [](const Fault& fault) {
      if (fault.kind == Fault::Kind::not_run) return 9;
      static constexpr std::array<std::string_view, 8> kOrder{
          "reset", "overtaken", "peer", "overlap", "order", "arrival", "endless", "reuse"};
      return static_cast<int>(std::find(kOrder.begin(), kOrder.end(), fault.rule) - kOrder.begin());
    };
    for (std::int64_t more = 1; more <= kMoreOrders; ++more) {
      World run(code_, survey_.arrays, scene_);
      Fault fault = run.run(static_cast<std::uint64_t>(seed + more), start);
      if (fault.kind != Fault::Kind::none && depth(fault) < depth(found)) found = std::move(fault);
    }
    return found;
  }

  bool says_calls_in_a_row() const {
    if (speaks_of(text_, {".zero_()", ".fill_(0)", "zeroed", "zeroes the", "reset by the host",
                          "cleared by the host", "zeroed before", "set back by the host", "memset",
                          "host resets", "host zero", "host clears", "fresh"}) &&
        !speaks_of(text_, {"not zeroed", "nothing zeroes", "nobody zeroes", "never zeroed",
                           "without zeroing", "no zeroing"}))
      return false;
    return speaks_of(text_, {"each call",       "next call",       "every call",    "second call",
                             "call after call", "call before",     "previous call", "earlier call",
                             "between calls",   "calls in a row",  "every step",    "each step",
                             "called again",    "next launch",     "each launch",   "every launch",
                             "launch before",   "previous launch", "back to back",  "back-to-back",
                             "repeated",        "replay"});
  }

  /// Whether a wait that is closed in the first call is open at once in the second: its word still
  /// says what it said then.
  bool replays(const World::Start& start) {
    scene_.mute_from = 0;
    World one(code_, survey_.arrays, scene_);
    one.run(0, start);
    const auto closed = one.stops(0);
    scene_.mute_from = 1;
    World two(code_, survey_.arrays, scene_);
    const Fault muted = two.run(0, start);
    const auto later = two.stops(1);
    scene_.mute_from = -1;
    if (muted.kind == Fault::Kind::not_run) return false;
    // A run whose first call does not end says nothing.
    const auto unfinished = two.stops(0);
    if (std::any_of(unfinished.begin(), unfinished.end(),
                    [](const auto& stop) { return stop.first >= 0; }))
      return false;
    for (std::size_t i = 0; i < closed.size(); ++i) {
      if (closed[i].first < 0 || later[i].first == closed[i].first) continue;
      if (two.is_set_back(closed[i].second)) continue;  // in the kernel itself
      replayed_ = {
          .kind = Fault::Kind::race,
          .step = closed[i].first,
          .rule = "replay",
          .what =
              "this wait is over at once in the next call: the word still has what the call "
              "before told",
          .who = {}};
      return true;
    }
    return false;
  }

  void assume(std::string what) {
    if (std::find(assumed_.begin(), assumed_.end(), what) == assumed_.end())
      assumed_.push_back(std::move(what));
  }

  void assume_run(const Setting& setting) {
    std::string ranks;
    for (const int one : survey_.worlds)
      ranks += (ranks.empty() ? "" : " and ") + std::to_string(one);
    assume(fmt::format("run on {} ranks with {} programs each, {} calls, up to {} orders", ranks,
                       setting.programs, scene_.calls, orders_));
  }

  void report_fault(const Fault& fault) {
    const int step = std::clamp(fault.step, 0, static_cast<int>(code_.steps.size()) - 1);
    const Span span = code_.span(step);
    // A run that leaves calls out accuses nobody: they may be what tells or waits.
    if (!report_.not_judged.empty()) {
      report_.not_judged.push_back(
          "reuse, values, residency: calls that are not followed may tell "
          "or wait");
      return;
    }
    if (fault.kind == Fault::Kind::not_run) {
      report_.not_judged.push_back(
          fmt::format("reuse, values, residency: {}:{}: {}", span.file, span.line, fault.what));
      return;
    }
    Violation made{.rule = fault.rule,
                   .what = fault.what,
                   .hint = hint_of(fault.rule),
                   .span = span,
                   .calls = code_.chain(step),
                   .notes = fault.who,
                   .is_endless = fault.kind == Fault::Kind::endless};
    if (fault.other_step >= 0) {
      const Span other = code_.span(fault.other_step);
      made.notes.insert(made.notes.begin(),
                        fmt::format("{}:{} is the other side", other.file, other.line));
    }
    report_.violations.push_back(std::move(made));
  }

  static std::string hint_of(const std::string& rule) {
    if (rule == "reuse")
      return "a word back from every reader, awaited before the next store; or a barrier of all "
             "ranks";
    if (rule == "order") return "wait for the word of the one who stores there, before the load";
    if (rule == "arrival") return "the receiver waits for the word of each sender before it ends";
    if (rule == "reset")
      return "words that carry the number of the call and are never set back; or a barrier of all "
             "ranks between setting back and telling";
    if (rule == "overtaken") return "wait for at least that value (< instead of !=)";
    if (rule == "replay") return "tell and await the number of the call";
    if (rule == "overlap") return "places of words and of data that no size moves onto each other";
    if (rule == "peer") return "the number of a peer modulo the number of ranks";
    return "every wait needs a program that runs and tells its word";
  }

  const skeleton::Code& code_;
  Survey& survey_;
  const RuleRequest& request_;
  const Protocol& protocol_;
  RuleReport& report_;
  const Reading* reading_ = nullptr;
  Scene scene_;
  std::set<int> told_, loaded_, stored_, counted_;
  bool has_ranks_ = false;
  std::string text_;
  std::vector<std::string> assumed_;
  std::int64_t orders_ = 0;
  Fault replayed_;
};

}  // namespace

void run_protocol(const skeleton::Code& code, Survey& survey, const RuleRequest& request,
                  const Protocol& protocol, RuleReport& report) {
  Explorer(code, survey, request, protocol, report).explore();
}

}  // namespace hemiola::compile::rules

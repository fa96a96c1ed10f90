// Runs a kernel's protocol: several numbers of ranks, three calls in a row, many orders.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "compile/rules/judge.h"

namespace hemiola::compile::rules {
namespace {

using skeleton::Fault;
using skeleton::Scene;
using skeleton::World;
using Part = Reading::Part;

constexpr std::int64_t kStepsInAll = 1'500'000;  ///< of all orders of one setting
constexpr std::int64_t kMostSteps = 4'000'000;   ///< after which no more readings are tried
constexpr std::int64_t kMostOrders = 160, kFewestOrders = 12, kMoreOrders = 24;

class Explorer {
 public:
  Explorer(const skeleton::Code& code, Survey& survey, const RuleRequest& request,
           const Protocol& protocol, const Host& host, RuleReport& report)
      : code_(code),
        survey_(survey),
        request_(request),
        protocol_(protocol),
        host_(host),
        report_(report) {}

  void explore() {
    Attempt best = choose_reading();
    if (best.fault.kind == Fault::Kind::race || best.fault.kind == Fault::Kind::endless)
      for (const Setting& other : survey_.resized(best.setting)) {
        survey_.use(other);
        if (attempt(other).fault.kind == Fault::Kind::none) best.depends_on_sizes = true;
      }
    survey_.use(best.setting);
    deepens_ = true;
    if (best.fault.kind != Fault::Kind::none && !best.depends_on_sizes)
      best = attempt(best.setting);
    else
      reading_.emplace(code_, survey_);
    report_.violations = std::move(best.report.violations);
    report_.has_open_scope = best.report.has_open_scope;
    report_.assumed.insert(report_.assumed.end(), best.report.assumed.begin(),
                           best.report.assumed.end());
    if (best.fault.kind != Fault::Kind::none)
      report_fault(best);
    else if (best.setting.left_out.empty())
      name_unreached(best.unreached);
    else
      leave_out("they do not hold if " + best.setting.left_out +
                ", and the text does not say whether it is so (--protocol)");
    report_.not_judged.insert(report_.not_judged.end(), best.report.not_judged.begin(),
                              best.report.not_judged.end());
  }

 private:
  struct Attempt {
    Setting setting;
    RuleReport report;
    Fault fault;
    bool depends_on_sizes = false;
    bool needs_host = false;  ///< holds if the host sets words back, which the text does not say
    std::set<int> unreached;  ///< steps that wait or tell, which no program came to
  };

  /// The first reading that holds, or else the likeliest.
  Attempt choose_reading() {
    std::vector<Setting> settings{survey_.setting};
    settings.insert(settings.end(), survey_.others.begin(), survey_.others.end());
    std::stable_partition(settings.begin(), settings.end(),
                          [](const Setting& one) { return one.left_out.empty(); });
    std::optional<Attempt> best;  // what could not be run says less than what was found
    for (const Setting& setting : settings) {
      if (setting.is_unmatched && completes_) break;  // it ends well in other orders
      Attempt made = attempt(setting);
      const bool holds = made.fault.kind == Fault::Kind::none;
      if (holds && best && made.needs_host && made.setting.left_out.empty())
        made.setting.left_out = "what is told counts calls and nothing is between them";
      const bool is_better =
          !best || holds ||
          (best->fault.kind == Fault::Kind::not_run && made.fault.kind != Fault::Kind::not_run);
      if (is_better) best = std::move(made);
      if (holds || steps_ > kMostSteps) break;
    }
    return std::move(*best);
  }

  /// One reading of the parameters: rules of order, then the protocol.
  Attempt attempt(const Setting& setting) {
    Attempt made{.setting = setting, .report = {}, .fault = {}};
    survey_.setting = setting;
    reading_.emplace(code_, survey_);
    judge_order(code_, survey_, *reading_, request_, made.report);
    scene_ = {};
    for (std::set<int>* one : {&told_, &loaded_, &stored_, &counted_}) one->clear();
    assumed_.clear();
    make_scene();
    scene_.is_strict = made.report.violations.empty();
    if (!scene_.flags.empty() || has_ranks_) {
      reached_.clear();
      made.fault = fault_of(setting);
      for (const int step : scene_.steps_that_matter)
        if (!reached_.contains(step)) made.unreached.insert(step);
      if (made.fault.kind == Fault::Kind::none) assume_run(setting);
    }
    made.needs_host = scene_.zeroes_all && !protocol_.is_said;
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
    const bool is_shared = awaits || std::any_of(stored_.begin(), stored_.end(), [&](int array) {
                             return loaded_.contains(array);
                           });
    if (!has_ranks_ && (told_.empty() || !is_shared)) scene_.flags.clear();
    scene_.only_near = !has_ranks_ && !awaits;
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
    for (const int array : stored_) {
      if (!loaded_.contains(array)) continue;
      scene_.tracked.insert(array);
      if (is_read_first(array)) scene_.filled.insert(array);
    }
    for (const int array : scene_.flags) {
      if (!stored_.contains(array) && !loaded_.contains(array)) continue;
      scene_.mixed.insert(array);
      scene_.from_host.erase(array);
      scene_.for_host.erase(array);
    }
  }

  /// Whether every program that touches the data reads them before it stores there.
  bool is_read_first(int array) const {
    for (const Trace& trace : survey_.traces)
      for (const Event& event : trace.events) {
        if (reading_->array_of(event) != array) continue;
        if (reading_->part_of(trace, event) == Part::data_store) return false;
        if (reading_->part_of(trace, event) == Part::data_load) break;
      }
    return true;
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

  void stage(const Setting& setting, const Size& size) {
    survey_.arrays.world = size.world;
    scene_.world = size.world;
    scene_.programs = size.programs();
    scene_.residents = scene_.programs;
    scene_.grid = size.grid;
    if (protocol_.residents > 0) scene_.residents = std::min(protocol_.residents, scene_.programs);
    if (protocol_.residents == 0 && grid_outgrows()) {
      scene_.residents = std::max(1, scene_.programs / 2);
      assume("a grid of a program for each tile: not all of them are resident at a time");
    }
    scene_.calls = protocol_.calls > 0 ? protocol_.calls : 3;
    scene_.aliases = setting.aliases;
    if (!protocol_.is_said) take_from_host();
  }

  void take_from_host() {
    scene_.meets_between = host_.meets;
    if (host_.meets) assume("all ranks meet between calls, as the launch in the file says");
    scene_.zeroed.clear();
    for (std::size_t i = 0; i < code_.parameters.size(); ++i)
      if (host_.zeroed.contains(code_.parameters[i].name)) {
        scene_.zeroed.insert(static_cast<int>(i));
        assume(fmt::format("the launch in the file zeroes `{}` before each call",
                           code_.parameters[i].name));
      }
  }

  bool grid_outgrows() const {
    if (host_.says({"cooperative", "all resident", "co-resident", "all programs are resident"}))
      return false;
    if (host_.says({"not resident", "more programs than", "more tiles than", "larger than the gpu",
                    "more blocks than", "than fit"}))
      return true;
    return std::any_of(host_.grid.begin(), host_.grid.end(), [](const std::string& size) {
      const auto has = [&](const char* what) { return size.find(what) != size.npos; };
      return (has("cdiv") || has("tiles")) && !has("min(") && !has("sms") && !has("SMS") &&
             !has("count");
    });
  }

  Fault fault_of(const Setting& setting) {
    if (const Fault fault = behind_last_rank(); fault.kind != Fault::Kind::none) return fault;
    const std::vector<Size> sizes = survey_.sizes(setting);
    for (const Size& size : sizes) {
      stage(setting, size);
      const World::Start start = [&](int rank, int, int call) {
        return survey_.start(setting, size, rank, call);
      };
      if (protocol_.is_said) {
        scene_.meets_between = scene_.zeroes_all = protocol_.meets_between;
      } else if (replays(start)) {
        if (says_calls_in_a_row()) {
          assume("calls follow each other and nobody sets words back");
          return replayed_;
        }
        scene_.meets_between = scene_.zeroes_all = true;
        assume(
            "between calls the host sets the words back to 0 and all ranks meet: a word that was "
            "told once would let the next call through at once");
      }
      std::int64_t orders = kFewestOrders;
      for (std::int64_t seed = 0; seed < orders; ++seed) {
        World run(code_, survey_.arrays, scene_);
        const Fault fault = run.run(static_cast<std::uint64_t>(seed), start);
        steps_ += run.steps();
        reached_.insert(run.reached().begin(), run.reached().end());
        if (fault.kind == Fault::Kind::endless) completes_ = completes_ || first_call_ends(start);
        if (fault.kind != Fault::Kind::none)
          return deepens_ ? first_cause(fault, seed, start) : fault;
        if (seed == 0)
          orders = std::clamp(kStepsInAll / std::max<std::int64_t>(1, run.steps()), kFewestOrders,
                              &size == sizes.data() ? kMostOrders : kMostOrders / 4);
        orders_ = std::max(orders_, orders);
      }
    }
    return {};
  }

  bool first_call_ends(const World::Start& start) {
    const int calls = std::exchange(scene_.calls, 1);
    World run(code_, survey_.arrays, scene_);
    const Fault fault = run.run(0, start);
    scene_.calls = calls;
    return fault.kind == Fault::Kind::none;
  }

  /// A table that each rank looks into at its number and something: one of them behind its end.
  Fault behind_last_rank() const {
    const int world = survey_.arrays.world;
    std::map<std::pair<int, int>, std::map<int, std::int64_t>> by_rank;  // by step and program
    for (const Trace& trace : survey_.traces)
      for (const Event& event : trace.events) {
        const Element where = event.where.empty() ? Element{} : event.where[0];
        if (where.kind != Element::Kind::address || survey_.arrays[where.array].table < 0) continue;
        const std::int64_t index = survey_.arrays[where.array].kind * world + where.rank;
        std::map<int, std::int64_t>& known = by_rank[{event.step, trace.program}];
        known.try_emplace(trace.rank, index - trace.rank);
        const bool is_same = std::all_of(known.begin(), known.end(), [&](const auto& one) {
          return one.second == known.begin()->second;
        });
        if (static_cast<int>(known.size()) < world || !is_same || known.begin()->second == 0)
          continue;
        return {.kind = Fault::Kind::race,
                .step = event.step,
                .rule = "peer",
                .what = "one rank looks into a table of ranks behind its end",
                .first = {},
                .who = {}};
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
      steps_ += run.steps();
      if (fault.kind != Fault::Kind::none && depth(fault) < depth(found)) found = std::move(fault);
    }
    return found;
  }

  bool says_calls_in_a_row() const {
    if (host_.says({".zero_()", ".fill_(0)", "zeroed", "zeroes the", "reset by the host",
                    "cleared by the host", "zeroed before", "set back by the host", "memset",
                    "host resets", "host zero", "host clears", "fresh"}) &&
        !host_.says({"not zeroed", "nothing zeroes", "nobody zeroes", "never zeroed",
                     "without zeroing", "no zeroing"}))
      return false;
    return host_.says({"each call",       "next call",       "every call",    "second call",
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
    std::string runs;
    for (const Size& one : survey_.sizes(setting))
      runs += fmt::format("{}{} ranks with {} programs each", runs.empty() ? "" : ", ", one.world,
                          one.programs());
    assume(fmt::format("run on {}, {} calls, up to {} orders", runs, scene_.calls, orders_));
  }

  /// Whether the first who tells one of these words is not in the kernel.
  bool begins_outside(const Fault& fault) const {
    return std::any_of(fault.first.begin(), fault.first.end(), [&](const Element& word) {
      const auto is_it = [&](const Element& where) {
        return where.is_vague || (where.rank == word.rank && where.number == word.number);
      };
      for (const Trace& trace : survey_.traces)
        for (const Event& event : trace.events) {
          const Part part = reading_->part_of(trace, event);
          if (reading_->array_of(event) != word.array || part == Part::look ||
              std::none_of(event.where.begin(), event.where.end(), is_it))
            continue;
          // Who waits for it before is not the first.
          if (part == Part::wait || part == Part::plain_wait) break;
          return false;
        }
      return true;
    });
  }

  void leave_out(const std::string& why) {
    report_.not_judged.push_back("reuse, values, residency: " + why);
  }

  void report_fault(const Attempt& best) {
    const Fault& fault = best.fault;
    const int step = std::clamp(fault.step, 0, static_cast<int>(code_.steps.size()) - 1);
    const Span span = code_.span(step);
    // A run that leaves calls out accuses nobody: they may be what tells or waits.
    if (!report_.not_judged.empty())
      return leave_out("calls that are not followed may tell or wait");
    if (best.depends_on_sizes)
      return leave_out(
          fmt::format("{}:{}: whether {} depends on sizes that the text does not say (--protocol)",
                      span.file, span.line, fault.what));
    if (survey_.inferred_ranks > 1)
      return leave_out("which ranks the numbers are that it is given (--protocol)");
    const std::string place = fmt::format("{}:{}: ", span.file, span.line);
    if (begins_outside(fault))
      return leave_out(place + fmt::format("who tells `{}` first is not in the kernel",
                                           survey_.arrays[fault.first[0].array].name));
    if (fault.kind == Fault::Kind::not_run) return leave_out(place + fault.what);
    Violation made{.rule = fault.rule,
                   .what = fault.what,
                   .hint = hint_of(fault.rule),
                   .span = span,
                   .calls = code_.chain(step),
                   .notes = fault.who,
                   .is_endless = fault.kind == Fault::Kind::endless,
                   .is_of_run = true};
    if (fault.other_step >= 0) {
      const Span other = code_.span(fault.other_step);
      made.notes.insert(made.notes.begin(),
                        fmt::format("{}:{} is the other side", other.file, other.line));
    }
    report_.violations.push_back(std::move(made));
  }

  /// A protocol holds where it was run.
  void name_unreached(const std::set<int>& steps) {
    std::set<std::string> lines;
    for (const int step : steps) {
      // The same place may be reached by another call of its helper.
      const Span span = code_.span(step);
      const bool is_known = std::any_of(reached_.begin(), reached_.end(), [&](int one) {
        return code_.span(one).begin == span.begin && code_.span(one).file == span.file;
      });
      if (!is_known) lines.insert(fmt::format("{}:{}", span.file, span.line));
    }
    for (const std::string& line : lines)
      leave_out(line + ": no program came here when it was run");
  }

  const skeleton::Code& code_;
  Survey& survey_;
  const RuleRequest& request_;
  const Protocol& protocol_;
  const Host& host_;
  RuleReport& report_;
  std::optional<Reading> reading_;
  Scene scene_;
  std::set<int> told_, loaded_, stored_, counted_;
  bool has_ranks_ = false;
  std::vector<std::string> assumed_;
  std::int64_t orders_ = 0;
  Fault replayed_;
  bool completes_ = false;
  bool deepens_ = false;  ///< looks for what lies deeper once a reading is chosen
  std::set<int> reached_;
  std::int64_t steps_ = 0;  ///< of all runs
};

}  // namespace

void run_protocol(const skeleton::Code& code, Survey& survey, const RuleRequest& request,
                  const Protocol& protocol, const Host& host, RuleReport& report) {
  Explorer(code, survey, request, protocol, host, report).explore();
}

}  // namespace hemiola::compile::rules

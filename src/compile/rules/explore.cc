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
    bool awaits = false, tells = false, shares = false;
    for (const auto& [array, use] : reading_->uses()) {
      if (array < 0) continue;
      awaits = awaits || (use.is_awaited() && use.is_told());
      tells = tells || use.has_tells;
      shares = shares || (use.has_stores && use.has_loads);
      choose_word(array, use);
      choose_data(array, use);
    }
    has_ranks_ = false;
    for (const Trace& trace : survey_.traces)
      for (const Event& event : trace.events) choose_step(trace, event);
    if (!has_ranks_ && !(tells && (awaits || shares))) scene_.flags.clear();
    scene_.only_near = !has_ranks_ && !awaits;
  }

  void choose_word(int array, const ArrayUse& use) {
    const bool is_word = use.is_awaited() || use.is_counted || (use.is_word && use.has_tells);
    if (is_word || (use.is_word && use.has_counts)) scene_.flags.insert(array);
    if (use.is_word && !is_word) scene_.fresh.insert(array);
    if (!use.is_awaited() || use.is_told()) return;
    scene_.outside.insert(array);
    assume(fmt::format("`{}` is told by somebody else: another kernel, a copy engine, the host",
                       survey_.arrays[array].name));
  }

  void choose_data(int array, const ArrayUse& use) {
    const bool is_flag = scene_.flags.contains(array);
    if (is_flag && (use.has_stores || use.has_loads)) scene_.mixed.insert(array);
    if (reading_->exchanged().contains(array)) {
      scene_.tracked.insert(array);
      if (!use.has_stores && !is_flag) scene_.from_host.insert(array);
      if (!use.has_loads && !is_flag) scene_.for_host.insert(array);
    }
    if (!use.has_stores || !use.has_loads) return;
    scene_.tracked.insert(array);
    if (is_read_first(array)) scene_.filled.insert(array);
  }

  /// Whether every program that touches the data reads them before it stores there.
  bool is_read_first(int array) const {
    for (const Trace& trace : survey_.traces)
      for (const Event& event : trace.events) {
        if (reading_->array_of(event) != array) continue;
        if (reading_->part_of(trace, event) == Part::store) return false;
        if (reading_->part_of(trace, event) == Part::load) break;
      }
    return true;
  }

  void choose_step(const Trace& trace, const Event& event) {
    const bool is_ranks = event.kind == EventKind::ranks;
    const Part part = reading_->part_of(trace, event);
    const bool is_word = !reading_->is_data(trace, event) && part != Part::other &&
                         part != Part::barrier && part != Part::bulk_wait;
    has_ranks_ = has_ranks_ || is_ranks;
    if (is_ranks || (is_word && !scene_.outside.contains(reading_->array_of(event))))
      scene_.steps_that_matter.insert(event.step);
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
    if (host_.says("resident")) return false;
    if (host_.says("outgrows")) return true;
    return std::ranges::any_of(host_.grid, [](const std::string& size) {
      const auto has = [&](const char* what) { return size.find(what) != size.npos; };
      return (has("cdiv") || has("tiles")) && !has("min(") && !has("sms") && !has("SMS") &&
             !has("count");
    });
  }

  Fault fault_of(const Setting& setting) {
    if (const Fault fault = behind_last_rank(); fault.kind != Fault::Kind::none) return fault;
    const std::vector<Size> sizes = survey_.sizes(setting);
    Fault kept;
    for (const Size& size : sizes) {
      stage(setting, size);
      const World::Start start = [&](int rank, int, int call) {
        return survey_.start(setting, size, rank, call);
      };
      if (protocol_.is_said) {
        scene_.meets_between = scene_.zeroes_all = protocol_.meets_between;
      } else if (replays(start)) {
        const bool is_set_back = host_.says("set_back") && !host_.says("not_set_back");
        if (host_.says("in_a_row") && !is_set_back) {
          assume("calls follow each other and nobody sets words back");
          return replayed_;
        }
        scene_.meets_between = scene_.zeroes_all = true;
        assume(
            "between calls the host sets the words back to 0 and all ranks meet: a word that was "
            "told once would let the next call through at once");
      }
      const Fault found = run_orders(&size == sizes.data() ? kMostOrders : kMostOrders / 4, start);
      if (found.kind == Fault::Kind::none) continue;
      // Of a wait without end more ranks may show who is to blame.
      const bool is_endless = found.kind == Fault::Kind::endless;
      const bool is_explained = found.other_step >= 0;
      if (kept.kind != Fault::Kind::none) return is_endless && is_explained ? found : kept;
      if (!is_endless || is_explained || !deepens_) return found;
      kept = found;
    }
    return kept;
  }

  Fault run_orders(std::int64_t most, const World::Start& start) {
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
        orders =
            std::clamp(kStepsInAll / std::max<std::int64_t>(1, run.steps()), kFewestOrders, most);
      orders_ = std::max(orders_, orders);
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
    const int world = survey_.surveyed;
    std::map<std::pair<int, int>, std::map<int, std::int64_t>> by_rank;  // by step and program
    for (const Trace& trace : survey_.traces)
      for (const Event& event : trace.events) {
        const Element where = event.where.empty() ? Element{} : event.where[0];
        if (where.kind != Element::Kind::address || survey_.arrays[where.array].table < 0) continue;
        const std::int64_t index = survey_.arrays[where.array].kind * world + where.rank;
        std::map<int, std::int64_t>& known = by_rank[{event.step, trace.program}];
        known.try_emplace(trace.rank, index - trace.rank);
        const bool is_same = std::ranges::all_of(
            known, [&](const auto& one) { return one.second == known.begin()->second; });
        if (static_cast<int>(known.size()) < world || !is_same || known.begin()->second == 0)
          continue;
        return {.kind = Fault::Kind::race,
                .step = event.step,
                .rule = "peer",
                .what = "one rank looks into a table of ranks behind its end"};
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
      return static_cast<int>(std::ranges::find(kOrder, fault.rule) - kOrder.begin());
    };
    for (std::int64_t more = 1; more <= kMoreOrders; ++more) {
      World run(code_, survey_.arrays, scene_);
      Fault fault = run.run(static_cast<std::uint64_t>(seed + more), start);
      steps_ += run.steps();
      if (fault.kind != Fault::Kind::none && depth(fault) < depth(found)) found = std::move(fault);
    }
    return found;
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
    if (std::ranges::any_of(unfinished, [](const auto& stop) { return stop.first >= 0; }))
      return false;
    for (std::size_t i = 0; i < closed.size(); ++i) {
      if (closed[i].first < 0 || later[i].first == closed[i].first) continue;
      if (two.is_set_back(closed[i].second)) continue;  // in the kernel itself
      replayed_ = {.kind = Fault::Kind::race,
                   .step = closed[i].first,
                   .rule = "replay",
                   .what =
                       "this wait is over at once in the next call: the word still has what "
                       "the call before told"};
      return true;
    }
    return false;
  }

  void assume(std::string what) { add_once(assumed_, std::move(what)); }

  void assume_run(const Setting& setting) {
    std::string runs;
    for (const Size& one : survey_.sizes(setting))
      runs += fmt::format("{}{} ranks with {} programs each", runs.empty() ? "" : ", ", one.world,
                          one.programs());
    assume(fmt::format("run on {}, {} calls, up to {} orders", runs, scene_.calls, orders_));
  }

  /// Whether the first who tells one of these words is not in the kernel.
  bool begins_outside(const Fault& fault) const {
    return std::ranges::any_of(fault.first, [&](const Element& word) {
      const auto is_it = [&](const Element& where) {
        return where.is_vague || (where.rank == word.rank && where.number == word.number);
      };
      for (const Trace& trace : survey_.traces)
        for (const Event& event : trace.events) {
          const Part part = reading_->part_of(trace, event);
          if (reading_->array_of(event) != word.array || part == Part::look ||
              std::ranges::none_of(event.where, is_it))
            continue;
          // Who waits for it before is not the first.
          if (part == Part::poll || part == Part::plain_poll) break;
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
    const std::string place = place_of(span);
    // A run that leaves calls out accuses nobody: they may be what tells or waits.
    if (!report_.not_judged.empty())
      return leave_out("calls that are not followed may tell or wait");
    if (best.depends_on_sizes)
      return leave_out(
          fmt::format("{}whether {} depends on sizes that the text does not say (--protocol)",
                      place, fault.what));
    if (survey_.inferred_ranks > 1)
      return leave_out("which ranks the numbers are that it is given (--protocol)");
    if (fault.other_step < 0 && begins_outside(fault))
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
      std::string other = place_of(code_.span(fault.other_step));
      other.replace(other.size() - 2, 1, " is the other side");
      made.notes.insert(made.notes.begin(), other.substr(0, other.size() - 1));
    }
    report_.violations.push_back(std::move(made));
  }

  /// A protocol holds where it was run.
  void name_unreached(const std::set<int>& steps) {
    std::set<std::string> lines;
    for (const int step : steps) {
      // The same place may be reached by another call of its helper.
      const Span span = code_.span(step);
      const bool is_known = std::ranges::any_of(reached_, [&](int one) {
        return code_.span(one).begin == span.begin && code_.span(one).file == span.file;
      });
      if (!is_known) lines.insert(place_of(span));
    }
    for (const std::string& line : lines) leave_out(line + "no program came here when it was run");
  }

  const skeleton::Code& code_;
  Survey& survey_;
  const RuleRequest& request_;
  const Protocol& protocol_;
  const Host& host_;
  RuleReport& report_;
  std::optional<Reading> reading_;
  Scene scene_;
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

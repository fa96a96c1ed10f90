#include "compile/rules/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hemiola::compile::rules {
namespace {

using Part = Reading::Part;
using EventKind = Event::Kind;

/// Triton from 3.9 on puts a barrier before a scalar atomic that releases; measured by compiling
/// for sm_90 (docs/kernel_rules.md).
bool has_own_barrier(const std::string& triton) {
  return !triton.empty() && triton.ends_with(".9");
}

bool same(const std::vector<Span>& a, const std::vector<Span>& b) {
  return std::ranges::equal(
      a, b, [](const Span& x, const Span& y) { return x.begin == y.begin && x.file == y.file; });
}

class Judge {
 public:
  Judge(const skeleton::Code& code, const Survey& survey, const Reading& reading,
        const RuleRequest& request, RuleReport& report)
      : code_(code), survey_(survey), reading_(reading), request_(request), report_(report) {}

  void judge() {
    for (const Trace& trace : survey_.traces) {
      trace_ = &trace;
      for (at_ = 0; at_ < trace.events.size(); ++at_) judge_event(trace.events[at_]);
    }
  }

 private:
  void judge_event(const Event& event) {
    if (event.kind == EventKind::ranks) {
      judge_wait_order(event);
      return judge_tell(event);
    }
    switch (reading_.part_of(*trace_, event)) {
      case Part::poll:
        judge_wait_order(event);
        judge_wait_scope(event);
        return judge_half_caches(event);
      case Part::plain_poll:
        return say("plain-flag",
                   "a flag is looked at with a plain load, which has no order and no scope",
                   "tl.atomic_add(flag, 0, sem=\"acquire\", scope=\"sys\")");
      case Part::plain_signal:
        // Whether it is set back in time is seen when the protocol is run.
        if (event.is_zero() && !has_locked(event)) return;
        return say("plain-flag",
                   "a flag is set with a plain store, which has no order and no scope",
                   "tl.atomic_xchg(flag, value, sem=\"release\", scope=\"sys\")");
      case Part::count:
        judge_count(event);
        return judge_behind_stores(event, "counter");
      case Part::signal:
        if (event.kind == EventKind::poll) judge_wait_scope(event);
        return judge_tell(event);
      case Part::load:
        if (event.is_bulk) judge_proxy(event);
        return;
      default:
        return;
    }
  }

  void say(const char* rule, std::string what, std::string hint) {
    const int step = trace_->events[at_].step;
    Violation made{.rule = rule,
                   .what = std::move(what),
                   .hint = std::move(hint),
                   .span = code_.span(step),
                   .calls = code_.chain(step),
                   .notes = {}};
    const bool known = std::ranges::any_of(report_.violations, [&](const Violation& one) {
      return one.rule == made.rule && one.span.begin == made.span.begin &&
             one.span.file == made.span.file && same(one.calls, made.calls);
    });
    if (!known) report_.violations.push_back(std::move(made));
  }

  bool is_data(const Event& event) const { return reading_.is_data(*trace_, event); }

  /// Only an order that something needs is asked for: a barrier of ranks with nothing behind it may
  /// be relaxed.
  void judge_wait_order(const Event& event) {
    if (event.sem != "relaxed" && event.sem != "release") return;
    for (std::size_t i = at_ + 1; i < trace_->events.size(); ++i) {
      const Event& later = trace_->events[i];
      if (event.kind == EventKind::ranks &&
          !reading_.exchanged().contains(reading_.array_of(later)))
        continue;
      const bool orders = later.kind == EventKind::fence ||
                          ((later.kind == EventKind::atomic || later.kind == EventKind::poll ||
                            later.kind == EventKind::ranks) &&
                           (later.sem == "acquire" || later.sem == "acq_rel"));
      if (orders) return;
      if (!is_data(later)) continue;
      return say(
          "wait-acquire",
          fmt::format("a {} is {}: what comes behind it may be read before it",
                      event.kind == EventKind::ranks ? "barrier of ranks" : "wait",
                      event.kind == EventKind::ranks ? "not an acquire" : event.sem),
          event.kind == EventKind::ranks ? "hasSubsequentMemAccess=True" : "sem=\"acquire\"");
    }
  }

  void judge_wait_scope(const Event& event) {
    const int array = reading_.array_of(event);
    const ArrayUse& use = reading_.use_of(array);
    const bool is_told = array >= 0 && use.is_told();
    const bool is_near = is_told && !use.told[1] && !reading_.is_far(*trace_, event);
    if (event.scope == "gpu" && !is_told && !reading_.is_far(*trace_, event))
      return not_in_text(event);
    if (event.scope == "cta" || (event.scope == "gpu" && !is_near))
      say("scope",
          fmt::format("a wait has scope '{}', and who tells it may be another GPU or a copy engine",
                      event.scope),
          "scope=\"sys\"");
  }

  /// Who tells is not in the kernel, so nobody knows where it runs.
  void not_in_text(const Event& event) {
    report_.has_open_scope = true;
    add_once(report_.not_judged,
             place_of(code_.span(event.step)) +
                 "whether scope 'gpu' is enough: who tells this word is not in the kernel, and may "
                 "be another GPU or a copy engine");
  }

  /// On RDNA a workgroup may span two compute units, and the lane that looks refreshes the cache of
  /// its own one only.
  void judge_half_caches(const Event& event) {
    if (request_.target != "rdna" || event.is_block) return;
    const auto touches = [&](const Event& one) { return is_data(one) && !one.is_bulk; };
    for (std::size_t i = at_ + 1; i < trace_->events.size(); ++i) {
      const Event& later = trace_->events[i];
      if (later.kind != EventKind::load || !touches(later)) continue;
      const int array = reading_.array_of(later);
      const bool is_old = std::any_of(
          trace_->events.begin(), trace_->events.begin() + static_cast<std::ptrdiff_t>(at_),
          [&](const Event& one) { return touches(one) && reading_.array_of(one) == array; });
      if (!is_old || array < 0 || !reading_.use_of(array).has_stores) continue;
      const std::size_t here = std::exchange(at_, i);
      say("half-caches",
          "behind a scalar wait a plain load reads memory that this program has touched before: on "
          "RDNA half of the workgroup may still have the old line",
          "read and write it with atomics");
      at_ = here;
      return;
    }
  }

  void judge_count(const Event& event) {
    if (event.sem != "acq_rel" && event.sem != "?") {
      for (std::size_t i = at_ + 1; i < trace_->events.size(); ++i) {
        const Part part = reading_.part_of(*trace_, trace_->events[i]);
        if (part != Part::signal && part != Part::plain_signal && part != Part::load) continue;
        say("counter-acq-rel",
            fmt::format("a counter is {}: the program that counts last does not take over what the "
                        "others stored",
                        event.sem),
            "sem=\"acq_rel\"");
        break;
      }
    }
    if (event.scope == "cta")
      say("scope", "a counter has scope 'cta', which is too narrow", "scope=\"gpu\"");
  }

  void judge_tell(const Event& event) {
    const bool far = reading_.is_far(*trace_, event);
    const int array = reading_.array_of(event);
    const bool is_awaited_far = reading_.use_of(array).awaited[1];
    if (event.scope == "cta" || (event.scope == "gpu" && (far || is_awaited_far)))
      say("scope",
          far || event.scope == "cta"
              ? fmt::format("a signal has scope '{}', which is too narrow for a peer", event.scope)
              : "a signal has scope 'gpu', and peers look at this word through their tables",
          "scope=\"sys\"");
    if (event.sets_back()) judge_turn(event, array);
    if (event.sem == "relaxed" && (far || is_awaited_far)) judge_fence();
    const std::size_t last = last_data(event.sem == "relaxed");
    if ((event.sem == "relaxed" || event.sem == "acquire") && last < at_)
      say("signal-release",
          fmt::format("a {} is {}: stores before it may come after it",
                      event.kind == EventKind::ranks ? "barrier of ranks" : "signal",
                      event.kind == EventKind::ranks ? "not a release" : event.sem),
          event.kind == EventKind::ranks ? "hasPreviousMemAccess=True" : "sem=\"release\"");
    if (!is_behind_count()) judge_behind_stores(event, "signal");  // the counter stands for it
  }

  /// What orders stores before a relaxed word for a peer is a fence for all.
  void judge_fence() {
    for (std::size_t i = at_; i-- > 0;) {
      const Event& earlier = trace_->events[i];
      if (is_data(earlier)) return;
      if (earlier.kind != EventKind::fence) continue;
      if (earlier.scope == "sys") return;
      const std::size_t here = std::exchange(at_, i);
      say("scope", "a fence has a scope that is too narrow for the peer that is told behind it",
          "fence.acq_rel.sys");
      at_ = here;
      return;
    }
  }

  /// Whether it gives back a lock that this program took.
  bool has_locked(const Event& event) const {
    const auto end = trace_->events.begin() + static_cast<std::ptrdiff_t>(at_);
    return std::any_of(trace_->events.begin(), end, [&](const Event& one) {
      return one.kind == EventKind::poll && one.op == "cas" && !one.is_zero() &&
             reading_.array_of(one) == reading_.array_of(event);
    });
  }

  /// A turn that is given on is one that was taken.
  void judge_turn(const Event& event, int array) {
    const bool stores = std::any_of(
        trace_->events.begin(), trace_->events.begin() + static_cast<std::ptrdiff_t>(at_),
        [&](const Event& one) { return one.kind == EventKind::store && is_data(one); });
    if (!reading_.use_of(array).is_taken && stores && array >= 0 &&
        !reading_.is_far(*trace_, event))
      say("turn-taken", "a turn is given on that the kernel never takes: others may have it",
          "while tl.atomic_cas(turn, 0, 1, sem=\"acquire\") != 0: pass, then a barrier");
  }

  /// Index of the last access of data before this event; `at_` where there is none.
  std::size_t last_data(bool stops_at_fence) const {
    for (std::size_t i = at_; i-- > 0;) {
      const Event& earlier = trace_->events[i];
      if (stops_at_fence && earlier.kind == EventKind::fence) return at_;
      const bool exchanged = reading_.exchanged().contains(reading_.array_of(earlier));
      const Part part = reading_.part_of(*trace_, earlier);
      if (part == Part::store || (part == Part::load && exchanged)) return i;
    }
    return at_;
  }

  bool is_behind_count() const {
    for (std::size_t i = at_; i-- > 0;) {
      const Part part = reading_.part_of(*trace_, trace_->events[i]);
      if (part == Part::count) return true;
      if (part == Part::store) return false;
    }
    return false;
  }

  /// Whether all threads of the program have come to an event, as its end or its begin.
  bool joins_threads(const Event& event) const {
    // A wait of one lane whose value all threads need ends with a barrier.
    return event.kind == EventKind::barrier || event.kind == EventKind::ranks ||
           reading_.part_of(*trace_, event) == Part::poll;
  }

  void judge_behind_stores(const Event& event, const char* which) {
    const bool releases = event.sem == "release" || event.sem == "acq_rel";
    // The library's own barrier, or the compiler's.
    bool has_barrier = releases && (event.kind == EventKind::ranks ||
                                    (has_own_barrier(request_.triton) && !event.is_block));
    bool has_bulk_wait = false;
    for (std::size_t i = at_; i-- > 0;) {
      const Event& earlier = trace_->events[i];
      has_barrier = has_barrier || joins_threads(earlier);
      has_bulk_wait = has_bulk_wait || earlier.kind == EventKind::bulk_wait;
      const Part part = reading_.part_of(*trace_, earlier);
      const bool is_bulk = part == Part::store && earlier.is_bulk && request_.target == "cuda";
      if (is_bulk && !has_bulk_wait)
        return say("bulk-completion", "a bulk store (TMA) may not be complete when it is told of",
                   "cp.async.bulk.wait_group 0 in tl.inline_asm_elementwise, then "
                   "tl.debug_barrier()");
      const bool reads =
          part == Part::load && reading_.exchanged().contains(reading_.array_of(earlier));
      if (part != Part::store && !reads) continue;
      if (!has_barrier) say_no_barrier(reads, which, releases && request_.triton.empty());
      return;
    }
  }

  void say_no_barrier(bool reads, const char* which, bool depends_on_version) {
    if (reads)
      return say("read-barrier",
                 fmt::format("between reads of memory that ranks exchange and the {} that gives it "
                             "back there is no barrier: other threads may still read",
                             which),
                 "tl.debug_barrier() in front of it");
    say("signal-barrier",
        fmt::format("between the stores and the {} that tells of them there is no barrier: other "
                    "threads may still store{}",
                    which, depends_on_version ? " (Triton before 3.9 puts none there)" : ""),
        "tl.debug_barrier() in front of it");
  }

  /// What generic stores wrote, TMA reads behind a proxy fence only.
  void judge_proxy(const Event& event) {
    const int array = reading_.array_of(event);
    if (request_.target != "cuda" || array < 0) return;
    if (!reading_.use_of(array).has_generic_stores) return;
    for (std::size_t i = at_; i-- > 0;) {
      const Event& earlier = trace_->events[i];
      if (earlier.kind == EventKind::proxy_fence) return;
      const Part part = reading_.part_of(*trace_, earlier);
      const bool own =
          part == Part::store && !earlier.is_bulk && reading_.array_of(earlier) == array;
      if (part != Part::poll && earlier.kind != EventKind::ranks && !own) continue;
      return say(
          "proxy-fence",
          "a descriptor (TMA) reads what generic stores wrote: the two do not see each other "
          "without a fence between proxies",
          "fence.proxy.async in tl.inline_asm_elementwise, behind the wait");
    }
  }

  const skeleton::Code& code_;
  const Survey& survey_;
  const Reading& reading_;
  const RuleRequest& request_;
  RuleReport& report_;
  const Trace* trace_ = nullptr;
  std::size_t at_ = 0;
};

}  // namespace

void judge_order(const skeleton::Code& code, const Survey& survey, const Reading& reading,
                 const RuleRequest& request, RuleReport& report) {
  Judge(code, survey, reading, request, report).judge();
}

}  // namespace hemiola::compile::rules

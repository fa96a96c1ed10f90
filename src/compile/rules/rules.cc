#include "compile/rules/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compile/rules/judge.h"

namespace hemiola::compile {
namespace {

using rules::Reading;
using rules::Survey;
using Part = Reading::Part;

/// Every event of the text once, in the order in which a program comes to it.
std::vector<MemoryEvent> events_of(const skeleton::Code& code, const Survey& survey,
                                   const Reading& reading, bool has_bulk) {
  std::vector<MemoryEvent> events;
  std::set<int> known;
  for (const skeleton::Trace& trace : survey.traces)
    for (const skeleton::Event& event : trace.events) {
      if (!known.insert(event.step).second) continue;
      const int array = reading.array_of(event);
      Part part = reading.part_of(trace, event);
      if (part == Part::store && event.is_bulk && has_bulk) part = Part::bulk_store;
      if (part == Part::look) part = Part::load;
      if (part == Part::other) part = Part::count;
      events.push_back({.kind = part,
                        .operand = array < 0 ? "" : survey.arrays[array].name,
                        .sem = event.sem,
                        .scope = event.scope,
                        .is_remote = reading.is_far(trace, event),
                        .span = code.span(event.step)});
    }
  return events;
}

/// Calls and places that nobody looked into.
void name_what_is_not_followed(const skeleton::Code& code, const Survey& survey,
                               RuleReport& report) {
  const auto add = [&](const Span& span, const std::string& what) {
    rules::add_once(report.not_judged, rules::place_of(span) + what);
  };
  for (const skeleton::NotFollowed& one : code.not_followed)
    add(one.span, one.what + " is not followed");
  for (const int step : survey.not_followed)
    add(code.span(step), "this assembly is not understood");
  for (const skeleton::Trace& trace : survey.traces)
    if (!trace.failure.empty()) add(code.span(trace.failed_step), trace.failure);
}

/// A helper that is right where it is called once and wrong where it is called another time is
/// wrong at the call.
void move_to_calls(const skeleton::Code& code, const Survey& survey, RuleReport& report) {
  for (Violation& one : report.violations) {
    if (one.calls.empty() || one.is_of_run) continue;
    std::size_t differs = one.calls.size(), right = 0, wrong = 0;
    std::set<int> steps;
    for (const skeleton::Trace& trace : survey.traces)
      for (const skeleton::Event& event : trace.events)
        if (const Span span = code.span(event.step);
            span.begin == one.span.begin && span.file == one.span.file)
          steps.insert(event.step);
    for (const int step : steps) {
      const std::vector<Span> chain = code.chain(step);
      const bool is_wrong = std::ranges::any_of(report.violations, [&](const Violation& other) {
        return other.rule == one.rule && other.calls.size() == chain.size() &&
               std::equal(chain.begin(), chain.end(), other.calls.begin(),
                          [](const Span& a, const Span& b) { return a.begin == b.begin; });
      });
      ++(is_wrong ? wrong : right);
      if (is_wrong) continue;
      for (std::size_t i = 0; i < std::min(chain.size(), one.calls.size()); ++i)
        if (chain[i].begin != one.calls[i].begin) differs = std::min(differs, i);
    }
    if (differs == one.calls.size() || wrong > right) continue;
    one.notes.insert(one.notes.begin(),
                     fmt::format("in the helper at {}:{}", one.span.file, one.span.line));
    one.span = one.calls[differs];
    one.calls.resize(differs);
  }
}

void check_version(const std::string& triton) {
  if (triton.empty()) return;
  static constexpr std::array kKnown{"3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9"};
  if (std::ranges::find(kKnown, triton) == kKnown.end())
    throw Failure(fmt::format("how Triton {} orders memory is not known", triton), kOption,
                  "--triton 3.3, 3.4, 3.5, 3.6, 3.7, 3.8 or 3.9");
}

}  // namespace

std::string_view name_of(MemoryEvent::Kind kind) {
  static constexpr std::array<std::string_view, 12> kNames{
      "load",       "store",   "bulk store", "bulk wait",    "barrier", "wait",
      "plain wait", "counter", "signal",     "plain signal", "look",    "counter"};
  return kNames[static_cast<std::size_t>(kind)];
}

int RuleReport::count(MemoryEvent::Kind kind) const {
  return static_cast<int>(std::ranges::count(events, kind, &MemoryEvent::kind));
}

RuleReport check_rules(Library& library, const Module& module, const RuleRequest& request) {
  const Function& kernel = choose_kernel(module, request.kernel);
  check_constants(kernel, request.constants);
  check_version(request.triton);
  std::vector<std::string> parameters;
  for (const Parameter& one : kernel.parameters) parameters.push_back(one.name);
  const rules::Protocol protocol = rules::read_protocol(request.protocol, parameters);
  const skeleton::Code code = skeleton::assemble(library, kernel, skeleton::Vocabulary::own());
  const rules::Host host = rules::read_host(kernel);
  Survey survey(code, request.constants, protocol, host);
  const Reading reading(code, survey);
  RuleReport report{.kernel = kernel.name};
  report.events = events_of(code, survey, reading, request.target == "cuda");
  name_what_is_not_followed(code, survey, report);
  report.communicates = reading.communicates();
  if (!report.communicates) return report;
  report.assumed = survey.assumed;
  if (reading.has_words())
    rules::run_protocol(code, survey, request, protocol, host, report);
  else
    report.not_judged.push_back(
        "nothing here waits or tells: what orders it with the peers whose "
        "memory it touches is not in the kernel");
  move_to_calls(code, survey, report);
  std::ranges::stable_sort(report.violations, [](const Violation& a, const Violation& b) {
    return a.span.begin < b.span.begin;
  });
  return report;
}

std::string rules::hint_of(const std::string& rule) {
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

}  // namespace hemiola::compile

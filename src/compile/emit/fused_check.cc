// The emitted text judged again, by who did not write it.
#include <fmt/format.h>

#include <algorithm>

#include "compile/emit/fused_kernel.h"
#include "compile/rules/rules.h"

namespace hemiola::compile {
namespace {

using Event = MemoryEvent::Kind;

[[noreturn]] void refuse_text(const Span& span, const std::string& what) {
  throw Failure("the emitted kernel is wrong: " + what, span.where(),
                "this is a defect of Hemiola; nothing was written");
}

using Events = std::vector<MemoryEvent>;

/// Behind what programs move before a tile (hm_carry), which waits and counts too.
Events::const_iterator behind_movements(const Events& events) {
  const auto moved = std::find_if(events.begin(), events.end(), [](const MemoryEvent& event) {
    return event.kind == Event::count && event.operand == "hm_shares";
  });
  return moved == events.end() ? events.begin() : moved;
}

std::size_t first_of(const Events& events, Event kind) {
  const auto found = std::find_if(
      behind_movements(events), events.end(),
      [&](const MemoryEvent& event) { return event.kind == kind && event.operand != "hm_shares"; });
  return static_cast<std::size_t>(found - events.begin());
}

}  // namespace

void check_fused_text(const std::string& file, const std::string& text, const FusedText& kernel,
                      const Fusions& fusions) {
  const Fusion& fusion = fusions.front();  // what the text does for one grid it does for all
  Library library;
  const Module& module = library.add(file, text);
  const RuleReport report =
      check_rules(library, module, {.file = file, .kernel = kernel.kernel, .helpers = {}});
  if (!report.violations.empty())
    refuse_text(report.violations.front().span, report.violations.front().what);
  const Events& events = report.events;
  const std::size_t wait = first_of(events, Event::poll), count = first_of(events, Event::count);
  for (const FusedOperand& operand : fusion.operands) {
    for (std::size_t i = 0; i < events.size(); ++i) {
      const MemoryEvent& event = events[i];
      if (event.operand != operand.parameter) continue;
      if (operand.arrives && event.kind == Event::load && i < wait)
        refuse_text(event.span, "'" + operand.parameter + "' is loaded before the wait");
      const bool stores = event.kind == Event::store || event.kind == Event::bulk_store;
      if (operand.leaves && stores && i > count)
        refuse_text(event.span, "'" + operand.parameter + "' is stored behind the counter");
    }
  }
  const bool misses = ((fusion.waits() || fusion.waits_in_loop()) && wait == events.size()) ||
                      (fusion.signals() && count == events.size());
  if (misses) refuse_text({.file = file, .line = 1, .column = 1}, "a wait or a counter is missing");
}

}  // namespace hemiola::compile

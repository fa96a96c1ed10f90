#include "core/lists.h"
#include "report/run_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "report/pages/run_blocks.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

/// What one result is about, or what several have in common.
Facts facts_of(const Run& run, const std::vector<sim::Result>& results) {
  const sim::Result& last = results.back();
  Facts facts{{"machine", run.machine}};
  facts.emplace_back("engine", last.reference_because.empty() ? run.engine : "reference");
  if (!run.launch.empty()) facts.emplace_back("launch", run.launch);
  if (!last.attribution.empty())
    facts.emplace_back("ranks", std::to_string(last.attribution.size()));
  if (results.size() > 1) {
    std::set<Bytes> sizes;
    for (const sim::Result& result : results) sizes.insert(result.size);
    facts.emplace_back("sizes", sizes.size() == 1 ? to_string(*sizes.begin())
                                                  : to_string(*sizes.begin()) + " to " +
                                                        to_string(*sizes.rbegin()));
    const auto best = std::ranges::max_element(results, {}, &sim::Result::busbw_GBps);
    if (best->busbw_GBps > 0)
      facts.emplace_back("highest busbw", table_rate(best->busbw_GBps) + " GB/s");
  } else {
    if (last.size.count > 0) facts.emplace_back("size", to_string(last.size));
    facts.emplace_back("time", table_us(last.time) + " us");
    if (last.busbw_GBps > 0) facts.emplace_back("busbw", table_rate(last.busbw_GBps) + " GB/s");
    facts.emplace_back("bound / time", percent(last.bound.time(), last.time) + " %");
  }
  std::set<std::string> checked;
  for (const sim::Result& result : results) checked.insert(result.checked);
  facts.emplace_back("checked", joined({checked.begin(), checked.end()}));
  return facts;
}

/// How the numbers came about, in sentences.
std::vector<std::string> remarks_of(const Run& run, const std::vector<sim::Result>& results,
                                    const RunPageExtras& extras) {
  const sim::Result& last = results.back();
  std::vector<std::string> remarks;
  const auto ranks = static_cast<int>(last.attribution.size());
  if (std::string text = evidence_text(run, results); !text.empty()) {
    text.front() = 'E';
    remarks.push_back(text + ".");
  }
  if (!last.reference_because.empty())
    remarks.push_back("The line engine left this to the reference: " + last.reference_because +
                      ".");
  if (last.simulated_ranks > 0 && last.simulated_ranks < ranks) {
    remarks.push_back(fmt::format("{} of {} GPUs stand for all, which behave alike.",
                                  last.simulated_ranks, ranks));
  } else if (ranks > 1 && !last.unfolded_because.empty()) {
    remarks.push_back(fmt::format("All {} GPUs were simulated: {}.", ranks, last.unfolded_because));
  }
  if (run.engine == "sampled" && last.sampled.share < 1) {
    remarks.push_back(fmt::format(
        "The engine sampled simulated {:.3g} % of the bytes of the last result line by line, in {} "
        "windows; its time is within {:.1f} % of that of the engine line.",
        100 * last.sampled.share, last.sampled.windows, 100 * last.sampled.error));
  }
  if (!last.bound.bottleneck.empty()) {
    remarks.push_back(fmt::format(
        "No time of the last result can be below {} us: its wires need {} us ({}), its longest "
        "chain of dependencies {} us.",
        table_us(last.bound.time()), table_us(last.bound.bandwidth), last.bound.bottleneck,
        table_us(last.bound.latency)));
  }
  remarks.insert(remarks.end(), extras.remarks.begin(), extras.remarks.end());
  return remarks;
}

void add_timeline(page::Page& page, const RunPageExtras& extras) {
  const std::string heading = "What happened when";
  if (!extras.no_timeline.empty() || extras.timeline.panels.empty()) {
    page.blocks.push_back(page::Text{
        heading, {extras.no_timeline.empty() ? "The run told of nothing." : extras.no_timeline}});
    return;
  }
  std::string note;
  for (const std::string& sentence : extras.timeline.left_out) note += sentence + " ";
  if (!note.empty()) note += "The option --trace writes everything, for ui.perfetto.dev.";
  page.blocks.push_back(page::Timelines{heading, note, extras.timeline.panels});
}

}  // namespace

std::string why_no_timeline(std::size_t runs, bool is_sampled) {
  if (runs > 1) return "A timeline is of one run: one size, and one value of each setting.";
  if (is_sampled)
    return "The engine sampled leaves out most of a run, and so has no timeline; the engine line "
           "has.";
  return {};
}

page::Page run_page(const Run& run, const std::vector<sim::Result>& results,
                    const RunPageExtras& extras) {
  page::Page page;
  page.title = run.program + " on " + run.machine;
  page.subtitle = run.command;
  page.facts = facts_of(run, results);
  const auto add = [&](std::vector<page::Block> blocks) {
    std::move(blocks.begin(), blocks.end(), std::back_inserter(page.blocks));
  };
  const std::vector<std::string> remarks = remarks_of(run, results, extras);
  if (!remarks.empty()) page.blocks.push_back(page::Text{"About this run", remarks});
  if (results.back().launches.empty()) {
    page.blocks.push_back(results_table(run, results));
    add(size_curves(run, results));
  } else {
    add(launch_blocks(results.back()));
  }
  add(attribution_blocks(results));
  add_timeline(page, extras);
  add(link_blocks(results.back(), extras.repetitions));
  return page;
}

}  // namespace hemiola::report

// The JSON and CSV of `diff`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "report/difference.h"
#include "report/values/difference_text.h"
#include "report/values/json_text.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using study::Difference;
using study::FigureChange;
using study::RankChange;
using study::ResultChange;
using study::to_text;

std::string plus(const std::string& text, bool positive) {
  return positive ? "+" + text : text;
}

JsonText figure_object(const FigureChange& change, const std::string& unit) {
  return json_object("a" + unit, change.a, "b" + unit, change.b, "difference" + unit,
                     change.difference());
}

JsonText rank_object(const RankChange& change) {
  const JsonText reasons =
      json_object_of(change.reasons, [](JsonObject& object, const FigureChange& reason) {
        if (reason.a != 0 || reason.b != 0) object.add(reason.name, figure_object(reason, "_fs"));
      });
  return json_object("a_rank", change.a_rank, "b_rank", change.b_rank, "reasons", reasons);
}

JsonText link_object(const study::LinkChange& link) {
  return json_object("from", link.from, "to", link.to, "lane", link.lane, "a_busy_fs", link.a_busy,
                     "b_busy_fs", link.b_busy, "a_wire_bytes", link.a_wire_bytes, "b_wire_bytes",
                     link.b_wire_bytes);
}

JsonText counter_object(const FigureChange& counter) {
  return json_object("name", counter.name, "a", counter.a, "b", counter.b, "difference",
                     counter.difference());
}

JsonText result_object(const ResultChange& change, const std::optional<study::Limit>& limit) {
  const std::string indent = "      ";
  JsonObject object(indent);
  object.add("size_bytes", change.size, "a_settings", change.a_settings, "b_settings",
             change.b_settings, "a_time_fs", change.a, "b_time_fs", change.b, "difference_fs",
             change.difference(), "difference_ns", JsonText{exact_ns(change.difference())},
             "relative", change.relative());
  if (limit) object.add("exceeded", limit->exceeded_by(change));
  return object
      .add("a_checked", change.a_checked, "b_checked", change.b_checked, "latest",
           change.latest ? rank_object(*change.latest) : JsonText{"null"}, "ranks",
           json_list(change.ranks, indent, rank_object), "links",
           json_list(change.links, indent, link_object), "counters",
           json_list(change.counters, indent, counter_object))
      .json();
}

JsonText run_object(const study::ResultFile& run) {
  return json_object("file", run.file, "models", run.models, "command", run.command, "machine",
                     run.machine, "program", run.program, "engine", run.engine);
}

JsonText only_list(const std::vector<study::Unmatched>& only) {
  return json_list(only, "  ", [](const study::Unmatched& one) {
    return json_object("size_bytes", one.size, "settings", one.settings);
  });
}

std::set<std::string> reasons_of(const Difference& difference) {
  std::set<std::string> names;
  for (const ResultChange& change : difference.results) {
    if (!change.latest) continue;
    for (const FigureChange& reason : change.latest->reasons) names.insert(reason.name);
  }
  return names;
}

/// The cells of a line from `a_rank` on; all empty without attribution.
std::string latest_cells(const ResultChange& change, const std::set<std::string>& reasons) {
  if (!change.latest) return ",," + std::string(reasons.size(), ',');
  std::string text = fmt::format(",{},{}", change.latest->a_rank, change.latest->b_rank);
  for (const std::string& name : reasons) {
    const auto found = std::ranges::find(change.latest->reasons, name, &FigureChange::name);
    const bool there = found != change.latest->reasons.end();
    text += ',' + exact_ns(Time{there ? found->difference() : 0});
  }
  return text;
}

}  // namespace

std::string signed_us(Time time) {
  const Time magnitude{time.fs < 0 ? -time.fs : time.fs};
  return (time.fs < 0 ? "-" : "") + plus(table_us(magnitude), time.fs > 0);
}

std::string signed_ns(Time time) {
  return plus(exact_ns(time), time.fs > 0);
}

std::string signed_percent(const std::optional<double>& share) {
  return share ? fmt::format("{:+.2f}", 100 * *share) : "-";
}

std::string settings_text(const ResultChange& change) {
  if (change.a_settings == change.b_settings) return to_text(change.a_settings);
  const auto or_none = [](const std::string& text) { return text.empty() ? "none" : text; };
  return fmt::format("A {}, B {}", or_none(to_text(change.a_settings)),
                     or_none(to_text(change.b_settings)));
}

std::string exceeded_text(const Difference& difference, const study::Limit& limit) {
  std::vector<std::string> names;
  for (const ResultChange& change : difference.results) {
    if (!limit.exceeded_by(change)) continue;
    names.push_back(fmt::format("{} ({} %)",
                                to_text(study::Unmatched{change.size, change.b_settings}),
                                signed_percent(change.relative())));
  }
  if (names.empty()) return {};
  return fmt::format("{} of {} results {} more than {} longer in B: {}", names.size(),
                     difference.results.size(), names.size() == 1 ? "takes" : "take", limit.text,
                     fmt::join(names, "; "));
}

std::string difference_json(const std::string& command, const Difference& difference,
                            const std::optional<study::Limit>& limit) {
  JsonObject object("  ");
  object.add("schema", "hemiola/1", "command", command, "a", run_object(difference.a), "b",
             run_object(difference.b), "unlike", json_array(difference.unlike()));
  if (limit)
    object.add("fail_above", limit->text, "exceeded", !exceeded_text(difference, *limit).empty());
  object.add("only_a", only_list(difference.only_a), "only_b", only_list(difference.only_b),
             "differences", json_list(difference.results, "  ", [&](const ResultChange& change) {
               return result_object(change, limit);
             }));
  return object.json().text + "\n";
}

std::string difference_csv(const Difference& difference, const std::optional<study::Limit>& limit) {
  const std::set<std::string> reasons = reasons_of(difference);
  std::string text =
      "size_bytes,a_settings,b_settings,a_time_ns,b_time_ns,difference_ns,relative,exceeded,"
      "a_rank,b_rank";
  for (const std::string& name : reasons) text += ',' + csv_cell(name + "_ns");
  text += '\n';
  for (const ResultChange& change : difference.results) {
    text += fmt::format("{},{},{},{},{},{},{},{}", change.size.count,
                        csv_cell(to_text(change.a_settings)), csv_cell(to_text(change.b_settings)),
                        exact_ns(change.a), exact_ns(change.b), exact_ns(change.difference()),
                        change.relative() ? json_of(*change.relative()) : "",
                        limit ? (limit->exceeded_by(change) ? "yes" : "no") : "");
    text += latest_cells(change, reasons) + '\n';
  }
  return text;
}

}  // namespace hemiola::report

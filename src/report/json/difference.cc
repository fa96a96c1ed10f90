// The JSON and CSV of `diff`. Written as text, because times are exact decimals that no double
// holds.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "report/difference.h"
#include "report/values/difference_text.h"
#include "report/values/json_lists.h"
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

std::string object(const std::map<std::string, std::string>& settings) {
  return json_object(settings, json_string);
}

std::string figure_object(const FigureChange& change, std::string_view unit) {
  return fmt::format("{{\"a{}\": {}, \"b{}\": {}, \"difference{}\": {}}}", unit, change.a, unit,
                     change.b, unit, change.difference());
}

std::string rank_object(const RankChange& change) {
  std::vector<std::string> reasons;
  for (const FigureChange& reason : change.reasons)
    if (reason.a != 0 || reason.b != 0)
      reasons.push_back(json_string(reason.name) + ": " + figure_object(reason, "_fs"));
  return fmt::format("{{\"a_rank\": {}, \"b_rank\": {}, \"reasons\": {{{}}}}}", change.a_rank,
                     change.b_rank, fmt::join(reasons, ", "));
}

std::string link_object(const study::LinkChange& link) {
  return fmt::format(
      "{{\"from\": {}, \"to\": {}, \"lane\": {}, \"a_busy_fs\": {}, \"b_busy_fs\": {}, "
      "\"a_wire_bytes\": {}, \"b_wire_bytes\": {}}}",
      json_string(link.from), json_string(link.to), link.lane, link.a_busy.fs, link.b_busy.fs,
      link.a_wire_bytes, link.b_wire_bytes);
}

std::string result_object(const ResultChange& change, const std::optional<study::Limit>& limit) {
  std::string text = "{";
  const auto field = [&](std::string_view key, const std::string& value) {
    text += fmt::format("{}\n      \"{}\": {}", text == "{" ? "" : ",", key, value);
  };
  field("size_bytes", std::to_string(change.size.count));
  field("a_settings", object(change.a_settings));
  field("b_settings", object(change.b_settings));
  field("a_time_fs", std::to_string(change.a.fs));
  field("b_time_fs", std::to_string(change.b.fs));
  field("difference_fs", std::to_string(change.difference().fs));
  field("difference_ns", exact_ns(change.difference()));
  field("relative", change.relative() ? json_number(*change.relative()) : "null");
  if (limit) field("exceeded", limit->exceeded_by(change) ? "true" : "false");
  field("a_checked", json_string(change.a_checked));
  field("b_checked", json_string(change.b_checked));
  field("latest", change.latest ? rank_object(*change.latest) : "null");
  const std::string indent = "      ";
  field("ranks", json_list(change.ranks, indent, rank_object));
  field("links", json_list(change.links, indent, link_object));
  field("counters", json_list(change.counters, indent, [](const FigureChange& counter) {
          return fmt::format("{{\"name\": {}, \"a\": {}, \"b\": {}, \"difference\": {}}}",
                             json_string(counter.name), counter.a, counter.b, counter.difference());
        }));
  return text + "\n    }";
}

std::string run_object(const study::ResultFile& run) {
  return fmt::format(
      "{{\"file\": {}, \"models\": {}, \"command\": {}, \"machine\": {}, \"program\": {}, "
      "\"engine\": {}}}",
      json_string(run.file), run.models, json_string(run.command), json_string(run.machine),
      json_string(run.program), json_string(run.engine));
}

std::string only_list(const std::vector<study::Unmatched>& only) {
  return json_list(only, "  ", [](const study::Unmatched& one) {
    return fmt::format("{{\"size_bytes\": {}, \"settings\": {}}}", one.size.count,
                       object(one.settings));
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
  std::string text = fmt::format(
      "{{\n  \"schema\": \"hemiola/1\",\n  \"command\": {},\n  \"a\": {},\n  \"b\": {},\n"
      "  \"unlike\": [{}],\n",
      json_string(command), run_object(difference.a), run_object(difference.b),
      joined(difference.unlike(), json_string));
  if (limit) {
    text += fmt::format("  \"fail_above\": {},\n  \"exceeded\": {},\n", json_string(limit->text),
                        !exceeded_text(difference, *limit).empty());
  }
  return text + fmt::format("  \"only_a\": {},\n  \"only_b\": {},\n  \"differences\": {}\n}}\n",
                            only_list(difference.only_a), only_list(difference.only_b),
                            json_list(difference.results, "  ", [&](const ResultChange& change) {
                              return result_object(change, limit);
                            }));
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
                        change.relative() ? json_number(*change.relative()) : "",
                        limit ? (limit->exceeded_by(change) ? "yes" : "no") : "");
    text += latest_cells(change, reasons) + '\n';
  }
  return text;
}

}  // namespace hemiola::report

#include "study/tables/row_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace hemiola::study {
namespace {

bool has_size(const JudgedRow& row) {
  return row.like.kind.starts_with("kernel") || row.like.kind.starts_with("library");
}

std::string regime_name(const JudgedRow& row) {
  if (row.like.kind.empty()) return "other";
  if (!has_size(row)) return row.like.kind;
  return std::string(name_of(regime_of(Bytes{std::llround(row.like.amount)})));
}

template <typename Name>
std::vector<RowSummary> summarise_by(std::span<const JudgedRow> rows, const Name& name) {
  std::vector<std::pair<std::string, std::vector<const JudgedRow*>>> groups;
  for (const JudgedRow& row : rows) {
    const std::string group = name(row);
    auto found = std::ranges::find(groups, group, [](const auto& one) { return one.first; });
    if (found == groups.end()) found = groups.insert(groups.end(), {group, {}});
    found->second.push_back(&row);
  }
  std::vector<RowSummary> summaries;
  for (const auto& [group, of] : groups) {
    std::vector<Errors> errors;
    for (const JudgedRow* row : of)
      if (row->simulated_us) errors.push_back({.simulated = *row->error()});
    summaries.push_back({group, summarise(errors), static_cast<int>(of.size())});
  }
  return summaries;
}

}  // namespace

std::vector<RowSummary> summarise_kinds(std::span<const JudgedRow> rows) {
  return summarise_by(rows, regime_name);
}

std::vector<RowSummary> summarise_groups(std::span<const JudgedRow> rows) {
  return summarise_by(rows, [](const JudgedRow& row) {
    if (row.like.device.empty()) return std::string("not simulated");
    std::string text = row.machine;
    if (row.like.kind != "product") text += fmt::format(", {} ranks", row.like.ranks);
    text += ", " + (row.like.library.empty() ? "" : row.like.library + ' ') + row.like.op;
    if (row.like.launch == "graph") text += " in a graph";
    if (row.like.launch == "one host") text += " by one host";
    return text + ", " + regime_name(row);
  });
}

Coverage coverage_of(std::span<const JudgedRow> rows) {
  Coverage coverage;
  std::vector<double> widths, errors;
  for (const JudgedRow& row : rows) {
    if (!row.simulated_us) continue;
    ++coverage.rows;
    errors.push_back(std::abs(*row.error()));
    if (!row.evidence || row.evidence->rows == 0) {
      ++coverage.none;
      continue;
    }
    const double ratio = row.measured_us / *row.simulated_us - 1;
    if (ratio >= row.evidence->low && ratio <= row.evidence->high) ++coverage.within;
    widths.push_back(row.evidence->high - row.evidence->low);
  }
  if (!widths.empty()) coverage.width = median_of(std::move(widths));
  if (!errors.empty()) coverage.error = median_of(std::move(errors));
  return coverage;
}

std::vector<std::string> refusals_of(std::span<const JudgedRow> rows) {
  std::map<std::string, int> reasons;
  for (const JudgedRow& row : rows)
    if (!row.refused.empty()) ++reasons[row.refused];
  std::vector<std::pair<std::string, int>> ordered(reasons.begin(), reasons.end());
  std::ranges::stable_sort(ordered, std::greater(), &std::pair<std::string, int>::second);
  std::vector<std::string> texts;
  for (const auto& [reason, count] : ordered)
    texts.push_back(fmt::format("{} {}: {}", count, count == 1 ? "row" : "rows", reason));
  return texts;
}

}  // namespace hemiola::study

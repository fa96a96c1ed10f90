#include "study/evidence/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/embedded.h"
#include "core/lists.h"
#include "core/units.h"
#include "machine/devices/gpu_model.h"
#include "study/support/csv.h"

namespace hemiola::study {
namespace {

constexpr std::size_t kParts = index(Apart::count);
constexpr std::array<std::string_view, kParts> kPartNames = {"size",   "ranks", "library",
                                                             "launch", "op",    "device"};
/// So many of the nearest rows are taken, none farther than the nearest by more than `kWindow`;
/// `tools/study evidence` has the same.
constexpr std::size_t kNearest = 16;
constexpr double kWindow = 1;
constexpr double kOutside =
    0.1;  ///< share of rows on each side of the interval before it is widened

/// "NVIDIA" of "NVIDIA H100 SXM5": what descriptions of devices begin with. Empty: not known.
std::string vendor_of(const std::string& device) {
  const std::vector<std::string> known = machine::gpu_model_names();
  if (std::ranges::find(known, device) == known.end()) return {};
  const std::string description = machine::gpu_model(device).description;
  return description.substr(0, description.find(' '));
}

/// Nothing: the row is of another kind or vendor.
std::optional<double> distance(const Likeness& like, const std::string& vendor,
                               const EvidenceRow& of, const EvidenceRows& rows) {
  const Likeness& row = of.like;
  if (row.kind != like.kind) return std::nullopt;
  if (row.device != like.device && (vendor.empty() || of.vendor != vendor)) return std::nullopt;
  const auto ranks = [](const Likeness& one) { return std::log2(static_cast<double>(one.ranks)); };
  std::array<double, kParts> apart{};
  apart[index(Apart::size)] = std::abs(std::log(row.amount / like.amount)) / std::log(8);
  apart[index(Apart::ranks)] = std::abs(ranks(row) - ranks(like));
  apart[index(Apart::library)] = row.library == like.library ? 0 : 1;
  apart[index(Apart::launch)] = row.launch == like.launch ? 0 : 1;
  apart[index(Apart::op)] = row.op == like.op ? 0 : 1;
  apart[index(Apart::device)] = row.device == like.device ? 0 : 1;
  double sum = 0;
  for (std::size_t part = 0; part < kParts; ++part) sum += apart[part] * rows.distances[part];
  return sum;
}

/// A row and how far it is.
struct NearRow {
  double distance = 0;
  std::size_t row = 0;
  auto operator<=>(const NearRow&) const = default;
};

/// Rows on one node are no evidence for several, nor the other way round.
bool same_nodes(const Likeness& a, const Likeness& b) {
  return a.nodes == b.nodes || (a.nodes > 1 && b.nodes > 1);
}

std::vector<NearRow> nearest(const Likeness& like, const EvidenceRows& rows,
                             std::string_view without, bool other_nodes) {
  const std::string vendor = vendor_of(like.device);
  std::vector<NearRow> near;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const EvidenceRow& row = rows.rows[i];
    if ((!without.empty() && row.table == without) || same_nodes(like, row.like) == other_nodes)
      continue;
    if (const auto far = distance(like, vendor, row, rows)) near.push_back({*far, i});
  }
  std::ranges::sort(near);
  if (near.size() > kNearest) near.resize(kNearest);
  std::erase_if(near,
                [&](const NearRow& one) { return one.distance > near.front().distance + kWindow; });
  return near;
}

/// Of values in order; between two of them linear.
double quantile(const std::vector<double>& ordered, double share) {
  const double at = share * static_cast<double>(ordered.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, ordered.size() - 1);
  return ordered[below] + (at - static_cast<double>(below)) * (ordered[above] - ordered[below]);
}

/// "8" or "2 to 8".
std::string range_of(std::int64_t low, std::int64_t high) {
  return low == high ? std::to_string(low) : fmt::format("{} to {}", low, high);
}

std::string joined_values(const EvidenceRows& rows, const std::vector<std::size_t>& of,
                          std::string Likeness::*field) {
  std::vector<std::string> values;
  for (const std::size_t i : of)
    if (const std::string& value = rows.rows[i].like.*field;
        !value.empty() && std::ranges::find(values, value) == values.end())
      values.push_back(value);
  return values.size() > 3 ? fmt::format("{} others", values.size()) : joined(values, ", ");
}

bool has_bytes(const Likeness& like) {
  return like.kind.find("product") == std::string::npos && like.kind != kIterationKind &&
         like.kind != kRatioKind;
}

std::string text_of(const EvidenceRows& rows, const std::vector<std::size_t>& of) {
  std::int64_t least = INT64_MAX, most = 0;
  double low = HUGE_VAL, high = 0;
  for (const std::size_t i : of) {
    const Likeness& like = rows.rows[i].like;
    least = std::min<std::int64_t>(least, like.ranks);
    most = std::max<std::int64_t>(most, like.ranks);
    low = std::min(low, like.amount);
    high = std::max(high, like.amount);
  }
  std::string device = joined_values(rows, of, &Likeness::device);
  std::ranges::transform(device, device.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string text = range_of(least, most) + ' ' + device;
  const std::string library = joined_values(rows, of, &Likeness::library);
  text += ", " + (library.empty() ? "" : library + ' ') + joined_values(rows, of, &Likeness::op);
  const auto size = [](double bytes) { return to_string(Bytes{std::llround(bytes)}); };
  if (has_bytes(rows.rows[of.front()].like))
    text += ", " + (low == high ? size(low) : size(low) + " to " + size(high));
  return text;
}

/// Products that read their operands once, such as those of a decode step: memory sets their pace.
bool is_thin(const machine::GemmShape& shape) {
  constexpr std::int64_t kThin = 128;
  return std::min(shape.m, shape.n) <= kThin;
}

std::string percent(double share) {
  return fmt::format("{:+.0f}", 100 * share);
}

}  // namespace

std::string_view name_of(Apart apart) {
  return kPartNames[index(apart)];
}

std::string program_kind(std::string_view program) {
  return program.find("/nccl") != std::string_view::npos ? "library call" : "kernel";
}

std::string launch_kind(bool in_graph, bool one_host) {
  return one_host ? "one host" : in_graph ? "graph" : "stream";
}

std::string library_on(const std::string& device) {
  return vendor_of(device) == "AMD" ? "RCCL" : "NCCL";
}

Likeness likeness_of(const std::string& device, const machine::GemmShape& shape) {
  return {.device = device,
          .kind = "product",
          .op = std::string(name_of(shape.type)) + (is_thin(shape) ? ", thin" : ""),
          .amount = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                    static_cast<double>(shape.k) * static_cast<double>(shape.batch)};
}

EvidenceRows read_evidence(std::string_view csv, const std::string& file) {
  const TableText table = read_csv(csv, file);
  const std::vector<std::string> columns = {"device",      "kind",         "op",    "library",
                                            "launch",      "ranks",        "nodes", "amount",
                                            "measured_us", "simulated_us", "table", "line"};
  if (table.columns != columns)
    throw Failure("these are not the columns of evidence",
                  {.file = file, .line = table.heading_line}, "they are " + joined(columns));
  EvidenceRows read;
  for (const std::string& note : table.notes) {
    const std::size_t colon = note.find(": ");
    if (colon == std::string::npos) continue;
    const std::string name = note.substr(0, colon), value = note.substr(colon + 2);
    const double number = parse_number(value).value_or(0);
    if (name == "stamp") read.stamp = value;
    if (name == "widening by distance") read.by_distance = number;
    if (name == "widening by source") read.by_source = number;
    if (name.starts_with("widening of ")) read.by_kind[name.substr(12)] = number;
    for (std::size_t part = 0; part < kParts; ++part)
      if (name == fmt::format("distance of another {}", kPartNames[part]))
        read.distances[part] = number;
  }
  std::map<std::string, std::string> vendors;
  for (const TableText::Row& row : table.rows) {
    const auto number = [&](std::size_t column) {
      const auto value = parse_number(row.cells[column]);
      if (!value || !(*value > 0))
        throw Failure(fmt::format("column '{}': '{}' is no number above zero", columns[column],
                                  row.cells[column]),
                      {.file = file, .line = row.line});
      return *value;
    };
    const auto vendor = vendors.try_emplace(row.cells[0]).first;
    if (vendor->second.empty()) vendor->second = vendor_of(row.cells[0]);
    read.rows.push_back({.like = {.device = row.cells[0],
                                  .kind = row.cells[1],
                                  .launch = row.cells[4],
                                  .op = row.cells[2],
                                  .library = row.cells[3],
                                  .ranks = static_cast<int>(number(5)),
                                  .nodes = static_cast<int>(number(6)),
                                  .amount = number(7)},
                         .vendor = vendor->second,
                         .measured_us = number(8),
                         .simulated_us = number(9),
                         .table = row.cells[10],
                         .line = static_cast<int>(number(11))});
  }
  return read;
}

const EvidenceRows& EvidenceRows::shipped() {
  static const EvidenceRows rows = [] {
    constexpr const char* kFile = "data/evidence/rows.csv";
    const EmbeddedFile* file = find_embedded(kFile);
    return file == nullptr ? EvidenceRows() : read_evidence(file->content, kFile);
  }();
  return rows;
}

std::optional<Evidence> evidence_of(std::span<const Likeness> likes, const EvidenceRows& rows,
                                    std::string_view without) {
  std::set<std::size_t> of;
  Evidence found;
  bool none = false;
  for (const Likeness& like : likes) {
    if (like.device.empty() || !(like.amount > 0)) continue;
    std::vector<NearRow> near = nearest(like, rows, without, false);
    const bool elsewhere = near.empty();
    if (elsewhere) near = nearest(like, rows, without, true);
    none = none || (elsewhere && !near.empty());
    double sum = 0;
    for (const NearRow& one : near) {
      of.insert(one.row);
      sum += one.distance;
    }
    if (!near.empty())
      found.distance = std::max(found.distance, sum / static_cast<double>(near.size()));
  }
  if (of.empty()) return std::nullopt;
  found.of = {of.begin(), of.end()};
  std::vector<double> logs, errors;
  std::set<std::string> tables;
  for (const std::size_t i : found.of) {
    const EvidenceRow& row = rows.rows[i];
    logs.push_back(std::log(row.measured_us / row.simulated_us));
    errors.push_back(std::abs(row.simulated_us / row.measured_us - 1));
    tables.insert(row.table);
  }
  std::ranges::sort(logs);
  std::ranges::sort(errors);
  const Likeness& first = likes.front();
  const auto by_kind =
      rows.by_kind.find(first.kind + (first.launch.empty() ? "" : ", " + first.launch));
  const double wider = (by_kind == rows.by_kind.end() ? 0 : by_kind->second) +
                       rows.by_distance * found.distance +
                       rows.by_source / std::sqrt(static_cast<double>(tables.size()));
  found.low = std::exp(quantile(logs, kOutside) - wider) - 1;
  found.high = std::exp(quantile(logs, 1 - kOutside) + wider) - 1;
  found.median = quantile(errors, 0.5);
  found.kind = first.kind;
  found.like = text_of(rows, found.of);
  found.rows = none ? 0 : static_cast<int>(found.of.size());
  return found;
}

std::optional<Evidence> evidence_of(const Likeness& like, const EvidenceRows& rows,
                                    std::string_view without) {
  return evidence_of(std::span(&like, 1), rows, without);
}

std::string evidence_line(const Likeness& like, const std::optional<Evidence>& evidence) {
  const std::string what = like.kind + (like.device.empty() ? "" : " on " + like.device);
  if (!evidence) return "evidence: none: no measured row is of a " + what;
  const std::string figures =
      fmt::format("median {:.0f} %, 9 of 10 measured times {} to {} % from the simulated one",
                  100 * evidence->median, percent(evidence->low), percent(evidence->high));
  if (evidence->rows == 0)
    return fmt::format("evidence: none for {} nodes of {}; nearest: {}: {}", like.nodes,
                       like.device, evidence->like, figures);
  return fmt::format("evidence: {} measured rows like this ({}): {}", evidence->rows,
                     evidence->like, figures);
}

std::string speedup_line(const std::optional<Evidence>& evidence, double speedup) {
  if (!evidence) return "evidence of the speedup: none: no row has measured both";
  const double least = speedup / (1 + evidence->high), most = speedup / (1 + evidence->low);
  std::string text =
      evidence->rows == 0
          ? "evidence of the speedup: none; nearest"
          : fmt::format("evidence of the speedup: {} measured pairs like this", evidence->rows);
  text +=
      fmt::format(" ({}): 9 of 10 lie between {:.2f} and {:.2f} x", evidence->like, least, most);
  if (least < 1 && most > 1) text += ", so measured rows do not tell which is faster";
  return text;
}

}  // namespace hemiola::study

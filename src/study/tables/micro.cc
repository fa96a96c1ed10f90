#include "study/tables/micro.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "study/laboratory/preparation.h"
#include "study/tables/table_text.h"

namespace hemiola::study {
namespace {

const std::string kTable = "calibrate/micro.csv";

/// "micro/copy memory=peer --size 8 MiB"
std::string text_of(const MicroEntry& entry) {
  std::string text = entry.program;
  for (const auto& [name, value] : entry.parameters) text += fmt::format(" {}={}", name, value);
  if (entry.size) text += " --size " + to_string(*entry.size);
  return text;
}

}  // namespace

std::vector<MicroRow> micro_rows() {
  const std::string file = "data/measured/" + kTable;
  const TableText text = read_csv(shipped_table(kTable), file);
  const auto column = [&](const std::string& name) {
    const auto at = std::ranges::find(text.columns, name);
    if (at == text.columns.end())
      throw Failure("there is no column '" + name + "'", {.file = file, .line = text.heading_line});
    return index(at - text.columns.begin());
  };
  const std::size_t hardware = column("hardware"), metric = column("metric"),
                    value = column("value"), unit = column("unit"), source = column("source");
  std::vector<MicroRow> rows;
  for (const TableText::Row& row : text.rows) {
    MicroRow read{.hardware = row.cells[hardware],
                  .metric = row.cells[metric],
                  .unit = row.cells[unit],
                  .source = row.cells[source],
                  .line = row.line};
    const std::string& number = row.cells[value];
    read.value = parse_number(number).value_or(0);
    if (read.value <= 0)
      throw Failure("'" + number + "' is not a positive number", {.file = file, .line = row.line});
    rows.push_back(std::move(read));
  }
  return rows;
}

MicroRow row_of(const MicroEntry& entry, const std::vector<MicroRow>& rows) {
  std::optional<MicroRow> found;
  for (const MicroRow& row : rows) {
    if (row.hardware != entry.hardware || row.metric != entry.metric) continue;
    if (found) throw Failure("entry '" + entry.name + "' names two rows", entry.where);
    found = row;
  }
  if (!found)
    throw Failure(fmt::format("entry '{}': there is no row '{}', '{}'", entry.name, entry.hardware,
                              entry.metric),
                  entry.where);
  return *found;
}

std::vector<MicroResult> MicroRunner::run(const Suite& suite,
                                          const std::vector<std::string>& names) {
  const std::vector<MicroRow> rows = micro_rows();
  std::vector<std::pair<const MicroEntry*, MicroRow>> chosen;  // problems are found at once
  for (const MicroEntry& entry : suite.micro)
    if (std::ranges::find(names, entry.name) != names.end())
      chosen.emplace_back(&entry, row_of(entry, rows));
  std::vector<MicroResult> results;
  try {
    for (const auto& [entry, row] : chosen) results.push_back(run(*entry, row));
  } catch (const Interrupted&) {  // fewer than were asked for say so
  }
  return results;
}

MicroResult MicroRunner::run(const MicroEntry& entry, const MicroRow& row) {
  MicroResult result{.name = entry.name,
                     .program = text_of(entry),
                     .machine = name_of_machine(entry.machine, entry.machine_options),
                     .measured = row};
  const Bytes size = entry.size.value_or(MiB(1));
  double us = time_of(entry, entry.parameters, size, result.checked).us();
  if (!entry.base.empty() || entry.base_size) {
    Settings parameters = entry.parameters;
    for (const auto& [name, value] : entry.base) {
      std::erase_if(parameters, [&, &of = name](const auto& p) { return p.first == of; });
      parameters.emplace_back(name, value);
    }
    us -= time_of(entry, parameters, entry.base_size.value_or(size), result.checked).us();
  }
  if (!(us > 0))
    throw Failure("entry '" + entry.name + "': more work takes no more time", entry.where);
  const auto operations = static_cast<double>(entry.operations);
  const bool rate = row.unit == "GB/s";
  if (rate != (entry.bytes.count > 0) || (!rate && row.unit != "ns" && row.unit != "us"))
    throw Failure(fmt::format("entry '{}': its row is in {}", entry.name, row.unit), entry.where,
                  "GB/s need 'bytes'; ns and us are a time, by 'operations'");
  result.simulated = rate               ? static_cast<double>(entry.bytes.count) / us / 1e3
                     : row.unit == "ns" ? us * 1e3 / operations
                                        : us / operations;
  result.error = result.simulated / row.value - 1;
  return result;
}

Time MicroRunner::time_of(const MicroEntry& entry, const Settings& parameters, Bytes size,
                          std::string& checked) {
  const std::string name = name_of_machine(entry.machine, entry.machine_options);
  Experiment experiment{.machine = choice_of(entry.machine, entry.machine_options, set_),
                        .subject = entry.program,
                        .parameters = parameters,
                        .size = size,
                        .check = check_,
                        .options = entry.options};
  if (const int gpus = laboratory_.machine(experiment.machine)->ranks(); entry.ranks > gpus)
    throw Failure(
        fmt::format("entry '{}': machine '{}' has {} GPUs", entry.name, entry.machine, gpus),
        entry.where);
  experiment.machine.ranks = std::to_string(entry.ranks);
  std::string key = fmt::format("{} {} {} {} {} {}+{}", name, entry.ranks, entry.program,
                                size.count, static_cast<int>(entry.options.launch),
                                entry.options.warmup, entry.options.iterations);
  for (const auto& [name, value] : parameters) key += fmt::format(" {}={}", name, value);
  if (const auto known = known_.find(key); known != known_.end()) {
    checked = weaker(checked, known->second.second);
    return known->second.first;
  }
  if (doing_) doing_("simulating " + entry.name);
  const sim::Result result = laboratory_.run(experiment).result;
  const Time time = result.time;
  const std::string& proven = result.checked;
  known_.emplace(std::move(key), std::pair(time, proven));
  checked = weaker(checked, proven);
  return time;
}

}  // namespace hemiola::study

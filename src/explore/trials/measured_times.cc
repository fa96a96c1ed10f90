#include "explore/trials/measured_times.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "explore/space/serial_job.h"
#include "study/laboratory/job_run.h"
#include "study/tables/statistics.h"
#include "study/tables/table_text.h"

namespace hemiola::explore {
namespace {

constexpr int kRounds = 5;
/// Factors beyond these say that something else than a rate is different.
constexpr double kLeastFactor = 0.05, kMostFactor = 20;

const std::vector<std::string>& own_columns() {
  static const std::vector<std::string> names{"what",       "m",        "n",      "k",
                                              "size_bytes", "schedule", "time_us"};
  return names;
}

class OwnRow {
 public:
  OwnRow(const study::TableText& table, const study::TableText::Row& row, const std::string& file)
      : table_(table), row_(row), where_{.file = file, .line = row.line} {}

  const std::string& cell(const std::string& column) const {
    static const std::string none;
    const auto at = std::ranges::find(table_.columns, column);
    if (at == table_.columns.end()) return none;
    return row_.cells[index(at - table_.columns.begin())];
  }

  double positive(const std::string& column) const {
    const std::string& text = cell(column);
    const std::optional<double> value = study::parse_number(text);
    if (!value || *value <= 0)
      throw Failure(fmt::format("{} '{}' is not a number above zero", column, text), where_);
    return *value;
  }
  std::int64_t count(const std::string& column) const {
    const double value = positive(column);
    if (value != std::floor(value) || value > std::ldexp(1.0, 50))
      throw Failure(fmt::format("{} '{}' is not a whole number", column, cell(column)), where_);
    return static_cast<std::int64_t>(value);
  }
  const SourceLocation& where() const { return where_; }

 private:
  const study::TableText& table_;
  const study::TableText::Row& row_;
  SourceLocation where_;
};

/// Of factors: as much above as below, of an even number the geometric mean of the middle two.
double median_factor(std::vector<double> factors) {
  for (double& factor : factors) factor = std::log(factor);
  return std::exp(study::median_of(std::move(factors)));
}

class Fit {
 public:
  Fit(study::Laboratory& laboratory, const study::MachineChoice& choice, const MeasuredTimes& times,
      const sim::Options& options)
      : laboratory_(laboratory), choice_(choice), times_(times), options_(options) {
    options_.engine = sim::Engine::fluid;
    options_.threads = 1;
  }

  FittedMachine fit() {
    if (!times_.products.empty()) fit_products();
    if (!times_.collectives.empty()) fit_links();
    return std::move(fitted_);
  }

 private:
  double simulated_us(const std::string& text) const {
    study::JobRequest job{.machine = choice_,
                          .file = "measured",
                          .text = text,
                          .check = false,
                          .alone = false,
                          .options = options_};
    for (const auto& setting : fitted_.settings) job.machine.settings.push_back(setting);
    return study::run_job(laboratory_, job).result.time.us();
  }
  double product_us(const MeasuredTimes::Product& product) const {
    return simulated_us(product_job(product.shape));
  }
  double collective_us(const MeasuredTimes::MeasuredCollective& one) const {
    return simulated_us(collective_job(one.collective, one.size, DataType::bfloat16));
  }

  /// Simulated over measured, of all.
  double product_ratio() const {
    std::vector<double> ratios;
    for (const auto& product : times_.products)
      ratios.push_back(product_us(product) / product.time_us);
    return median_factor(std::move(ratios));
  }
  double collective_ratio() const {
    std::vector<double> ratios;
    for (const auto& one : times_.collectives) ratios.push_back(collective_us(one) / one.time_us);
    return median_factor(std::move(ratios));
  }

  void fit_products() {
    const machine::SharedMachine machine = laboratory_.machine(choice_);
    const machine::GpuModel& model = machine->model(0);
    const auto set = [&](double factor) {
      const auto clock = [&](Frequency at) {
        return fmt::format("{:.0f} Hz", static_cast<double>(at.hertz) * factor);
      };
      fitted_.settings = {{"gpu.gemm.clock", clock(model.gemm_clock)},
                          {"gpu.gemm.sustained_clock", clock(model.gemm_sustained_clock)}};
    };
    rounds(
        "products", times_.products.size(), set, [&] { return product_ratio(); },
        "gpu.gemm.clock and gpu.gemm.sustained_clock");
  }

  void fit_links() {
    const machine::SharedMachine machine = laboratory_.machine(choice_);
    const study::Settings before = fitted_.settings;
    std::set<std::int32_t> used;
    for (int a = 0; a < machine->ranks(); ++a) {
      for (int b = 0; b < machine->ranks(); ++b) {
        if (a == b) continue;
        for (const machine::LinkId link : machine->routes(a, b).links)
          used.insert(machine->links[index(link)].link_class);
      }
    }
    const auto set = [&](double factor) {
      fitted_.settings = before;
      for (const std::int32_t one : used) {
        const machine::LinkClass& links = machine->link_classes[index(one)];
        const double rate = static_cast<double>(links.bandwidth.bytes_per_second) * factor;
        fitted_.settings.emplace_back("link." + links.name + ".bandwidth",
                                      fmt::format("{:.6f} GB/s", rate / 1e9));
      }
    };
    rounds(
        "collectives", times_.collectives.size(), set, [&] { return collective_ratio(); },
        "the bandwidth of all links");
  }

  template <typename Set, typename Ratio>
  void rounds(const char* what, std::size_t rows, const Set& set, const Ratio& ratio,
              const char* changed) {
    double factor = 1, off = ratio();
    const double first = off;
    for (int round = 0; round < kRounds && std::abs(off - 1) > 0.002; ++round) {
      factor = std::clamp(factor * off, kLeastFactor, kMostFactor);
      set(factor);
      off = ratio();
    }
    fitted_.remarks.push_back(fmt::format(
        "{} take {:.2f} of what the models say ({} rows): {} times {:.3f}{}", what, 1 / first, rows,
        changed, factor,
        std::abs(off - 1) > 0.02
            ? fmt::format("; simulated are still {:.2f} of measured, as something else limits them",
                          off)
            : ""));
  }

  study::Laboratory& laboratory_;
  const study::MachineChoice& choice_;
  const MeasuredTimes& times_;
  sim::Options options_;
  FittedMachine fitted_;
};

}  // namespace

MeasuredTimes read_measured_times(std::string_view text, const std::string& file, DataType type) {
  const study::TableText table = study::read_csv(text, file);
  for (const std::string& column : table.columns) {
    const auto& known = own_columns();
    if (std::ranges::find(known, column) != known.end()) continue;
    throw Failure(fmt::format("'{}' is not a column", column),
                  {.file = file, .line = table.heading_line},
                  fmt::format("there are: {}", fmt::join(known, ", ")));
  }
  MeasuredTimes times{.file = file};
  for (const study::TableText::Row& line : table.rows) {
    const OwnRow row(table, line, file);
    const std::string& what = row.cell("what");
    const double time = row.positive("time_us");
    if (what == "product") {
      times.products.push_back(
          {line.line,
           {.m = row.count("m"), .n = row.count("n"), .k = row.count("k"), .type = type},
           time});
    } else if (what == "schedule") {
      if (row.cell("schedule").empty()) throw Failure("the schedule has no text", row.where());
      times.schedules_us[row.cell("schedule")] = time;
    } else if (what == "software") {
      if (times.software_us > 0) throw Failure("software is measured twice", row.where());
      times.software_us = time;
    } else if (const auto collective = parse_collective(what);
               collective && *collective != Collective::custom) {
      times.collectives.push_back({line.line, *collective, {row.count("size_bytes")}, time});
    } else {
      throw Failure(fmt::format("'{}' is not something that was measured", what), row.where(),
                    "what is product, schedule, software, or a collective such as all-gather");
    }
  }
  if (table.rows.empty()) throw Failure("the table has no row", {.file = file});
  return times;
}

FittedMachine fit_machine(study::Laboratory& laboratory, const study::MachineChoice& choice,
                          const MeasuredTimes& times, const sim::Options& options) {
  return Fit(laboratory, choice, times, options).fit();
}

}  // namespace hemiola::explore

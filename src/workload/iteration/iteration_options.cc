#include "workload/iteration/iteration_options.h"

#include <algorithm>
#include <cmath>

#include "workload/costs/collective_rules.h"

namespace hemiola::workload {
namespace {

class WordReader {
 public:
  explicit WordReader(const std::string& prefix) : prefix_(prefix) {}

  Level level(const char* option, const std::string& word) const {
    for (const Level level : {Level::estimate, Level::fluid, Level::sampled, Level::line})
      if (name_of(level) == word) return level;
    fail(option, "'" + word + "' is not one of its values", "estimate, fluid, sampled or line");
  }

  /// "messages" are sends and receives.
  Collective kind(const char* option, const std::string& word,
                  const std::string& others = {}) const {
    if (word == "messages") return Collective::send_recv;
    const auto kind = parse_collective(word);
    if (kind && *kind != Collective::custom) return *kind;
    fail(
        option, "'" + word + (others.empty() ? "' is no collective" : "' is nothing to leave out"),
        "all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, reduce, messages" + others);
  }

  /// Of --without: a kind of call, a kind of kernel, or a name with a star in it.
  void left_out(const std::string& word, IterationRequest& request) const {
    LeftOut& what = request.without;
    const bool all = word == "compute";
    if (word.find('*') != std::string::npos) {
      what.names.push_back(word);
    } else if (all || word == "products" || word == "attention" || word == "kernels") {
      what.products = what.products || all || word == "products";
      what.attention = what.attention || all || word == "attention";
      what.kernels = what.kernels || all || word == "kernels";
    } else if (word == "copies") {
      what.copies = true;
    } else if (word == "host") {
      what.host = true;
    } else if (word == "recorded-calls" || word == "recorded-call") {
      what.recorded_calls = true;
    } else {
      request.schedule.without.push_back(
          kind("without", word,
               "; compute, products, attention, kernels, copies, host, recorded-calls; or a "
               "part of the names of kernels: '*norm*'"));
    }
  }

  void compute(const std::string& word, IterationRequest& request) const {
    request.costs.roofline = word == "roofline";
    if (word == "automatic") {
      request.schedule.compute = ComputeSource::automatic;
    } else if (word == "recorded") {
      request.schedule.compute = ComputeSource::recorded;
    } else if (word == "model" || word == "roofline") {
      request.schedule.compute = ComputeSource::model;
    } else {
      fail("compute", "'" + word + "' is not one of its values",
           "automatic, recorded, model or roofline");
    }
  }

  std::optional<bool> calls_recorded(const std::string& word) const {
    if (word == "automatic") return std::nullopt;
    if (word != "simulated" && word != "recorded")
      fail("calls", "'" + word + "' is not one of its values", "automatic, simulated or recorded");
    return word == "recorded";
  }

  ScaleRecorded scale_recorded(const std::string& word) const {
    if (word.empty()) return ScaleRecorded::automatic;
    if (word == "none") return ScaleRecorded::none;
    if (word == "model") return ScaleRecorded::model;
    if (word == "bytes") return ScaleRecorded::bytes;
    fail("scale_recorded", "'" + word + "' is not one of its values", "none, model or bytes");
  }

  std::int64_t permille(double factor) const {
    if (factor >= 0.001 && factor <= 1000) return std::llround(factor * 1000);
    fail("scale_compute", "the time of kernels cannot be scaled so",
         "from 0.001 to 1000: 0.5 halves it");
  }

 private:
  [[noreturn]] void fail(std::string option, const std::string& message,
                         const std::string& hint) const {
    if (!prefix_.empty()) std::replace(option.begin(), option.end(), '_', '-');
    throw Failure(message, {.file = prefix_ + option}, hint);
  }

  const std::string& prefix_;
};

}  // namespace

void apply(const IterationOptions& options, std::string_view phase, const std::string& prefix,
           IterationRequest& request) {
  const WordReader reader(prefix);
  CostOptions& costs = request.costs;
  costs = usual_costs(phase);
  costs.level = reader.level("engine", options.engine);
  for (const auto& [kind, level] : options.detail)
    costs.detail[reader.kind("detail", kind)] = reader.level("detail", level);
  if (!options.collectives.empty()) {
    const auto rules = read_collective_rules(options.collectives);
    costs.rules.insert(costs.rules.end(), rules.begin(), rules.end());
  }
  if (options.launch) costs.launch = static_cast<sim::Launch>(*options.launch);
  costs.contention = options.contention;
  reader.compute(options.compute, request);
  request.calls_recorded = reader.calls_recorded(options.calls);
  request.scale_recorded = reader.scale_recorded(options.scale_recorded);
  request.schedule.compute_permille = reader.permille(options.scale_compute);
  for (const std::string& word : options.without) reader.left_out(word, request);
}

}  // namespace hemiola::workload

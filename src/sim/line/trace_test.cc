// A trace holds the same spans, whichever engine has made it.

#include <gtest/gtest.h>
#include <optional>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/testing/line_compare.h"

namespace hemiola::sim {
namespace {

using namespace test;

using Span = std::tuple<std::string, int, std::string, std::int64_t, std::int64_t, std::int64_t>;

std::string span_text(const Span& span) {
  const auto& [kind, rank, name, number, begin, end] = span;
  return kind + " " + std::to_string(rank) + " " + name + " " + std::to_string(number) + " " +
         std::to_string(begin) + " " + std::to_string(end);
}

/// Everything that a trace writer is told, in the order of what it says.
class Spans : public TraceSink {
 public:
  void stream(int rank, int stream, std::string_view name, Time begin, Time end) override {
    add("stream", rank, name, stream, begin, end);
  }
  void workgroup(int rank, int stream, int workgroup, Time begin, Time end) override {
    add("workgroup", rank, std::to_string(stream), workgroup, begin, end);
  }
  void operation(int rank, int workgroup, std::string_view name, Time begin, Time end,
                 const FlowEnds& flow) override {
    add("operation", rank, name, workgroup, begin, end);
    add(flow);
  }
  void link(int link, std::int64_t wire_bytes, int queue, Time begin, Time end) override {
    add("link", link, std::to_string(wire_bytes), queue, begin, end);
  }
  void engine(int rank, std::string_view engine, std::string_view name, Time begin, Time end,
              const FlowEnds& flow) override {
    add("engine", rank, std::string(engine) + std::string(name), 0, begin, end);
    add(flow);
  }
  void request(int rank, std::string_view resource, std::string_view name, Time begin,
               Time end) override {
    add("request", rank, std::string(resource) + std::string(name), 0, begin, end);
  }
  bool wants_requests(Time at) const override { return at >= Time::from_ns(300); }

  /// With a span for each flow, of what it goes from and to: engines may name spans differently.
  const std::vector<Span>& sorted() {
    for (const auto& [flow, to] : flows_) {
      const auto from = named_.find(flow.released_by);
      if (from == named_.end()) ADD_FAILURE() << "a flow from nowhere to " << span_text(spans_[to]);
      if (from == named_.end()) continue;
      const auto [kind, rank, name, number, begin, end] = spans_[from->second];
      EXPECT_LT(begin, flow.released_at.fs)
          << "a flow that goes back in time to " << span_text(spans_[to]);
      const Span target = spans_[to];
      EXPECT_LE(flow.released_at.fs, std::get<5>(target));
      spans_.emplace_back("flow from " + kind + " " + std::to_string(rank) + " " + name + " to " +
                              std::get<2>(target),
                          std::get<1>(target), std::to_string(std::get<4>(target)), number, begin,
                          flow.released_at.fs);
    }
    flow_count_ = flows_.size();
    flows_.clear();
    std::sort(spans_.begin(), spans_.end());
    return spans_;
  }
  std::size_t flow_count() const { return flow_count_; }

 private:
  void add(std::string kind, int rank, std::string_view name, std::int64_t number, Time begin,
           Time end) {
    spans_.emplace_back(std::move(kind), rank, std::string(name), number, begin.fs, end.fs);
  }
  void add(const FlowEnds& flow) {
    const bool named = flow.span == 0 || named_.emplace(flow.span, spans_.size() - 1).second;
    EXPECT_TRUE(named) << "two spans have one name";
    if (flow.released_by != 0) flows_.emplace_back(flow, spans_.size() - 1);
  }
  std::vector<Span> spans_;
  std::map<SpanId, std::size_t> named_;
  std::vector<std::pair<FlowEnds, std::size_t>> flows_;
  std::size_t flow_count_ = 0;
};

/// How many there are, and how many flows. Inside a property.
std::pair<std::size_t, std::size_t> expect_equal_spans(const machine::Machine& machine,
                                                       const program::Bound& program,
                                                       Options options) {
  Spans reference, line;
  options.engine = Engine::reference;
  options.trace = &reference;
  simulate(machine, program, options);
  options.engine = Engine::line;
  options.trace = &line;
  RC_ASSERT(simulate(machine, program, options).reference_because.empty());
  const auto& a = reference.sorted();
  const auto& b = line.sorted();
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (x != a.end() || y != b.end())
    RC_FAIL(machine.name + " " + program.name() + ": reference " +
            (x == a.end() ? "ends" : span_text(*x)) + ", line " +
            (y == b.end() ? "ends" : span_text(*y)));
  return {a.size() - line.flow_count(), line.flow_count()};
}

TEST(LineTrace, has_the_spans_of_the_reference) {
  std::size_t spans = 0, flows = 0;
  EXPECT_TRUE(rc::check("equal", [&] {
    const bool network = between(0, 2) == 0;
    machine::Machine machine =
        network ? any_network(none_or_at_links()) : any_machine(none_or_at_links());
    for (const auto& [name, value] : any_engine_costs()) machine.set(name, value);
    std::optional<program::Bound> made;
    try {
      made = any_program(machine);
    } catch (const Failure&) {
      return;  // not over NICs
    }
    program::Bound program = *made;
    const Options options = any_options(program.ranks());
    if (!Line::refuses(machine, program, options).empty()) return;
    const auto [more_spans, more_flows] = expect_equal_spans(machine, program, options);
    spans += more_spans;
    flows += more_flows;
  }));
  EXPECT_GT(spans, 10'000U);
  EXPECT_GT(flows, 100U);
}

}  // namespace
}  // namespace hemiola::sim

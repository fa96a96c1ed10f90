// A trace holds the same spans, whichever engine has made it.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "sim/line_compare.h"

namespace hemiola::sim {
namespace {

using namespace test;

/// Everything that a trace writer is told, in the order of what it says.
class Spans : public TraceSink {
 public:
  using Span = std::tuple<std::string, int, std::string, std::int64_t, std::int64_t, std::int64_t>;
  void operation(int rank, int workgroup, std::string_view name, Time begin, Time end) override {
    add("operation", rank, name, workgroup, begin, end);
  }
  void link(int link, std::int64_t wire_bytes, int queue, Time begin, Time end) override {
    add("link", link, std::to_string(wire_bytes), queue, begin, end);
  }
  void engine(int rank, std::string_view engine, std::string_view name, Time begin,
              Time end) override {
    add("engine", rank, std::string(engine) + std::string(name), 0, begin, end);
  }
  void request(int rank, std::string_view resource, std::string_view name, Time begin,
               Time end) override {
    add("request", rank, std::string(resource) + std::string(name), 0, begin, end);
  }
  bool wants_requests(Time at) const override { return at >= Time::from_ns(300); }

  const std::vector<Span>& sorted() {
    std::sort(spans_.begin(), spans_.end());
    return spans_;
  }

 private:
  void add(std::string kind, int rank, std::string_view name, std::int64_t number, Time begin,
           Time end) {
    spans_.emplace_back(std::move(kind), rank, std::string(name), number, begin.fs, end.fs);
  }
  std::vector<Span> spans_;
};

std::string as_text(const Spans::Span& span) {
  const auto& [kind, rank, name, number, begin, end] = span;
  return kind + " " + std::to_string(rank) + " " + name + " " + std::to_string(number) + " " +
         std::to_string(begin) + " " + std::to_string(end);
}

/// How many there are. Inside a property.
std::size_t expect_equal_spans(const machine::Machine& machine, const program::Program& program,
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
    RC_FAIL(machine.name + " " + program.name + ": reference " +
            (x == a.end() ? "ends" : as_text(*x)) + ", line " +
            (y == b.end() ? "ends" : as_text(*y)));
  return a.size();
}

TEST(LineTrace, has_the_spans_of_the_reference) {
  std::size_t spans = 0;
  EXPECT_TRUE(rc::check("equal", [&] {
    const bool network = between(0, 2) == 0;
    machine::Machine machine =
        network ? any_network(none_or_at_links()) : any_machine(none_or_at_links());
    for (const auto& [name, value] : any_engine_costs()) machine.set(name, value);
    program::Program program;
    try {
      program = any_program(machine);
    } catch (const Failure&) {
      return;  // not over NICs
    }
    const Options options = any_options(program.ranks);
    if (Line::refuses(machine, program, options).empty())
      spans += expect_equal_spans(machine, program, options);
  }));
  EXPECT_GT(spans, 10'000U);
}

}  // namespace
}  // namespace hemiola::sim

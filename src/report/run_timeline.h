// What happened when in a run, for a page: fewer spans than a trace, so that a browser moves them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "machine/machine.h"
#include "report/page.h"
#include "sim/result/trace.h"

namespace hemiola::report {

/// Collects a simulation. Streams and engines of the first ranks come first, then the links that
/// carried most, then workgroups of rank 0 one by one, until kSpans are there. Where one of these
/// kinds has more than there is room for, its longest spans stay. Independent of the order of the
/// calls. `machine` is read by the constructor only.
class RunTimeline : public sim::TraceSink {
 public:
  static constexpr std::size_t kSpans = 5000;
  static constexpr int kRanks = 8;                ///< whose streams and engines are shown
  static constexpr std::size_t kLinks = 16;       ///< pairs of nodes; parallel links count as one
  static constexpr std::size_t kWorkgroups = 16;  ///< of rank 0

  explicit RunTimeline(const machine::Machine& machine);
  ~RunTimeline() override;
  void stream(int rank, int stream, std::string_view name, Time begin, Time end) override;
  void workgroup(int rank, int stream, int workgroup, Time begin, Time end) override;
  void operation(int rank, int workgroup, std::string_view name, Time begin, Time end,
                 const sim::FlowEnds& flow) override;
  void link(int link, std::int64_t wire_bytes, int queue, Time begin, Time end) override;
  void engine(int rank, std::string_view engine, std::string_view name, Time begin, Time end,
              const sim::FlowEnds& flow) override;
  void request(int rank, std::string_view resource, std::string_view name, Time begin,
               Time end) override;
  bool wants_requests(Time at) const override;

  struct Panels {
    std::vector<page::Timelines::Panel> panels;  ///< those that have something
    std::vector<std::string> left_out;           ///< sentences; empty: everything is there
  };
  Panels panels() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hemiola::report

// The line engine: the same femtoseconds as the reference, with the requests of a window of time
// handled stage by stage instead of one event after the other. docs/line_engine.md says why that
// gives the same result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/calendar.h"
#include "sim/cores.h"

namespace hemiola::sim {

class Line : public Cores {
 public:
  Line(const machine::Machine& machine, const program::Program& program, const Options& options);
  Result run() override;

  /// Empty if it takes them; else what it leaves to the reference engine.
  static std::string refuses(const machine::Machine& machine, const program::Program& program,
                             const Options& options);

 private:
  /// Something that happens at one rank's host or wavefronts.
  struct CoreEvent {
    std::int64_t time = 0;
    std::uint64_t sequence = 0;
    std::uint32_t tag = 0;
    EventKind kind = kWave;
    std::int32_t a = 0, b = 0;
  };
  struct Later {
    bool operator()(const CoreEvent& x, const CoreEvent& y) const {
      if (x.time != y.time) return x.time > y.time;
      if (x.tag != y.tag) return x.tag > y.tag;
      return x.sequence > y.sequence;
    }
  };
  /// A line that is on its way into an L2.
  struct Fill {
    std::int64_t time = -1;              ///< when it is there; -1: not known yet
    std::int32_t first = -1, last = -1;  ///< requests that wait for it, linked by next_pending
  };
  /// The stages of a GPU, in the order in which a round visits them.
  struct Gpu {
    Calendar done;  ///< completions at its CUs
    Calendar slices;
    Calendar memory;  ///< memory-side cache and HBM
    Calendar cu_in;
    Calendar io_out;
    std::vector<CoreEvent> events;  ///< heap
    LineMap<Fill> fills;
    std::vector<std::pair<std::int64_t, std::int32_t>> filled;  ///< times and lines of fills
  };

  void push(std::int64_t time, EventKind kind, std::int32_t a, std::int32_t b = 0,
            std::uint32_t tag = 0) override;
  void depart(std::int32_t id, std::int64_t departure) override;
  void leave(std::int32_t id, std::int64_t now) override;

  // --- line.cc: rounds
  void choose_rounds();
  struct Arrivals {
    std::int64_t window;  ///< fs: how long rounds may last as far as links are concerned
    std::int64_t
        at_gpu;  ///< fs: the earliest end of a link at a GPU, of a request that is at a CU at 0
  };
  Arrivals order_links(std::int64_t out);
  std::int64_t next_round() const;
  void do_round(std::int64_t round);
  int rank_of(EventKind kind, std::int32_t a) const;

  // --- line_stages.cc
  void prefetch(const std::vector<Arrival>& arrivals, std::size_t i) const;
  void run_cores(int rank, std::int64_t round);
  void run_slices(int rank, std::int64_t round);
  void run_memory(int rank, std::int64_t round);
  void run_cu_in(int rank, std::int64_t round);
  void run_io_out(int rank, std::int64_t round);
  void run_link(std::size_t link, std::int64_t round);
  void look_up(int rank, std::int32_t id, std::int64_t now, std::int64_t ready);
  void write_back(int rank, std::int32_t line, std::int64_t now);
  void answer(std::int32_t id, std::int64_t now);
  void walk(std::int32_t id, std::int64_t now);
  void forget_fills(Gpu& gpu, std::int64_t before);

  std::vector<Gpu> stages_;
  std::vector<Calendar> links_;      ///< those at which several streams meet
  std::vector<std::int32_t> merge_;  ///< by link: its calendar, or -1 where one stream feeds it
  int shift_ = 0;                    ///< rounds last 2^shift fs
  std::uint64_t next_sequence_ = 0;
  std::vector<Arrival> taken_, scratch_;
};

}  // namespace hemiola::sim

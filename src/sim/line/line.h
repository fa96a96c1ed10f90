// The line engine: the femtoseconds of the reference, with the requests of a window of time handled
// stage by stage instead of one event after the other. docs/line_engine.md says why that is so.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/device/cores.h"
#include "sim/line/chip.h"
#include "sim/line/engine_stages.h"
#include "sim/line/link_order.h"
#include "sim/line/links.h"
#include "sim/line/poll_skips.h"
#include "sim/line/recorder.h"
#include "sim/line/replayer.h"
#include "sim/line/stages.h"
#include "sim/line/way_table.h"
#include "sim/support/thread_team.h"

namespace hemiola::sim {

class Line final : public Cores {
 public:
  Line(const machine::Machine& machine, const program::Bound& program, const Options& options);
  Result run() override;

  /// Empty if it takes them; else what it leaves to the reference engine.
  static std::string refuses(const machine::Machine& machine, const program::Bound& program,
                             const Options& options);

 private:
  void push(std::int64_t time, EventKind kind, std::int32_t a, std::int32_t b = 0,
            std::uint32_t tag = 0) override;
  void depart(std::int32_t id, Request& request, std::int64_t departure) override;
  void leave(std::int32_t id, std::int64_t now) override;
  void carry(const Passage& passage) override;
  std::int64_t open_from() const override { return (stages_.last_round + 1) << stages_.shift; }
  void answer_at(std::int32_t id, std::int64_t time) override { chip_.answer_at(id, time); }
  void to_memory(std::int32_t id, std::int64_t time) override;
  bool waits_in_vain(std::int32_t wave) const override { return replayer_.waits_in_vain(wave); }
  std::string why_not(program::SemaphoreId id) const override;
  std::string why_not(std::int32_t wave) const override;
  void add_reasons(Diagnostics& diagnostics) const override { replayer_.add_reasons(diagnostics); }

  // --- line.cc: set-up, events
  void choose_rounds();
  void make_tables();
  void count_links();
  LinkOrder place_links(std::int64_t out);
  int rank_of(EventKind kind, std::int32_t a) const;
  void happen(std::vector<CoreEvent>& events);

  // --- workers.cc: rounds, by one thread or several
  void divide(const std::vector<std::vector<std::int32_t>>& levels);
  void deal_links(const std::vector<std::vector<std::int32_t>>& levels);
  void queue_links(const std::vector<std::vector<std::int32_t>>& levels);
  template <typename Work>
  void by_all(Work work);
  void collect();
  void note_next(RoundWorker& worker);
  std::int64_t next_round();
  void do_round(std::int64_t round);
  void run_cores(int rank, std::int64_t round);
  void run_engines(RoundWorker& worker, std::int64_t end);
  void run_links(RoundWorker& worker, std::size_t level, std::int64_t round);
  void look_behind_round(std::int64_t round);

  Stages stages_{device_};
  WayTable ways_{device_, multicast_, stages_};
  Links links_{device_,  engine_stages_, multicast_, recorder_, replayer_,
               servers_, stages_,        tracing_,   ways_};
  EngineStages engine_stages_{device_, copy_engines_, links_, memory_, stages_, tracing_};
  Chip chip_{device_, engine_stages_, memory_, stages_, sync_, tracing_};
  Recorder recorder_{device_, replayer_};
  Replayer replayer_{device_, copy_engines_, engine_stages_, host_, links_,
                     memory_, recorder_,     stages_,        sync_, ways_};
  PollSkips poll_skips_{device_, replayer_, stages_};
  std::unique_ptr<ThreadTeam> team_;            ///< of one worker: none
  std::int64_t carried_ = 0, hops_before_ = 0;  ///< by carry(); when the last round began
  bool few_ = true;                             ///< it visited few servers
  std::size_t switches_at_ = 0;                 ///< level of links before which switches come
};

}  // namespace hemiola::sim

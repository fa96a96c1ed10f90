// Rows of a profile are put in where they enter links, or come in at a GPU (docs/replay.md).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/device/device.h"
#include "sim/line/stages.h"
#include "sim/line/ways.h"
#include "sim/replay/recorded_latencies.h"
#include "sim/replay/timetable.h"
#include "sim/result/profile.h"

namespace hemiola::sim {

class CopyEngines;
class EngineStages;
class Host;
class Links;
class Memory;
class Recorder;
class Sync;
class WayTable;

class Replayer {
 public:
  Replayer(Device& device, CopyEngines& copy_engines, EngineStages& engine_stages, Host& host,
           Links& links, Memory& memory, Recorder& recorder, Stages& stages, Sync& sync,
           WayTable& ways)
      : device_(device),
        copy_engines_(copy_engines),
        engine_stages_(engine_stages),
        host_(host),
        links_(links),
        memory_(memory),
        recorder_(recorder),
        stages_(stages),
        sync_(sync),
        ways_(ways) {}

  void start_replay();
  void put_in(std::int64_t round);
  /// When something of the profile is to be put in; INT64_MAX: there is nothing left.
  std::int64_t round_of_rows() const;
  // Ends of ways.
  void come_in(std::int32_t id, Request& request, const WayLeg& leg, std::int64_t now);
  /// It leaves what is simulated. A request of a watched rank waits for the row that answers it.
  void drop(std::int32_t id, std::int64_t now);
  /// When the next row comes, fs, if until then nothing is to come but what is under way; else -1.
  std::int64_t quiet_until() const {
    const bool quiet = timetable_ != nullptr && !timetable_->empty() && unmatched_.empty() &&
                       device_.tallies.active() == rows_to_come_;
    return quiet ? timetable_->next() : -1;
  }
  // Of a wait that cannot end (deadlock.cc). Empty: nothing that rows have to do with.
  bool waits_in_vain(std::int32_t wave) const;
  std::string why_not(program::SemaphoreId id) const;
  std::string why_not(std::int32_t wave) const;
  void add_reasons(Diagnostics& diagnostics) const;

 private:
  void match_buffers();
  bool is_used(const ProfileRow& row) const;
  void check_row(std::int32_t r) const;
  void expect(std::int32_t r);
  std::int64_t address_of(std::int32_t buffer, std::int64_t offset, int rank) const;
  std::uint64_t place_of_signal(const ProfileRow& row) const;
  bool put_in_answer(std::int32_t r, std::int64_t round);
  void put_in_requests(std::int32_t r);
  void put_in_passing(std::int32_t r);
  std::int32_t request_of_other();
  void make_burst(Request& request, const ProfileRow& row, std::int64_t address);
  void enter(std::int32_t id, std::int32_t r);
  const Calendar& entry_of(const ProfileRow& row);
  std::int32_t request_of(const ProfileRow& row, std::int64_t address, std::int64_t end);
  std::int32_t route_of(const ProfileRow& row, std::int32_t line);
  void signal(const Request& request, std::int64_t now);
  void answer_from_afar(std::int32_t id, std::int64_t now);
  std::string why_no_flag(const ProfileRow& row) const;
  std::string why_no_row(const std::vector<std::int32_t>& writers) const;

  Device& device_;
  CopyEngines& copy_engines_;
  EngineStages& engine_stages_;
  Host& host_;
  Links& links_;
  Memory& memory_;
  Recorder& recorder_;
  Stages& stages_;
  Sync& sync_;
  WayTable& ways_;
  /// By rank and number: requests that rows will answer.
  std::unordered_map<std::uint64_t, std::int32_t> under_way_;
  RecordedLatencies paces_;                    ///< of relative answers
  std::unique_ptr<Timetable> timetable_;       ///< rows that are to come
  std::vector<bool> answered_by_rows_, used_;  ///< by rank; by row: of those that are put in
  /// Answers that are due soon, with the rounds in which they begin; no request yet.
  std::vector<std::pair<std::int32_t, std::int64_t>> unmatched_;
  std::vector<std::int32_t> replayed_buffers_;  ///< by buffer of the profile: of the program, or -1
  bool at_ports_ = false;                       ///< rows begin there
  std::int64_t rows_to_come_ = 0;               ///< that have a time; counted in active
};

}  // namespace hemiola::sim

// From the ports of one GPU by links, and switches of multicast groups, to those of another.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/device/device.h"
#include "sim/line/stages.h"

namespace hemiola::sim {

class EngineStages;
class Multicast;
class Recorder;
class Replayer;
class Servers;
class Tracing;
class WayTable;
struct LinkHop;
struct WayLeg;

class Links {
 public:
  Links(Device& device, EngineStages& engine_stages, Multicast& multicast, Recorder& recorder,
        Replayer& replayer, Servers& servers, Stages& stages, Tracing& tracing, WayTable& ways)
      : device_(device),
        engine_stages_(engine_stages),
        multicast_(multicast),
        recorder_(recorder),
        replayer_(replayer),
        servers_(servers),
        stages_(stages),
        tracing_(tracing),
        ways_(ways) {}

  // Stages of a round.
  void run_io_out(int rank, std::int64_t round);
  void run_merge(Calendar& calendar, std::int64_t round);
  void choose_at_link(std::int32_t link, Calendar& calendar, std::int64_t round);
  void choose_at_switch(FiniteSwitch& at, Calendar& calendar, std::int64_t round);
  void run_switch(SwitchStage& at, std::int64_t round);
  void run_ingress(int rank, std::int64_t round);
  /// It goes on along the leg.
  void walk(std::int32_t id, Request& request, const WayLeg& leg, std::int64_t now);
  /// The last packet of a train is where the first one is: how much later.
  std::int64_t end_lag(Request& request);
  /// Stages of switches come before their links to GPUs.
  void place_switches();

 private:
  template <bool kWatched>
  void leave_by_ports(int rank, GpuStages& gpu, const std::vector<Arrival>& taken);
  template <bool kWatched>
  void leave_by_port(int rank, GpuStages& gpu, std::int32_t id, std::int64_t now,
                     Counters& counters);
  template <bool kWatched>
  void pass_merge(const std::vector<Arrival>& taken);
  template <bool kWatched>
  void travel(std::int32_t id, Request& request, std::size_t size, const WayLeg& leg,
              std::int64_t now, bool at_merge, Counters& counters);
  template <bool kWatched>
  std::int64_t pass_link(Request& request, std::size_t size, const LinkHop& hop, std::int64_t now);
  std::int64_t arrive(std::int32_t id, Request& request, std::size_t size, const WayLeg& leg,
                      std::int64_t now, Counters& counters);
  void at_switch(std::int32_t id, const WayLeg& leg, std::int64_t now);
  // Bursts and their trains.
  std::int64_t serve_large(std::int64_t& free, std::int64_t service, const Request& request,
                           std::int64_t arrival);
  std::int64_t large_io_time(int rank, std::int32_t port, const Request& request);
  std::int64_t large_link_time(std::int32_t link, const Request& request);
  std::int64_t packet_of(const Request& request) const;
  void show_link(const Request& request, std::int32_t link, std::int64_t service,
                 std::int64_t arrival, std::int64_t departure) const;
  // Queues and credits.
  static bool is_control(const Request& request);
  std::int64_t next_pick(const Arbiter& arbiter, std::int64_t free) const;
  static std::int64_t with_credit(const Arbiter& arbiter, std::int64_t time);
  void return_credit(Arbiter& arbiter, std::int64_t time);
  static void note_credit(Arbiter& arbiter, std::int64_t time);
  std::int32_t pick_from(Arbiter& arbiter);
  void leave_queue(std::int32_t id, std::int64_t now);
  void leave_receive_buffer(Request& request, std::int64_t now);
  /// Whether a calendar is that of a switch with finite queues.
  bool is_finite(std::int32_t calendar) const {
    return calendar >= 0 && stages_.queued[index(calendar)] < -1;
  }
  template <typename Serve>
  void choose(Arbiter& arbiter, const std::int64_t& free, const std::vector<Arrival>& arrivals,
              Calendar& calendar, std::int64_t end, Serve serve);
  void choose_at_ports(int rank, std::int64_t round);

  Device& device_;
  EngineStages& engine_stages_;
  Multicast& multicast_;
  Recorder& recorder_;
  Replayer& replayer_;
  Servers& servers_;
  Stages& stages_;
  Tracing& tracing_;
  WayTable& ways_;
};

}  // namespace hemiola::sim

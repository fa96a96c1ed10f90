// The line engine: the femtoseconds of the reference, with the requests of a window of time handled
// stage by stage instead of one event after the other. docs/line_engine.md says why that is so.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/device/cores.h"
#include "sim/line/link_order.h"
#include "sim/line/ways.h"
#include "sim/model/receive_buffers.h"
#include "sim/replay/recorded_latencies.h"
#include "sim/replay/timetable.h"
#include "sim/result/profile.h"
#include "sim/support/calendar.h"
#include "sim/support/growing.h"
#include "sim/support/prefetch.h"
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
  /// Sizes of requests in sectors, from 0 (no payload) to a line.
  static constexpr std::size_t kMostSectors = 8;
  static constexpr std::uint8_t kLarge = kMostSectors + 1;   ///< a burst: any number of bytes
  using Costs = std::array<std::int64_t, kMostSectors + 1>;  ///< fs, by sectors
  /// A link, as far as requests at it need it.
  struct alignas(64) LinkState {
    std::int64_t free = 0;                                   ///< fs: previous departure
    std::int64_t max_wait = 0;                               ///< fs
    const Costs* costs = nullptr;                            ///< of its class
    std::array<std::uint32_t, kMostSectors + 1> requests{};  ///< by sectors
    std::int32_t calendar = -1;                              ///< -1: one input feeds it
  };
  /// Something for a stage of another worker; `merge`: its number, where it is that of a link.
  struct Parcel {
    Calendar* calendar = nullptr;
    std::int32_t merge = -1;
    Arrival arrival;
  };
  /// A rank's copy engines, or a NIC.
  struct EngineStage {
    std::vector<CoreEvent> events;  ///< heap
    std::uint64_t next_sequence = 0;
    int worker = 0;
    bool busy = false;  ///< in Worker::engines
  };
  /// An event for an engine stage of another worker.
  struct EngineParcel {
    std::int32_t stage = 0;
    CoreEvent event;
  };
  /// An engine has done what a workgroup has posted.
  struct Posted {
    std::int32_t stage = 0;
    std::int64_t time = 0;
    std::int32_t group = 0, kept = 0;
  };
  /// Who does the stages of some ranks, and links at which inputs meet. Nothing of one worker is
  /// touched by another in a phase of a round: what goes there waits in `out` for the next phase.
  struct alignas(128) Worker {
    std::vector<int> ranks;
    /// Its words of busy_merges_, by level of links.
    std::vector<std::pair<std::size_t, std::size_t>> words;
    /// By phase (the present one and the one before take turns), then by worker that gets them.
    std::array<std::vector<std::vector<Parcel>>, 2> out;
    std::array<std::vector<std::vector<EngineParcel>>, 2> to_engines;
    std::vector<std::int32_t> engines;          ///< its engine stages that have events
    std::int32_t engine_at = -1;                ///< the one at work
    std::vector<Posted> posted;                 ///< by the round's engines, for any rank
    std::vector<Arrival> done, taken, scratch;  ///< of the stage at hand: memory that is kept
    std::vector<std::vector<Arrival>> by_port;
    SpareRounds spare;      ///< of its stages
    std::int64_t next = 0;  ///< its next round
  };
  /// What slices, or those who answer for them, send to the same slices in the round at hand.
  struct Own {
    Arrival arrival;
    std::uint32_t order = 0;  ///< among equal ones
  };
  struct OwnLater {
    bool operator()(const Own& x, const Own& y) const {
      if (x.arrival.time != y.arrival.time) return x.arrival.time > y.arrival.time;
      if (x.arrival.tag != y.arrival.tag) return x.arrival.tag > y.arrival.tag;
      return y.order - x.order > INT32_MAX;  // it wraps round
    }
  };
  /// The stages of a GPU, in the order in which a round visits them; servers and what they cost.
  struct Gpu {
    Calendar done;  ///< completions at its CUs
    Calendar slices;
    Calendar memory;  ///< memory-side cache and HBM
    Calendar cu_in;
    Calendar io_out;
    Calendar ingress;  ///< replay: what comes in at its ports
    std::array<Calendar*, 6> calendars() {
      return {&done, &slices, &memory, &cu_in, &io_out, &ingress};
    }
    std::vector<CoreEvent> events;  ///< heap
    std::uint64_t next_sequence = 0;
    std::uint64_t bursts_home = 0;  ///< that have come back to its ports
    int worker = 0;
    std::vector<Own> own;         ///< heap, of its slices
    std::uint32_t own_flags = 0;  ///< that have been there
    bool slices_run = false;      ///< their round is at hand
    LineMap<Fill> fills;
    std::vector<std::pair<std::int64_t, std::int32_t>> filled;  ///< times and lines of fills
    std::vector<std::int64_t> cu_out_free, cu_in_free, slice_free, io_out_free, io_in_free;
    Costs cu_out_costs{}, cu_in_costs{}, slice{}, operand{};
    std::vector<Costs> io;                                        ///< by port
    std::int64_t flag_cost = 0, noc = 0, io_latency = 0, l2 = 0;  ///< fs
    std::int64_t partition = 0;                                   ///< fs more to another partition
    std::vector<std::uint8_t> partition_of_cu, partition_of_slice;
    std::uint32_t home_cu_in = 0, home_slices = 0, home_port = 0;  ///< first tags of completions

    /// Between its CU and its slice, or the partition of the CU.
    std::int64_t way(const Request& request) const {
      const bool near = request.near || partition_of_cu[index(request.cu)] ==
                                            partition_of_slice[index(request.slice)];
      return near ? noc : noc + partition;
    }
  };

  /// First in, first out: when it leaves a server that was busy until `free`.
  static std::int64_t serve_at(std::int64_t& free, std::int64_t service, std::int64_t arrival) {
    free = std::max(free, arrival) + service;
    return free;
  }

  void push(std::int64_t time, EventKind kind, std::int32_t a, std::int32_t b = 0,
            std::uint32_t tag = 0) override;
  void depart(std::int32_t id, Request& request, std::int64_t departure) override;
  void leave(std::int32_t id, std::int64_t now) override;
  void carry(const Passage& passage) override;
  std::int64_t open_from() const override { return (last_round_ + 1) << shift_; }
  void answer_at(std::int32_t id, std::int64_t time) override;
  void to_memory(std::int32_t id, std::int64_t time) override;
  bool waits_in_vain(std::int32_t wave) const override;
  std::string why_not(program::SemaphoreId id) const override;
  std::string why_not(std::int32_t wave) const override;
  void add_reasons(Diagnostics& diagnostics) const override;

  // --- line.cc: rounds
  void choose_rounds();
  void make_tables();
  void count_links();
  LinkOrder place_links(std::int64_t out);

  // --- line/workers.cc: rounds, by one thread or several
  void divide(const std::vector<std::vector<std::int32_t>>& levels);
  template <typename Work>
  void by_all(Work work);
  void collect();
  void note_next(Worker& worker);
  std::int64_t next_round();
  void do_round(std::int64_t round);
  void run_links(Worker& worker, std::size_t level, std::int64_t round);
  void look_behind_round(std::int64_t round);
  Worker& mine() { return workers_[index(this_worker)]; }
  int rank_of(EventKind kind, std::int32_t a) const;
  static void push_event(Gpu& gpu, std::int64_t time, EventKind kind, std::int32_t a,
                         std::int32_t b, std::uint32_t tag);
  void happen(std::vector<CoreEvent>& events);

  // --- line/engines.cc: copy engines and NICs
  struct EngineLatencies {
    std::int64_t from_host, to_host;  ///< fs
  };
  bool has_engines() const { return copies_ || nics_; }
  static bool crosses_network(const machine::Machine& machine, const program::Bound& program);
  void make_engine_stages();
  EngineLatencies engine_latencies() const;
  void push_engine(std::int32_t stage, const CoreEvent& event);
  void run_engines(Worker& worker, std::int64_t end);
  void take_posted();
  void to_slices(std::int32_t id, std::int64_t time, std::uint32_t tag);
  Arrival next_at_slices(Gpu& gpu, const std::vector<Arrival>& taken, std::size_t& next);
  void set_size(Request& request) const;
  void burst_at_slice(int rank, std::int32_t id, std::int64_t now);
  void answer_engine(int rank, std::int32_t id, std::int64_t now);
  void burst_comes_home(std::int32_t id, std::int64_t time, std::uint32_t tag,
                        std::uint64_t sequence);
  std::int32_t engine_stage_of(std::int32_t engine) const {
    return stage_of_engine_[index(engine)];
  }
  std::int64_t serve_large(std::int64_t& free, std::int64_t service, const Request& request,
                           std::int64_t arrival);
  std::int64_t train_at_slices(int rank, const Request& request, std::int64_t now);
  std::int64_t end_lag(Request& request);
  std::int64_t large_io_time(int rank, std::int32_t port, const Request& request);
  std::int64_t large_link_time(std::int32_t link, const Request& request);
  std::int64_t packet_of(const Request& request) const;

  // --- line/multicast.cc: multicast groups
  /// What a switch makes of a request that comes over one of its links.
  struct Replica {
    std::int32_t member;
    machine::LinkId down;
    std::int32_t way;  ///< in replica_ways_
  };
  struct Replication {
    Way way;
    std::vector<Replica> replicas;
  };
  struct Switch {
    Calendar answers;  ///< of members
    machine::NodeId node = 0;
    int worker = 0;
  };
  /// WayLeg::to of a leg that ends at a switch, and the number of its stage.
  static std::int32_t at_switch_of(std::int32_t stage) { return -1 - stage; }
  static std::int32_t switch_of(std::int32_t to) { return -1 - to; }
  static bool multicasts(const program::Bound& program);
  void make_groups_of_switches();
  void add_replication(const MulticastPlane& plane, int rank, const std::vector<int>& members,
                       std::int32_t stage);
  void place_switches();
  void prepare_multicast(Request& request) const;
  const WayLeg& leg_of_group(const Request& request) const;
  void at_switch(std::int32_t id, const WayLeg& leg, std::int64_t now);
  void run_switch(Switch& at, std::int64_t round);

  // --- line/trace.cc
  void show(const Request& request, Reason reason, std::int64_t arrival,
            std::int64_t departure) const;
  void show_link(const Request& request, std::int32_t link, std::int64_t service,
                 std::int64_t arrival, std::int64_t departure) const;

  // --- line/stages.cc
  void prefetch(const std::vector<Arrival>& arrivals, std::size_t i) const {
    if (i < arrivals.size()) prefetch_line(&device_.request(arrivals[i].id));
  }
  void prefetch_whole(const std::vector<Arrival>& arrivals, std::size_t i) const;
  void prefetch_detail(const std::vector<Arrival>& arrivals, std::size_t i) const;
  void prefetch_first(const std::vector<Arrival>& arrivals, bool whole = false) const;
  bool take_by_tag(Calendar& calendar, std::int64_t round, std::vector<Arrival>& taken);
  bool take_with_answers(Calendar& calendar, std::int64_t round, std::uint32_t first,
                         std::uint32_t last, std::vector<Arrival>& taken);
  void run_cores(int rank, std::int64_t round);
  void run_slices(int rank, std::int64_t round);
  void run_memory(int rank, std::int64_t round);
  void run_cu_in(int rank, std::int64_t round);
  bool look_up(int rank, std::int32_t id, Request& request, std::int64_t now, std::int64_t& ready,
               Counters& counters);
  void write_back(int rank, std::int32_t line, std::int64_t now);
  void answer(int rank, std::int32_t id, Request& request, std::int64_t now);

  // --- line/polls.cc: polls of a wavefront whose compute unit does nothing else
  bool is_alone(Wave& wave, std::int32_t first) const;
  bool poll_again(int rank, std::int32_t id, std::int64_t now);

  // --- line/links.cc: ports and links
  /// For a trace, a recording or a replay.
  bool is_watching() const {
    return device_.options.trace != nullptr || device_.options.record != nullptr ||
           device_.options.replay != nullptr;
  }
  /// Where requests wait to be chosen, or for credits; nullptr: first come, first served.
  Arbiter* queue_of(std::int32_t server) {
    const std::int32_t arbiter = device_.server(server).arbiter;
    return arbiter < 0 ? nullptr : &device_.fabric.arbiters[index(arbiter)];
  }
  Arbiter* link_queue(std::int32_t link) { return queue_of(device_.fabric.link_base + link); }
  bool is_control(const Request& request) const;
  std::int64_t next_pick(const Arbiter& arbiter, std::int64_t free) const;
  static std::int64_t with_credit(const Arbiter& arbiter, std::int64_t time);
  void return_credit(Arbiter& arbiter, std::int64_t time);
  static void note_credit(Arbiter& arbiter, std::int64_t time);
  std::int32_t pick_from(Arbiter& arbiter);
  void leave_queue(std::int32_t id, std::int64_t now);
  void leave_receive_buffer(Request& request, std::int64_t now);
  /// Whether a calendar is that of a switch with finite queues.
  bool is_finite(std::int32_t calendar) const {
    return calendar >= 0 && queued_[index(calendar)] < -1;
  }
  void choose_at_switch(FiniteSwitch& at, Calendar& calendar, std::int64_t round);
  template <typename Serve>
  void choose(Arbiter& arbiter, const std::int64_t& free, const std::vector<Arrival>& arrivals,
              Calendar& calendar, std::int64_t end, Serve serve);
  void choose_at_link(std::int32_t link, Calendar& calendar, std::int64_t round);
  void choose_at_ports(int rank, std::int64_t round);
  /// For one of these, or for queues.
  bool looks_closely() const { return is_watching() || !device_.fabric.arbiters.empty(); }
  void run_io_out(int rank, std::int64_t round);
  void run_merge(Calendar& calendar, std::int64_t round);
  template <bool kWatched>
  void leave_by_ports(int rank, Gpu& gpu, const std::vector<Arrival>& taken);
  template <bool kWatched>
  void leave_by_port(int rank, Gpu& gpu, std::int32_t id, std::int64_t now, Counters& counters);
  template <bool kWatched>
  void pass_merge(const std::vector<Arrival>& taken);
  void walk(std::int32_t id, Request& request, const WayLeg& leg, std::int64_t now);
  template <bool kWatched>
  void travel(std::int32_t id, Request& request, std::size_t size, const WayLeg& leg,
              std::int64_t now, bool at_merge, Counters& counters);
  template <bool kWatched>
  std::int64_t pass_link(Request& request, std::size_t size, const LinkHop& hop, std::int64_t now);
  const WayLeg& leg_of(const Request& request) {
    if (request.group) [[unlikely]]
      return leg_of_group(request);
    if (request.route >= ways_made_.load(std::memory_order_acquire)) add_ways(request.route);
    const Way& way = ways_[index(request.route)];
    return request.stage == Stage::back_out ? way.back : way.forward;
  }
  void add_ways(std::int32_t route);
  Way make_way(const Leg& forward, const Leg& back) const;
  std::int64_t arrive(std::int32_t id, Request& request, std::size_t size, const WayLeg& leg,
                      std::int64_t now, Counters& counters);

  // --- line/record.cc
  void carry_all_or_between_watched(bool all);
  void start_recording();
  bool enters(std::int32_t id, const Request& request, const WayLeg& leg, std::int64_t now);
  void record(std::int32_t id, const WayLeg& leg, std::int64_t now, int links);
  void set_recorded_burst(ProfileRow& row, const Request& request) const;
  void number_request(std::int32_t id, std::int64_t now);
  void refuse_polls(const Request& request) const;
  void refuse_groups() const;
  void note_engine(std::int32_t engine, int rank);
  void refuse_pull(const Request& request) const;

  // --- line/replay.cc
  void start_replay();
  void match_buffers();
  bool is_used(const ProfileRow& row) const;
  void check_row(std::int32_t r) const;
  void expect(std::int32_t r);
  std::int64_t address_of(std::int32_t buffer, std::int64_t offset, int rank) const;
  std::uint64_t place_of_signal(const ProfileRow& row) const;
  void put_in(std::int64_t round);
  std::int64_t round_of_rows() const;
  bool put_in_answer(std::int32_t r, std::int64_t round);
  void put_in_requests(std::int32_t r);
  void put_in_passing(std::int32_t r);
  std::int32_t request_of_other();
  void make_burst(Request& request, const ProfileRow& row, std::int64_t address);
  bool has_number(std::int32_t id) const {
    return index(id) < numbers_.size() && numbers_[index(id)] >= 0;
  }
  std::int64_t semaphore_count() const { return device_.barrier_base + device_.program.barriers(); }
  void enter(std::int32_t id, std::int32_t r);
  const Calendar& entry_of(const ProfileRow& row);
  std::int32_t request_of(const ProfileRow& row, std::int64_t address, std::int64_t end);
  std::int32_t route_of(const ProfileRow& row, std::int32_t line);
  void run_ingress(int rank, std::int64_t round);
  void come_in(std::int32_t id, Request& request, const WayLeg& leg, std::int64_t now);
  void drop(std::int32_t id, std::int64_t now);
  void signal(const Request& request, std::int64_t now);
  void answer_from_afar(std::int32_t id, std::int64_t now);
  // --- line/skip.cc
  /// Of a replay in which nothing but polls is under way.
  struct PollState {
    std::int64_t time = 0, period = 0;  ///< fs; since the last time that it was so, 0: it was not
    std::vector<std::int64_t> counts{}, more{};  ///< counters; since then
  };
  bool only_polls() const;
  template <typename Visit>
  void for_each_free(int rank, Visit visit);
  std::vector<std::int64_t> state_of_polls(std::pair<std::int64_t, std::int64_t>& times);
  void skip_polls();
  void shift_polls(std::int64_t now, std::int64_t by);
  // --- line/deadlock.cc
  std::string why_no_flag(const ProfileRow& row) const;
  std::string why_no_row(const std::vector<std::int32_t>& writers) const;

  std::size_t sectors(std::int32_t bytes) const {
    return index(bytes >> device_.lines.sector_shift);
  }
  void forget_fills(Gpu& gpu, std::int64_t before);

  Gpu& stage(std::int32_t rank) { return stages_[index(stage_of_[index(rank)])]; }
  void push_merge(std::int32_t merge, Arrival arrival) {
    const int worker = worker_of_word_[index(merge >> 6)];
    if (worker != this_worker) {
      mine().out[phase_ % 2][index(worker)].push_back({&merges_[index(merge)], merge, arrival});
      return;
    }
    merges_[index(merge)].push(arrival);
    busy_merges_[index(merge >> 6)] |= std::uint64_t{1} << (merge & 63);
  }
  /// To a stage that may be another worker's.
  void push_far(int worker, Calendar& calendar, Arrival arrival) {
    if (worker != this_worker)
      mine().out[phase_ % 2][index(worker)].push_back({&calendar, -1, arrival});
    else
      calendar.push(arrival);
  }

  std::vector<int> simulated_;          ///< ranks, of one period, that are not others of a replay
  std::vector<Gpu> stages_;             ///< of those
  std::vector<std::int32_t> stage_of_;  ///< by rank
  // Of programs that use copy engines or NICs.
  bool copies_ = false, nics_ = false;
  std::vector<EngineStage> engine_stages_;     ///< of each rank's, of each NIC
  std::vector<std::int32_t> stage_of_engine_;  ///< by engine
  std::int64_t engine_offset_ = 0;             ///< fs, of these stages
  std::int64_t engines_from_ = INT64_MIN;      ///< fs: end of their last round
  // Of programs with multicast groups.
  std::vector<Replication> replications_;
  std::unordered_map<std::uint64_t, std::int32_t> first_replication_;  ///< by group and rank
  std::vector<Way> replica_ways_;
  std::vector<Switch> switches_;
  std::size_t switches_at_ = 0;  ///< level of links before which they come
  /// Links at which several inputs meet, by worker and level; both begin at multiples of 64.
  std::vector<Calendar> merges_;
  std::vector<std::uint64_t> busy_merges_;    ///< a bit for each: something is to come there
  std::vector<std::int16_t> worker_of_word_;  ///< of those
  std::vector<Worker> workers_;
  std::unique_ptr<ThreadTeam> team_;  ///< of one worker: none
  std::uint64_t phase_ = 1;
  std::int64_t carried_ = 0, hops_before_ = 0;  ///< by carry(); when the last round began
  bool few_ = true;                             ///< it visited few servers
  /// By calendar: its link, if that has a queue; or -1; or -2 - s: that of finite_switches_[s].
  std::vector<std::int32_t> queued_;
  std::vector<FiniteSwitch> finite_switches_;
  std::vector<LinkState> links_;
  std::vector<Costs> link_costs_;  ///< by link class
  Growing<Way> ways_;              ///< by Request::route
  std::atomic<std::int32_t> ways_made_ = 0;
  std::mutex making_ways_;
  int shift_ = 0;  ///< rounds last 2^shift fs

  // Of watched ranks (docs/replay.md).
  std::vector<bool> carries_;  ///< by link: recording: what enters is noted; replay: simulated
  std::vector<std::int64_t> asked_;  ///< by rank: requests that have left for others
  /// By request: the how-manieth of them it is, -1: none; when, fs: recording of multicast groups.
  std::vector<std::int64_t> numbers_, asked_at_;
  std::vector<int> user_of_engine_;  ///< recording: a rank that uses it; -1: none
  // Replay.
  /// By rank and number: requests that rows will answer.
  std::unordered_map<std::uint64_t, std::int32_t> under_way_;
  RecordedLatencies paces_;                    ///< of relative answers
  std::unique_ptr<Timetable> timetable_;       ///< rows that are to come
  std::vector<bool> answered_by_rows_, used_;  ///< by rank; by row: of those that are put in
  /// Answers that are due soon, with the rounds in which they begin; no request yet.
  std::vector<std::pair<std::int32_t, std::int64_t>> unmatched_;
  std::vector<std::int32_t> replayed_buffers_;  ///< by buffer of the profile: of the program, or -1
  bool at_ports_ = false;                       ///< rows begin there
  std::int64_t rows_to_come_ = 0;               ///< that have a time; counted in active_
  std::map<std::vector<std::int64_t>, PollState> states_;  ///< since skip_until_ is what it is
  std::int64_t skip_until_ = -1;                           ///< fs: the next row
  bool skipped_ = false;
  std::int64_t hops_skipped_ = 0;                    ///< represented, not executed
  std::int64_t latest_offset_ = 0, last_round_ = 0;  ///< fs: of all stages
};

}  // namespace hemiola::sim

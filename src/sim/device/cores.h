// What engines share: host, streams, kernels, workgroups, wavefronts, issue slots of CUs, proxies
// and copy engines, values of flags and packets. How a request gets from its CU to memory and back
// is an engine's own: see reference.h and line.h.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "machine/machine.h"
#include "program/walk/cursor.h"
#include "sim/alike/fold.h"
#include "sim/device/gpu_state.h"
#include "sim/device/rank_state.h"
#include "sim/device/waiting.h"
#include "sim/device/workgroup.h"
#include "sim/model/addresses.h"
#include "sim/model/engines.h"
#include "sim/model/fabric.h"
#include "sim/model/multicast_planes.h"
#include "sim/model/request.h"
#include "sim/replay/peer_waits.h"
#include "sim/result/latency_breakdown.h"
#include "sim/result/launches.h"
#include "sim/result/options.h"
#include "sim/sampled/sampling.h"
#include "sim/support/pool.h"

namespace hemiola::sim {

class Cores {
  friend HostStreams<Cores, LatencyBreakdown>;

 public:
  Cores(const machine::Machine& machine, const program::Bound& program, const Options& options);
  Cores(const Cores&) = delete;
  Cores& operator=(const Cores&) = delete;
  virtual ~Cores() = default;
  virtual Result run() = 0;
  const Addresses& addresses() const { return addresses_; }
  const Fold& fold() const { return fold_; }
  /// A run takes at least so long, and moves so many bytes.
  void expect(Time least, std::int64_t bytes) {
    if (sampling_ != nullptr) sampling_->expect(least.fs, bytes);
  }

 protected:
  enum EventKind : std::int32_t {
    // Of requests under way.
    kHop,
    kLegEnd,
    kMemory,
    kFill,
    kComplete,
    kPick,
    kAdmit,
    kCredit,
    kSwitch,
    kAnswer,
    // Of one rank's host, wavefronts and engines.
    kWave,
    kWaves,  ///< `b` wavefronts of a workgroup, from `a` on
    kDispatch,
    kKernelStart,
    kStreamNext,
    kProxy,
    kEngine,
    kEngineDone,
    kRetry,
    kQueue,
    kComputed,
    kPosted,
    kNap
  };

  // --- What an engine does for them.
  /// `a`, `b`: see handle_core(); kComplete and kLegEnd: a request.
  virtual void push(std::int64_t time, EventKind kind, std::int32_t a, std::int32_t b = 0,
                    std::uint32_t tag = 0) = 0;
  /// A request that its CU has issued goes its way.
  virtual void depart(std::int32_t id, Request& request, std::int64_t departure) = 0;
  /// Nobody is left who could answer what the wavefront has asked for.
  virtual bool waits_in_vain(std::int32_t /*wave*/) const { return false; }
  /// What a slice or memory says at `time` goes to the CU that asked.
  virtual void answer_at(std::int32_t id, std::int64_t time) = 0;
  /// Of a slice, to memory.
  virtual void to_memory(std::int32_t id, std::int64_t time) = 0;
  // For the report of a wait that cannot end: why nobody will signal a semaphore, or send what a
  // wavefront has asked for, and whatever else is missing.
  virtual std::string why_not(program::SemaphoreId id) const;
  virtual std::string why_not(std::int32_t wave) const;
  virtual void add_reasons(Diagnostics& /*diagnostics*/) const {}
  /// Requests that nobody simulates have been over their links (cores_sampling.cc).
  virtual void carry(const Passage& /*passage*/) {}
  /// When something of a wavefront may happen at the earliest, fs.
  virtual std::int64_t open_from() const { return now_; }
  /// A request of an engine of the GPU goes out to another one.
  virtual void leave(std::int32_t id, std::int64_t now) = 0;

  // --- cores.cc: set-up, events, result
  void start();  ///< the first launch on every rank
  void handle_core(EventKind kind, std::int64_t now, std::int32_t a, std::int32_t b,
                   std::uint32_t tag);
  static bool is_progress(EventKind kind, std::int32_t b);
  /// A request like this one, that has spent nothing.
  std::int32_t allocate(const RequestData& like, Tally& tally) {
    const std::int32_t id = requests_.take_as_left();
    requests_[index(id)].data() = like;
    if (!like.polling) ++tally.active;
    return id;
  }
  std::int32_t allocate(bool polling) {
    RequestData like;
    like.polling = polling;
    return allocate(like, tally());
  }
  std::int32_t keep(const LatencyBreakdown& spent);  ///< for an event; take() gives it back
  LatencyBreakdown take(std::int32_t kept);
  void release(std::int32_t id);
  void give_back(std::int32_t id, Request& request, Tally& tally);
  [[noreturn]] void report_deadlock();
  void check_progress();
  /// To be asked after some `events`: throws when only polls have been under way for long, and
  /// nobody has what it polls for.
  void look_for_progress(std::int64_t events) {
    quiet_ = tallies_.active() == 0 && !tallies_.take_spun() ? quiet_ + events : 0;
    if (quiet_ <= 1000 + 50 * static_cast<std::int64_t>(waves_.size())) return;
    check_progress();
    quiet_ = 0;
  }
  /// To be asked now and then, with the time that has been reached: tells Options::monitor how far
  /// the run is, and leaves it (Interrupted) when that asks for it.
  void tell(std::int64_t now) const;
  Result result();
  void add_links(Result& result) const;
  void add_reads(const Counters& c, Result& result) const;
  Detail& detail(const Request& request) { return details_[index(request.detail)]; }
  Detail& add_detail(Request& request) {
    request.takes = true;
    request.detail = details_.take();
    if (tracing()) spans_of(request) = {};
    return detail(request);
  }
  // --- cores_ways.cc: servers, order tags of completions
  using Plane = MulticastPlane;
  const std::vector<Plane>& planes(std::int32_t group, int rank) { return planes_.of(group, rank); }

  // --- cores_multicast.cc
  struct Answered {
    std::int32_t parent = -1;  ///< whose last answer it was
    std::int64_t time = 0;     ///< when it leaves the switch
  };
  void count_multicast(std::int32_t id);
  std::int32_t make_replica(std::int32_t id, int member, machine::LinkId down);
  std::uint32_t tag_of_answer(const Request& answer) const;
  Answered take_answer(std::int32_t id, std::int64_t now);

  // --- cores_ways.cc
  /// Through a server, at once: when it leaves.
  std::int64_t serve(std::int32_t server, Request& request, std::int64_t arrival);
  std::int32_t take_next(Arbiter& arbiter) const;
  /// The I/O port of its GPU through which a request to others leaves, and its answer comes back.
  std::int32_t source_port(const Request& request);
  /// Order tag of a completion: the way on which the request comes back to its CU.
  enum class Return { l1, cu_in, slices, port };
  std::uint32_t complete_tag(int rank, Return way, std::int32_t cu_or_port) const;
  static constexpr int kCodePieces = 16;  ///< of the code of a function
  static constexpr std::uint32_t kFirstWaveTag = 1U << 16;
  // Order tags at slices, of what comes from engines: behind those of CUs and ports.
  static constexpr std::uint32_t kFlagsOfNics = 1U << 26;
  static constexpr std::uint32_t kFlagsOfCopies = kFlagsOfNics + 1;
  static constexpr std::uint32_t kLocalBursts = kFlagsOfNics + 2;  ///< that have read their source
  static constexpr std::uint32_t kFromEngines = kFlagsOfNics + 3;

  // --- cores_memory.cc: slices and memory, values of flags and packets
  /// What stands for a rank's GPU.
  GpuState& gpu(std::int32_t rank) { return gpus_[index(home(rank))]; }
  const GpuState& gpu(std::int32_t rank) const { return gpus_[index(home(rank))]; }
  /// Not of a replay's others (Options::replay).
  bool is_simulated(int rank) const { return options_.replay == nullptr || is_watched(rank); }
  bool is_watched(int rank) const { return watched_[index(rank)]; }
  bool all_done() const { return ranks_done_.load(std::memory_order_relaxed) >= ranks_to_end_; }
  Tally& tally() { return tallies_.mine(); }
  std::int32_t home(std::int32_t rank) const { return home_[index(rank)]; }
  std::int64_t accept(std::int32_t id, std::int64_t now);
  std::int64_t operand_time(int rank, std::int64_t bytes) const;
  std::int64_t flag_time(int rank) const;
  void take_effect(std::int32_t id, std::int64_t now, std::int64_t done);
  std::int32_t make_write_back(int rank, std::int32_t line);
  std::int64_t go_home(Request& request, std::int64_t ready) const;
  std::int64_t through_memory(Request& request, std::int64_t now);
  static LatencyBreakdown until_accepted(const Request& request, std::int64_t now);
  void apply_flag(Request& request, std::int64_t now, std::int64_t done);
  /// `by`: of a trace, the span that does it.
  void add_to_semaphore(SemaphoreState& semaphore, std::int64_t increment,
                        const LatencyBreakdown& cause, SpanId by, std::int64_t now);
  void store_packet(Request& request, std::int64_t now);
  bool load_packet(std::int32_t id);
  /// Its remainder spreads consecutive numbers over places and keeps strides of powers of two
  /// apart. Works on rank-relative addresses, so that all GPUs map alike.
  static constexpr std::uint64_t mixed(std::uint64_t x) {
    return x ^ (x >> 7) ^ (x >> 14) ^ (x >> 21);
  }
  static std::int32_t slice_of(const Modulo& slices, std::int32_t line) {
    const auto number = static_cast<std::uint32_t>(line);
    return static_cast<std::int32_t>(slices(static_cast<std::uint32_t>(mixed(number))));
  }
  std::int32_t slice_of(int rank, std::int32_t line) const;
  std::int32_t channel_of(int rank, std::int64_t line) const;
  void sample_poll(Request& request, std::int64_t now, std::int64_t done);

  // --- cores_monitor.cc: what slices and the memory controller do for those who wait
  bool goes_past_l2(const Request& request) const;
  std::int64_t serve_flag_line(Request& request, std::int64_t now);
  bool watch(const Request& request, std::int64_t done);
  void stop_watching(const Request& request);
  void notify(std::int32_t semaphore, const Request& cause, std::int64_t done);
  bool awaits(const Watcher& watcher, std::int32_t semaphore) const;
  bool holds(const Watcher& watcher) const;
  std::int64_t use_log(std::int32_t id, std::int64_t time, bool from_memory);
  std::int32_t make_log_access(std::int16_t rank, Monitors& monitors, Intent intent);
  Monitors& monitors_for(const Request& request) {
    GpuState& state = gpu(request.target);
    return request.uncached ? state.by_memory : state.by_slices;
  }
  std::int64_t wake(const Watcher& watcher, const Request& cause, std::int64_t time);
  /// Nobody waits for its answer.
  static bool ends_in_memory(const Request& request) {
    return request.intent == Intent::write_back ||
           (request.intent == Intent::wake && request.wave < 0);
  }

  // --- cores_waves.cc: workgroups and wavefronts
  void run_wave(std::int32_t wave, std::int64_t now);
  void run_waves(std::int32_t first, std::int32_t count, std::int64_t now);
  std::int32_t pass_idle(std::int32_t wave, std::int32_t end, std::int64_t now);
  Step* step_at(Workgroup& group, std::int64_t position) {
    const std::int64_t at = position - group.first;
    return at < static_cast<std::int64_t>(group.window.size()) ? &group.window[index(at)]
                                                               : next_step(group, position);
  }
  Step* next_step(Workgroup& group, std::int64_t position);
  Step* step_of(Wave& wave) {
    Workgroup& group = groups_[index(wave.workgroup)];
    wave.position = std::max(wave.position, group.first);  // it took no part in what is gone
    return step_at(group, wave.position);
  }
  void drop_passed(Workgroup& group, std::int64_t now);
  void pass(Workgroup& group, Wave& wave, Step& step, std::int64_t now);
  void want_code(Workgroup& group, const program::Primitive& primitive);
  void fetch_code(Workgroup& group, std::int64_t now);
  static void begin(const Workgroup& group, Step& step);
  void expand_barrier(Workgroup& group, Step& step);
  void push_waves(std::int64_t time, std::int32_t first, std::int32_t count) {
    push(time, kWaves, first, count, waves_[index(first)].tag);
  }
  bool move(std::int32_t wave, const Step& step, std::int64_t now);
  void issue_loads(std::int32_t wave, const Step& step, std::int64_t now);
  void issue_stores(std::int32_t wave, const Step& step, std::int64_t now);
  void after_loads(std::int32_t wave, std::int64_t now);
  bool fence(std::int32_t wave, bool system_scope, std::int64_t now);
  bool waits_for_stores(std::int32_t wave, std::int64_t now);
  bool start_signal(std::int32_t wave, const Step& step, std::int64_t now);
  bool start_wait(std::int32_t wave, const Step& step, std::int64_t now);
  void poll_round(std::int32_t wave, Look look, std::int64_t now);
  void poll_returned(std::int32_t id, std::int64_t now);
  std::int64_t next_sleep(Wave& wave, int rank);
  void wait_over(std::int32_t wave, std::int64_t accepted_at, std::int64_t now);

  // --- cores_wait.cc: waits by monitor and SyncMon, line by line
  machine::WaitPolicy policy(int rank) const { return machine_.model(rank).sync_wait; }
  void wait_by_line(std::int32_t wave, std::int64_t now);
  void look(std::int32_t wave, std::int32_t first, Look look, const LatencyBreakdown& spent,
            std::int64_t now);
  void look_again(std::int32_t wave, std::int32_t first, std::int64_t now);
  void line_returned(std::int32_t id, std::int64_t now);
  void woken(std::int32_t id, std::int64_t now);

  // --- cores_switch.cc: workgroups switched out and in
  bool is_idle(const Workgroup& group) const;
  void fell_asleep(std::int32_t group, std::int64_t now);
  void make_room(int rank, std::int64_t now);
  void give_room(int rank, const LatencyBreakdown& spent, bool newcomers_first, std::int64_t now);
  bool is_outranked(const RankState& state, std::int32_t priority) const;
  std::deque<std::int32_t>::iterator first_to_get_room(RankState& state, int rank) const;
  void move_state(std::int32_t group, Intent intent, std::int64_t now);
  void state_moved(std::int32_t group, const LatencyBreakdown& spent, std::int64_t now);
  void want(std::int32_t group, std::int64_t now);
  bool switch_in(std::int32_t group, std::int64_t now);
  void arrive(std::int32_t wave, Step& step, std::int32_t count, std::int64_t now);
  void release_sync(std::int32_t wave, const Step& step, std::int64_t now);
  bool drained(const Wave& wave) const;
  void request_memory(std::int32_t wave, const program::Span& span, std::int64_t begin,
                      std::int64_t end, Intent intent, bool last, std::int64_t now);
  void request_bytes(std::int32_t wave, const program::Span& span, std::int64_t from,
                     std::int64_t to, Intent intent, bool last, std::int64_t now);
  static bool has_room(const Cu& cu, Intent intent) {
    return (is_load(intent) ? cu.load_room : cu.store_room) > 0;
  }
  static std::int32_t& unacknowledged(Workgroup& group, std::int32_t epoch);
  void account(std::int32_t wave, Intent intent, bool remote, std::int64_t requests,
               std::int64_t bytes);
  std::int32_t instructions_again(Wave& wave, Intent intent);
  std::int32_t make_request(std::int32_t wave, Intent intent, int target, std::int32_t line,
                            std::int64_t bytes);
  void set_line(Request& request, std::int32_t line, std::int64_t bytes) const;
  static RequestData request_like(const Queued& wanted, const Cu& cu);
  void make_head(const Queued& instruction, Cu& cu);
  std::int32_t next_request(Queued& instruction, const Issuing& all, const LatencyBreakdown& spent,
                            Tally& tally);
  void add_detail_of(const Queued& instruction, Request& request, std::int64_t low,
                     std::int64_t high);
  void find_paths(Queued& wanted, int from);
  void send_flag(std::int32_t wave, program::SemaphoreId id, std::int64_t value, std::int64_t now);
  void issue(std::int32_t id, std::int64_t now);
  Gate gate_of(const RequestData& request, Cu& cu);
  void grant(const Gate& gate, std::int32_t id, Request& request, Cu& cu, std::int64_t now,
             std::int32_t again, Tally& tally);
  void issue_lines(Queued& instruction, Cu& cu, const LatencyBreakdown& spent, std::int64_t most,
                   std::int64_t now, Tally& tally);
  void issue_made(std::int32_t id, Cu& cu, std::int64_t now, Tally& tally);
  void issue_queued(Cu& cu, const LatencyBreakdown& cause, std::int64_t now, Tally& tally);
  void free_slot(Cu& cu, bool load, const LatencyBreakdown& cause, std::int64_t now, Tally& tally);
  void complete(std::int32_t id, std::int64_t now);
  void start_polling(std::int32_t id, std::int64_t now);
  void charge_return(LatencyBreakdown& spent, int rank, std::int64_t fs) const;
  void acknowledged(Request& request, std::int64_t now);
  void finish_wave(std::int32_t wave, std::int64_t now);
  Granularity granularity(const Workgroup& group, const program::Primitive& primitive) const;
  std::int64_t unroll(const Workgroup& group) const;

  // --- cores_compute.cc
  Server& matrix_units(const Workgroup& group);  ///< of its CU
  std::int64_t use_matrix_units(const Workgroup& group, Time time, std::int64_t now);
  bool compute(std::int32_t wave, const program::Primitive& primitive, std::int64_t now);
  bool post_compute(std::int32_t wave, const program::Primitive& primitive, std::int64_t now);
  void post_loads(std::int32_t wave, const Step& step, std::int64_t now);
  static ProductStep& product_step(Workgroup& group, std::int32_t number);
  void operand_loaded(std::int32_t group, const Request& request, std::int64_t now);
  std::int64_t stages(const Workgroup& group) const;
  void start_computes(std::int32_t group, std::int64_t now);
  std::int64_t limit_power(const Workgroup& group, const ProductStep& step, std::int64_t now);
  void computed(std::int32_t group, std::int64_t now);

  // --- cores_sampling.cc: what is passed over between windows
  void find_kind(const Workgroup& group, Step& step);
  std::int32_t way_of(int rank, const program::Span& span, bool write);
  std::int64_t bytes_of_batches(const Workgroup& group, const Step& step, std::int64_t from,
                                std::int64_t batches) const;
  bool sample_batch(std::int32_t wave, const Step& step, std::int64_t now);
  bool skip_batches(const Sampling::Mover& mover, const Step& step, std::int64_t now);
  void look_for_naps(std::int32_t place, std::int64_t now);
  void wake_naps(std::int32_t place, std::int64_t now);
  bool skip_loads(std::int32_t wave, const Step& step, std::int64_t now);
  void leave_out(int rank, const program::Span& span, bool write, const LeftOut& requests);
  void pass_over(const program::Span& span, std::int64_t begin, std::int64_t end, bool write,
                 std::int32_t cu, bool warms, LeftOut& out);
  void touch_lines(int rank, std::int64_t from, std::int64_t to, bool write, std::int32_t cu);
  bool dozes(std::int32_t wave, std::int64_t accepted_at, std::int64_t now, std::int64_t interval);
  void end_doze(std::int32_t wave, std::int64_t now);
  void sample(std::int64_t now);
  Sampled end_sampling();
  std::int64_t estimate_hops(const Counters& counted) const;
  void count_left_out(const Counters& counted, Result& result) const;
  // --- cores_trains.cc: packets of engines that go together
  std::int64_t packets_together(const EngineRun& engine, const Descriptor& descriptor,
                                std::int64_t offset, std::int64_t now) const;
  std::int64_t begin_train(Request& request, const Server& server, std::int64_t packets,
                           std::int64_t departure);
  void look_up_train(std::int32_t id, std::int64_t ready);
  std::int64_t train_through_memory(Request& request, std::int64_t now);

  /// What an instant of the simulation is estimated to be in the line engine, fs.
  std::int64_t estimate(std::int64_t time) const;
  void stretch(Attribution& spent, std::int64_t to) const;

  // --- cores_host.cc: streams, kernels; cores_engines.cc: proxies, engines; cores_copies.cc
  static int first_rank(int rank) { return rank; }
  void come_to(HostStep step, int rank, std::int32_t stream, std::int64_t now,
               const LatencyBreakdown& spent);
  void push_host(HostStep step, std::int64_t at, int rank, std::int32_t stream,
                 const LatencyBreakdown& spent);
  void start_work(int rank, std::int32_t stream, std::int64_t now, const LatencyBreakdown& spent);
  void make_groups(int rank);
  program::StreamOptions options_of(const KernelRun& kernel) const;
  const std::string& name_of_kernel(const KernelRun& kernel) const;
  void start_kernel(std::int32_t run, std::int64_t now);
  void dispatch(std::int32_t run, std::int64_t now);
  /// -1: none has room.
  std::int32_t find_cu(const RankState& rank, const machine::GpuModel& model,
                       const program::StreamOptions& stream, const program::Occupancy& block) const;
  void start_workgroup(KernelRun& run, std::int32_t group, std::int32_t cu, std::int64_t now);
  void workgroup_done(std::int32_t group, const LatencyBreakdown& spent, std::int64_t now);
  void kernel_maybe_done(std::int32_t run, const LatencyBreakdown& spent, std::int64_t now);
  void make_engines();
  void post(std::int32_t wave, const program::Primitive& primitive, std::int64_t now);
  void at_proxy(std::int32_t descriptor, std::int64_t now);
  void engine_start(std::int32_t engine, SendQueue& queue, std::int64_t now);
  void engine_inject(std::int32_t engine, SendQueue& queue, std::int64_t now);
  void burst_done(std::int32_t id, std::int64_t now);
  void inject_burst(std::int32_t engine, SendQueue& queue, std::int64_t together, std::int64_t now);
  void delivered(const Request& request, std::int64_t now);
  void finish(std::int32_t engine, std::int32_t descriptor, std::int64_t time);
  void posted_done(std::int32_t group, const LatencyBreakdown& spent, std::int64_t now);
  std::uint32_t tag_of_burst(const Descriptor& from, std::int32_t engine, int rank, int to) const;
  void turn_to_destination(Request& request);
  void look_up_burst(std::int32_t id, std::int64_t ready);
  void pass_empty(Request& request, std::int64_t now);
  void engine_done(std::int32_t engine, std::int32_t descriptor, std::int64_t now);
  std::int32_t make_flag(int source, program::SemaphoreId semaphore, const LatencyBreakdown& spent,
                         SpanId by);
  void flag_of_copy(const Descriptor& descriptor, const LatencyBreakdown& spent,
                    program::SemaphoreId id, std::int64_t now);
  std::int32_t engine_for(const Descriptor& descriptor) const;
  void find_before(const Descriptor& descriptor);
  void make_queue(int rank, std::int32_t stream, const program::StreamItem& item);
  void start_queue(std::int32_t queue, std::int64_t now, const LatencyBreakdown& spent);
  void next_of_queue(std::int32_t queue, std::int64_t now);
  void submit(std::int32_t queue, std::int64_t now);
  void queue_post(std::int32_t queue, std::int64_t now);
  std::int64_t by_host(std::int64_t now, std::int64_t time, LatencyBreakdown& spent);
  void queue_flag(const CopyQueue& queue, program::SemaphoreId id, std::int64_t now);
  bool queue_may_go_on(std::int32_t queue);
  void wake_queues(SemaphoreState& semaphore, const LatencyBreakdown& cause, SpanId by,
                   std::int64_t now);

  // --- cores_trace.cc: what a trace writer is told, where there is one
  bool tracing() const { return options_.trace != nullptr; }
  RequestSpans& spans_of(const Request& request);
  SpanId sender_of(const Request& request) {
    return tracing() && request.detail >= 0 ? spans_of(request).sender : 0;
  }
  SpanId span_of(Wave& wave);  ///< of the step that it is at
  void released(Wave& wave, SpanId by, std::int64_t at);
  void show_step(const Workgroup& group, const Step& step, std::int64_t now) const;
  void show_stream(int rank, std::int32_t stream, std::string_view name, std::int64_t begin,
                   std::int64_t end) const;

  std::int32_t line_of(std::int64_t address) const {
    return static_cast<std::int32_t>(address >> line_shift_);
  }
  /// What addresses [from, to) take, in whole sectors: bytes.
  std::int64_t in_sectors(std::int64_t from, std::int64_t to) const {
    return (((to + sector_ - 1) >> sector_shift_) - (from >> sector_shift_)) << sector_shift_;
  }
  std::int32_t flag_line(std::int32_t semaphore) const {
    return line_of(addresses_.end() + flag_spacing_ * static_cast<std::int64_t>(semaphore));
  }

  const machine::Machine& machine_;
  const program::Bound& program_;
  const Options& options_;
  std::vector<bool> watched_;  ///< by rank: of a recording or a replay
  Addresses addresses_;
  Fabric fabric_;
  LaunchLog launches_;
  Fold fold_;
  std::unique_ptr<Sampling> sampling_;  ///< null: everything is simulated
  std::vector<std::int32_t> dozing_;    ///< wavefronts, some of which doze
  std::int64_t polls_passed_ = 0;
  std::vector<std::int32_t> home_;  ///< by rank: the one that stands for it
  Pool<Request> requests_;
  Pool<Detail> details_;
  std::vector<GpuState> gpus_;
  std::vector<RankState> ranks_;
  std::vector<KernelRun> kernels_;
  std::vector<Workgroup> groups_;
  std::vector<Wave> waves_;
  PeerWaits peer_waits_;
  Pool<LatencyBreakdown> kept_;  ///< attributions that events carry
  std::vector<EngineRun> engines_;
  std::vector<std::int32_t> first_engine_;  ///< by rank
  std::vector<std::int32_t> nic_engine_;    ///< by node: its engine, or -1
  Pool<Descriptor> descriptors_;
  std::deque<CopyQueue> queues_;
  std::int64_t host_free_ = 0;  ///< Options::one_host: of its thread, as far as copies keep it busy
  std::int64_t line_size_ = 128;
  std::int64_t sector_ = 32;
  int line_shift_ = 7, sector_shift_ = 5;  ///< both are powers of two
  std::int32_t barrier_base_ = 0;          ///< semaphores of device barriers
  std::int64_t flag_spacing_ = 8;
  bool uncached_ = false, monitors_ = false;  ///< flags of some rank, waits of some rank
  MulticastPlanes planes_{machine_, program_};
  int repetitions_ = 1;
  std::atomic<int> ranks_done_ = 0;
  int ranks_to_end_ = 0;
  std::int64_t now_ = 0;
  std::int64_t quiet_ = 0;  ///< events since nothing but polls is under way
  Tallies tallies_;
  SpanId spans_ = 0;                         ///< of a trace: named so far
  std::vector<RequestSpans> request_spans_;  ///< by detail
};

}  // namespace hemiola::sim

// The fluid engine: transfers are flows that share bandwidth max-min fairly, for screening.
// docs/fluid.md says what it models and what it leaves out.
//
// One agent stands for a class of workgroups that behave alike (classes.h): it walks its primitives
// in order; a move is a flow with the latency of one request around it, everything else takes its
// unloaded time. Events are few: one or two for each primitive of each class.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "machine/machine.h"
#include "program/bind/bound.h"
#include "program/walk/cursor.h"
#include "sim/alike/classes.h"
#include "sim/fluid/shares.h"
#include "sim/fluid/tile_reuse.h"
#include "sim/fluid/unit_shares.h"
#include "sim/fluid/ways.h"
#include "sim/model/engines.h"
#include "sim/model/power_budget.h"
#include "sim/model/streams.h"
#include "sim/result/launches.h"
#include "sim/result/options.h"
#include "sim/result/result.h"
#include "sim/support/pool.h"

namespace hemiola::sim {

/// A compute unit, of which resident workgroups take parts.
inline constexpr std::int64_t kRoomOfUnit = 1 << 20;

class Fluid {
  friend HostStreams<Fluid, Attribution>;

 public:
  /// Keeps references to all three; options that would be gone when it runs are refused.
  Fluid(const machine::Machine& machine, const program::Bound& program, const Options& options,
        AlikeBy by);
  Fluid(const machine::Machine&, const program::Bound&, const Options&&, AlikeBy) = delete;
  Fluid(const Fluid&) = delete;
  Fluid& operator=(const Fluid&) = delete;

  /// Times, ends and attributions of all ranks; links and counters are left to count_requests().
  /// Nothing if a wait cannot end in classes: to be asked again unfolded, which then throws.
  std::optional<Result> run();
  const Classes& fold() const { return fold_; }

 private:
  enum class Kind : std::uint8_t {
    repeat,    ///< a: class of ranks
    item,      ///< a: class of ranks, b: stream; its next item may start
    finished,  ///< a: class of ranks, b: stream; its present item is over
    wake,      ///< a: agent; b = 1: if it waits for packets
    depart,    ///< a: signal; its flag leaves
    arrive,    ///< a: signal; its flag is there
    proxy,     ///< a: descriptor; its engine may have it
    transfer,  ///< a: engine; the descriptor in front starts to move
    done,      ///< a: descriptor; all of it is acknowledged
    computed,  ///< a: agent; its oldest step
  };
  struct Event {
    std::int64_t time;
    std::uint64_t sequence;
    Kind kind;
    std::int32_t a, b;
    std::int32_t kept;  ///< attribution, or -1
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : sequence > other.sequence;
    }
  };
  enum class Blocked : std::uint8_t {
    no,
    flow,     ///< of a move
    time,     ///< an event wakes it
    flags,    ///< semaphores
    packets,  ///< that nobody has begun to send, or not all of which are there
    room,     ///< until flows that it left behind are over
    flush,
    steps,  ///< a place for operands, or the end of all computes
    over
  };
  struct ProductStep {
    std::int64_t time = 0, sustained = 0;
    Moment ready;  ///< its operands are there, and it is posted; then: it is computed
    std::int32_t flows = 0;
    bool posted = false, started = false;
  };
  /// A class of workgroups or copy queues.
  struct Walker {
    std::int32_t number = 0;  ///< of the class
    Agent agent{};
    std::int32_t rank_class = 0;
    std::int64_t members = 1, per_rank = 1;
    std::int64_t room = 0;  ///< of compute units, taken on each rank; kRoomOfUnit: one of them
    std::unique_ptr<program::Cursor> cursor;
    program::Primitive present;  ///< where it is, if `loaded`
    bool loaded = false;
    std::deque<program::Primitive> pending;  ///< parts of a barrier, or what was looked at ahead
    // A tile: a compute whose steps are taken together, present or pending.
    program::ComputeSteps tile;
    bool draws_power = false;  ///< its present tile is one of RankState::tiles_of_products
    bool tiled = false;        ///< `tile` is the present or the pending compute
    std::size_t tiles = 0;     ///< before it, in this repetition
    std::int64_t filling = 0;  ///< before its first step, and behind its last operand
    Blocked blocked = Blocked::over;
    int stage = 0;  ///< of the present primitive
    Moment at;      ///< how far it has got; not before the time of the run while it sleeps
    std::int64_t dispatched = 0;
    std::int64_t op_began = -1;
    std::int32_t last_op = -1;
    std::int64_t waves = 1, movers = 1, grain = 16, unroll = 1;
    UnitShare unit;
    std::int64_t sharing = 1;       ///< blocks on its compute unit; of products, when a tile begins
    std::int64_t most_sharing = 1;  ///< that it has room for
    bool has_products = false;
    bool results_stay = false;  ///< the present move stores results, which the L2 takes
    std::int32_t cu = 0;
    bool posts_apart = false, bare = false;
    // Moves.
    program::Span recent;           ///< of own memory, which the last move read alone
    std::int64_t recent_bytes = 0;  ///< of it; 0: none, or something was acquired since
    enum class Again { no, in_l2, in_l1 } again = Again::no;  ///< the present move reads it again
    std::int64_t batches = 1, began = 0;                      ///< of the present move
    Latency batch{};
    std::int64_t code_ready = 0;
    bool fetched = false;
    std::vector<std::int32_t> behind;    ///< flows that it did not wait for
    std::int64_t leaves = 0, limit = 0;  ///< of the present move: bytes for such a flow; its rate
    Moment acknowledged;                 ///< the last of its stores
    Moment poster;                       ///< the wavefront that only signals
    // Waits.
    std::int64_t wait_began = 0;
    std::uint32_t wait_number = 0;
    std::vector<bool> seen;
    // Descriptors.
    std::int64_t posted = 0, posted_done = 0;
    // Copies of a queue: those of the present submission so far; whether there were some.
    std::vector<CopyLeg> legs;
    bool copied = false;
    // Computes.
    std::deque<ProductStep> steps;
    std::int32_t first_step = 0;
    std::vector<std::int64_t> barrier_rounds;
  };
  struct Signal {
    std::int32_t agent = -1;  ///< a workgroup that sent it; its kernel ends when it is acknowledged
    std::int32_t from = 0;
    program::SemaphoreId id{};
    std::int64_t increment = 1;
    std::int64_t members = 1;
    Attribution spent{};
  };
  struct SemaphoreState {
    std::int64_t value = 0;
    std::vector<std::pair<std::int32_t, std::uint32_t>> waiting;  ///< agents, and which wait
  };
  struct Descriptor {
    std::int32_t agent = 0;
    std::int32_t rank = 0, from = 0, to = 0;
    std::int64_t bytes = 0, members = 1;
    std::int64_t began = 0;
    bool remote = false, queue = false;
    std::vector<CopyLeg> legs;  ///< of a queue; one command after the other
    std::size_t leg = 0;        ///< the first of the present command
    std::int64_t run = 0;       ///< bytes of a row
    std::int64_t start = -1;    ///< latency before the first byte; -1: the engine's own
    // A message: how many of them a NIC has of it; bytes that left it, that arrived, of its flow.
    std::int64_t per_nic = 1, injected = 0, arrived = 0, part = 0;
    std::size_t pair = 0;  ///< ... and its queue pair
    std::vector<program::SemaphoreId> semaphores;
    Attribution spent{};
  };
  /// Of a message, as much as a NIC sends at once.
  struct Part {
    std::int32_t descriptor = 0;
    std::int64_t bytes = 0;
  };
  /// Messages of a NIC to one rank, which arrive one after the other.
  struct QueuePair {
    int to = 0;
    bool under_way = false;      ///< a flow is
    bool waits = false;          ///< its window is full
    std::deque<Part> behind{};   ///< parts that left the NIC and wait for that flow
    std::int64_t in_flight = 0;  ///< bytes of both
  };
  struct Engine {
    std::int32_t rank_class = 0;
    std::deque<std::int32_t> queue;
    bool active = false, nic = false;
    // A NIC: its own port is free again at `free`, while parts may still be on their way.
    std::vector<QueuePair> pairs{};
    std::int64_t free = 0;
    std::int64_t burst = 0, packet = 0, outstanding = 0, start = 0, end = 0, row = 0;
    Rate rate{};
    Reason reason = Reason::dma;
    Attribution spent{};
  };
  struct Kernel {
    std::vector<std::int32_t> agents;
    std::size_t next = 0;
    std::int64_t left = 0;   ///< agents that have not ended, and flags not acknowledged
    std::int64_t began = 0;  ///< start of the kernel
    Moment end;              ///< of the last agent and its stores
    Attribution spent{};
  };
  struct Stream : StreamPlace {
    std::int64_t room_used = 0;            ///< of compute units, by its workgroups
    std::vector<Kernel> kernels;           ///< by item
    std::vector<std::int32_t> copy_agent;  ///< by item, or -1
  };
  struct RankState {
    std::vector<Stream> streams;
    StreamEvents events;
    std::int64_t blocks_of_products = 0;   ///< on its compute units, times kRoomOfUnit
    std::int64_t written_back = 0;         ///< bytes of results in the L2 on their way to memory
    std::vector<std::int64_t> units_free;  ///< matrix units, by CU
    PowerBudget power;
    std::int64_t tiles_of_products = 0;  ///< under way
    std::int64_t room = 0;               ///< of compute units, that nobody has taken
    std::vector<std::pair<std::int32_t, std::int32_t>> blocked;  ///< kernels (stream, item)
    std::int32_t streams_done = 0, repetition = 0;
    std::int64_t launched = 0, started = 0, end = -1, warm_end = 0;
    std::int64_t code_fetches = 0, proxy_free = 0;
    program::Totals totals;  ///< of a job: counts of launches that are over
    Attribution spent{};
  };
  /// A move that its agent did not wait for.
  struct Behind {
    std::int32_t agent = 0;
    program::Primitive primitive;
    std::int32_t flow = 0;
    Latency batch{};
  };
  enum class FlowKind : std::uint8_t { move, behind, flag, transfer, operand, tile, write_back };
  struct FlowUse {
    FlowKind kind = FlowKind::move;
    std::int32_t a = 0, b = 0;
    Attribution spent{};  ///< at its start
  };
  /// Packets that are on their way or there.
  struct Packets {
    std::int64_t end = 0;
    Moment first, last{-1};  ///< arrival of the first byte; of the last one, or -1
  };
  struct PacketSpace {
    std::map<std::int64_t, std::map<std::int64_t, Packets>> by_flag;  ///< flag, begin
    std::vector<std::int32_t> waiting;
  };

  // --- fluid.cc: agents, events
  void push(std::int64_t time, Kind kind, std::int32_t a, std::int32_t b = 0,
            const Attribution* spent = nullptr);
  void handle(const Event& event);
  std::int32_t start_flow(FlowKind kind, std::int32_t a, std::int32_t b, std::int64_t bytes,
                          std::int64_t limit, Reason reason, const Attribution& spent,
                          const LoadWindow& window = {}, std::int64_t part = kEvenPart);
  void flow_over(std::int32_t flow, const Attribution& charged, std::int64_t now);
  void make_agents();
  Result result() const;
  [[noreturn]] void report_deadlock() const;

  // --- fluid/streams.cc: streams, kernels
  void start();
  int first_rank(std::int32_t rank) const { return fold_.first_rank(rank); }
  void come_to(HostStep step, std::int32_t rank, std::int32_t stream, std::int64_t now,
               const Attribution& spent);
  void push_host(HostStep step, std::int64_t at, std::int32_t rank, std::int32_t stream,
                 const Attribution& spent);
  void start_work(std::int32_t rank, std::int32_t stream, std::int64_t now,
                  const Attribution& spent);
  void start_kernel(std::int32_t rank, std::int32_t stream, std::int64_t now,
                    const Attribution& spent);
  void dispatch(std::int32_t rank, std::int32_t stream, std::int32_t item, std::int64_t now);
  void agent_over(std::int32_t agent);
  void begin(Walker& walker);
  bool has_part(std::int32_t rank, std::int32_t stream, const Walker& walker) const;
  void take_room(const Walker& walker, std::int64_t sign);
  void give_room(const Walker& walker);
  /// One of those for whose end the kernel of an agent waits.
  void part_over(const Walker& walker, const Moment& end);
  /// All of it is over: its stream goes on.
  void end_kernel(std::int32_t rank, std::int32_t stream, Moment end);
  /// Of a workgroup: among all of its rank, as the other engines count.
  int number_in_rank(const Agent& agent) const;
  /// To the trace, if there is one.
  void show_stream(std::int32_t rank, std::int32_t stream, std::string_view name,
                   std::int64_t begin, std::int64_t end) const;

  // --- fluid/agents.cc: primitives
  void advance(std::int32_t agent);
  bool interpret(std::int32_t agent);
  bool interpret_copy(std::int32_t agent);
  bool fetch(Walker& walker);  ///< the next primitive; false at the end
  bool next(Walker& walker, program::Primitive& primitive);
  const program::Primitive* peek(Walker& walker);  ///< the one behind the present one
  void pass(Walker& walker);
  void overhead(Walker& walker, const program::Primitive& primitive);
  /// Wakes it at its own time; true if that is now.
  bool is_now(std::int32_t agent);
  void wake(std::int32_t agent);
  template <typename Work>
  void by_poster(Walker& walker, Work work);
  void release(Walker& walker, bool system_scope);
  void signal(Walker& walker, const program::Primitive& primitive);
  void send(std::int32_t agent, int from, program::SemaphoreId id, std::int64_t increment,
            std::int64_t members, const Moment& at);
  void depart(std::int32_t signal, std::int64_t now);
  void arrive(std::int32_t signal, std::int64_t now);
  void add_to(std::int32_t semaphore, std::int64_t increment, std::int64_t now,
              const Attribution& spent);
  bool wait(std::int32_t agent);
  bool look(Walker& walker, const program::Primitive& primitive);
  void seen(Walker& walker, std::int64_t now, const Attribution& cause);
  std::int32_t semaphore_class(program::SemaphoreId id) const;
  std::int64_t semaphores_in(program::SemaphoreId id) const;

  // --- fluid/moves.cc: moves and packets
  bool move(std::int32_t agent);
  bool begin_move(std::int32_t agent);
  bool end_move(std::int32_t agent);
  /// Whether a move reads what the one before it has read, and from where: Walker::again.
  void look_again(Walker& walker, const program::Primitive& primitive) const;
  /// Data bytes of an instruction of a wavefront.
  std::int64_t wave_of(const Walker& walker, const program::Primitive& primitive) const;
  /// Of all members of its class.
  Slices slices_of(const Walker& walker, const program::Primitive& primitive) const;
  /// Of the loads of a batch or step: the longest is waited for, for the mean they keep their
  /// slots.
  struct LoadLatency {
    Latency longest;
    std::int64_t mean_fs = 0;
  };
  /// What a primitive takes of all resources, into demands_.
  LoadLatency demands_of(const Walker& walker, const program::Primitive& primitive, bool operands);
  /// What a unit of work moves through its compute unit: bytes of the flow, and of memory in and
  /// out; requests.
  struct Moved {
    std::int64_t bytes = 0, in = 0, out = 0, from_peers = 0, to_peers = 0, loads = 0, stores = 0;
    std::int64_t sources = 1;  ///< that are reduced
    DataType type = DataType::float32;
  };
  Moved moved_by(const Walker& walker, const program::Primitive& primitive) const;
  /// `load_fs`: for how long a load keeps its slot.
  std::int64_t limit_of(const Walker& walker, const Moved& moved, std::int64_t load_fs) const;
  LoadWindow window_of(const Walker& walker) const;
  bool runs_ahead(Walker& walker);
  bool leave_behind(std::int32_t agent);
  std::int64_t room_for(const Walker& walker) const;
  std::int64_t ahead_of(const Walker& walker) const;
  bool has_room(std::int32_t agent);
  void moved_behind(std::int32_t behind, const Attribution& spent, std::int64_t now);
  void stored(Walker& walker, const program::Primitive& primitive, const Moment& issued);
  std::uint64_t packet_space(const program::Span& span) const;
  /// Whether packets that a move needs have begun to arrive (or all have): the last; null: none.
  bool arrived(std::int32_t agent, bool whole, const Moment*& last);
  void announce(int rank, const program::Primitive& primitive, bool whole, const Moment& issued);

  // --- fluid/computes.cc
  bool compute(std::int32_t agent);
  void post_operand(std::int32_t agent);
  void operand_loaded(std::int32_t agent, std::int32_t step, const Attribution& spent,
                      std::int64_t now);
  void start_computes(std::int32_t agent, std::int64_t now);
  void computed(std::int32_t agent, std::int64_t now);
  ProductStep& open_step(Walker& walker);
  std::int64_t limit_power(Walker& walker, const ProductStep& step, std::int64_t now);
  std::int64_t stages(const Walker& walker) const;

  // --- fluid/tiles.cc
  bool tile(std::int32_t agent);
  bool begin_tile(std::int32_t agent);
  void end_run(Walker& walker);
  std::int64_t rest_of_run(const Walker& walker) const;
  Moved moved_by_tile(const Walker& walker) const;
  LoadLatency demands_of_tile(const Walker& walker, const Moved& moved);
  std::int64_t through_power(Walker& walker, std::int64_t time, std::int64_t sustained);
  bool stay_in_l2(const Walker& walker, const program::Primitive& results) const;
  void write_back(const Walker& walker, const program::Primitive& results);
  void share_unit(Walker& walker) const;
  std::int64_t use_units(Walker& walker, std::int64_t time, std::int64_t now);
  Kernel& kernel_of(const Walker& walker) {
    return ranks_[index(walker.rank_class)]
        .streams[index(walker.agent.stream)]
        .kernels[index(walker.agent.item)];
  }

  // --- fluid/engines.cc: proxies, copy engines, NICs
  void post(Walker& walker, std::int32_t agent);
  void queue_copy(std::int32_t agent);
  std::int32_t make_descriptor(std::int32_t agent, bool queue);
  std::int32_t engine_for(const Descriptor& descriptor);
  void to_engine(std::int32_t descriptor, std::int64_t now);
  void start_transfer(std::int32_t engine, std::int64_t now);
  void begin_transfer(std::int32_t engine, std::int64_t now);
  void send_messages(std::int32_t nic, std::int64_t now);
  std::deque<std::int32_t>::iterator next_message(Engine& nic) const;
  std::int64_t bytes_of(const Descriptor& message) const;
  std::int64_t next_part(const Engine& nic, const Descriptor& message) const;
  void start_transfer_flow(std::int32_t engine, std::int32_t descriptor, const Attribution& spent);
  void part_arrived(std::int32_t nic, const Descriptor& message, const Attribution& spent,
                    std::int64_t now);
  std::int64_t by_host(std::int64_t now, std::int64_t time, Attribution& spent);
  std::int64_t part_of_engine(const Engine& engine) const;
  std::int64_t rate_limit(const Engine& engine, std::int64_t run, std::int64_t back) const;
  void transferred(std::int32_t engine, std::int32_t descriptor, const Attribution& spent,
                   std::int64_t now);
  void descriptor_done(std::int32_t descriptor, std::int64_t now);

  const machine::Machine& machine_;
  const program::Bound& program_;
  const Options& options_;
  Classes fold_;
  Shares shares_;
  Ways ways_;
  TileReuse reuse_;
  std::vector<std::int32_t> matrix_units_;  ///< resources by class of ranks, of tiles
  LaunchLog launches_;
  std::vector<Walker> walkers_;
  std::vector<RankState> ranks_;  ///< by class
  std::vector<SemaphoreState> semaphores_;
  std::unordered_map<std::uint64_t, PacketSpace> packets_;
  std::vector<FlowUse> flows_;
  static constexpr std::size_t kFew = 1 << 10;
  Pool<Signal, kFew> signals_;
  Pool<Descriptor, kFew> descriptors_;
  Pool<Behind, kFew> behind_;
  std::int64_t host_free_ = 0;  ///< Options::one_host: of its thread
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> engine_of_;
  std::deque<Engine> engines_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Pool<Attribution, kFew> kept_;
  std::uint64_t sequence_ = 0;
  std::vector<Demand> demands_;
  int repetitions_ = 1;
  std::int32_t barrier_base_ = 0;
  std::int32_t ranks_done_ = 0;
  std::int64_t now_ = 0;
};

}  // namespace hemiola::sim

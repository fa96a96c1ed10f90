// Jobs into bound programs: who shares what memory, and the streams of every rank.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/index.h"
#include "machine/machine.h"
#include "program/jobs/job.h"
#include "program/jobs/layout.h"

namespace hemiola::program {
namespace {

using Numbers = std::vector<std::int32_t>;

bool is_of_caller(BufferKind kind) {
  return kind == BufferKind::input || kind == BufferKind::output || kind == BufferKind::resident;
}

class Linker {
 public:
  Linker(std::shared_ptr<const Job> job, const machine::SharedMachine& machine)
      : job_(*job),
        machine_(machine),
        order_(job_, machine->ranks()),
        parts_(parts_of(job_, machine)),
        part_of_(part_of_launches(parts_, job_.launches.size())),
        shared_by_rank_(index(machine->ranks())) {
    linked_.job = std::move(job);
    tables_.name = job_.name;
    tables_.source = job_.source;
    tables_.format = "job";
    tables_.ranks = machine->ranks();
  }

  Bound run() {
    Diagnostics warnings;
    for (JobPart& part : parts_) {
      add_code(part.bound);
      part.first_body = code_base_.at(part.bound.frame().program.get()).second;
      warnings.append(part.bound.warnings());
    }
    first_frame_.resize(job_.launches.size());
    for (const std::int32_t launch : order_.sequence()) place(launch);
    for (Frame& frame : linked_.frames) frame.calls = calls_[index(instance_of_frame(frame))];
    write_streams();
    name_launches();
    linked_.parts = std::make_shared<const std::vector<JobPart>>(std::move(parts_));
    linked_.tables = std::make_shared<const Program>(std::move(tables_));
    return {std::make_shared<const Linked>(std::move(linked_)), machine_, std::move(warnings)};
  }

 private:
  /// Semaphores, barriers and library memory with the same numbers on all ranks that have them.
  struct Slot {
    Numbers buffers;  ///< by own buffer; -1: the caller's
    std::int32_t first_semaphore = 0, first_barrier = 0;
  };
  /// Calls that share a slot on the same ranks.
  struct Instance {
    std::int32_t slot = 0, first_group = 0, last_launch = 0;
  };

  const Bound& bound_of(std::int32_t launch) const {
    return parts_[index(part_of_[index(launch)])].bound;
  }

  // --- Code: kernels and bodies of each program once.

  void add_code(const Bound& bound) {
    const Program* program = bound.frame().program.get();
    if (code_base_.contains(program)) return;
    const auto bodies = static_cast<std::int32_t>(tables_.bodies.size());
    code_base_[program] = {static_cast<std::int32_t>(tables_.kernels.size()), bodies};
    tables_.bodies.insert(tables_.bodies.end(), program->bodies.begin(), program->bodies.end());
    for (Kernel kernel : program->kernels) {
      for (std::int32_t& body : kernel.bodies) body += bodies;
      tables_.kernels.push_back(std::move(kernel));
    }
  }

  // --- Frames: which memory and semaphores a launch has.

  void place(std::int32_t number) {
    const Launch& launch = job_.launches[index(number)];
    first_frame_[index(number)] = static_cast<std::int32_t>(linked_.frames.size());
    if (!launch.alone) return add_frame(number, launch.ranks);
    for (const int rank : launch.ranks) add_frame(number, {rank});
  }

  void add_frame(std::int32_t number, const std::vector<int>& ranks) {
    // Callers' memory comes first, as it does in a program that is alone: addresses are the same.
    const Callers callers = callers_for(number, ranks);
    const std::int32_t at = instance_for(number, ranks);
    const Instance& instance = instances_[index(at)];
    Frame frame = bound_of(number).frame();
    frame.launch = number;
    frame.ranks = shared_ranks(ranks);
    frame.buffers = buffers_for(number, callers, instance.slot);
    frame.first_semaphore = slots_[index(instance.slot)].first_semaphore;
    frame.first_barrier = slots_[index(instance.slot)].first_barrier;
    frame.first_group = instance.first_group;
    frame.call = calls_[index(at)]++;
    instance_of_.push_back(at);
    linked_.frames.push_back(std::move(frame));
  }

  std::int32_t instance_of_frame(const Frame& frame) const {
    return instance_of_[index(&frame - linked_.frames.data())];
  }

  std::shared_ptr<const Numbers> shared_ranks(const std::vector<int>& ranks) {
    std::shared_ptr<const Numbers>& known = rank_lists_[ranks];
    if (known == nullptr) known = std::make_shared<const Numbers>(ranks.begin(), ranks.end());
    return known;
  }

  std::uint64_t layout_of(std::int32_t number) {
    const std::int32_t part = part_of_[index(number)];
    const auto [known, is_new] = layouts_.try_emplace(part, 0);
    if (is_new) known->second = shared_layout(bound_of(number));
    return known->second;
  }

  /// One whose calls are over before this launch begins, or a new one.
  std::int32_t instance_for(std::int32_t number, const std::vector<int>& ranks) {
    const Launch& launch = job_.launches[index(number)];
    const std::uint64_t layout = layout_of(number);
    Numbers& candidates = by_communicator_[{launch.communicator, ranks, layout}];
    for (const std::int32_t candidate : candidates) {
      Instance& instance = instances_[index(candidate)];
      const bool is_over = std::ranges::all_of(
          ranks, [&](int rank) { return order_.is_before_on(rank, instance.last_launch, number); });
      if (!is_over) continue;
      instance.last_launch = number;
      grow_shared(bound_of(number), slots_[index(instance.slot)]);
      return candidate;
    }
    Instance instance{.slot = slot_for(number, ranks, layout),
                      .first_group = static_cast<std::int32_t>(tables_.groups.size()),
                      .last_launch = number};
    for (const std::vector<int>& group : bound_of(number).groups()) {
      std::vector<int> members;
      for (const int own : group) members.push_back(ranks[index(own)]);
      tables_.groups.push_back(std::move(members));
    }
    candidates.push_back(static_cast<std::int32_t>(instances_.size()));
    instances_.push_back(instance);
    calls_.push_back(0);
    return candidates.back();
  }

  /// Instances of one layout on ranks that none of them share have the same numbers.
  std::int32_t slot_for(std::int32_t number, const std::vector<int>& ranks, std::uint64_t layout) {
    const std::int32_t ordinal = next_on(layout, ranks);
    Numbers& slots = slots_by_layout_[layout];
    if (ordinal == std::ssize(slots)) {
      slots.push_back(static_cast<std::int32_t>(slots_.size()));
      add_slot(bound_of(number));
    } else {
      grow_shared(bound_of(number), slots_[index(slots[index(ordinal)])]);
    }
    return slots[index(ordinal)];
  }

  /// How many of a kind some of the ranks have, which all have one more then.
  std::int32_t next_on(std::uint64_t kind, const std::vector<int>& ranks) {
    std::int32_t next = 0;
    for (const int rank : ranks) next = std::max(next, shared_by_rank_[index(rank)][kind]);
    for (const int rank : ranks) shared_by_rank_[index(rank)][kind] = next + 1;
    return next;
  }

  void add_slot(const Bound& bound) {
    const Program& program = bound.program();
    Slot slot{.buffers = {},
              .first_semaphore = static_cast<std::int32_t>(tables_.semaphores.size()),
              .first_barrier = tables_.barriers};
    for (Semaphore semaphore : program.semaphores) {
      semaphore.name += " of " + program.name;
      tables_.semaphores.push_back(std::move(semaphore));
    }
    tables_.barriers += program.barriers;
    slot.buffers.assign(program.buffers.size(), -1);
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
      const Buffer& buffer = program.buffers[b];
      if (is_of_caller(buffer.kind) || buffer.alias >= 0) continue;
      slot.buffers[b] = add_buffer(bound, static_cast<std::int32_t>(b), program.name);
    }
    for (std::int32_t i = 0; i < program.inbound; ++i)
      linked_.tail_of[index(slot.buffers[index(program.fifo_buffer(i))])] =
          slot.first_semaphore + program.tail_semaphore(i);
    slots_.push_back(std::move(slot));
  }

  static std::int64_t most_bytes(const Bound& bound, std::int32_t buffer) {
    std::int64_t most = 0;
    for (int rank = 0; rank < bound.ranks(); ++rank)
      most = std::max(most, bound.memory_bytes(buffer, rank));
    return most;
  }

  std::int32_t add_buffer(const Bound& bound, std::int32_t own, const std::string& of) {
    Buffer buffer = bound.buffers()[index(own)];
    buffer.name += " of " + of;
    buffer.chunks = {1};
    buffer.bytes = {most_bytes(bound, own)};
    buffer.chunk_limit = {};
    tables_.buffers.push_back(std::move(buffer));
    linked_.tail_of.push_back(-1);
    return static_cast<std::int32_t>(tables_.buffers.size()) - 1;
  }

  void grow(const Bound& bound, std::int32_t own, std::int32_t whole) {
    Bytes& bytes = tables_.buffers[index(whole)].bytes;
    bytes = std::max(bytes, Bytes{most_bytes(bound, own)});
  }
  void grow_shared(const Bound& bound, const Slot& slot) {
    for (std::size_t b = 0; b < slot.buffers.size(); ++b)
      if (slot.buffers[b] >= 0) grow(bound, static_cast<std::int32_t>(b), slot.buffers[b]);
  }

  /// By own buffer, the caller's buffer of the whole, or -1. Those of one part have the same
  /// numbers on all ranks, launch by launch.
  struct Callers {
    std::int32_t ordinal = 0;
    Numbers buffers;
  };

  Callers callers_for(std::int32_t number, const std::vector<int>& ranks) {
    const Launch& launch = job_.launches[index(number)];
    const Bound& bound = bound_of(number);
    const std::int32_t part = part_of_[index(number)];
    Callers callers{next_on(kCallers + static_cast<std::uint64_t>(part), ranks),
                    Numbers(bound.buffers().size(), -1)};
    for (std::size_t b = 0; b < callers.buffers.size(); ++b) {
      const Buffer& buffer = bound.buffers()[b];
      const auto own = static_cast<std::int32_t>(b);
      if (!is_of_caller(buffer.kind) || buffer.alias >= 0) continue;
      callers.buffers[b] = named_memory(launch, bound, own);
      if (callers.buffers[b] >= 0) continue;
      std::int32_t& there = callers_.try_emplace({part, callers.ordinal, own}, -1).first->second;
      if (there < 0) there = add_buffer(bound, own, launch.name);
      callers.buffers[b] = there;
    }
    check_memory_names(launch, bound);
    return callers;
  }

  /// All of them by own buffer, of the whole.
  std::shared_ptr<const Numbers> buffers_for(std::int32_t number, const Callers& callers,
                                             std::int32_t slot) {
    const bool has_names = !job_.launches[index(number)].memory.empty();
    std::shared_ptr<const Numbers>& known =
        buffer_lists_[{part_of_[index(number)], callers.ordinal, slot}];
    if (known != nullptr && !has_names) return known;
    Numbers buffers = slots_[index(slot)].buffers;
    for (std::size_t b = 0; b < buffers.size(); ++b)
      if (callers.buffers[b] >= 0) buffers[b] = callers.buffers[b];
    auto made = std::make_shared<const Numbers>(std::move(buffers));
    if (!has_names) known = made;
    return made;
  }

  /// -1: it has no name in the job.
  std::int32_t named_memory(const Launch& launch, const Bound& bound, std::int32_t own) {
    for (const auto& [buffer, name] : launch.memory) {
      if (buffer != bound.buffers()[index(own)].name) continue;
      const auto [known, is_new] = memory_.try_emplace(name, -1);
      if (is_new) {
        known->second = add_buffer(bound, own, launch.name);
        tables_.buffers.back().name = name;
      }
      grow(bound, own, known->second);
      return known->second;
    }
    return -1;
  }

  static void check_memory_names(const Launch& launch, const Bound& bound) {
    for (const auto& [buffer, name] : launch.memory) {
      std::string known;
      const bool is_there = std::ranges::any_of(bound.buffers(), [&](const Buffer& other) {
        if (!is_of_caller(other.kind) || other.alias >= 0) return false;
        known += (known.empty() ? "" : ", ") + other.name;
        return other.name == buffer;
      });
      if (!is_there)
        throw Failure(fmt::format("launch '{}': {} has no memory '{}' of its caller", launch.name,
                                  bound.name(), buffer),
                      launch.where, "it has: " + known);
    }
  }

  // --- Streams.

  /// Launches that others on another stream of some rank wait for.
  std::set<std::int32_t> recorded() const {
    std::set<std::int32_t> result;
    for (const Launch& launch : job_.launches)
      for (const std::int32_t other : launch.after)
        if (job_.launches[index(other)].stream != launch.stream) result.insert(other);
    return result;
  }

  void write_streams() {
    const std::set<std::int32_t> recorded = this->recorded();
    for (int rank = 0; rank < tables_.ranks; ++rank) {
      RankWriter writer(*this, rank);
      for (const std::int32_t launch : order_.of_rank(rank))
        writer.write(launch, recorded.contains(launch));
      tables_.code_of.push_back(static_cast<std::int32_t>(tables_.codes.size()));
      tables_.codes.push_back(std::move(writer.code));
    }
  }

  /// A frame's own number of a rank.
  std::pair<std::int32_t, int> frame_on(std::int32_t number, int rank) const {
    const Launch& launch = job_.launches[index(number)];
    const auto own = static_cast<int>(std::ranges::find(launch.ranks, rank) - launch.ranks.begin());
    const std::int32_t first = first_frame_[index(number)];
    return launch.alone ? std::pair(first + own, 0) : std::pair(first, own);
  }

  struct RankWriter {
    RankWriter(const Linker& linker_of, int rank_of) : linker(linker_of), rank(rank_of) {
      for (const std::string& name : linker.order_.streams_of(rank)) add_stream(name);
    }

    std::size_t add_stream(const std::string& name) {
      const auto given = linker.job_.streams.find(name);
      code.options.push_back(given == linker.job_.streams.end() ? StreamOptions{} : given->second);
      code.streams.emplace_back();
      return code.streams.size() - 1;
    }

    void write(std::int32_t number, bool is_recorded) {
      const Launch& launch = linker.job_.launches[index(number)];
      const std::vector<std::string>& names = linker.order_.streams_of(rank);
      const auto main = index(std::ranges::find(names, launch.stream) - names.begin());
      for (const std::int32_t other : launch.after) {
        const auto event = events.find(other);
        if (event != events.end() && linker.job_.launches[index(other)].stream != launch.stream)
          add(main, {.kind = StreamItem::Kind::event_wait, .index = event->second});
      }
      if (launch.at.fs > 0) add(main, {.kind = StreamItem::Kind::until, .duration = launch.at});
      const std::int32_t frame = linker.frame_on(number, rank).first;
      add(main, {.kind = StreamItem::Kind::launch_begin, .frame = frame});
      write_program(number, main);
      add(main, {.kind = StreamItem::Kind::launch_end, .frame = frame});
      if (!is_recorded) return;
      events[number] = next_event;
      add(main, {.kind = StreamItem::Kind::event_record, .index = next_event++});
    }

    // A program's first stream is the launch's; its others begin and end with that.
    void write_program(std::int32_t number, std::size_t main) {
      const auto [frame, own] = linker.frame_on(number, rank);
      const Program& program = *linker.linked_.frames[index(frame)].program;
      const auto [kernels, bodies] = linker.code_base_.at(&program);
      const std::vector<Stream>& streams =
          program.codes[index(program.code_of[index(own)])].streams;
      const std::int32_t first_event = next_event;
      for (const Stream& stream : streams)
        for (const StreamItem& item : stream)
          if (is_event(item)) next_event = std::max(next_event, first_event + item.index + 1);
      const std::int32_t fork = next_event;
      if (streams.size() > 1) {
        add(main, {.kind = StreamItem::Kind::event_record, .index = fork});
        next_event += static_cast<std::int32_t>(streams.size());
      }
      for (std::size_t s = 0; s < streams.size(); ++s) {
        const std::size_t into = s == 0 ? main : further(main, s);
        if (s > 0) add(into, {.kind = StreamItem::Kind::event_wait, .index = fork});
        for (StreamItem item : streams[s]) {
          item.frame = frame;
          if (item.kind == StreamItem::Kind::kernel) item.index += kernels;
          if (item.kind == StreamItem::Kind::engine) item.index += bodies;
          if (is_event(item)) item.index += first_event;
          add(into, item);
        }
        const auto join = fork + static_cast<std::int32_t>(s);
        if (s > 0) add(into, {.kind = StreamItem::Kind::event_record, .index = join});
      }
      for (std::size_t s = 1; s < streams.size(); ++s)
        add(main,
            {.kind = StreamItem::Kind::event_wait, .index = fork + static_cast<std::int32_t>(s)});
    }

    static bool is_event(const StreamItem& item) {
      return item.kind == StreamItem::Kind::event_record ||
             item.kind == StreamItem::Kind::event_wait;
    }

    std::size_t further(std::size_t main, std::size_t which) {
      const auto [known, is_new] = more.try_emplace({main, which}, 0);
      if (is_new) known->second = add_stream(linker.order_.streams_of(rank)[main]);
      return known->second;
    }

    void add(std::size_t stream, const StreamItem& item) { code.streams[stream].push_back(item); }

    const Linker& linker;
    int rank;
    RankCode code{};
    std::int32_t next_event = 0;
    std::map<std::int32_t, std::int32_t> events{};  ///< by launch: recorded at its end
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> more{};
  };

  void name_launches() {
    for (std::size_t i = 0; i < job_.launches.size(); ++i) {
      const Launch& launch = job_.launches[i];
      const Bound& bound = bound_of(static_cast<std::int32_t>(i));
      linked_.launches.push_back({launch.name, launch.ranks, bound.size(), bound.name()});
    }
  }

  /// Kinds of next_on() that are callers' buffers of a part; layouts are digests, far from these.
  static constexpr std::uint64_t kCallers = 1;

  const Job& job_;
  machine::SharedMachine machine_;
  JobOrder order_;
  std::vector<JobPart> parts_;
  Numbers part_of_;  ///< by launch
  Program tables_;
  Linked linked_;
  Numbers first_frame_;  ///< by launch
  Numbers instance_of_;  ///< by frame
  std::vector<Slot> slots_;
  std::vector<Instance> instances_;
  Numbers calls_;  ///< by instance
  std::vector<std::map<std::uint64_t, std::int32_t>> shared_by_rank_;
  std::map<std::uint64_t, Numbers> slots_by_layout_;
  std::map<std::int32_t, std::uint64_t> layouts_;  ///< by part
  std::map<std::tuple<std::string, std::vector<int>, std::uint64_t>, Numbers> by_communicator_;
  std::map<std::vector<int>, std::shared_ptr<const Numbers>> rank_lists_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::shared_ptr<const Numbers>>
      buffer_lists_;  ///< by part, ordinal and slot
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::int32_t> callers_;
  std::map<std::string, std::int32_t> memory_;
  std::map<const Program*, std::pair<std::int32_t, std::int32_t>> code_base_;
};

}  // namespace

Bound link(std::shared_ptr<const Job> job, const machine::SharedMachine& machine) {
  return Linker(std::move(job), machine).run();
}

}  // namespace hemiola::program

// Requests over links, counted class by class.

#include "sim/fluid/count.h"

#include <algorithm>
#include <utility>

#include "machine/network_routing.h"
#include "program/walk/cursor.h"
#include "sim/alike/classes.h"
#include "sim/fluid/request_histogram.h"
#include "sim/model/addresses.h"
#include "sim/model/multicast_planes.h"

namespace hemiola::sim {
namespace {

using machine::LinkId;
using program::Access;
using program::Primitive;
using program::PrimitiveKind;
using program::Span;

/// Where so much is moved that what does not divide by links is nothing, members by time will do.
AlikeBy alike_by(const program::Bound& program) {
  const Bytes much{std::int64_t{program.groups().empty() ? 1024 : 64} << 20};
  return program.linked() == nullptr && program.size() >= much ? AlikeBy::time : AlikeBy::addresses;
}

class Counter {
 public:
  Counter(const machine::Machine& machine, const program::Bound& program, const Options& options)
      : machine_(machine),
        program_(program),
        addresses_(program, program::rotation_of(program, machine.model(0).line_size.count)),
        fold_(machine, program, options, alike_by(program)),
        reverse_(reverse_links(machine)),
        by_class_(index(fold_.link_classes())) {
    line_ = machine.model(0).line_size.count;
    sector_ = std::min(machine.model(0).sector_size.count, line_);
    if (options.iterations > 0) repetitions_ = options.warmup + options.iterations;
  }

  Carried run() {
    for (const AgentClass& agents : fold_.agents()) walk(agents);
    Carried carried;
    add_links(carried);
    carried.counters = {{"requests.loads", loads_},
                        {"requests.stores", stores_},
                        {"requests.flags", flags_},
                        {"requests.remote_loads", remote_loads_},
                        {"reads.data.cu", loads_},
                        {"reads.data.fabric", remote_loads_},
                        {"requests.remote_stores", remote_stores_},
                        {"requests.multicasts", multicasts_},
                        {"requests.bursts", bursts_},
                        {"stores.injected_bytes", injected_},
                        {"stores.delivered_bytes", injected_}};
    for (const char* name : {"requests.polls",    "requests.packet_retries",
                             "l1.hits",           "l1.misses",
                             "l2.hits",           "l2.misses",
                             "l2.write_backs",    "msc.hits",
                             "msc.misses",        "hbm.read_bytes",
                             "hbm.written_bytes", "credits.taken",
                             "credits.returned",  "reads.data.l2",
                             "reads.data.memory", "reads.flag.cu",
                             "reads.flag.l2",     "reads.flag.memory",
                             "reads.flag.fabric", "reads.poll.cu",
                             "reads.poll.l2",     "reads.poll.memory",
                             "reads.poll.fabric"})
      carried.counters[name] = 0;
    return carried;
  }

 private:
  void walk(const AgentClass& agents);
  void count(const Primitive& primitive);
  void count_steps(const program::ComputeSteps& steps);
  void count_move(const Primitive& primitive);
  void count_span(const Span& span, const Primitive& primitive, std::int64_t wave, bool load);
  /// Rows that lie alike and are not divided by instructions.
  bool rows_alike(const Span& span, const Primitive& primitive, std::int64_t wave) const {
    return span.run > 0 && span.pitch % line_ == 0 && span.skip % span.run == 0 &&
           wave % span.run == 0 && primitive.bytes % span.run == 0 && span.access == Access::plain;
  }
  /// Rows and instructions that begin and end with lines: no line is touched by two of them.
  bool rows_of_lines(const Span& span, std::int64_t begin, std::int64_t wave) const {
    return span.run > 0 && span.access == Access::plain && begin % line_ == 0 &&
           span.run % line_ == 0 && span.pitch % line_ == 0 && span.skip % line_ == 0 &&
           wave % line_ == 0;
  }
  bool count_rows(const Span& span, const Primitive& primitive, std::int64_t wave, bool load);
  void count_lines(const Span& span, std::int64_t from, std::int64_t to, bool load);
  void count_shifted(int peer, std::int64_t begin, std::int64_t waves, std::int64_t wave,
                     bool load);
  void count_multicast(const Span& span, std::int64_t line, std::int64_t requests,
                       std::int64_t bytes, bool load);
  void count_flag(int from, program::SemaphoreId id);
  void count_descriptor(const Primitive& primitive, bool queue);
  PairRequests& pair(int from, int to);
  void finish_ways();
  void add_links(Carried& carried) const;
  void on_link(LinkId link, RequestSize size, std::int64_t count) {
    by_class_[index(fold_.link_class(link))].add(size, count);
  }
  std::int64_t flag_line(std::int32_t semaphore) const {
    const std::int64_t spacing = machine_.model(0).sync_flag_spacing.count;
    return (addresses_.end() + spacing * static_cast<std::int64_t>(semaphore)) / line_;
  }

  const machine::Machine& machine_;
  const program::Bound& program_;
  Addresses addresses_;
  MulticastPlanes planes_{machine_, program_};
  Classes fold_;
  std::vector<LinkId> reverse_;
  std::vector<RequestHistogram> by_class_;  ///< over all links of the class
  std::int64_t line_ = 128, sector_ = 32;
  int repetitions_ = 1;
  int rank_ = 0;  ///< this and the next ones: of the agent under way
  std::int64_t members_ = 1, grain_ = 16;
  bool queue_ = false;
  std::vector<PairRequests> ways_;
  std::vector<std::int32_t> way_to_;  ///< from the agent's rank; -1: none yet
  Spreads spreads_;
  std::int64_t loads_ = 0, stores_ = 0, flags_ = 0, remote_loads_ = 0, remote_stores_ = 0,
               multicasts_ = 0, bursts_ = 0, injected_ = 0;
};

void Counter::walk(const AgentClass& agents) {
  const Agent& agent = agents.first;
  rank_ = agent.rank;
  members_ = agents.members;
  queue_ = agent.kernel < 0;
  if (!queue_) grain_ = program_.kernels()[index(agent.kernel)].grain;
  ways_.clear();
  way_to_.assign(index(program_.ranks()), -1);
  program::Cursor cursor(program_, agent.rank, agent.body, agent.frame);
  Primitive primitive;
  program::ComputeSteps steps;
  for (int repetition = 0; repetition < repetitions_; ++repetition) {
    if (repetition > 0) cursor.repeat();
    while (cursor.next(primitive, steps, 1))
      if (steps.steps > 0)
        count_steps(steps);
      else
        count(primitive);
  }
  finish_ways();
}

void Counter::count(const Primitive& primitive) {
  switch (primitive.kind) {
    case PrimitiveKind::move:
      if (queue_) {
        Primitive leg = primitive;
        for (std::size_t d = 0; d < primitive.dst.size(); ++d) {
          leg.src = {primitive.src[primitive.exchanges ? d : 0]};
          leg.dst = {primitive.dst[d]};
          count_descriptor(leg, true);
        }
      } else {
        count_move(primitive);
      }
      return;
    case PrimitiveKind::post:
      count_descriptor(primitive, queue_);
      return;
    case PrimitiveKind::signal:
      if (primitive.swap) return;
      for (const program::SemaphoreId id : primitive.semaphores) count_flag(rank_, id);
      return;
    case PrimitiveKind::barrier:
      flags_ += members_;
      return;
    default:
      return;
  }
}

// Loads and stores of own memory are only counted, and what is a number of lines further has
// equally many.
void Counter::count_steps(const program::ComputeSteps& steps) {
  using Steps = program::ComputeSteps;
  Primitive move;
  move.kind = PrimitiveKind::move;
  const auto in_lines = [&](const Span& span, const Steps::Places& places) {
    if (span.rank != rank_) return false;
    for (std::int64_t tile = 1; tile < steps.tiles; ++tile)
      if (steps.moved(places, tile) % line_ != 0) return false;
    return true;
  };
  // Of all tiles; `count` is told how far a tile is from the first.
  const auto each_tile = [&](const Span& span, const Steps::Places& places, auto&& count) {
    if (!in_lines(span, places)) {
      for (std::int64_t tile = 0; tile < steps.tiles; ++tile) count(steps.moved(places, tile));
      return;
    }
    const std::int64_t loads = loads_, stores = stores_;
    count(0);
    loads_ += (loads_ - loads) * (steps.tiles - 1);
    stores_ += (stores_ - stores) * (steps.tiles - 1);
  };
  move.posted = true;
  for (const Steps::Read& read : steps.reads) {
    move.bytes = read.bytes;
    move.src = {read.first};
    each_tile(read.first, read.places, [&](std::int64_t moved) {
      move.src.front().offset = read.first.offset + moved;
      if (read.first.rank == rank_ && read.distance % line_ == 0) {
        const std::int64_t before = loads_;
        count_move(move);
        loads_ += (loads_ - before) * (read.times - 1);
        return;
      }
      for (std::int64_t step = 0; step < read.times; ++step) {
        count_move(move);
        move.src.front().offset += read.distance;
      }
    });
  }
  move.posted = false;
  move.src.clear();
  for (const Steps::Write& write : steps.writes) {
    move.bytes = write.bytes;
    move.dst = {write.first};
    each_tile(write.first, write.places, [&](std::int64_t moved) {
      move.dst.front().offset = write.first.offset + moved;
      count_move(move);
    });
  }
}

void Counter::count_move(const Primitive& primitive) {
  const std::int64_t wave =
      program::data_per_thread(primitive, grain_) * machine_.model(rank_).cu_wavefront_size;
  for (const Span& span : primitive.src) count_span(span, primitive, wave, true);
  for (const Span& span : primitive.dst) count_span(span, primitive, wave, false);
}

// Instruction by instruction where lines do not begin with them; else all at once.
void Counter::count_span(const Span& span, const Primitive& primitive, std::int64_t wave,
                         bool load) {
  const std::int64_t begin = addresses_.start_of(span);
  const std::int64_t base = begin - span.offset;
  const auto memory = [&](std::int64_t data) {
    if (span.access == Access::ll128) return data / 120 * 128;
    return program::is_packet(span.access) ? program::memory_offset(data, span.access) : data;
  };
  const auto memory_end = [&](std::int64_t data) {
    return span.access == Access::ll128 ? (data + 119) / 120 * 128 : memory(data);
  };
  // The lines of LL128 are loaded again once their flags are seen.
  const int times = load && span.access == Access::ll128 ? 2 : 1;
  const bool whole =
      begin % line_ == 0 && memory(wave) % line_ == 0 && memory_end(wave) == memory(wave);
  const bool local = span.rank == rank_;
  for (int time = 0; time < times; ++time) {
    if (span.run == 0 && (whole || local)) {
      count_lines(span, begin, begin + memory_end(primitive.bytes), load);
      continue;
    }
    if (span.run > 0 && count_rows(span, primitive, wave, load)) continue;
    std::int64_t at = 0;
    if (span.run == 0 && span.rank >= 0 && wave % line_ == 0 && span.access == Access::plain) {
      at = primitive.bytes / wave * wave;
      count_shifted(span.rank, begin, primitive.bytes / wave, wave, load);
    }
    for (; at < primitive.bytes; at += wave) {
      const std::int64_t end = std::min(at + wave, primitive.bytes);
      if (program::is_packet(span.access)) {
        count_lines(span, begin + memory(at), begin + memory_end(end), load);
        continue;
      }
      span.each_part(at, end, [&](std::int64_t offset, std::int64_t, std::int64_t bytes) {
        count_lines(span, base + offset, base + offset + bytes, load);
      });
    }
  }
}

// All rows at once, where instructions do not divide lines; false where they may.
bool Counter::count_rows(const Span& span, const Primitive& primitive, std::int64_t wave,
                         bool load) {
  const std::int64_t begin = addresses_.start_of(span);
  const bool local = span.rank == rank_;
  std::int64_t& requests = load ? loads_ : stores_;
  if (rows_of_lines(span, begin, wave)) {
    if (local) {
      requests += (primitive.bytes + line_ - 1) / line_ * members_;
      return true;
    }
    span.each_part(0, primitive.bytes, [&](std::int64_t offset, std::int64_t, std::int64_t bytes) {
      const std::int64_t from = begin - span.offset + offset;
      count_lines(span, from, from + bytes, load);
    });
    return true;
  }
  if (!local || !rows_alike(span, primitive, wave)) return false;
  const std::int64_t first = begin + span.skip / span.run * span.pitch;
  const std::int64_t lines = (first + span.run - 1) / line_ - first / line_ + 1;
  requests += lines * (primitive.bytes / span.run) * members_;
  return true;
}

// Addresses [from, to): a request for each line, in sectors.
void Counter::count_lines(const Span& span, std::int64_t from, std::int64_t to, bool load) {
  if (from >= to) return;
  const std::int64_t lines = (to - 1) / line_ - from / line_ + 1;
  (load ? loads_ : stores_) += lines * members_;
  if (span.rank == rank_) return;
  if (span.rank >= 0) (load ? remote_loads_ : remote_stores_) += lines * members_;
  while (from < to) {
    const std::int64_t line = from / line_;
    std::int64_t requests = 1;
    std::int64_t high = std::min(to, (line + 1) * line_);
    if (from % line_ == 0 && to - from >= line_) {
      requests = (to - from) / line_;
      high = from + requests * line_;
    }
    const std::int64_t sectors =
        (high - (requests - 1) * line_ + sector_ - 1) / sector_ - (from) / sector_;
    const std::int64_t bytes = std::min(sectors * sector_, line_);
    if (span.rank < 0) {
      count_multicast(span, line, requests, bytes, load);
    } else {
      if (!load) injected_ += bytes * requests * members_;
      pair(rank_, span.rank)
          .add(line, requests, {load ? 0 : bytes, 0}, {load ? bytes : 0, 0}, spreads_);
    }
    from = high;
  }
}

// Whole instructions that begin inside a line, of another rank's memory: each touches the end of
// one line, whole lines, and the beginning of the line in which the next instruction begins.
void Counter::count_shifted(int peer, std::int64_t begin, std::int64_t waves, std::int64_t wave,
                            bool load) {
  if (waves == 0) return;
  const std::int64_t stride = wave / line_, first = begin / line_, inside = begin % line_;
  const std::int64_t requests = waves * (stride + 1) * members_;
  (load ? loads_ : stores_) += requests;
  (load ? remote_loads_ : remote_stores_) += requests;
  const auto in_sectors = [&](std::int64_t from, std::int64_t to) {
    return std::min(line_, ((to + sector_ - 1) / sector_ - from / sector_) * sector_);
  };
  const std::int64_t head = in_sectors(inside, line_), tail = in_sectors(0, inside);
  if (!load) injected_ += waves * (head + tail + (stride - 1) * line_) * members_;
  const auto size_of = [&](std::int64_t bytes) {
    return std::pair(RequestSize{load ? 0 : bytes, 0}, RequestSize{load ? bytes : 0, 0});
  };
  pair(rank_, peer)
      .add_shifted(first, stride, waves, {size_of(head), size_of(line_), size_of(tail)}, spreads_);
}

// To the switch, from it to every member, and the answers.
void Counter::count_multicast(const Span& span, std::int64_t line, std::int64_t requests,
                              std::int64_t bytes, bool load) {
  const std::vector<MulticastPlane>& planes = planes_.of(span.group, rank_);
  const RequestSize there{load ? 0 : bytes, 0}, back{load ? bytes : 0, 0};
  multicasts_ += requests * members_;
  const std::vector<std::int64_t>& by_plane = spreads_.of(line, requests, std::ssize(planes));
  for (std::size_t p = 0; p < planes.size(); ++p) {
    const MulticastPlane& plane = planes[p];
    const std::int64_t count = by_plane[p] * members_;
    if (count == 0) continue;
    on_link(plane.up, there, count);
    on_link(reverse_[index(plane.up)], back, count);
    for (const auto& [member, down] : plane.down) {
      on_link(down, there, count);
      on_link(reverse_[index(down)], back, count);
      if (!load && member != rank_) injected_ += bytes * count;
    }
  }
}

void Counter::count_flag(int from, program::SemaphoreId id) {
  flags_ += members_;
  if (id.rank != from)
    pair(from, id.rank).add(flag_line(id.index), 1, {sector_, 0}, {0, 0}, spreads_);
}

// Bursts of a copy engine or packets of a NIC, then flags: a NIC's are written where the data are.
void Counter::count_descriptor(const Primitive& primitive, bool queue) {
  const bool empty = primitive.bytes == 0;
  const int from = empty ? rank_ : primitive.src.front().rank;
  const int to = empty ? primitive.semaphores.front().rank : primitive.dst.front().rank;
  std::int64_t bytes = primitive.bytes;
  if (!empty && !queue && primitive.src.front().access != Access::plain) bytes *= 2;
  const machine::GpuModel& model = machine_.model(rank_);
  std::int64_t burst = std::max(line_, model.dma_burst.count);
  std::int64_t packet = model.dma_max_payload.count;
  bool nic = false;
  if (primitive.remote) {
    if (const auto node = machine::first_nic(machine_, machine_.routes(rank_, to).path(0))) {
      const std::int64_t mtu = machine_.nodes[index(*node)].nic_model.mtu.count;
      burst = packet = std::max<std::int64_t>(1, mtu);
      nic = true;
    }
  }
  if (!empty || nic) {
    const std::int64_t total = std::max<std::int64_t>(bytes, 1);
    for (std::int64_t at = 0; at < total;) {
      std::int64_t size = sector_, line = 0;
      if (!empty) {
        const Span& source = primitive.src.front();
        const Span& target = primitive.dst.front();
        const std::int64_t rest =
            source.run > 0 ? source.run - (source.skip + at) % source.run : bytes;
        size = std::min({burst, bytes - at, rest});
        line = addresses_.of(target, at) / line_;
      }
      bursts_ += members_;
      if (from != to) {
        if (!empty) injected_ += size * members_;
        pair(from, to).add(line * line_ / burst, 1, {size, packet}, {0, packet}, spreads_);
      }
      at += size;
    }
  }
  for (const program::SemaphoreId id : primitive.semaphores)
    if (nic)
      flags_ += members_;
    else
      count_flag(rank_, id);
}

PairRequests& Counter::pair(int from, int to) {
  const bool own = from == rank_;  // nearly all are
  if (own && way_to_[index(to)] >= 0) return ways_[index(way_to_[index(to)])];
  if (!own) {
    for (PairRequests& way : ways_)
      if (way.from == from && way.to == to) return way;
  }
  const machine::Routes& routes = machine_.routes(from, to);
  if (routes.count == 0)
    throw Failure("rank " + std::to_string(from) + " does not reach rank " + std::to_string(to));
  if (own) way_to_[index(to)] = static_cast<std::int32_t>(ways_.size());
  return ways_.emplace_back(
      PairRequests{.from = from, .to = to, .choice = paths_of(machine_, routes, from, to)});
}

void Counter::finish_ways() {
  for (const PairRequests& way : ways_) {
    const machine::Routes& routes = machine_.routes(way.from, way.to);
    const auto pass = [&](LinkId link, RequestSize size, std::int64_t count) {
      on_link(link, size, count * members_);
    };
    for (const PairRequests::Sent& sent : way.sent) {
      for (std::int32_t p = 0; p < way.choice.count; ++p) {
        const std::int64_t count = sent.by_path[index(p)];
        if (count == 0) continue;
        for (const LinkId link : routes.path(way.choice.first + p)) {
          pass(link, sent.there, count);
          pass(reverse_[index(link)], sent.back, count);
        }
      }
    }
  }
}

// Links of a class carry the same, but for what does not divide by them.
void Counter::add_links(Carried& carried) const {
  std::vector<std::int64_t> before(by_class_.size(), 0);  // links of the class
  for (std::size_t l = 0; l < machine_.links.size(); ++l) {
    const std::int32_t link_class = fold_.link_class(static_cast<LinkId>(l));
    if (link_class < 0) continue;
    const std::int64_t number = before[index(link_class)]++, links = fold_.links_in(link_class);
    const machine::Link& link = machine_.links[l];
    const machine::LinkClass& c = machine_.link_classes[index(link.link_class)];
    LinkUse use{machine_.nodes[index(link.from)].name, machine_.nodes[index(link.to)].name,
                link.lane, c.name};
    for (const auto& [size, total] : by_class_[index(link_class)].counts()) {
      const std::int64_t count = total / links + (number < total % links ? 1 : 0);
      const std::int64_t wire = c.wire_bytes(size.payload, size.packet);
      use.payload_bytes += size.payload * count;
      use.wire_bytes += wire * count;
      use.requests += count;
      use.busy += count * c.bandwidth.time_for(wire);
    }
    if (use.requests == 0) continue;
    carried.hops += use.requests;
    carried.links.push_back(std::move(use));
  }
}

}  // namespace

Carried count_requests(const machine::Machine& machine, const program::Bound& program,
                       const Options& options) {
  return Counter(machine, program, options).run();
}

}  // namespace hemiola::sim

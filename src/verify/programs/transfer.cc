// Moves of workgroups and copies of proxies: loads, sums, stores, and the packets they wait for.
#include <algorithm>
#include <optional>
#include <utility>

#include "verify/programs/interpreter.h"

namespace hemiola::verify {

using program::Access;
using program::Primitive;
using program::Span;

namespace {

/// The piece, `by` bytes further on.
Piece moved(Piece piece, std::int64_t by) {
  piece.begin += by;
  piece.end += by;
  piece.value.shift -= by;
  piece.trail.shift -= by;
  return piece;
}

}  // namespace

/// The memory a span stands for: rows of one rank, or of every member of its group, one after the
/// other.
std::vector<Interpreter::Part> Interpreter::parts(const Span& span, std::int64_t bytes) const {
  std::vector<Part> result;
  const auto add = [&](std::int32_t rank) {
    if (is_packet(span.access)) {
      const std::int64_t begin = data_offset(span.offset, span.access);
      result.push_back({{rank, span.buffer, span.access, begin, begin + bytes}, 0});
      return;
    }
    span.each_part(0, bytes, [&](std::int64_t offset, std::int64_t data, std::int64_t count) {
      result.push_back({{rank, span.buffer, span.access, offset, offset + count}, data});
    });
  };
  if (!is_multicast(span.access))
    add(span.rank);
  else
    for (int member : program_.groups()[index(span.group)]) add(member);
  return result;
}

/// The same at the representatives of its ranks.
std::vector<Interpreter::Part> Interpreter::placed(const Span& span, std::int64_t bytes) {
  std::vector<Part> result = parts(span, bytes);
  for (Part& part : result) {
    part.image = fold_.seat(part.region.rank).image;
    unfoldable_ = !fold_.place(part.region) || unfoldable_;
  }
  return result;
}

/// Every span of the current primitive lies inside its buffer; else a fault.
bool Interpreter::spans_exist(Workgroup& self, Actor actor) {
  const Primitive& primitive = self.current;
  const auto check = [&](const Span& span) {
    const bool multicast = is_multicast(span.access);
    const bool group = span.group >= 0 && index(span.group) < program_.groups().size();
    const bool rank = span.rank >= 0 && span.rank < program_.ranks();
    const bool buffer = span.buffer >= 0 && index(span.buffer) < program_.buffers().size();
    if (!buffer || !(multicast ? group : rank))
      return fail(actor, primitive.op, "names a rank, buffer or group that does not exist");
    for (const Part& part : parts(span, primitive.bytes)) {
      const Region& region = part.region;
      const std::int64_t begin = is_packet(span.access) ? span.offset : region.begin;
      const std::int64_t end = begin + program::memory_size(region.end - region.begin, span.access);
      const std::int64_t size = program_.memory_bytes(region.buffer, region.rank);
      if (begin >= 0 && end <= size) continue;
      fail(actor, primitive.op,
           "touches bytes [" + std::to_string(begin) + ", " + std::to_string(end) + ") of " +
               program_.buffers()[index(region.buffer)].name + " of rank " +
               std::to_string(region.rank) + ", which has " + std::to_string(size));
    }
  };
  for (const Span& span : primitive.src) check(span);
  for (const Span& span : primitive.dst) check(span);
  return !fault_;
}

/// Whether all packets of the sources have their flags; else the workgroup is registered with the
/// first byte that is missing. Otherwise the workgroup learns what the stores of the packets stand
/// for.
bool Interpreter::packets_there(Workgroup& self, Actor actor) {
  stores_seen_.clear();
  for (const Span& span : self.current.src) {
    if (!is_packet(span.access)) continue;
    for (const Part& part : placed(span, self.current.bytes)) {
      const Region& region = part.region;
      if (const auto byte = memory_.first_without(region, span.flag)) {
        pollers_[memory_.number_of(region)].push_back({*byte, actor});
        return false;
      }
      memory_.stores_of(region, part.image, fold_.images(), stores_seen_);
    }
  }
  if (stores_seen_.empty()) return true;
  std::ranges::sort(stores_seen_);
  stores_seen_.erase(std::unique(stores_seen_.begin(), stores_seen_.end()), stores_seen_.end());
  Acquired before;
  for (const auto& [record, image, is_before] : stores_seen_) {
    const Snapshot* store = memory_.stored_by(record);
    if (store == nullptr) continue;
    if (is_before) {  // whoever made the packet had loaded it
      store->turned(image).join_reads_into(before.now);
      continue;
    }
    self.join_lessons();
    Acquired& acquired = self.lessons.emplace_back().acquired;
    store->turned(image).join_reads_into(acquired.now);
    memory_.fenced_before(record).turned(image).join_into(acquired.after_fence);
  }
  self.join_lessons();
  self.lessons.emplace_back().acquired = std::move(before);
  return true;
}

/// Copies of one submission are in no order: none may write what another one touches. Else a fault.
bool Interpreter::is_alone_in_batch(Workgroup& self, Actor actor) {
  const Primitive& copy = self.current;
  const bool begins = !std::exchange(self.in_batch, copy.batched);
  if (begins) self.batch.clear();
  if (begins && !copy.batched) return true;
  const std::size_t before = self.batch.size();
  const auto add = [&](const Span& span, bool written) {
    Touched& touched = self.batch.emplace_back();
    touched.written = written;
    for (const Part& part : parts(span, copy.bytes)) touched.rows.push_back(part.region);
  };
  for (const Span& span : copy.src) add(span, false);
  for (const Span& span : copy.dst) add(span, true);
  for (std::size_t i = 0; i < before; ++i) {
    for (std::size_t j = before; j < self.batch.size(); ++j) {
      const Touched& a = self.batch[i];
      const Touched& b = self.batch[j];
      const std::optional<Region> both = a.written || b.written ? a.common(b) : std::nullopt;
      if (!both) continue;
      fail(actor, copy.op,
           std::string(b.written ? "writes" : "reads") + " bytes [" + std::to_string(both->begin) +
               ", " + std::to_string(both->end) + ") of " +
               program_.buffers()[index(both->buffer)].name + " of rank " +
               std::to_string(both->rank) + ", which a copy of the same submission " +
               (a.written ? "writes" : "reads") + ": these are in no order");
      return false;
    }
  }
  return true;
}

std::optional<Region> Touched::common(const Touched& other) const {
  for (auto a = rows.begin(), b = other.rows.begin(); a != rows.end() && b != other.rows.end();) {
    if (a->rank != b->rank || a->buffer != b->buffer) return std::nullopt;
    const std::int64_t begin = std::max(a->begin, b->begin), end = std::min(a->end, b->end);
    if (begin < end) return Region{a->rank, a->buffer, a->access, begin, end};
    a->end <= b->end ? ++a : ++b;
  }
  return std::nullopt;
}

/// Two places change their contents: both are loaded, then each is stored where the other was.
void Interpreter::exchange(const Workgroup& self, const AccessRecord& access) {
  std::vector<Primitive> ways(2);
  std::vector<std::vector<Piece>> contents(2);
  for (std::size_t way = 0; way < ways.size(); ++way) {
    ways[way] = self.current;
    ways[way].src = {self.current.src[way]};
    ways[way].dst = {self.current.dst[way]};
    load(ways[way], access, self.clock);
    contents[way] = std::exchange(sum_, {});
  }
  for (std::size_t way = 0; way < ways.size(); ++way) {
    sum_ = std::move(contents[way]);
    store(ways[way], access, self.clock);
  }
}

bool Interpreter::execute_move(Workgroup& self, Actor actor) {
  if (!spans_exist(self, actor)) return true;
  if (self.copies && !is_alone_in_batch(self, actor)) return true;
  if (!packets_there(self, actor)) return false;
  if (reads_resident(actor)) return true;
  if (reduces_otherwise(self, actor)) return true;
  AccessRecord access;
  access.actor = self.in_clocks;
  access.workgroup = actor;
  access.segment = self.segment;
  access.op = self.current.op;
  access.repetition = repetition_;
  access.width = static_cast<std::int32_t>(program::data_per_thread(self.current, self.grain));
  access.threads = self.current.posted ? 0 : self.threads;  // no thread is behind it before a sync
  if (self.current.exchanges) {
    exchange(self, access);
    return true;
  }
  load(self.current, access, self.clock);
  const program::Body& body = program_.bodies()[index(self.body)];
  if (body.ops[index(self.current.op)].kind == program::OpKind::compute && self.current.dst.empty())
    check_written(actor);
  if (self.current.src.empty()) {
    const bool clears = self.current.dst.front().access == Access::lamport;
    if (self.current.made >= 0)
      made_by(self.rank, self.current);
    else
      sum_ = {{0, self.current.bytes, clears ? Value{} : values_.computed(self.rank), {}}};
  }
  store(self.current, access, self.clock);
  return true;
}

/// Whether the present primitive combines contributions with another operator than the
/// collective's: a fault, wherever the result goes.
bool Interpreter::reduces_otherwise(const Workgroup& self, Actor actor) {
  const bool asks = program_.collective() == Collective::all_reduce ||
                    program_.collective() == Collective::reduce ||
                    program_.collective() == Collective::reduce_scatter;
  const Primitive& move = self.current;
  if (!asks || move.reduce == ReduceOp::none || move.reduce == program_.op()) return false;
  fail(actor, move.op,
       "reduces with " + std::string(name_of(move.reduce)) + ", but the " +
           std::string(name_of(program_.collective())) + " is one with " +
           std::string(name_of(program_.op())));
  return true;
}

/// Resident memory, and that of the caller which no operation stores into, is never written, so
/// that no load of it conflicts with anything, and operands of computes need not be remembered.
/// Whether that is all that the current primitive does; a store into resident memory is a fault.
bool Interpreter::reads_resident(Actor actor) {
  const Primitive& current = workgroups_[index(actor)].current;
  const auto resident = [&](const Span& span) {
    return program_.buffers()[index(span.buffer)].kind == program::BufferKind::resident;
  };
  for (const Span& span : current.dst) {
    if (!resident(span)) continue;
    fail(actor, current.op,
         "stores into " + program_.buffers()[index(span.buffer)].name +
             ", which is only there to be read");
    return true;
  }
  const auto only_read = [&](const Span& span) {
    const bool is_input = program_.buffers()[index(span.buffer)].kind == program::BufferKind::input;
    return resident(span) || (is_input && !stored_into_[index(span.buffer)]);
  };
  return current.posted && std::ranges::all_of(current.src, only_read);
}

/// What a rank computes stands for its input to the collective: leaves it in sum_, row by row.
void Interpreter::made_by(int rank, const Primitive& primitive) {
  const Span& span = primitive.dst.front();
  sum_.clear();
  span.each_part(0, primitive.bytes, [&](std::int64_t at, std::int64_t data, std::int64_t count) {
    const std::int64_t made = primitive.made + at - span.offset;
    append(sum_, {data, data + count, values_.input(rank, made - data), {}});
  });
}

/// Reads all sources and leaves their sum in sum_.
void Interpreter::load(const Primitive& primitive, AccessRecord access, const Clock& clock) {
  sum_.clear();
  const bool stores_packets =
      std::ranges::any_of(primitive.dst, [](const Span& span) { return is_packet(span.access); });
  for (const Span& span : primitive.src) {
    access.polls = access.threads > 0 && is_packet(span.access);
    std::vector<Piece> all;  // of one rank: row after row
    for (const Part& part : placed(span, primitive.bytes)) {
      access.base = part.region.begin - part.data;
      access.image = fold_.back(part.image);
      pieces_.clear();
      const std::int32_t record = memory_.record(access);
      memory_.read(part.region, record, view(clock, part.image), pieces_);
      if (stores_packets) {
        const Trail own = one_step(record, part.region.begin);
        for (Piece& piece : pieces_) piece.trail = join(piece.trail, own, fold_.images());
      }
      fold_.turn(pieces_, part.image, values_);
      for (Piece& piece : pieces_) append(all, moved(std::move(piece), part.data));
      if (part.data + part.region.end - part.region.begin < primitive.bytes) continue;
      add_to_sum(all);
      all.clear();
    }
  }
}

/// What a compute loads has to be there.
void Interpreter::check_written(Actor actor) {
  for (const Piece& piece : sum_) {
    for (const Term& term : values_.terms(piece.value)) {
      if (!ValueTable::is_unwritten(term)) continue;
      const Primitive& current = workgroups_[index(actor)].current;
      const auto buffer = index(current.src.front().buffer);
      return fail(
          actor, current.op,
          "computes with bytes of " + program_.buffers()[buffer].name + " that nobody wrote");
    }
  }
}

void Interpreter::add_to_sum(const std::vector<Piece>& pieces) {
  if (sum_.empty()) {
    sum_ = pieces;
    return;
  }
  std::vector<Piece> result;
  auto a = sum_.begin();
  auto b = pieces.begin();
  std::int64_t begin = 0;
  while (a != sum_.end() && b != pieces.end()) {
    const std::int64_t end = std::min(a->end, b->end);
    append(result,
           {begin, end, values_.sum(a->value, b->value), join(a->trail, b->trail, fold_.images())});
    begin = end;
    if (a->end == end) ++a;
    if (b->end == end) ++b;
  }
  sum_ = std::move(result);
}

/// Writes sum_ to all destinations.
void Interpreter::store(const Primitive& primitive, AccessRecord access, const Clock& clock) {
  access.write = true;
  for (const Span& span : primitive.dst) {
    for (const Part& part : placed(span, primitive.bytes)) {
      const Region& region = part.region;
      access.base = region.begin - part.data;
      access.image = fold_.back(part.image);
      const std::int32_t record = memory_.record(access);
      if (is_packet(span.access)) {
        const Workgroup& self = workgroups_[index(access.workgroup)];
        memory_.set_fenced(record, is_own(access) ? self.fenced.turned(access.image) : Snapshot{});
      }
      const View known = view(clock, part.image);
      const std::int64_t count = region.end - region.begin;
      if (count == primitive.bytes && part.image == 0) {
        memory_.write(region, record, known, sum_, span.flag);
      } else {
        pieces_.clear();
        for (const Piece& piece : sum_) {
          if (piece.end <= part.data || piece.begin >= part.data + count) continue;
          Piece row = piece;
          row.begin = std::max(row.begin, part.data);
          row.end = std::min(row.end, part.data + count);
          pieces_.push_back(moved(std::move(row), -part.data));
        }
        fold_.turn(pieces_, access.image, values_);
        memory_.write(region, record, known, pieces_, span.flag);
      }
      if (is_packet(span.access)) wake_pollers(region);
    }
  }
}

void Interpreter::wake_pollers(const Region& stored) {
  std::vector<Poller>& pollers = pollers_[memory_.number_of(stored)];
  for (std::size_t i = 0; i < pollers.size();) {
    const Poller poller = pollers[i];
    if (poller.byte < stored.begin || poller.byte >= stored.end) {
      ++i;
      continue;
    }
    pollers[i] = pollers.back();
    pollers.pop_back();
    wake(poller.workgroup);
  }
}

/// The proxy copies at once: whatever it needs has happened before the post, or it is a race.
bool Interpreter::execute_post(Workgroup& self, Actor actor) {
  const Primitive& post = self.current;
  if (!spans_exist(self, actor)) return true;
  const int peer = !post.semaphores.empty() ? post.semaphores[0].rank
                   : post.dst.empty()       ? self.rank
                                            : post.dst[0].rank;
  Queue& proxy = queue(self.rank, peer);
  snapshot(self, std::max(post.thread, 0)).join_into(proxy.clock);
  AccessRecord access;
  access.actor = proxy.actor;
  access.segment = proxy.segment;
  access.workgroup = actor;
  access.op = post.op;
  access.repetition = repetition_;
  if (post.bytes > 0 && !post.src.empty()) {
    load(post, access, proxy.clock);
    store(post, access, proxy.clock);
  }
  ++proxy.segment;
  const Snapshot done{proxy.clock, proxy.actor, proxy.segment, 0, fold_.images()};
  self.posted[proxy.actor] = done;
  for (std::size_t i = 0; i < post.semaphores.size(); ++i) {
    if (!valid(post.semaphores[i])) {
      fail(actor, post.op, "signals a semaphore that does not exist");
      return true;
    }
    Signal effect;
    effect.actor = proxy.actor;
    effect.workgroup = actor;
    effect.op = post.op;
    effect.rank = self.rank;
    effect.must_be_awaited = must_be_awaited(self, post.op);
    effect.performed = effect.released = done;
    effect.releases = true;
    signal(post.semaphores[i], post.values[i], std::move(effect));
  }
  return true;
}

Interpreter::Queue& Interpreter::queue(int rank, int peer) {
  const auto [at, added] =
      queue_numbers_.try_emplace({rank, peer}, static_cast<std::int32_t>(queues_.size()));
  if (added) {
    Queue& created = queues_.emplace_back();
    created.actor = static_cast<Actor>(workgroups_.size() + queues_.size() - 1);
  }
  return queues_[index(at->second)];
}

}  // namespace hemiola::verify

#include "verify/programs/memory.h"

#include <algorithm>

namespace hemiola::verify {
namespace {

using program::Access;

/// Whether every byte of [begin, end) belongs to the same thread in both accesses.
bool same_threads(const AccessRecord& a, const AccessRecord& b, std::int64_t begin,
                  std::int64_t end) {
  if (a.threads <= 0 || a.threads != b.threads) return false;
  const std::int64_t round_a = static_cast<std::int64_t>(a.width) * a.threads;
  if (a.width == b.width && (a.base - b.base) % round_a == 0) return true;
  const auto owner = [](const AccessRecord& access, std::int64_t byte) {
    return (byte - access.base) / access.width;
  };
  const bool inside_one =
      owner(a, begin) == owner(a, end - 1) && owner(b, begin) == owner(b, end - 1);
  return inside_one && owner(a, begin) % a.threads == owner(b, begin) % b.threads;
}

}  // namespace

void append(std::vector<Piece>& pieces, Piece piece) {
  Piece* last = pieces.empty() ? nullptr : &pieces.back();
  if (last != nullptr && last->end == piece.begin && last->value == piece.value &&
      last->trail == piece.trail)
    last->end = piece.end;
  else
    pieces.push_back(std::move(piece));
}

Trail one_step(std::int32_t record, std::int64_t delta) {
  return {std::make_shared<const std::vector<Trail::Step>>(1, Trail::Step{record, 0, delta}), 0, 0};
}

Trail join(const Trail& a, const Trail& b, std::int32_t images) {
  constexpr std::size_t kMost = 64;
  if (!a.steps || a == b) return b;
  if (!b.steps) return a;
  std::vector<Trail::Step> steps;
  steps.reserve(a.steps->size() + b.steps->size());
  for (const Trail* trail : {&a, &b})
    for (const Trail::Step& step : *trail->steps)
      steps.push_back({step.record, (step.turn + trail->turn) % images, step.delta + trail->shift});
  std::ranges::sort(steps, [](const Trail::Step& x, const Trail::Step& y) {
    if (x.record != y.record) return x.record > y.record;
    return x.turn != y.turn ? x.turn < y.turn : x.delta < y.delta;
  });
  const auto same = [](const Trail::Step& x, const Trail::Step& y) {
    return x.record == y.record && x.turn == y.turn && x.delta == y.delta;
  };
  steps.erase(std::unique(steps.begin(), steps.end(), same), steps.end());
  if (steps.size() > kMost) steps.resize(kMost);
  return {std::make_shared<const std::vector<Trail::Step>>(std::move(steps)), 0, 0};
}

Memory::Memory(const program::Bound& program, ValueTable& values, int period)
    : values_(values), buffers_(static_cast<std::int32_t>(program.buffers().size())) {
  cells_.resize(2 * program.buffers().size() * index(period));
  layouts_.resize(cells_.size());
  for (std::size_t i = 1; i < layouts_.size(); i += 2) layouts_[i] = Access::packet;
}

std::int32_t Memory::number_of(const Region& where) const {
  return 2 * (where.rank * buffers_ + where.buffer) + (is_packet(where.access) ? 1 : 0);
}

Region Memory::memory_of(std::int32_t number) const {
  return {number / 2 / buffers_, number / 2 % buffers_, layouts_[index(number)], 0, 0};
}

void Memory::initialise(const Region& where, Value value) {
  if (where.begin >= where.end) return;
  Cell cell;
  cell.end = where.end;
  cell.value = value;
  cells(where)[where.begin] = std::move(cell);
}

void Memory::refill(const Region& where, Value value) {
  if (where.begin >= where.end) return;
  Cells& all = cells(where);
  auto at = split(all, where.begin);
  const auto last = split(all, where.end);
  for (; at != last; ++at) at->second.value = value;
}

std::int32_t Memory::record(const AccessRecord& access) {
  records_.push_back(access);
  return static_cast<std::int32_t>(records_.size() - 1);
}

/// Makes a cell begin at `at` if one covers it; the first cell at or after `at`.
Memory::Cells::iterator Memory::split(Cells& cells, std::int64_t at) {
  auto next = cells.lower_bound(at);
  if (next == cells.begin()) return next;
  auto before = std::prev(next);
  if (before->second.end <= at) return next;
  Cell upper = before->second;
  before->second.end = at;
  return cells.emplace_hint(next, at, std::move(upper));
}

/// Gives every byte of the region a cell, with boundaries at its ends.
void Memory::fill_gaps(const Region& where) {
  Cells& all = cells(where);
  auto at = split(all, where.begin);
  split(all, where.end);
  const Value nothing = values_.unwritten(number_of(where), 0);
  std::int64_t next = where.begin;
  while (next < where.end) {
    if (at == all.end() || at->first > next) {
      Cell cell;
      cell.end = at == all.end() ? where.end : std::min(at->first, where.end);
      cell.value = nothing;
      at = all.emplace_hint(at, next, std::move(cell));
    }
    next = at->second.end;
    ++at;
  }
}

bool Memory::ordered(std::int32_t earlier, std::int32_t later, const View& view, std::int64_t begin,
                     std::int64_t end, bool reads_only) const {
  const AccessRecord& first = access(earlier);
  const AccessRecord& second = access(later);
  if (first.actor == second.actor && first.image == second.image) {
    if (first.segment < second.segment) return true;
    const bool same = same_threads(first, second, begin, end);
    const bool anywhere = first.base == second.base && first.width == second.width;
    by_place_ = by_place_ || (same && !anywhere);
    return same;
  }
  return (reads_only ? view.reads(first.actor, first.image) : view.all(first.actor, first.image)) >
         first.segment;
}

void Memory::report(const Region& where, std::int64_t begin, std::int64_t end, std::int32_t earlier,
                    std::int32_t later) {
  const bool same = access(earlier).repetition == access(later).repetition;
  std::optional<Race>& first = same && access(later).repetition == 0 ? race_ : hazard_;
  if (first) return;
  first = Race{access(earlier), access(later), where};
  first->where.begin = begin;
  first->where.end = end;
}

void Memory::check_read(const Region& where, std::int64_t begin, const Cell& cell,
                        std::int32_t record, const View& view) {
  if (cell.writer < 0) return;
  // A packet's flag arrives with its data, unless an older store left the same flag there.
  if (access(record).polls && !cell.rewritten) return;
  if (ordered(cell.writer, record, view, begin, cell.end, false)) return;
  // Whoever comes after a load that saw the packet sees the packet too.
  for (std::int32_t reader : cell.readers)
    if (access(reader).polls && !cell.rewritten &&
        ordered(reader, record, view, begin, cell.end, false))
      return;
  report(where, begin, cell.end, cell.writer, record);
}

/// Whether the thread that continues a trail comes after a load of the byte it is about to store
/// to.
bool Memory::behind(const Trail& trail, std::int32_t reader, std::int32_t images) const {
  if (!trail.steps) return false;
  const AccessRecord& load = access(reader);
  for (const Trail::Step& step : *trail.steps) {
    const std::int32_t turn = (step.turn + trail.turn) % images;
    if (step.record == reader && turn == 0 && step.delta + trail.shift == 0) return true;
    const Snapshot* store = stored_by(step.record);
    if (store == nullptr) continue;
    const std::int32_t image =
        (load.image + images - turn) % images;  // as the store's memory has it
    const Segment over = store->actor == load.actor && store->image == image
                             ? store->segment
                             : store->reads(load.actor, image);
    if (over > load.segment) return true;
  }
  return false;
}

void Memory::check_write(const Region& where, const Cell& cell, std::int32_t record,
                         const View& view, const Trail& trail) {
  bool seen = false;
  for (std::int32_t reader : cell.readers) {
    if (!ordered(reader, record, view, where.begin, where.end, true) &&
        !behind(trail, reader, view.images))
      return report(where, where.begin, where.end, reader, record);
    seen = seen || access(reader).polls;
  }
  // A packet that was seen has arrived: a store after that load cannot be overtaken by it.
  if (cell.writer < 0 || seen) return;
  if (!ordered(cell.writer, record, view, where.begin, where.end, false))
    report(where, where.begin, where.end, cell.writer, record);
}

/// Every byte with the trail of the piece that is stored there.
void Memory::check_writes(const Region& where, std::int32_t record, const View& view,
                          const std::vector<Piece>& pieces) {
  auto piece = pieces.begin();
  inspect(where, [&](const Region& all, const Cell* cell) {
    if (cell == nullptr) return;
    for (Region part = all; part.begin < all.end && piece != pieces.end(); part.begin = part.end) {
      while (piece != pieces.end() && where.begin + piece->end <= part.begin) ++piece;
      if (piece == pieces.end()) return;
      part.end = std::min(all.end, where.begin + piece->end);
      Trail trail = piece->trail;
      trail.shift -= where.begin;
      check_write(part, *cell, record, view, trail);
    }
  });
}

const Snapshot* Memory::stored_by(std::int32_t record) const {
  const auto found = packet_stores_.find(record);
  return found == packet_stores_.end() ? nullptr : &found->second;
}

/// A later load of the same actor stands for its earlier ones, except within a segment, where other
/// threads may have done them.
void Memory::add_reader(Cell& cell, std::int32_t record) const {
  const AccessRecord& now = access(record);
  for (std::int32_t& reader : cell.readers) {
    const AccessRecord& before = access(reader);
    if (before.actor != now.actor || before.image != now.image) continue;
    const bool same_pattern = before.base == now.base && before.width == now.width;
    if (before.polls && !now.polls) continue;
    if (before.segment < now.segment || same_pattern) {
      reader = record;
      return;
    }
  }
  cell.readers.push_back(record);
}

void Memory::read(const Region& where, std::int32_t record, const View& view,
                  std::vector<Piece>& out) {
  if (where.begin >= where.end) return;
  fill_gaps(where);
  const bool packets = is_packet(where.access);
  Cells& all = cells(where);
  for (auto at = all.find(where.begin); at != all.end() && at->first < where.end; ++at) {
    check_read(where, at->first, at->second, record, view);
    add_reader(at->second, record);
    Piece piece{at->first - where.begin, at->second.end - where.begin, at->second.value, {}};
    if (packets) {
      piece.trail = at->second.trail;
      piece.trail.shift += where.begin;
    }
    piece.value.shift += where.begin;
    append(out, std::move(piece));
  }
}

void Memory::write(const Region& where, std::int32_t record, const View& view,
                   const std::vector<Piece>& pieces, std::int64_t flag) {
  if (where.begin >= where.end) return;
  Cells& all = cells(where);
  check_writes(where, record, view, pieces);
  split(all, where.begin);
  const auto last = split(all, where.end);
  const auto first = all.lower_bound(where.begin);
  const bool packets = is_packet(where.access);
  const bool lamport = where.access == Access::lamport;
  bool rewritten = false;
  for (auto at = first; at != last && packets; ++at)
    rewritten = rewritten || (at->second.writer >= 0 && (lamport ? at->second.flag != 0 && flag != 0
                                                                 : at->second.flag == flag));
  if (packets) {
    layouts_[index(number_of(where))] = where.access;
    const AccessRecord& store = access(record);
    packet_stores_.emplace(
        record, Snapshot{view.clock, store.actor, store.segment, store.image, view.images});
  }
  auto hint = all.erase(first, last);
  for (const Piece& piece : pieces) {
    Cell cell;
    cell.end = where.begin + piece.end;
    cell.value = piece.value;
    cell.value.shift -= where.begin;
    cell.writer = record;
    cell.flag = flag;
    cell.rewritten = rewritten;
    if (packets) cell.trail = join(piece.trail, one_step(record, where.begin), view.images);
    cell.trail.shift -= where.begin;
    hint = std::next(all.emplace_hint(hint, where.begin + piece.begin, std::move(cell)));
  }
}

std::optional<std::int64_t> Memory::first_without(const Region& packets, std::int64_t flag) const {
  std::optional<std::int64_t> missing;
  inspect(packets, [&](const Region& part, const Cell* cell) {
    const bool there = cell != nullptr && cell->writer >= 0 && cell->flag == flag;
    if (!there && !missing) missing = part.begin;
  });
  return missing;
}

void Memory::stores_of(const Region& packets, std::int32_t image, std::int32_t images,
                       std::vector<Stored>& stores) const {
  const std::vector<Trail::Step>* last = nullptr;
  inspect(packets, [&](const Region&, const Cell* cell) {
    if (cell == nullptr || cell->writer < 0) return;
    const Stored direct{cell->writer, image, false};
    if (stores.empty() || stores.back() != direct) stores.push_back(direct);
    if (cell->trail.steps.get() == last) return;
    last = cell->trail.steps.get();
    for (const Trail::Step& step : *last)
      if (step.record != cell->writer && stored_by(step.record) != nullptr)
        stores.push_back({step.record, (step.turn + cell->trail.turn + image) % images, true});
  });
}

std::optional<Region> Memory::mixed_use() const {
  for (std::int32_t number = 0; number + 1 < static_cast<std::int32_t>(cells_.size());
       number += 2) {
    const Cells& packets = cells_[index(number) + 1];
    if (packets.empty() || cells_[index(number)].empty()) continue;
    const Access layout = layouts_[index(number) + 1];
    for (const auto& [begin, cell] : packets) {
      Region memory = memory_of(number);
      memory.begin = program::memory_offset(begin, layout);
      memory.end = memory.begin + program::memory_size(cell.end - begin, layout);
      bool used = false;
      inspect(memory, [&](const Region&, const Cell* other) { used = used || other != nullptr; });
      if (used) return memory;
    }
  }
  return std::nullopt;
}

}  // namespace hemiola::verify

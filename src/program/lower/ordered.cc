#include "program/lower/ordered.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/index.h"
#include "program/lower/parts.h"
#include "program/lower/symmetry.h"

namespace hemiola::program::general {
namespace {

constexpr std::int64_t kMostTransfers = 100'000;  // all are listed one by one

constexpr std::array<std::string_view, 3> kBufferNames{"input", "output", "scratch"};

void check_ordered(const plan::Plan& plan, const LowerOptions& options) {
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    throw Failure(fmt::format("plan '{}' {}", plan.name, what), kOption, hint);
  };
  for (const plan::Code& code : plan.codes) {
    if (code.computes.empty()) continue;
    refuse(fmt::format("computes ('{}'), which executors of collectives do not",
                       code.computes.front().name),
           "export the transfers alone, or run the plan with its own lowering");
  }
  if (options.piece.count != 0) refuse("does not move data in pieces", "leave piece out");
  if (options.realization != Realization::load_store &&
      options.realization != Realization::multicast)
    refuse(fmt::format("cannot be moved by {} in an executor", name_of(options.realization)),
           "choose realization=load-store or multicast");
  if (options.realization == Realization::multicast && plan.groups.empty())
    refuse("has no groups, so nothing can go through the switch", "choose realization=load-store");
  const std::int64_t transfers = plan::count_transfers(plan);
  if (transfers > kMostTransfers)
    refuse(fmt::format("has {} transfers; executors list them one by one, {} at most here",
                       transfers, kMostTransfers),
           "take fewer ranks or parts");
}

void place_tensors(const plan::Plan& plan, Ordered& list, Program& program) {
  std::array<int, 3> present{};
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    const plan::Tensor& tensor = plan.tensors[t];
    const std::int64_t width = tensor.type ? size_of(*tensor.type) : 1;
    const BufferKind kind = tensor.role == plan::Role::input    ? BufferKind::input
                            : tensor.role == plan::Role::output ? BufferKind::output
                                                                : BufferKind::scratch;
    const auto k = index(kind);
    if (kind != BufferKind::scratch && ++present[k] > 1)
      throw Failure(fmt::format("plan '{}' has two {} tensors, '{}' the second; executors know one",
                                plan.name, kBufferNames[k], tensor.name),
                    {.pointer = fmt::format("/tensors/{}", t)});
    list.place.emplace_back(kind, list.chunks[k]);
    list.chunks[k] += tensor.span() * width / list.unit;
  }
  program.buffers.clear();
  for (std::size_t k = 0; k < list.chunks.size(); ++k) {
    const auto kind = static_cast<BufferKind>(k);
    if (kind == BufferKind::scratch && list.chunks[k] == 0) continue;
    program.buffers.push_back(
        {.name = std::string(kBufferNames[k]), .kind = kind, .chunks = {list.chunks[k]}});
  }
}

}  // namespace

std::vector<Row> Ordered::rows_of(const Movement& movement) const {
  const std::vector<const Place*> places = movement.places();
  std::vector<Row> rows;
  for (const Strip& strip : movement.strips) {
    for (std::int64_t r = 0; r < strip.rows; ++r) {
      Row row{.chunk = {}, .chunks = strip.run / unit};
      for (std::size_t p = 0; p < places.size(); ++p)
        row.chunk.push_back((strip.offset[p] + r * strip.pitch[p]) / unit +
                            place[index(places[p]->area.tensor)].second);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::pair<BufferKind, std::int64_t> Ordered::memory(int rank, BufferKind kind, std::int64_t chunk,
                                                    std::int64_t parts) const {
  if (!in_place || kind == BufferKind::scratch) return {kind, chunk};
  const BufferKind whole = chunks[0] < chunks[1] ? BufferKind::output : BufferKind::input;
  if (kind == whole) return {kind, chunk};
  const std::int64_t first = chunks[0] == chunks[1] ? 0 : rank * std::min(chunks[0], chunks[1]);
  return {whole, first * parts + chunk};
}

Ordered ordered(const plan::Plan& plan, const LowerOptions& options, Program& program) {
  check_ordered(plan, options);
  Ordered list;
  list.movements = movements_of(plan, options);
  const Symmetry apart = no_symmetry(plan);                  // formats list the ranks one by one
  const Tiles none = tiles_of(plan, list.movements, apart);  // for the levels of movements
  cut_into_strips(list.movements);
  list.unit = unit_of(plan, list.movements, none, apart);
  if (plan.of_elements()) {
    fix_size(plan, program, list.unit);
    program.min_size = program.max_size = program.fixed_size;  // all that formats can say of it
  }
  place_tensors(plan, list, program);
  list.in_place = options.in_place;
  if (list.in_place) share_memory(program, plan);
  each_movement(list.movements, [&](const MovementId&, const Movement& movement) {
    if (!movement.strips.empty()) list.order.push_back(&movement);
  });
  std::ranges::stable_sort(
      list.order, [](const Movement* a, const Movement* b) { return a->level < b->level; });
  return list;
}

void Hazards::read(const Memory& memory, std::int64_t begin, std::int64_t count, std::int64_t who,
                   std::set<std::int64_t>& before) {
  memory_[memory].each(begin, begin + count, [&](std::int64_t, auto& cell) {
    if (cell.writer.who >= 0 && cell.writer.who != who) before.insert(cell.writer.who);
    cell.read_by(who);
  });
}

void Hazards::write(const Memory& memory, std::int64_t begin, std::int64_t count, std::int64_t who,
                    std::set<std::int64_t>& before) {
  MemoryMap<Writer, std::int64_t>& map = memory_[memory];
  map.each(begin, begin + count, [&](std::int64_t, auto& cell) {
    if (cell.writer.who >= 0 && cell.writer.who != who) before.insert(cell.writer.who);
    for (const std::int64_t reader : cell.readers)
      if (reader != who) before.insert(reader);
  });
  map.write(begin, begin + count, {who});
}

std::vector<Reduction::ItemOf> Reduction::next(std::int32_t actor,
                                               const std::vector<ItemOf>& before) {
  KnownItems& now = now_[actor];
  std::vector<ItemOf> latest_first = before;
  std::ranges::sort(latest_first, [&](const ItemOf& a, const ItemOf& b) {
    return then_.at(a).first > then_.at(b).first;
  });
  std::vector<ItemOf> waits;
  for (const ItemOf& item : latest_first) {
    if (now.knows(item.first, item.second)) continue;
    if (item.first != actor) waits.push_back(item);
    now.learn(then_.at(item).second);
  }
  const std::int32_t own = count_[actor]++;
  now.learn(actor, own);
  then_[{actor, own}] = {std::ssize(then_), now};
  return waits;
}

}  // namespace hemiola::program::general

// Memory as rows at equal distances, and rows that are alike.
#include "program/lower/rows.h"

#include <algorithm>
#include <map>

#include "core/index.h"

namespace hemiola::program::general {

std::int64_t Place::units() const {
  std::int64_t units = 0;
  for (const Strip& strip : rows) units += strip.units();
  return units;
}

bool same(const Place& a, const Place& b) {
  return a.rank == b.rank && a.group == b.group && a.area.tensor == b.area.tensor &&
         a.rows == b.rows;
}

void append(std::vector<Strip>& strips, Strip rows) {
  while (rows.rows > 0) {
    if (rows.rows == 1) rows.pitch.assign(rows.offset.size(), rows.run);
    Strip* last = strips.empty() ? nullptr : &strips.back();
    bool follows = last != nullptr && last->run == rows.run;
    for (std::size_t p = 0; p < rows.offset.size() && follows; ++p) {
      const std::int64_t step =
          rows.offset[p] - last->offset[p] - (last->rows - 1) * last->pitch[p];
      follows = last->rows == 1 ? step >= rows.run : step == last->pitch[p];
    }
    if (!follows) {
      strips.push_back(std::move(rows));
      return;
    }
    for (std::size_t p = 0; p < rows.offset.size() && last->rows == 1; ++p)
      last->pitch[p] = rows.offset[p] - last->offset[p];
    const std::int64_t count = rows.pitch == last->pitch ? rows.rows : 1;
    last->rows += count;
    rows.rows -= count;
    for (std::size_t p = 0; p < rows.offset.size(); ++p) rows.offset[p] += count * rows.pitch[p];
  }
}

std::vector<Strip> part_of(const std::vector<Strip>& rows, std::int64_t begin, std::int64_t count) {
  std::vector<Strip> part;
  const auto add = [&](const Strip& strip, std::int64_t row, std::int64_t from, std::int64_t to,
                       std::int64_t times) {
    if (from < to && times > 0)
      append(part,
             {{strip.offset[0] + row * strip.pitch[0] + from}, strip.pitch, to - from, times});
  };
  for (const Strip& strip : rows) {
    const std::int64_t from = std::clamp<std::int64_t>(begin, 0, strip.units());
    const std::int64_t to = std::clamp<std::int64_t>(begin + count, 0, strip.units());
    begin -= strip.units();
    const std::int64_t first = from / strip.run, last = to / strip.run;
    if (first == last) {
      add(strip, first, from % strip.run, to % strip.run, 1);
      continue;
    }
    const bool cut = from % strip.run > 0;
    if (cut) add(strip, first, from % strip.run, strip.run, 1);
    const std::int64_t whole = first + (cut ? 1 : 0);
    add(strip, whole, 0, strip.run, last - whole);
    add(strip, last, 0, to % strip.run, 1);
  }
  return part;
}

std::vector<plan::Segment> segments_of(const Place& place) {
  std::vector<plan::Segment> segments;
  for (const Strip& strip : place.rows)
    for (std::int64_t r = 0; r < strip.rows; ++r)
      segments.push_back({strip.offset[0] + r * strip.pitch[0], strip.run});
  return segments;
}

std::vector<Strip> strips_of(const std::vector<const Place*>& places) {
  std::vector<Strip> strips;
  if (places.empty()) return strips;
  struct Walk {
    std::size_t strip = 0;
    std::int64_t row = 0, used = 0;
  };
  std::vector<Walk> walks(places.size());
  const auto strip = [&](std::size_t p) -> const Strip& { return places[p]->rows[walks[p].strip]; };
  Strip next;
  next.offset.assign(places.size(), 0);
  next.pitch.assign(places.size(), 0);
  while (walks[0].strip < places[0]->rows.size()) {
    next.run = next.rows = INT64_MAX;
    for (std::size_t p = 0; p < places.size(); ++p)
      next.run = std::min(next.run, strip(p).run - walks[p].used);
    // Whole rows at their distances, or pieces of one.
    const auto is_whole = [&](std::size_t p) { return strip(p).run == next.run; };
    for (std::size_t p = 0; p < places.size(); ++p) {
      const Walk& walk = walks[p];
      next.offset[p] = strip(p).offset[0] + walk.row * strip(p).pitch[0] + walk.used;
      next.pitch[p] = is_whole(p) ? strip(p).pitch[0] : next.run;
      next.rows = std::min(next.rows, is_whole(p) ? strip(p).rows - walk.row
                                                  : (strip(p).run - walk.used) / next.run);
    }
    for (std::size_t p = 0; p < places.size(); ++p) {
      Walk& walk = walks[p];
      if (is_whole(p)) {
        walk.row += next.rows;
      } else if ((walk.used += next.run * next.rows) == strip(p).run) {
        walk.used = 0;
        ++walk.row;
      }
      if (walk.row == strip(p).rows) walk = {walk.strip + 1, 0, 0};
    }
    append(strips, next);
  }
  return strips;
}

std::vector<Strip> strips_of(const plan::Tensor& tensor, const plan::Area& area) {
  const std::int64_t unit = tensor.type ? size_of(*tensor.type) : 1;
  const std::vector<std::int64_t> stride = tensor.layout();
  std::vector<Strip> strips;
  for (const plan::Rect& rect : area.rects) {
    if (rect.empty()) continue;
    // The last axes that are consecutive in memory make a row, the next one counts rows, and those
    // before it count strips.
    std::size_t axis = stride.size();
    std::int64_t run = 1;
    while (axis > 0 && stride[axis - 1] == run) {
      run *= rect.end[axis - 1] - rect.begin[axis - 1];
      --axis;
    }
    Strip strip;
    strip.run = run * unit;
    strip.rows = axis > 0 ? rect.end[axis - 1] - rect.begin[axis - 1] : 1;
    strip.pitch = {axis > 0 ? stride[axis - 1] * unit : strip.run};
    plan::Coordinates at = rect.begin;
    while (true) {
      std::int64_t offset = 0;
      for (std::size_t i = 0; i < at.size(); ++i) offset += at[i] * stride[i];
      strip.offset = {offset * unit};
      strips.push_back(strip);
      std::size_t outer = axis > 0 ? axis - 1 : 0;
      while (outer > 0 && ++at[outer - 1] == rect.end[outer - 1]) {
        at[outer - 1] = rect.begin[outer - 1];
        --outer;
      }
      if (outer == 0) break;
    }
  }
  return strips;
}

std::vector<Strip> rows_of(const plan::Tensor& tensor, const plan::Area& area) {
  std::vector<Strip> rows;
  for (Strip& strip : strips_of(tensor, area)) {
    if (!rows.empty() && rows.back().end() == strip.offset[0]) {
      const Strip before = rows.back();
      rows.pop_back();
      const std::int64_t joined = before.run + strip.run;
      if (before.rows > 1) append(rows, {before.offset, before.pitch, before.run, before.rows - 1});
      append(rows, {{strip.offset[0] - before.run}, {joined}, joined});
      strip.offset[0] += strip.pitch[0];
      --strip.rows;
    }
    append(rows, std::move(strip));
  }
  return rows;
}

void cut_into_strips(Movements& movements) {
  const auto rows_of_packets = [](const std::vector<const Place*>& places, const Strip& strip) {
    for (std::size_t p = 0; p < places.size(); ++p)
      if (places[p]->packets && strip.rows > 1 && strip.pitch[p] != strip.run) return true;
    return false;
  };
  each_movement(movements, [&](const MovementId&, Movement& movement) {
    const std::vector<const Place*> places = movement.places();
    movement.strips.clear();
    for (Strip& strip : strips_of(places)) {
      if (!rows_of_packets(places, strip)) {
        movement.strips.push_back(std::move(strip));
        continue;
      }
      for (std::int64_t row = 0; row < strip.rows; ++row) {
        Strip one{strip.offset, {}, strip.run, 1};
        one.pitch.assign(places.size(), strip.run);
        for (std::size_t p = 0; p < places.size(); ++p) one.offset[p] += row * strip.pitch[p];
        movement.strips.push_back(std::move(one));
      }
    }
  });
}

DistinctRows::DistinctRows(const plan::Plan& plan, const Movements& movements)
    : memories_(plan.tensors.size() + 1) {  // and packets
  if (!plan.of_elements()) return;
  const auto each_strip = [&](const auto& visit) {
    each_movement(movements, [&](const MovementId&, const Movement& movement) {
      for (const Place* place : movement.places())
        for (const Strip& strip : place->rows) visit(memories_[index(place->area.tensor)], strip);
    });
  };
  std::map<const Memory*, std::int64_t> most;
  each_strip([&](Memory& memory, const Strip& strip) {
    if (strip.rows <= std::max<std::int64_t>(1, most[&memory])) return;
    most[&memory] = strip.rows;
    memory.pitch = strip.pitch[0];
  });
  each_strip([](Memory& memory, const Strip& strip) {
    if (memory.pitch == 0) return;
    if (memory.has_rows(strip)) {
      const std::int64_t first = strip.offset[0] / memory.pitch;
      memory.rows.push_back(first);
      memory.rows.push_back(first + strip.rows);
      return;
    }
    for (std::int64_t r = 0, at = strip.offset[0]; r < strip.rows; ++r, at += strip.pitch[0]) {
      memory.cut_at(at);
      memory.cut_at(at + strip.run);
    }
  });
  for (Memory& memory : memories_) {
    std::ranges::sort(memory.rows);
    memory.rows.erase(std::unique(memory.rows.begin(), memory.rows.end()), memory.rows.end());
  }
}

void DistinctRows::Memory::cut_at(std::int64_t unit) {
  rows.push_back(unit / pitch);
  if (unit % pitch > 0) rows.push_back(unit / pitch + 1);
}

std::int64_t DistinctRows::Memory::without_others(std::int64_t unit) const {
  if (pitch == 0) return unit;
  const auto at = std::lower_bound(rows.begin(), rows.end(), unit / pitch);
  return (at - rows.begin()) * pitch + unit % pitch;
}

}  // namespace hemiola::program::general

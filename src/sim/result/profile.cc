#include "sim/result/profile.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/diagnostics.h"
#include "core/units.h"
#include "sim/support/index.h"

namespace hemiola::sim {
namespace {

auto key_of(const ProfileRow& row) {
  return std::tie(row.time, row.destination, row.stream, row.order, row.source, row.kind,
                  row.buffer, row.offset, row.size, row.value, row.request, row.links, row.path,
                  row.message, row.packets, row.flag, row.took, row.after_buffer, row.after_offset,
                  row.after_value, row.tag);
}

/// Rows that are alike differ by those that they come after.
bool before(const std::vector<ProfileRow>& rows, std::int32_t a, std::int32_t b) {
  while (a >= 0 && b >= 0 && a != b) {
    const ProfileRow& x = rows[index(a)];
    const ProfileRow& y = rows[index(b)];
    if (key_of(x) != key_of(y)) return key_of(x) < key_of(y);
    a = x.after_row;
    b = y.after_row;
  }
  return a < 0 && b >= 0;
}

}  // namespace

std::string Profile::describe(std::int32_t row) const {
  const std::string& tag = rows[index(row)].tag;
  std::string text =
      index(row) < places.size() ? "row at " + places[index(row)] : "row " + std::to_string(row);
  return tag.empty() ? text : text + " '" + tag + "'";
}

Profile in_order(Profile profile) {
  std::vector<std::int32_t> order(profile.rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(
      order, [&](std::int32_t a, std::int32_t b) { return before(profile.rows, a, b); });
  std::vector<std::int32_t> place(order.size());
  for (std::size_t p = 0; p < order.size(); ++p)
    place[index(order[p])] = static_cast<std::int32_t>(p);
  std::vector<ProfileRow> sorted;
  std::vector<std::string> places;
  for (const std::int32_t r : order) {
    sorted.push_back(std::move(profile.rows[index(r)]));
    if (sorted.back().after_row >= 0)
      sorted.back().after_row = place[index(sorted.back().after_row)];
    if (index(r) < profile.places.size()) places.push_back(std::move(profile.places[index(r)]));
  }
  profile.rows.swap(sorted);
  profile.places.swap(places);
  return profile;
}

void delay(Profile& profile, int source, Time by) {
  // By row: whether a row of the rank is among those that it comes after. 0: not known yet.
  std::vector<signed char> moved(profile.rows.size());
  std::vector<std::int32_t> chain;
  for (std::size_t r = 0; r < profile.rows.size(); ++r) {
    for (auto at = static_cast<std::int32_t>(r); at >= 0 && moved[index(at)] == 0;
         at = profile.rows[index(at)].after_row)
      chain.push_back(at);
    for (; !chain.empty(); chain.pop_back()) {
      ProfileRow& row = profile.rows[index(chain.back())];
      const bool before = row.after_row >= 0 && moved[index(row.after_row)] > 0;
      const bool own = row.source == source;
      if (own && !before) row.time += by;
      moved[index(chain.back())] = own || before ? 1 : -1;
    }
  }
  profile = in_order(std::move(profile));
}

void register_write(Profile& profile, int source, int destination, Time time,
                    std::string_view buffer, std::int64_t offset, std::int64_t value,
                    std::int64_t bytes) {
  const auto is_rank = [&](int rank) { return rank >= 0 && rank < profile.ranks; };
  if (!is_rank(source) || !is_rank(destination) || source == destination)
    throw Failure("no write from rank " + std::to_string(source) + " to rank " +
                      std::to_string(destination) + " of " + std::to_string(profile.ranks),
                  {.file = profile.file});
  if (time.fs < 0 || offset < 0 || bytes < 1 || offset > INT64_MAX - bytes)
    throw Failure("no write of " + std::to_string(bytes) + " B at offset " +
                      std::to_string(offset) + " at " + to_string(time),
                  {.file = profile.file});
  auto found = std::ranges::find(profile.buffers, buffer, &ProfileBuffer::name);
  if (found == profile.buffers.end())
    found = profile.buffers.insert(found, {std::string(buffer), 0});
  found->bytes = std::max(found->bytes, offset + bytes);
  ProfileRow row;
  row.time = time;
  row.source = source;
  row.destination = destination;
  row.kind = buffer == kSemaphores ? ProfileKind::add : ProfileKind::write;
  row.buffer = static_cast<std::int32_t>(found - profile.buffers.begin());
  row.offset = offset;
  row.size = bytes;
  row.value = value;
  profile.rows.push_back(std::move(row));
}

}  // namespace hemiola::sim

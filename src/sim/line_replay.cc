// The line engine: what comes in at a rank's GPU is recorded, or put in from a profile
// (docs/replay.md).

#include <algorithm>
#include <bit>
#include <string>
#include <tuple>

#include "sim/line.h"

namespace hemiola::sim {

// --- Recording, at the end of the last link.

void Line::start_recording() {
  Profile& profile = *options_.record;
  profile = {.file = {}, .ranks = program_.ranks, .buffers = {}, .rows = {}};
  const std::int64_t semaphores = barrier_base_ + program_.barriers;
  profile.buffers = {{std::string(kWholeMemory), addresses_.end()},
                     {std::string(kSemaphores), 8 * std::max<std::int64_t>(1, semaphores)}};
}

// What a poll of somebody else's memory finds is not in a row.
void Line::refuse_polls(const Request& request) const {
  if (!is_load(request.intent) || (!request.packet && request.intent != Intent::poll)) return;
  throw Failure("rank " + std::to_string(request.source) + " polls memory of rank " +
                    std::to_string(request.target) + ", which a profile cannot tell",
                {.file = program_.source}, "record a program whose waits are local");
}

void Line::record(std::int32_t id, const WayLeg& leg, std::int64_t now) {
  const Request& request = requests_[index(id)];
  Profile& profile = *options_.record;
  ProfileRow row;
  row.time = {now};
  row.stream = leg.in_port;
  row.destination = options_.watched;
  row.size = request.bytes;
  if (request.stage == Stage::back_out) {
    row.source = request.target;
    row.kind = is_load(request.intent) ? ProfileKind::response : ProfileKind::acknowledgement;
    row.request = numbers_[index(id)];
  } else {
    row.source = request.source;
    row.buffer = 0;
    row.offset = std::int64_t{request.line} << line_shift_;
    if (request.intent == Intent::flag) {
      row.kind = ProfileKind::add;
      row.buffer = 1;
      row.offset = 8 * std::int64_t{detail(request).semaphore};
      row.value = detail(request).increment;
      row.size = 8;
    } else if (request.packet) {
      const std::uint64_t mask = detail(request).packet_mask;
      row.kind = ProfileKind::packet;
      row.offset += 8 * std::countr_zero(mask);
      row.size = 8 * std::popcount(mask);
      row.value = detail(request).packet_flag;
    } else {
      row.kind = is_load(request.intent) ? ProfileKind::read : ProfileKind::write;
    }
    refuse_polls(request);
  }
  profile.rows.push_back(std::move(row));
}

// A request of the watched rank leaves its port for the first link.
void Line::number_request(std::int32_t id) {
  if (index(id) >= numbers_.size()) numbers_.resize(index(id) + 1, -1);
  numbers_[index(id)] = asked_++;
  const Request& request = requests_[index(id)];
  refuse_polls(request);
  if (options_.replay == nullptr) return;
  under_way_[numbers_[index(id)]] = id;
  if (!request.polling) --active_;  // the row that answers it is counted
}

bool Line::waits_in_vain(std::int32_t wave) const {
  if (next_row_ < rows_.size()) return false;
  return std::any_of(under_way_.begin(), under_way_.end(), [&](const auto& asked) {
    return requests_[index(asked.second)].wave == wave;
  });
}

// --- Replay.

void Line::start_replay() {
  const Profile& profile = *options_.replay;
  if (profile.ranks != program_.ranks)
    throw Failure("the profile is of " + std::to_string(profile.ranks) + " ranks, the program of " +
                      std::to_string(program_.ranks),
                  {.file = profile.file});
  for (const ProfileBuffer& buffer : profile.buffers) {
    std::int32_t found = -1;
    for (std::size_t b = 0; b < program_.buffers.size(); ++b)
      if (program_.buffers[b].name == buffer.name) found = static_cast<std::int32_t>(b);
    if (found < 0 && buffer.name != kWholeMemory && buffer.name != kSemaphores)
      throw Failure("the program has no buffer '" + buffer.name + "'", {.file = profile.file});
    const std::int64_t there = found >= 0 ? program_.memory_bytes(found, options_.watched)
                               : buffer.name == kSemaphores
                                   ? 8 * std::int64_t{barrier_base_ + program_.barriers}
                                   : addresses_.end();
    if (buffer.bytes > there)
      throw Failure("buffer '" + buffer.name + "' has " + std::to_string(buffer.bytes) +
                        " B in the profile, " + std::to_string(there) + " in the program",
                    {.file = profile.file}, "was it recorded at another size?");
    replayed_buffers_.push_back(found);
  }
  for (const ProfileRow& row : profile.rows) {
    if (row.destination != options_.watched) continue;
    if (row.waits())
      throw Failure("rows that wait for others are not replayed yet", {.file = profile.file});
    const bool adds = row.kind == ProfileKind::add;
    const bool flag = !row.is_answer() && profile.buffers[index(row.buffer)].name == kSemaphores;
    if (adds != flag || (adds && row.offset % 8 != 0))
      throw Failure(
          "a row of kind " + std::string(name_of(row.kind)) + " at offset " +
              std::to_string(row.offset) + (adds ? " adds to no semaphore" : " is for a semaphore"),
          {.file = profile.file},
          "semaphores are 8 B each in '" + std::string(kSemaphores) + "', others add to them");
    rows_.push_back(&row);
  }
  std::stable_sort(rows_.begin(), rows_.end(), [](const ProfileRow* a, const ProfileRow* b) {
    return std::tie(a->time, a->stream, a->order) < std::tie(b->time, b->stream, b->order);
  });
  active_ += std::ssize(rows_);  // what polls wait for may be among them
}

// Rows come in at ports that nothing else feeds: they may be served as soon as the requests that
// they answer have left, which they did a round trip before.
void Line::put_in(std::int64_t round) {
  Gpu& gpu = stages_[index(options_.watched)];
  std::int64_t end = 0;
  for (const Calendar* stage : {&gpu.slices, &gpu.cu_in, &gpu.done})
    end = std::max(end, stage->begin_of(round + 1));
  for (; next_row_ < rows_.size() && rows_[next_row_]->time.fs < end; ++next_row_) {
    const ProfileRow& row = *rows_[next_row_];
    if (!row.is_answer()) {
      --active_;
      put_in(row);
      continue;
    }
    const std::int32_t id = answered(row);
    if (id < 0) {
      if (row.time.fs >= gpu.done.begin_of(round)) return;
      throw Failure("rank " + std::to_string(row.source) + " answers request " +
                        std::to_string(row.request) + " of rank " +
                        std::to_string(row.destination) + " at " + to_string(row.time) +
                        ", before that was sent",
                    {.file = options_.replay->file}, "was it recorded from this program?");
    }
    Request& request = requests_[index(id)];
    request.spent.charge_until(Reason::link, row.time.fs);
    arrive(id, request, leg_of(request), row.time.fs);
  }
}

// When something of the profile is to be put in; INT64_MAX: there is nothing left.
std::int64_t Line::round_of_rows() const {
  if (next_row_ == rows_.size()) return INT64_MAX;
  return std::max(last_round_ + 1, (rows_[next_row_]->time.fs >> shift_) - 2);
}

// The request that a row answers; -1: it has not left yet.
std::int32_t Line::answered(const ProfileRow& row) {
  const auto found = under_way_.find(row.request);
  if (found == under_way_.end()) return -1;
  const std::int32_t id = found->second;
  under_way_.erase(found);
  Request& request = requests_[index(id)];
  if (request.target != row.source ||
      is_load(request.intent) != (row.kind == ProfileKind::response))
    throw Failure("request " + std::to_string(row.request) + " of rank " +
                      std::to_string(row.destination) + " is not of the kind that rank " +
                      std::to_string(row.source) + " answers",
                  {.file = options_.replay->file}, "was it recorded from this program?");
  request.stage = Stage::back_out;
  return id;
}

// What somebody else asks of the watched rank: a request for every line, one behind the other.
void Line::put_in(const ProfileRow& row) {
  const std::int32_t buffer = replayed_buffers_[index(row.buffer)];
  const std::int64_t first =
      buffer < 0
          ? row.offset
          : addresses_.start_of({.rank = row.destination, .buffer = buffer, .offset = row.offset});
  for (std::int64_t at = first; at < first + row.size;) {
    const std::int64_t end =
        std::min(first + row.size, (line_of(at) + std::int64_t{1}) << line_shift_);
    const std::int32_t id = request_of(row, at, end);
    Request& request = requests_[index(id)];
    request.spent.charge_until(Reason::link, row.time.fs);
    arrive(id, request, leg_of(request), row.time.fs);
    if (row.kind == ProfileKind::add) return;
    at = end;
  }
}

// For the bytes [address, end) of one line.
std::int32_t Line::request_of(const ProfileRow& row, std::int64_t address, std::int64_t end) {
  const std::int32_t id = allocate(false);
  Request& request = requests_[index(id)];
  request.source = static_cast<std::int16_t>(row.source);
  request.target = static_cast<std::int16_t>(row.destination);
  request.cu = 0;
  request.stage = Stage::out;
  request.local = false;
  request.intent = row.kind == ProfileKind::read  ? Intent::load
                   : row.kind == ProfileKind::add ? Intent::flag
                                                  : Intent::store;
  const std::int64_t last = end - 1;
  request.line = line_of(address);
  request.bytes = static_cast<std::int32_t>(std::min(
      ((last >> sector_shift_) - (address >> sector_shift_) + 1) << sector_shift_, line_size_));
  if (row.kind == ProfileKind::add) {
    Detail& flag = add_detail(request);
    flag.semaphore = static_cast<std::int32_t>(row.offset / 8);
    flag.increment = row.value;
    request.line = flag_line(flag.semaphore);
  } else if (row.kind == ProfileKind::packet) {
    request.packet = request.volatile_ = true;
    Detail& packet = add_detail(request);
    packet.packet_flag = row.value;
    for (std::int64_t granule = address % line_size_ / 8; granule <= last % line_size_ / 8;
         ++granule)
      packet.packet_mask |= std::uint64_t{1} << granule;
  }
  request.takes = request.detail >= 0;
  request.size = static_cast<std::uint8_t>(sectors(request.bytes));
  request.slice = static_cast<std::int16_t>(slice_of(row.destination, request.line));
  const Fabric::Paths paths = fabric_.paths(row.source, row.destination);
  request.route = paths.first;
  if (row.stream < 0) {
    request.route += static_cast<std::int32_t>(machine::select_path(request.line, paths.count));
    return id;
  }
  for (std::int32_t p = 0; p < paths.count; ++p) {
    request.route = paths.first + p;
    if (fabric_.path(request.route).destination_port == row.stream) return id;
  }
  throw Failure("no way from rank " + std::to_string(row.source) + " to rank " +
                    std::to_string(row.destination) + " comes in at port " +
                    std::to_string(row.stream),
                {.file = options_.replay->file});
}

}  // namespace hemiola::sim

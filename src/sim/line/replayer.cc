#include "sim/line/replayer.h"

#include <algorithm>
#include <string>

#include "sim/device/copy_engines.h"
#include "sim/device/host.h"
#include "sim/device/memory.h"
#include "sim/device/sync.h"
#include "sim/line/engine_stages.h"
#include "sim/line/links.h"
#include "sim/line/recorder.h"
#include "sim/line/stages.h"
#include "sim/line/way_table.h"
#include "sim/replay/recorded_run.h"
#include "sim/result/profile.h"

namespace hemiola::sim {
namespace {

constexpr std::int64_t kRankShift = 40;  // numbers of requests, semaphores and granules are below

std::uint64_t key_of(int rank, std::int64_t number) {
  return static_cast<std::uint64_t>(rank) << kRankShift | static_cast<std::uint64_t>(number);
}
constexpr std::uint64_t kInMemory = std::uint64_t{1} << 63;
constexpr const char* kOtherRun =
    "was it recorded from this program, and are all rows there? --answers live works them out anew";

/// For who has named one that is not there.
std::string valid_buffers(const std::string& wanted, const program::Bound& program) {
  std::vector<std::string> names{std::string(kWholeMemory), std::string(kSemaphores)};
  for (const program::Buffer& buffer : program.buffers()) names.push_back(buffer.name);
  const std::string near = suggest(wanted, names);
  std::string text = near.empty() ? "it has" : near + "; it has";
  constexpr std::size_t kMost = 8;
  for (std::size_t n = 0; n < std::min(kMost, names.size()); ++n)
    text += (n == 0 ? " '" : ", '") + names[n] + "'";
  if (names.size() > kMost) text += ", ...";
  return text + " ('replay --describe' lists them)";
}

}  // namespace

// --- What is replayed.

void Replayer::start_replay() {
  const Profile& profile = *device_.options.replay;
  match_buffers();
  at_ports_ = device_.options.at_ports || profile.at_ports;
  const std::int64_t cycle =
      1'000'000'000'000'000 / device_.model(device_.options.watched.front()).cu_clock.hertz;
  timetable_ =
      std::make_unique<Timetable>(profile, make_write_table(device_.options.table, Time{cycle}));
  // Answers at ingress say nothing of links: where these are simulated, others answer by
  // themselves; and so where no row does.
  answered_by_rows_.resize(index(device_.program.ranks()));
  used_.resize(profile.rows.size());
  bool all = at_ports_;
  for (std::size_t r = 0; r < profile.rows.size(); ++r) {
    const ProfileRow& row = profile.rows[r];
    if (row.is_answer() && device_.is_watched(row.destination) && !device_.is_watched(row.source) &&
        at_ports_ == profile.at_ports && device_.options.answers != Answers::live)
      answered_by_rows_[index(row.destination)] = true;
    const std::int32_t signal = timetable_->signal_of(static_cast<std::int32_t>(r));
    if (signal >= 0) all = true;
  }
  for (const int rank : device_.options.watched) all = all || !answered_by_rows_[index(rank)];
  recorder_.carry_all_or_between_watched(all);
  recorder_.refuse_groups();
  for (std::size_t r = 0; r < profile.rows.size(); ++r) {
    used_[r] = is_used(profile.rows[r]) &&
               (!device_.is_watched(profile.rows[r].source) || !all);  // these do it themselves
    if (!used_[r]) continue;
    check_row(static_cast<std::int32_t>(r));
    if (device_.options.answers == Answers::relative && profile.rows[r].is_answer())
      paces_.add(profile.rows[r], static_cast<std::int32_t>(r));
    else
      expect(static_cast<std::int32_t>(r));
  }
  paces_.finish();
}

// Buffers are the program's.
void Replayer::match_buffers() {
  const Profile& profile = *device_.options.replay;
  for (const ProfileBuffer& buffer : profile.buffers) {
    std::int32_t found = -1;
    for (std::size_t b = 0; b < device_.program.buffers().size(); ++b)
      if (device_.program.buffers()[b].name == buffer.name) found = static_cast<std::int32_t>(b);
    if (found < 0 && buffer.name != kWholeMemory && buffer.name != kSemaphores)
      throw Failure("the program has no buffer '" + buffer.name + "'", {.file = profile.file},
                    valid_buffers(buffer.name, device_.program));
    const std::int64_t there =
        found >= 0 ? device_.program.memory_bytes(found, device_.options.watched.front())
        : buffer.name == kSemaphores ? 8 * std::max<std::int64_t>(1, recorder_.semaphore_count())
                                     : device_.addresses.end();
    if (buffer.bytes > there)
      throw Failure("buffer '" + buffer.name + "' has " + std::to_string(buffer.bytes) +
                        " B in the profile, " + std::to_string(there) + " in the program",
                    {.file = profile.file},
                    "was it recorded at another size? 'replay --describe' says what is there");
    replayed_buffers_.push_back(found);
  }
}

// What comes in at a watched rank, and what takes room on links that are simulated.
bool Replayer::is_used(const ProfileRow& row) const {
  if (!device_.is_watched(row.destination)) return at_ports_ || row.links > 0;
  if (device_.is_watched(row.source)) return false;  // it does that itself
  return !row.is_answer() || answered_by_rows_[index(row.destination)];
}

void Replayer::check_row(std::int32_t r) const {
  const Profile& profile = *device_.options.replay;
  const ProfileRow& row = profile.rows[index(r)];
  const auto fail = [&](const std::string& message, const std::string& hint = {}) {
    throw Failure("the " + profile.describe(r) + ' ' + message, {.file = profile.file}, hint);
  };
  if (row.is_answer()) {
    if (row.request < 0 && device_.is_watched(row.destination)) fail("answers no request");
  } else if (row.kind == ProfileKind::burst) {
    if (row.flag >= 0 && (row.flag % 8 != 0 || row.flag / 8 >= recorder_.semaphore_count()))
      fail("has flag " + std::to_string(row.flag) + ", where no semaphore is",
           "the program has " + std::to_string(recorder_.semaphore_count()) +
               " semaphores of 8 B each in '" + std::string(kSemaphores) + "'");
    if (row.buffer >= 0 && profile.buffers[index(row.buffer)].name == kSemaphores)
      fail("is for a semaphore", "the last burst of a message names it as its flag");
  } else {
    const bool adds = row.kind == ProfileKind::add;
    const bool flag = profile.buffers[index(row.buffer)].name == kSemaphores;
    if (adds != flag || (adds && row.offset % 8 != 0))
      fail("of kind " + std::string(name_of(row.kind)) + " at offset " +
               std::to_string(row.offset) +
               (adds ? " adds to no semaphore" : " is for a semaphore"),
           "semaphores are 8 B each in '" + std::string(kSemaphores) + "', others add to them");
  }
  const std::int32_t signal = timetable_->signal_of(r);
  if (signal < 0) return;
  if (row.links > 0 && !at_ports_) fail("begins on its way, which rows behind signals cannot");
  const ProfileRow& root = profile.rows[index(signal)];
  if (device_.is_watched(root.source) || !device_.is_watched(root.destination))
    fail("waits for a signal from rank " + std::to_string(root.destination) + " to rank " +
             std::to_string(root.source) + "; these come from simulated ranks to others",
         "the rank that is simulated is the destination of the row");
}

void Replayer::expect(std::int32_t r) {
  const std::int32_t signal = timetable_->signal_of(r);
  if (signal >= 0) {
    timetable_->expect(r, place_of_signal(device_.options.replay->rows[index(signal)]));
    return;
  }
  timetable_->expect(r);
  ++rows_to_come_;
  ++device_.tally().active;  // what polls wait for may be among them
}

// --- Places.

std::int64_t Replayer::address_of(std::int32_t buffer, std::int64_t offset, int rank) const {
  const std::int32_t own = replayed_buffers_[index(buffer)];
  if (own < 0 && device_.options.replay->buffers[index(buffer)].name == kSemaphores)
    return device_.addresses.end() + offset;
  if (own < 0) return offset;
  return device_.addresses.start_of({.rank = rank, .buffer = own, .offset = offset});
}

// Of what the destination of a row signals to its source.
std::uint64_t Replayer::place_of_signal(const ProfileRow& row) const {
  if (device_.options.replay->buffers[index(row.after_buffer)].name == kSemaphores)
    return key_of(row.source, row.after_offset / 8);
  const std::int64_t address = address_of(row.after_buffer, row.after_offset, row.source);
  return kInMemory | key_of(row.source, address / 8);
}

// A flag, or packets, of a simulated rank have come to one that is not.
void Replayer::signal(const Request& request, std::int64_t now) {
  std::int64_t fired = 0;
  if (request.intent == Intent::flag) {
    const std::uint64_t place = key_of(request.target, device_.detail(request).semaphore);
    if (timetable_->awaits(place))
      fired = timetable_->reached(
          place, timetable_->value_at(place) + device_.detail(request).increment, now);
  } else if (request.intent == Intent::burst) {
    if (device_.detail(request).packets < 0) return;  // of a message: it is not the last one
    for (const program::SemaphoreId id :
         device_.descriptors[index(device_.detail(request).descriptor)].semaphores) {
      const std::uint64_t place = key_of(id.rank, id.index);
      if (timetable_->awaits(place))
        fired += timetable_->reached(place, timetable_->value_at(place) + 1, now);
    }
  } else if (request.packet) {
    const std::int64_t first = (std::int64_t{request.line} << device_.lines.shift) / 8;
    for (std::int64_t granule = 0; granule < device_.lines.size / 8; ++granule) {
      if ((device_.detail(request).packet_mask >> granule & 1) == 0) continue;
      fired += timetable_->reached(kInMemory | key_of(request.target, first + granule),
                                   device_.detail(request).packet_flag, now);
    }
  }
  device_.tally().active += fired;
  rows_to_come_ += fired;
}

// --- Rows that are due.

// Every row is put in before the stage at which it begins comes to its round: what it answers was
// sent in an earlier one, since an answer passes stages of other GPUs that stand before links.
void Replayer::put_in(std::int64_t round) {
  if (host_.all_done()) return;  // what comes later is no part of the replay
  std::erase_if(unmatched_, [&](const auto& late) { return put_in_answer(late.first, round); });
  const std::int64_t end = ((round + 1) << stages_.shift) + stages_.latest_offset;
  for (std::int32_t r = timetable_->take(end); r >= 0; r = timetable_->take(end)) {
    const ProfileRow& row = device_.options.replay->rows[index(r)];
    --rows_to_come_;
    if (row.is_answer() && device_.is_watched(row.destination)) {
      if (!put_in_answer(r, round))
        unmatched_.emplace_back(r,
                                (timetable_->due(r) - entry_of(row).begin_of(0)) >> stages_.shift);
      continue;
    }
    --device_.tally().active;
    if (row.is_answer())
      put_in_passing(r);
    else
      put_in_requests(r);
  }
}

std::int64_t Replayer::round_of_rows() const {
  if (timetable_ == nullptr || host_.all_done()) return INT64_MAX;
  std::int64_t next = INT64_MAX;
  for (const auto& [row, round] : unmatched_) next = std::min(next, round);
  if (!timetable_->empty())
    next = std::min(next, (timetable_->next() - stages_.latest_offset) >> stages_.shift);
  return std::max(stages_.last_round + 1, next);
}

/// The stage at which an answer begins.
const Calendar& Replayer::entry_of(const ProfileRow& row) {
  const Fabric::Paths paths = device_.fabric.paths(row.destination, row.source);
  const std::int32_t route = paths.first + std::clamp(row.path, 0, paths.count - 1);
  const WayLeg& leg = ways_.of(route).back;
  const int hop = at_ports_ ? 0 : std::max(0, leg.count - row.links);
  if (hop >= leg.count) return stages_.of(row.destination).ingress;
  return stages_.merges[index(stages_.links[index(leg.hops[hop].link)].calendar)];
}

bool Replayer::put_in_answer(std::int32_t r, std::int64_t round) {
  const ProfileRow& row = device_.options.replay->rows[index(r)];
  const auto found = under_way_.find(key_of(row.destination, row.request));
  if (found == under_way_.end()) {
    if (timetable_->due(r) >= entry_of(row).begin_of(round + 1)) return false;
    throw AnswersDoNotFit("rank " + std::to_string(row.source) + " answers request " +
                              std::to_string(row.request) + " of rank " +
                              std::to_string(row.destination) + " at " +
                              to_string(Time{timetable_->due(r)}) + ", before that was sent",
                          {.file = device_.options.replay->file}, kOtherRun);
  }
  const std::int32_t id = found->second;
  under_way_.erase(found);
  Request& request = device_.request(id);
  if ((!request.group && request.target != row.source) ||
      is_load(request.intent) != (row.kind == ProfileKind::response))
    throw AnswersDoNotFit("request " + std::to_string(row.request) + " of rank " +
                              std::to_string(row.destination) + " is not of the kind that rank " +
                              std::to_string(row.source) + " answers",
                          {.file = device_.options.replay->file}, kOtherRun);
  request.stage = Stage::back_out;
  enter(id, r);
  return true;
}

// What somebody asks of a watched rank: a request for every line, one behind the other.
void Replayer::put_in_requests(std::int32_t r) {
  const ProfileRow& row = device_.options.replay->rows[index(r)];
  if (row.kind == ProfileKind::burst) {
    const std::int64_t at =
        row.buffer < 0 ? -1 : address_of(row.buffer, row.offset, row.destination);
    enter(request_of(row, at, at + row.size), r);
    return;
  }
  const std::int64_t first = address_of(row.buffer, row.offset, row.destination);
  for (std::int64_t at = first; at < first + row.size;) {
    const std::int64_t end =
        std::min(first + row.size, (device_.lines.of(at) + std::int64_t{1}) << device_.lines.shift);
    enter(request_of(row, at, end), r);
    if (row.kind == ProfileKind::add) return;
    at = end;
  }
}

// An answer from one of the others to another one, which takes room on links.
void Replayer::put_in_passing(std::int32_t r) {
  const ProfileRow& row = device_.options.replay->rows[index(r)];
  const std::int32_t id = request_of_other();
  Request& request = device_.request(id);
  request.source = static_cast<std::int16_t>(row.destination);
  request.target = static_cast<std::int16_t>(row.source);
  request.stage = Stage::back_out;
  request.local = false;
  request.intent = row.kind == ProfileKind::response ? Intent::load : Intent::store;
  request.size = static_cast<std::uint8_t>(stages_.sectors(static_cast<std::int32_t>(
      std::min(row.size + device_.lines.sector - 1, device_.lines.size))));
  const Fabric::Paths paths = device_.fabric.paths(request.source, request.target);
  request.route = paths.first + std::clamp(row.path, 0, paths.count - 1);
  enter(id, r);
}

// At a link of its way, or where it comes in.
void Replayer::enter(std::int32_t id, std::int32_t r) {
  const ProfileRow& row = device_.options.replay->rows[index(r)];
  const std::int64_t now = timetable_->due(r);
  Request& request = device_.request(id);
  const WayLeg& leg = ways_.leg_of(request);
  if (row.links > leg.count)
    throw Failure("the " + device_.options.replay->describe(r) + " is to pass " +
                      std::to_string(row.links) + " links, its way has " +
                      std::to_string(leg.count),
                  {.file = device_.options.replay->file}, "was it recorded on this machine?");
  request.link = static_cast<std::uint8_t>(at_ports_ ? 0 : leg.count - row.links);
  if (recorder_.has_number(id))
    sync_.peer_waits().answers(request.spent, r, now);
  else
    PeerWaits::comes(request.spent, r, now);
  if (request.link == leg.count)
    come_in(id, request, leg, now);
  else
    links_.walk(id, request, leg, now);
}

/// It has no number.
std::int32_t Replayer::request_of_other() {
  const std::int32_t id = device_.allocate(false);
  recorder_.set_number(id, -1);
  return id;
}

// For the bytes [address, end) of one line, or of a burst.
std::int32_t Replayer::request_of(const ProfileRow& row, std::int64_t address, std::int64_t end) {
  const std::int32_t id = request_of_other();
  Request& request = device_.request(id);
  request.source = static_cast<std::int16_t>(row.source);
  request.target = static_cast<std::int16_t>(row.destination);
  request.cu = 0;
  request.stage = Stage::out;
  request.local = false;
  if (row.kind == ProfileKind::burst) {
    make_burst(request, row, address);
    return id;
  }
  request.intent = row.kind == ProfileKind::read  ? Intent::load
                   : row.kind == ProfileKind::add ? Intent::flag
                                                  : Intent::store;
  const std::int64_t last = end - 1;
  request.line = device_.lines.of(address);
  request.bytes = static_cast<std::int32_t>(
      std::min(((last >> device_.lines.sector_shift) - (address >> device_.lines.sector_shift) + 1)
                   << device_.lines.sector_shift,
               device_.lines.size));
  if (row.kind == ProfileKind::add) {
    Detail& flag = device_.add_detail(request);
    flag.semaphore = static_cast<std::int32_t>(row.offset / 8);
    flag.increment = row.value;
    request.line = device_.lines.flag(flag.semaphore);
  } else if (row.kind == ProfileKind::packet) {
    request.packet = request.volatile_ = true;
    Detail& packet = device_.add_detail(request);
    packet.packet_flag = row.value;
    for (std::int64_t granule = address % device_.lines.size / 8;
         granule <= last % device_.lines.size / 8; ++granule)
      packet.packet_mask |= std::uint64_t{1} << granule;
  }
  request.size = static_cast<std::uint8_t>(stages_.sectors(request.bytes));
  if (device_.is_watched(row.destination))
    request.slice = static_cast<std::int16_t>(device_.slice_of(row.destination, request.line));
  request.route = route_of(row, request.line);
  return id;
}

/// `address` < 0: without data. Its descriptor is its own, and is given back with it.
void Replayer::make_burst(Request& request, const ProfileRow& row, std::int64_t address) {
  request.intent = Intent::burst;
  request.bytes = static_cast<std::int32_t>(row.size);
  request.line = address < 0 ? -1 : device_.lines.of(address);
  request.slice = 0;
  if (address >= 0 && device_.is_watched(row.destination))
    request.slice = static_cast<std::int16_t>(device_.slice_of(row.destination, request.line));
  request.route = route_of(row, std::max(0, request.line));
  Detail& burst = device_.add_detail(request);
  burst.packets = row.packets;
  burst.descriptor = device_.descriptors.take();
  engine_stages_.set_size(request);
  Descriptor& descriptor = device_.descriptors[index(burst.descriptor)];
  descriptor.rank = row.source;
  descriptor.target = row.destination;
  descriptor.message = row.message >= 0;
  descriptor.number = row.message;
  if (row.flag >= 0)
    descriptor.semaphores = {{row.destination, static_cast<std::int32_t>(row.flag / 8)}};
  descriptor.packet = device_.model(row.source).dma_max_payload.count;
  if (!descriptor.message) return;
  for (const machine::LinkId link : device_.fabric.path(request.route).links) {
    const std::int32_t nic =
        copy_engines_.nic_engine()[index(device_.machine.links[index(link)].to)];
    if (nic < 0) continue;
    descriptor.packet = device_.engines[index(nic)].packet;
    return;
  }
}

std::int32_t Replayer::route_of(const ProfileRow& row, std::int32_t line) {
  const Fabric::Paths paths = device_.fabric.paths(row.source, row.destination);
  if (row.path >= paths.count)
    throw Failure("there is no path " + std::to_string(row.path) + " from rank " +
                      std::to_string(row.source) + " to rank " + std::to_string(row.destination),
                  {.file = device_.options.replay->file}, "was it recorded on this machine?");
  if (row.path >= 0) return paths.first + row.path;
  if (row.stream < 0)
    return paths.first + static_cast<std::int32_t>(machine::select_path(line, paths.count));
  for (std::int32_t p = 0; p < paths.count; ++p)
    if (device_.fabric.path(paths.first + p).destination_port == row.stream) return paths.first + p;
  throw Failure("no way from rank " + std::to_string(row.source) + " to rank " +
                    std::to_string(row.destination) + " comes in at port " +
                    std::to_string(row.stream),
                {.file = device_.options.replay->file}, "was it recorded on this machine?");
}

// --- Ends of ways.

void Replayer::come_in(std::int32_t id, Request& request, const WayLeg& leg, std::int64_t now) {
  if (device_.is_watched(leg.to)) {
    stages_.of(leg.to).ingress.push({now, static_cast<std::uint32_t>(leg.in_port), id});
    return;
  }
  const bool asks = request.stage == Stage::out && recorder_.has_number(id);
  if (asks) signal(request, now);
  if (asks && !answered_by_rows_[index(request.source)])
    answer_from_afar(id, now);
  else
    drop(id, now);
}

void Replayer::drop(std::int32_t id, std::int64_t now) {
  const Request& request = device_.request(id);
  if (request.stage == Stage::back_out || !recorder_.has_number(id)) {
    if (request.intent == Intent::burst && request.detail >= 0 && !recorder_.has_number(id))
      device_.descriptors.give_back(device_.detail(request).descriptor);
    device_.release(id);
    return;
  }
  if (device_.options.answers == Answers::relative) {
    const int source =
        request.group ? (request.source + 1) % device_.program.ranks() : int{request.target};
    const std::int32_t r = paces_.take(request.source, source, is_load(request.intent));
    if (r < 0)
      throw AnswersDoNotFit("rank " + std::to_string(request.source) + " asks rank " +
                                std::to_string(source) + " for more than it did in the recording",
                            {.file = device_.options.replay->file}, kOtherRun);
    recorder_.set_number(id, device_.options.replay->rows[index(r)].request);
    timetable_->expect_at(r, now + device_.options.replay->rows[index(r)].took);
    ++rows_to_come_;
    ++device_.tally().active;
  }
  under_way_[key_of(request.source, recorder_.number(id))] = id;
  --device_.tally().active;  // the row that answers it is counted
}

// Memory of others is never late: port, slice and port, each alone.
void Replayer::answer_from_afar(std::int32_t id, std::int64_t now) {
  Request& request = device_.request(id);
  const machine::GpuModel& model = device_.model(request.target);
  const auto on_chip = [&](bool data) {
    return data ? std::int64_t{request.bytes} : model.noc_control_size.count;
  };
  const bool load = is_load(request.intent);
  const Rate port = device_.layout(request.target).port_rates[index(ways_.leg_of(request).in_port)];
  const std::int64_t io = port.time_for(on_chip(!load)).fs + port.time_for(on_chip(load)).fs +
                          2 * model.noc_io_latency.fs;
  const bool empty = request.intent == Intent::burst && request.line < 0;
  const std::int64_t slice =
      empty ? 0
            : model.l2_latency.fs + (request.intent == Intent::flag
                                         ? memory_.flag_time(request.target)
                                         : model.l2_slice_rate.time_for(request.bytes).fs);
  request.spent.charge(Reason::io, io);
  request.spent.charge(Reason::l2, slice);
  if (!empty && (request.intent == Intent::store || request.intent == Intent::burst))
    device_.counters().delivered += request.bytes;
  request.stage = Stage::back_out;
  request.link = 0;
  links_.walk(id, request, ways_.leg_of(request), now + io + slice);
}

}  // namespace hemiola::sim

// A wait of a replay that cannot end: which row should have come.

#include <algorithm>
#include <string>

#include "sim/line/recorder.h"
#include "sim/line/replayer.h"
#include "sim/result/profile.h"

namespace hemiola::sim {

bool Replayer::waits_in_vain(std::int32_t wave) const {
  if (timetable_ == nullptr || !timetable_->empty() || !unmatched_.empty()) return false;
  return std::ranges::any_of(
      under_way_, [&](const auto& asked) { return device_.request(asked.second).wave == wave; });
}

// Of a burst that has come: what the flag of its message waits for.
std::string Replayer::why_no_flag(const ProfileRow& row) const {
  if (row.message < 0) return {};
  const auto& flows = device_.gpu(row.destination).flows;
  const auto found = flows.find(pair_key(row.source, row.destination));
  if (found == flows.end() || row.message < found->second.next) return {};
  const Flow& flow = found->second;
  std::string text = "flags of messages from rank " + std::to_string(row.source) +
                     " are written in their order, and of message " + std::to_string(flow.next);
  const auto first = flow.messages.find(flow.next);
  if (first == flow.messages.end()) return text + " nothing has come";
  const Flow::Message& message = first->second;
  return text + ' ' + std::to_string(message.came) + " bursts have come, " +
         (message.packets < 0 ? "but not the last one" : "of " + std::to_string(message.packets));
}

// Of rows that write what somebody waits for: the first that has not come, and why.
std::string Replayer::why_no_row(const std::vector<std::int32_t>& writers) const {
  const Profile& profile = *device_.options.replay;
  std::int64_t came = 0;
  for (const std::int32_t r : writers) {
    if (timetable_->due(r) != INT64_MAX) {
      const std::string held = why_no_flag(profile.rows[index(r)]);
      if (!held.empty()) return held;
      ++came;
      continue;
    }
    const std::int32_t root = timetable_->signal_of(r);
    const ProfileRow& signal = profile.rows[index(root)];
    std::string text = "the " + profile.describe(r) + " of rank " +
                       std::to_string(profile.rows[index(r)].source) + " would write it";
    if (root != r)
      text += ", but comes after the " + profile.describe(root) + ", which";
    else
      text += ", but it";
    return text + " waits for " + profile.buffers[index(signal.after_buffer)].name + "+" +
           std::to_string(signal.after_offset) + ">=" + std::to_string(signal.after_value) +
           " at rank " + std::to_string(signal.source) + ", where " +
           std::to_string(timetable_->value_at(place_of_signal(signal))) + " has come";
  }
  if (came > 0) return "all " + std::to_string(came) + " rows that write it have come";
  return {};
}

std::string Replayer::why_not(program::SemaphoreId id) const {
  if (timetable_ == nullptr || !device_.is_watched(id.rank)) return {};
  const Profile& profile = *device_.options.replay;
  std::vector<std::int32_t> writers;
  for (std::size_t r = 0; r < used_.size(); ++r) {
    const ProfileRow& row = profile.rows[r];
    const std::int64_t flag = row.kind == ProfileKind::add ? row.offset : row.flag;
    if (used_[r] && row.destination == id.rank && flag >= 0 && flag / 8 == id.index)
      writers.push_back(static_cast<std::int32_t>(r));
  }
  const std::string why = why_no_row(writers);
  return why.empty() ? ": no row writes " + std::string(kSemaphores) + "+" +
                           std::to_string(8 * std::int64_t{id.index}) + " of rank " +
                           std::to_string(id.rank)
                     : ": " + why;
}

// A wavefront waits for packets, or for answers from others.
std::string Replayer::why_not(std::int32_t wave) const {
  if (timetable_ == nullptr) return {};
  for (const auto& [key, id] : under_way_) {
    if (device_.request(id).wave == wave)
      return " waits for an answer of rank " + std::to_string(device_.request(id).target) +
             ", which no row gives";
  }
  const Profile& profile = *device_.options.replay;
  const int rank = device_.group(device_.wave(wave).workgroup).rank;
  std::int64_t first = -1;
  device_.gpu(rank).packets.for_each([&](std::int64_t line, const PacketLine& packet) {
    for (const std::int32_t id : packet.watches)
      if (device_.request(id).wave == wave && (first < 0 || line < first)) first = line;
  });
  if (first < 0) return {};
  const std::int64_t begin = first << device_.lines.shift, end = begin + device_.lines.size;
  std::vector<std::int32_t> writers;
  for (std::size_t r = 0; r < used_.size(); ++r) {
    const ProfileRow& row = profile.rows[r];
    if (!used_[r] || row.destination != rank || row.kind != ProfileKind::packet) continue;
    const std::int64_t at = address_of(row.buffer, row.offset, rank);
    if (at < end && at + row.size > begin) writers.push_back(static_cast<std::int32_t>(r));
  }
  const std::string why = why_no_row(writers);
  return " waits for packets at " + std::string(kWholeMemory) + "+" + std::to_string(begin) + ": " +
         (why.empty() ? "no row writes them" : why);
}

// Requests that nobody answers hold up fences and the ends of kernels.
void Replayer::add_reasons(Diagnostics& diagnostics) const {
  if (under_way_.empty()) return;
  const auto first =
      std::ranges::min_element(under_way_, {}, [](const auto& one) { return one.first; });
  const Request& request = device_.request(first->second);
  diagnostics.error("no row answers " + std::to_string(under_way_.size()) +
                        " requests; the first is request " +
                        std::to_string(recorder_.number(first->second)) + " of rank " +
                        std::to_string(request.source) + ", a " +
                        (is_load(request.intent) ? "load from" : "store to") + " rank " +
                        std::to_string(request.target),
                    {.file = device_.options.replay->file});
}

}  // namespace hemiola::sim

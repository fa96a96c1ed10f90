#include "program/lower/launches.h"

#include <algorithm>

#include "core/index.h"
#include "plan/tiles.h"

namespace hemiola::program::general {

std::map<std::int32_t, std::int32_t> gates_of(const plan::Code& code) {
  std::map<std::int32_t, std::int32_t> gates;
  auto stream = static_cast<std::int32_t>(code.streams.size());
  for (std::size_t c = 0; c < code.computes.size(); ++c) {
    const auto& after = code.computes[c].after;
    if (std::ranges::any_of(after, [](const plan::Dependency& d) { return d.on_transfer(); }))
      gates[static_cast<std::int32_t>(c)] = stream++;
  }
  return gates;
}

std::set<std::pair<int, std::int32_t>> awaited_launches(const plan::Plan& plan,
                                                        const Movement& movement) {
  std::set<std::pair<int, std::int32_t>> awaited(movement.launches.begin(),
                                                 movement.launches.end());
  for (const auto& [rank, area] : movement.computed) {
    const auto& computes = plan.code(rank).computes;
    for (std::size_t c = 0; c < computes.size(); ++c) {
      if (!is_whole(plan, rank, static_cast<std::int32_t>(c))) continue;
      const plan::Rect all = plan::whole_box(computes[c]);
      for (const plan::ComputeOperand& operand : computes[c].operands)
        if (plan::makes(operand.use) &&
            plan::overlap(plan::operand_area(plan, operand, all, rank), area))
          awaited.emplace(rank, static_cast<std::int32_t>(c));
    }
  }
  return awaited;
}

namespace {

StreamItem item_of(StreamItem::Kind kind, std::int32_t number) {
  return {.kind = kind, .index = number};
}

}  // namespace

std::vector<Stream> streams_of_launches(Program& program, const plan::Code& code,
                                        const std::map<std::int32_t, LaunchBodies>& launches,
                                        const Kernel& kernel) {
  const plan::LaunchOrder order(code);
  std::map<std::int32_t, std::size_t> stream_of;
  for (std::size_t s = 0; s < order.streams().size(); ++s)
    for (const std::int32_t launch : order.streams()[s]) stream_of[launch] = s;
  std::set<std::int32_t> awaited;  // on other streams
  for (const auto& [launch, stream] : stream_of) {
    for (const std::int32_t before : order.directly_before(launch))
      if (stream_of.at(before) != stream) awaited.insert(before);
  }
  std::vector<Stream> streams;
  for (const auto& in_order : order.streams()) {
    Stream& stream = streams.emplace_back();
    for (const std::int32_t launch : in_order) {
      const LaunchBodies& bodies = launches.at(launch);
      for (const std::int32_t before : order.directly_before(launch))
        if (stream_of.at(before) != streams.size() - 1)
          stream.push_back(item_of(StreamItem::Kind::event_wait, before));
      if (bodies.gate >= 0) stream.push_back(item_of(StreamItem::Kind::engine, bodies.gate));
      stream.push_back(
          item_of(StreamItem::Kind::kernel, static_cast<std::int32_t>(program.kernels.size())));
      Kernel own = kernel;
      own.name = program.name + " " + code.computes[index(launch)].name;
      own.bodies = bodies.workgroups;
      program.kernels.push_back(std::move(own));
      if (awaited.contains(launch))
        stream.push_back(item_of(StreamItem::Kind::event_record, launch));
      if (bodies.bell >= 0) stream.push_back(item_of(StreamItem::Kind::engine, bodies.bell));
    }
  }
  return streams;
}

}  // namespace hemiola::program::general

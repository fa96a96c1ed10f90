// Why a plan stands still, and words for its transfers and tiles.
#include <algorithm>

#include "verify/plans/interpreter.h"

namespace hemiola::verify {

std::string PlanInterpreter::describe(TransferId id) const {
  return "transfer " + std::to_string(id.number) + " of stream " +
         std::to_string(unrolled_.index_of(id.stream)) + " of rank " +
         std::to_string(unrolled_.rank_of(id.stream));
}

std::string PlanInterpreter::name_of_compute(int rank, std::int32_t compute) const {
  return "compute '" + plan_.code(rank).computes[index(compute)].name + "'";
}

PlanInterpreter::Wait PlanInterpreter::wait_of_launch(std::int32_t number) const {
  const Launch& self = launches_[index(number)];
  for (const std::int32_t other : self.before) {
    const Launch& before = launches_[index(other)];
    if (!before.is_done())
      return {start_of(other).actor, "waits for " + name_of_compute(before.rank, before.compute) +
                                         ", which it comes after"};
  }
  if (!self.started) return {self.transfer.stream, "waits for " + describe(self.transfer)};
  for (const std::int32_t tile : self.tiles)
    if (!tiles_[index(tile)].done) return {event_of(tile).actor, "waits for its tiles"};
  return {-1, "waits for nothing"};
}

PlanInterpreter::Wait PlanInterpreter::wait_of(std::int32_t actor) const {
  const auto name = [&](TransferId id) { return describe(id); };
  const auto position = [&](std::int32_t stream) { return streams_[index(stream)].position; };
  const std::int32_t first_launch = unrolled_.streams() + static_cast<std::int32_t>(tiles_.size());
  if (actor >= first_launch) return wait_of_launch((actor - first_launch) / 2);
  if (actor >= unrolled_.streams()) {
    const Tile& tile = tiles_[index(actor - unrolled_.streams())];
    if (tile.launch >= 0 && !launches_[index(tile.launch)].started)
      return {start_of(tile.launch).actor, "waits for its launch"};
    for (const auto* atoms : {&tile.reads, &tile.adds}) {
      for (const std::int32_t atom : *atoms) {
        for (const TransferId id : tile_cells_.at(cell_index(tile.rank, atom)).arrivals) {
          if (id.number >= position(id.stream))
            return {id.stream, "waits for " + name(id) + ", which writes " +
                                   describe(tile.rank, atom) + " that it reads"};
        }
      }
    }
    return {-1, "waits for nothing"};
  }
  const StreamState& self = streams_[index(actor)];
  if (self.arrived) {
    const Meeting& meeting =
        unrolled_.meetings()[index(unrolled_.meeting_of({actor, self.position}))];
    const auto& group = plan_.groups[index(meeting.group)];
    for (std::size_t i = 0; i < group.size(); ++i) {
      const TransferId id = meeting.members[i];
      const std::string it = "waits in a collective of group " + std::to_string(meeting.group) +
                             " for rank " + std::to_string(group[i]);
      if (id.stream < 0) return {-1, it + ", which runs fewer of them"};
      const StreamState& other = streams_[index(id.stream)];
      if (other.position < id.number || !other.arrived)
        return {id.stream, it + ", which has not come to its " + name(id)};
    }
  }
  if (self.transfer.stream >= 0) return {self.transfer.stream, "waits for " + name(self.transfer)};
  if (self.launch >= 0) {
    const Launch& launch = launches_[index(self.launch)];
    return {start_of(self.launch).actor, "waits for " +
                                             name_of_compute(launch.rank, launch.compute) +
                                             " of rank " + std::to_string(launch.rank)};
  }
  const auto cell = index(std::max<std::int64_t>(0, self.cell));
  const auto atoms = index(atoms_.count());
  for (const std::int32_t tile : tile_cells_.at(cell).writers) {
    if (!tiles_[index(tile)].done)
      return {unrolled_.streams() + tile, "waits for the tiles that compute " +
                                              describe(static_cast<int>(cell / atoms),
                                                       static_cast<std::int32_t>(cell % atoms))};
  }
  return {-1, "waits for nothing"};
}

Finding PlanInterpreter::explain_deadlock() const {
  std::int32_t actor = -1;
  for (std::int32_t s = 0; s < unrolled_.streams() && actor < 0; ++s)
    if (streams_[index(s)].position < unrolled_.transfers(s)) actor = s;
  for (std::size_t tile = 0; tile < tiles_.size() && actor < 0; ++tile)
    if (!tiles_[tile].done) actor = unrolled_.streams() + static_cast<std::int32_t>(tile);
  std::vector<std::int32_t> path;
  std::vector<Witness> steps;
  while (true) {
    const auto seen = std::ranges::find(path, actor);
    if (seen != path.end()) {
      steps.erase(steps.begin(), steps.begin() + (seen - path.begin()));
      return {std::to_string(steps.size()) +
                  (steps.size() == 1 ? " waits for itself" : " wait for each other in a cycle"),
              std::move(steps)};
    }
    path.push_back(actor);
    const Wait wait = wait_of(actor);
    const std::int32_t number = actor < unrolled_.streams() ? streams_[index(actor)].position : 0;
    steps.push_back(witness({actor, number}, wait.text));
    if (wait.actor < 0)
      return {"rank " + std::to_string(steps.back().rank) + " " + wait.text, {steps.back()}};
    actor = wait.actor;
  }
}

std::string PlanInterpreter::describe(int rank, std::int32_t atom) const {
  return to_string(plan_, atoms_.area(atom)) + " of rank " + std::to_string(rank);
}

std::string PlanInterpreter::describe(Value value) const {
  if (!value.defined()) return "nothing";
  std::string text;
  for (const Term& term : values_.terms(value)) {
    const auto maker = static_cast<std::int32_t>(term.delta / atoms_.count());  // see computed()
    const auto atom = static_cast<std::int32_t>(term.delta % atoms_.count());
    text += (text.empty() ? "" : " + ") + std::string(maker > 0 ? "computed " : "") +
            to_string(plan_, atoms_.area(atom)) + " of " + sources_of(term);
    if (maker > 1) text += " by " + name_of_compute(term.source, maker - 2);
    if (term.count > 1) text += " (" + std::to_string(term.count) + " times)";
  }
  return text;
}

Witness PlanInterpreter::witness(Event event, std::string text) const {
  Witness result;
  result.text = std::move(text);
  if (event.actor < unrolled_.streams()) {
    const TransferId id{event.actor, event.number};
    result.rank = unrolled_.rank_of(id.stream);
    result.part = "stream";
    result.workgroup = unrolled_.index_of(id.stream);
    result.operation = "transfer " + std::to_string(id.number) + " (" +
                       std::string(name_of(unrolled_.transfer(id).kind)) + ")";
    result.where = unrolled_.place(id);
    return result;
  }
  const std::int32_t first_launch = unrolled_.streams() + static_cast<std::int32_t>(tiles_.size());
  const bool is_launch = event.actor >= first_launch;
  const Launch whole = is_launch ? launches_[index((event.actor - first_launch) / 2)] : Launch{};
  const Tile tile = is_launch ? Tile{.rank = whole.rank, .compute = whole.compute}
                              : tiles_[index(event.actor - unrolled_.streams())];
  result.rank = tile.rank;
  result.part = "compute";
  result.workgroup = tile.compute;
  const plan::Compute& compute = plan_.code(tile.rank).computes[index(tile.compute)];
  result.operation = is_launch ? "launch of " + compute.name
                               : "tile " + std::to_string(tile.number) + " (" + compute.name + ")";
  result.where = "/codes/" + std::to_string(plan_.code_of[index(tile.rank)]) + "/computes/" +
                 std::to_string(tile.compute);
  return result;
}

}  // namespace hemiola::verify

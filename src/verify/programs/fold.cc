#include "verify/programs/fold.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

#include "machine/machine.h"
#include "verify/programs/postcondition.h"

namespace hemiola::verify {
namespace {

using program::Bound;
using program::Rotation;

std::int64_t modulo(std::int64_t a, std::int64_t m) {
  return m == 0 ? a : (a % m + m) % m;
}

std::int64_t floor_of(std::int64_t a, std::int64_t m) {
  return (a - modulo(a, m)) / m;
}

bool same_models(const machine::Machine& machine, int ranks, int period) {
  for (int rank = period; rank < ranks; ++rank) {
    const auto at = index(rank);
    if (machine.gpu_models[at] != machine.gpu_models[at - index(period)]) return false;
  }
  return true;
}

/// Whether the same pairs of ranks meet over NICs a period further: all that a program knows of the
/// ways between ranks.
bool same_reach(const Bound& program, const Rotation& rotation, int period) {
  /// More pairs are not compared: their routes would fill the memory that folding saves.
  constexpr std::int64_t kMostPairs = 1 << 18;
  const machine::Machine& machine = *program.machine();
  const bool no_network = std::ranges::none_of(
      machine.nodes, [](const machine::Node& node) { return node.kind == machine::NodeKind::nic; });
  if (no_network) return true;
  std::vector<std::vector<std::int32_t>> offsets = rotation.offsets;
  if (rotation.all_offsets) {
    offsets.assign(1, std::vector<std::int32_t>(index(program.ranks()) - 1));
    std::iota(offsets.front().begin(), offsets.front().end(), 1);
  }
  std::int64_t pairs = 0;
  for (const auto& of_rank : offsets) pairs += std::ssize(of_rank);
  if (pairs * (program.ranks() / std::ssize(offsets)) > kMostPairs) return false;
  for (int rank = period; rank < program.ranks(); ++rank) {
    for (const std::int32_t offset : offsets[index(rank) % offsets.size()]) {
      const auto crosses = [&](int from) {
        return program.crosses_network(from, (from + offset) % program.ranks());
      };
      if (crosses(rank) != crosses(rank % period)) return false;
    }
  }
  return true;
}

/// Bytes by which a place of each rank moves along with a buffer that turns by `unit` a period, but
/// not by itself; none if it differs from rank to rank.
template <class PlaceOf>
std::optional<std::int64_t> own_turn(int ranks, int period, std::int64_t unit, std::int64_t part,
                                     PlaceOf place_of) {
  std::optional<std::int64_t> turn;
  for (int rank = 0; rank < ranks; ++rank) {
    const Region here = place_of(rank);
    const Region there = place_of((rank + period) % ranks);
    if (here.buffer != there.buffer) return std::nullopt;
    const std::int64_t by = modulo(unit - (there.begin - here.begin), part);
    if (turn && *turn != by) return std::nullopt;
    turn = by;
  }
  return turn;
}

/// Whether a rank's result, with the inputs turned by `input` and itself by `output` bytes a
/// period, is what the collective promises to the rank a period further.
bool keeps_promise(const Bound& program, int period, std::int64_t input, std::int64_t output) {
  const std::int64_t size = program.size().count;
  const std::int64_t share = size / program.ranks();
  const auto same = [&](std::int64_t a, std::int64_t b) { return modulo(a - b, size) == 0; };
  switch (program.collective()) {
    case Collective::all_reduce:
    case Collective::send_recv:
      return same(input, output);
    case Collective::reduce_scatter:
      return size % program.ranks() == 0 && same(input, output + period * share);
    case Collective::all_gather:
      return size % program.ranks() == 0 && modulo(input, share) == 0 &&
             same(output, period * share);
    case Collective::all_to_all:
      return size % program.ranks() == 0 && same(input, period * share) &&
             same(output, period * share);
    case Collective::custom:  // promised by the plan, and proven of it
      return true;
    case Collective::broadcast:
    case Collective::reduce:
      return false;
  }
  return false;
}

}  // namespace

Fold::Fold(const Bound& program)
    : ranks_(std::max(program.ranks(), 1)),
      period_(ranks_),
      buffers_(static_cast<std::int32_t>(program.buffers().size())),
      turns_(program.buffers().size()) {}

Fold Fold::of(const Bound& program) {
  const Fold none(program);
  // What ranks compute is numbered by where they store it (Op::made), which need not turn.
  if (program.program().computation != nullptr) return none;
  const Rotation rotation = rotation_of(program, 1);
  for (int period = rotation.period; period < program.ranks(); period += rotation.period) {
    if (program.ranks() % period != 0) continue;
    if (program.machine() != nullptr &&
        !(same_models(*program.machine(), program.ranks(), period) &&
          same_reach(program, rotation, period)))
      continue;
    Fold fold(program);
    if (fold.turns(program, rotation, period)) return fold;
  }
  return none;
}

/// Takes the period if inputs and results turn with it.
bool Fold::turns(const Bound& program, const Rotation& rotation, int period) {
  period_ = period;
  images_ = ranks_ / period;
  for (std::size_t i = 0; i < turns_.size(); ++i) {
    if (rotation.turns[i] == 0) continue;
    turns_[i].part = rotation.rows[i];
    turns_[i].unit = turns_[i].part / images_;
  }
  // Nobody asks of which bytes of inputs a result is made.
  if (!has_postcondition(program)) return program.collective() == Collective::custom;
  const auto turn_of = [&](const Region& where) { return turns_[index(where.buffer)]; };
  const std::vector<Region> first = input_places(program, 0);
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Turn turn = turn_of(first[i]);
    const auto own = own_turn(ranks_, period, turn.unit, turn.part,
                              [&](int rank) { return input_places(program, rank)[i]; });
    const std::int64_t size = first[i].end - first[i].begin;
    if (!own || size <= 0 || (*own != 0 && *own * images_ != size)) return false;
    if (i > 0 && (*own != input_.unit || (*own != 0 && size != input_.part))) return false;
    input_ = {*own, size};
  }
  const std::optional<Region> output = output_place(program, 0);
  if (!output) return false;
  const Turn turn = turn_of(*output);
  const auto own = own_turn(ranks_, period, turn.unit, turn.part,
                            [&](int rank) { return *output_place(program, rank); });
  return own && keeps_promise(program, period, input_.unit, *own);
}

bool Fold::place(Region& region) const {
  const std::int64_t unit = data_offset(turns_[index(region.buffer)].unit, region.access);
  const bool together =
      unit == 0 || region.begin >= region.end || region.begin / unit == (region.end - 1) / unit;
  region = turned(region, back(seat(region.rank).image));
  return together;
}

Region Fold::turned(Region region, std::int32_t by) const {
  region.rank = rank(region.rank, by);
  const Turn& turn = turns_[index(region.buffer)];
  if (turn.unit == 0) return region;
  const std::int64_t part = data_offset(turn.part, region.access);
  const std::int64_t from = region.begin % part;
  const std::int64_t to = (from + by * data_offset(turn.unit, region.access)) % part;
  region.begin += to - from;
  region.end += to - from;
  return region;
}

void Fold::turn_source(const Term& term, std::int32_t by, std::vector<Term>& out) const {
  Term turned = term;
  if (ValueTable::is_computed(term)) {
    turned.source += 2 * (rank(ValueTable::computed_by(term), by) - ValueTable::computed_by(term));
  } else if (ValueTable::is_unwritten(term)) {
    const std::int32_t memory = ValueTable::unwritten_memory(term);
    const std::int32_t owner = memory / (2 * buffers_);
    turned.source -= 2 * 2 * buffers_ * (rank(owner, by) - owner);
  } else {
    turned.source = rank(term.source, by);
    const std::int32_t beyond = turned.source + turned.sources - ranks_;
    if (beyond > 0) {
      turned.sources -= beyond;
      out.push_back(turned);
      turned.source = 0;
      turned.sources = beyond;
    }
  }
  out.push_back(turned);
}

void Fold::turn(std::vector<Piece>& pieces, std::int32_t by, ValueTable& values) {
  if (by == 0) return;
  scratch_.clear();
  for (Piece& piece : pieces) {
    if (piece.trail.steps) piece.trail.turn = (piece.trail.turn + by) % images_;
    const std::uint64_t key =
        static_cast<std::uint64_t>(static_cast<std::uint32_t>(piece.value.terms)) << 32 |
        static_cast<std::uint32_t>(by);
    const auto [at, added] = turned_.try_emplace(key);
    Turned& known = at->second;
    if (added) {
      const std::vector<Term> terms = values.terms({piece.value.terms, 0});
      const bool inputs = std::ranges::all_of(
          terms, [&](const Term& term) { return term.source >= 0 && term.delta == 0; });
      known.as_one = input_.unit == 0 || inputs;
      std::vector<Term> turned;
      for (const Term& term : terms) turn_source(term, by, turned);
      known.value = values.of(std::move(turned));
    }
    // The bytes of inputs come round, too.
    std::int64_t shift = 0;
    bool whole = known.as_one;
    if (whole && input_.unit != 0) {
      const std::int64_t first = piece.begin + piece.value.shift + by * input_.unit;
      const std::int64_t rounds = floor_of(first, input_.part);
      whole = rounds == floor_of(first + piece.end - piece.begin - 1, input_.part);
      shift = by * input_.unit - rounds * input_.part;
    }
    if (!whole) {
      turn_apart(piece, by, values, scratch_);
      continue;
    }
    piece.value = {known.value.terms, known.value.shift + piece.value.shift + shift};
    append(scratch_, std::move(piece));
  }
  pieces.swap(scratch_);
}

void Fold::turn_apart(const Piece& piece, std::int32_t by, ValueTable& values,
                      std::vector<Piece>& out) const {
  const auto turn_of = [&](const Term& term) {
    if (ValueTable::is_computed(term)) return Turn{};
    if (!ValueTable::is_unwritten(term)) return input_;
    const std::int32_t memory = ValueTable::unwritten_memory(term);
    return turns_[index(memory / 2 % buffers_)];
  };
  const std::vector<Term> terms = values.terms(piece.value);
  for (std::int64_t begin = piece.begin; begin < piece.end;) {
    std::int64_t end = piece.end;
    std::vector<Term> turned;
    for (Term term : terms) {
      const Turn turn = turn_of(term);
      if (turn.unit != 0) {
        const std::int64_t first = begin + term.delta + by * turn.unit;
        const std::int64_t rounds = floor_of(first, turn.part);
        end = std::min(end, begin + (rounds + 1) * turn.part - first);
        term.delta += by * turn.unit - rounds * turn.part;
      }
      turn_source(term, by, turned);
    }
    append(out, {begin, end, values.of(std::move(turned)), piece.trail});
    begin = end;
  }
}

}  // namespace hemiola::verify

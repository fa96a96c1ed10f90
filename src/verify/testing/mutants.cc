#include "verify/testing/mutants.h"

#include <random>
#include <vector>

#include "plan/launches.h"

namespace hemiola::verify {

using plan::Dependency;
using plan::Item;
using plan::Plan;
using plan::Transfer;
using plan::TransferKind;

namespace {

plan::Region fixed(plan::Region region, const Indices& at) {
  for (plan::Box& box : region.boxes)
    for (plan::Range& range : box) range.begin = constant(range.begin(at));
  return region;
}

Dependency fixed(Dependency dependency, const Indices& at) {
  dependency.rank = constant(dependency.rank(at));
  dependency.transfer = constant(dependency.transfer(at));
  if (dependency.computed) dependency.computed = fixed(*dependency.computed, at);
  if (dependency.compute) dependency.compute = constant((*dependency.compute)(at));
  return dependency;
}

Transfer fixed(Transfer transfer, const Indices& at) {
  transfer.peer = constant(transfer.peer(at));
  transfer.source = fixed(transfer.source, at);
  transfer.destination = fixed(transfer.destination, at);
  transfer.operand = fixed(transfer.operand, at);
  for (Dependency& dependency : transfer.after) dependency = fixed(std::move(dependency), at);
  return transfer;
}

/// Where a transfer stands: a list of items, and its index there.
struct Place {
  std::vector<Item>* items;
  std::size_t index;
};

void find_places(std::vector<Item>& items, std::vector<Place>& places) {
  for (std::size_t i = 0; i < items.size(); ++i)
    if (auto* loop = std::get_if<plan::Loop>(&items[i]))
      find_places(loop->items, places);
    else
      places.push_back({&items, i});
}

class Mutation {
 public:
  Mutation(Plan& plan, std::uint64_t seed) : plan_(plan), random_(seed) {}

  /// What was changed; empty: nothing.
  std::string apply() {
    std::vector<Place> places;
    const std::size_t code = draw(plan_.codes.size());
    if (has_launches(plan_) && draw(3) == 0) return change_launch(code);
    const auto& streams = plan_.codes[code].streams;
    if (streams.empty()) return {};
    const std::size_t stream = draw(streams.size());
    find_places(plan_.codes[code].streams[stream].items, places);
    if (places.empty()) return {};
    place_ = places[draw(places.size())];
    const std::string change = change_one();
    return change.empty() ? change
                          : change + " of code " + std::to_string(code) + ", stream " +
                                std::to_string(stream) + ", item " + std::to_string(place_.index);
  }

 private:
  std::size_t draw(std::size_t below) { return below == 0 ? 0 : random_() % below; }
  std::int64_t step() { return draw(2) == 0 ? 1 : -1; }
  Transfer& transfer() { return std::get<Transfer>((*place_.items)[place_.index]); }

  std::string change_one() {
    switch (draw(14)) {
      case 0:
      case 1:
        return drop_dependency();
      case 2:
        return redirect_dependency();
      case 3:
        return add_dependency();
      case 4:
        return shift(transfer().source, "shifts the source");
      case 5:
        return shift(transfer().destination, "shifts the destination");
      case 6:
        if (transfer().reduce == ReduceOp::none) return {};
        return shift(transfer().operand, "shifts the operand");
      case 7:
        transfer().peer.constant += step();
        return "changes the peer";
      case 8:
        return toggle_reduction();
      case 9:
        return swap_with_next();
      case 10:
        place_.items->insert(place_.items->begin() + static_cast<std::ptrdiff_t>(place_.index),
                             Item((*place_.items)[place_.index]));
        return "doubles the transfer";
      case 11:
        place_.items->erase(place_.items->begin() + static_cast<std::ptrdiff_t>(place_.index));
        return "leaves out the transfer";
      case 12:
        return turn();
      default:
        return replace_tensor();
    }
  }

  std::string change_launch(std::size_t code) {
    std::vector<plan::Compute>& computes = plan_.codes[code].computes;
    const std::size_t c = draw(computes.size());
    const std::string change = change_launch(computes[c]);
    return change.empty()
               ? change
               : change + " of code " + std::to_string(code) + ", compute " + std::to_string(c);
  }
  std::string change_launch(plan::Compute& compute) {
    if (!compute.is_launch()) return {};
    std::vector<Dependency>& after = compute.after;
    switch (draw(4)) {
      case 0:
        compute.stream += "'";
        return "takes another stream for the launch";
      case 1:
        compute.waits =
            compute.waits == plan::Waits::tiles ? plan::Waits::launch : plan::Waits::tiles;
        return "changes where the launch waits";
      case 2: {
        if (after.empty()) return {};
        Dependency& changed = after[draw(after.size())];
        if (!changed.on_transfer()) return {};
        (draw(2) == 0 ? changed.transfer : changed.rank).constant += step();
        return "redirects a dependency";
      }
      default:
        if (after.empty()) return {};
        after.erase(after.begin() + static_cast<std::ptrdiff_t>(draw(after.size())));
        return "drops a dependency";
    }
  }

  std::string drop_dependency() {
    std::vector<Dependency>& after = transfer().after;
    if (after.empty()) return {};
    after.erase(after.begin() + static_cast<std::ptrdiff_t>(draw(after.size())));
    return "drops a dependency";
  }

  std::string redirect_dependency() {
    std::vector<Dependency>& after = transfer().after;
    if (after.empty()) return {};
    Dependency& dependency = after[draw(after.size())];
    switch (draw(3)) {
      case 0:
        dependency.rank.constant += step();
        break;
      case 1:
        dependency.transfer.constant += step();
        break;
      default:
        if (dependency.compute) {
          dependency.compute->constant += step();
          break;
        }
        if (!dependency.computed) {
          dependency.stream += static_cast<std::int32_t>(step());
          break;
        }
        return shift(*dependency.computed, "shifts what a dependency waits for");
    }
    return "redirects a dependency";
  }

  std::string add_dependency() {
    Dependency dependency;
    dependency.rank =
        constant(static_cast<std::int64_t>(draw(static_cast<std::size_t>(plan_.ranks))));
    dependency.transfer = constant(static_cast<std::int64_t>(draw(8)));
    transfer().after.push_back(dependency);
    return "adds a dependency";
  }

  std::string shift(plan::Region& region, const char* what) {
    if (region.boxes.empty()) return {};
    plan::Box& box = region.boxes[draw(region.boxes.size())];
    plan::Range& range = box[draw(box.size())];
    std::int64_t by = step();
    if (draw(2) == 0) by *= range.extent;
    if (range.begin.modulus > 0)
      range.begin.constant += step();
    else
      range.begin.offset += by;
    return what;
  }

  std::string toggle_reduction() {
    if (transfer().reduce == ReduceOp::none) {
      transfer().reduce = ReduceOp::sum;
      transfer().operand = transfer().destination;
      return "adds a reduction";
    }
    transfer().reduce = ReduceOp::none;
    transfer().operand = {};
    return "drops the reduction";
  }

  std::string swap_with_next() {
    if (place_.index + 1 >= place_.items->size()) return {};
    std::swap((*place_.items)[place_.index], (*place_.items)[place_.index + 1]);
    return "swaps with its neighbour the transfer";
  }

  std::string turn() {
    if (transfer().kind == TransferKind::push)
      transfer().kind = TransferKind::pull;
    else if (transfer().kind == TransferKind::pull)
      transfer().kind = TransferKind::push;
    else
      return {};
    return "turns the direction";
  }

  std::string replace_tensor() {
    plan::Region& region = draw(2) == 0 ? transfer().source : transfer().destination;
    region.tensor = static_cast<std::int32_t>(draw(plan_.tensors.size()));
    return "takes another tensor in a region";
  }

  Plan& plan_;
  std::mt19937_64 random_;
  Place place_{};
};

}  // namespace

Plan written_out(const Plan& plan) {
  Plan result = plan;
  result.codes.clear();
  for (int rank = 0; rank < plan.ranks; ++rank) {
    plan::Code code = plan.code(rank);
    const Indices here{.rank = rank};
    for (plan::Stream& stream : code.streams) {
      std::vector<Item> items;
      for_each_transfer(stream, rank, [&](const Transfer& transfer, const Indices& at) {
        items.emplace_back(fixed(transfer, at));
      });
      stream.items = std::move(items);
    }
    if (code.resident)
      for (plan::Region& region : *code.resident) region = fixed(region, here);
    for (plan::Expectation& expectation : code.expected)
      expectation.region = fixed(expectation.region, here);
    for (plan::Compute& compute : code.computes) {
      for (plan::ComputeOperand& operand : compute.operands)
        for (Affine& begin : operand.begin) begin = constant(begin(here));
      for (Dependency& dependency : compute.after) dependency = fixed(std::move(dependency), here);
    }
    result.code_of[static_cast<std::size_t>(rank)] = rank;
    result.codes.push_back(std::move(code));
  }
  return result;
}

std::optional<Mutant> mutate(const Plan& plan, std::uint64_t seed) {
  Mutant mutant{seed % 2 == 0 ? plan : written_out(plan), {}};
  mutant.change = Mutation(mutant.plan, seed).apply();
  if (mutant.change.empty()) return std::nullopt;
  try {
    validate(mutant.plan);
  } catch (const Failure&) {
    return std::nullopt;
  }
  return mutant;
}

}  // namespace hemiola::verify

// Which plans are chains, and what their ranks pass on to whom.
#include <algorithm>
#include <optional>
#include <set>

#include "core/index.h"
#include "program/lower/parts.h"

namespace hemiola::program {
namespace {

/// Whether the pushes of `rank` that wait for something pass on, in order, what its left neighbour
/// (-1: none) sends in the same stream.
bool forwards_in_order(const plan::Plan& plan, std::int32_t stream, int rank, int left) {
  struct Arrival {
    std::int64_t number;
    const plan::Region* row;
    std::int64_t first;
  };
  std::vector<Arrival> arrivals;
  std::int64_t number = 0;
  const auto is_there = [](const plan::Region& row, const Indices& at, const Arrival& arrival) {
    return row.tensor == arrival.row->tensor && row.count() == arrival.row->count() &&
           row.first()(at) == arrival.first;
  };
  const auto note = [&](const plan::Transfer& transfer, const Indices& at) {
    if (transfer.kind == plan::TransferKind::push)
      arrivals.push_back({number, &transfer.destination, transfer.destination.first()(at)});
    ++number;
  };
  if (left >= 0) plan::for_each_transfer(plan.stream(left, stream), left, note);
  std::size_t next = 0;
  bool good = true;
  const auto check = [&](const plan::Transfer& transfer, const Indices& at) {
    if (transfer.kind == plan::TransferKind::copy) good = good && transfer.after.empty();
    if (!good || transfer.after.empty()) return;
    const plan::Dependency& dependency = transfer.after.front();
    good = transfer.after.size() == 1 && dependency.on_transfer() && next < arrivals.size() &&
           dependency.rank(at) == left && dependency.stream == stream &&
           dependency.transfer(at) == arrivals[next].number &&
           is_there(transfer.source, at, arrivals[next]);
    ++next;
  };
  plan::for_each_transfer(plan.stream(rank, stream), rank, check);
  return good;
}

/// The expression q where the given one is q * parts + part.
std::optional<Affine> part_of(const Affine& value, std::int64_t part, std::int64_t parts) {
  Affine whole = value;
  if (value.modulus == 0) {
    whole.constant = value.constant * value.scale + value.offset - part;
    whole.rank *= value.scale;
    for (std::int64_t& loop : whole.loop) loop *= value.scale;
    const bool divides = whole.constant % parts == 0 && whole.rank % parts == 0 &&
                         whole.loop[0] % parts == 0 && whole.loop[1] % parts == 0;
    if (!divides) return std::nullopt;
    whole.scale = 1;
    whole.offset = 0;
    whole.constant /= parts;
    whole.rank /= parts;
    for (std::int64_t& loop : whole.loop) loop /= parts;
    return whole;
  }
  if (value.scale % parts != 0 || (value.offset - part) % parts != 0) return std::nullopt;
  whole.scale /= parts;
  whole.offset = (value.offset - part) / parts;
  return whole;
}

/// Replaces the chunks of a stream by those that they are parts of; false: they are not.
bool join_parts(plan::Region& region, std::int64_t part, std::int64_t parts) {
  if (region.boxes.empty()) return true;  // the operand of a transfer without a reduction
  if (parts == 1) return true;
  const std::optional<Affine> whole = part_of(region.first(), part, parts);
  if (!whole || region.count() != 1) return false;
  region.first() = *whole;
  return true;
}

bool join_parts(std::vector<plan::Item>& items, std::int64_t part, std::int64_t parts) {
  bool good = true;
  for (plan::Item& item : items) {
    if (auto* loop = std::get_if<plan::Loop>(&item)) {
      good = good && join_parts(loop->items, part, parts);
      continue;
    }
    auto& transfer = std::get<plan::Transfer>(item);
    for (plan::Region* region : {&transfer.source, &transfer.destination, &transfer.operand})
      good = good && join_parts(*region, part, parts);
  }
  return good;
}

/// Nothing unless stream k of K moves the chunks k, k + K, ... only.
std::optional<plan::Plan> joined_plan(const plan::Plan& plan) {
  plan::Plan whole = plan;
  const auto parts = std::ssize(plan.codes.front().streams);
  if (whole.chunks_per_size % parts != 0) return std::nullopt;
  whole.chunks_per_size /= parts;
  for (plan::Tensor& tensor : whole.tensors) {
    if (tensor.elements() % parts != 0) return std::nullopt;
    tensor.shape.front() /= parts;
  }
  for (plan::Code& code : whole.codes) {
    if (std::ssize(code.streams) != parts) return std::nullopt;
    for (std::int64_t part = 0; part < parts; ++part)
      if (!join_parts(code.streams[index(part)].items, part, parts)) return std::nullopt;
  }
  return whole;
}

}  // namespace

std::vector<ChainLinks> links_of_chain(const plan::Plan& plan) {
  const auto streams = std::ssize(plan.codes.front().streams);
  std::vector<ChainLinks> links(index(plan.ranks), ChainLinks(index(streams)));
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const plan::Code& code = plan.code(rank);
    if (std::ssize(code.streams) != streams) return {};
    for (std::int64_t stream = 0; stream < streams; ++stream) {
      int right = -1;
      bool good = true;
      each_transfer(code.streams[index(stream)].items, [&](const plan::Transfer& transfer) {
        if (transfer.kind == plan::TransferKind::copy) return;
        const auto peer = static_cast<int>(transfer.peer({.rank = rank}));
        good = good && transfer.kind == plan::TransferKind::push &&
               transfer.peer == neighbour(transfer.peer.constant, plan.ranks) && peer != rank &&
               (right < 0 || right == peer);
        right = peer;
      });
      if (!good) return {};
      if (right < 0) continue;
      int& left = links[index(right)][index(stream)].left;
      if (left >= 0) return {};
      left = rank;
      links[index(rank)][index(stream)].right = right;
    }
  }
  return links;
}

ChainRole role_of(const plan::Plan& plan, const std::vector<ChainLinks>& links, int rank) {
  ChainRole role{plan.code_of[index(rank)]};
  for (const ChainLink& link : links[index(rank)]) {
    for (const int other : {link.left, link.right})
      role.push_back(other < 0 ? -1 : (other - rank + plan.ranks) % plan.ranks);
    role.push_back(link.left < 0 ? -1 : plan.code_of[index(link.left)]);
  }
  return role;
}

bool is_chain(const plan::Plan& plan) {
  if (!is_simple(plan) || plan.codes.front().streams.empty()) return false;
  const std::vector<ChainLinks> links = links_of_chain(plan);
  const bool pushes = std::ranges::any_of(links, [](const ChainLinks& of_rank) {
    return std::ranges::any_of(of_rank, [](const ChainLink& link) { return link.right >= 0; });
  });
  if (!pushes || !joined_plan(plan)) return false;
  std::set<ChainRole> roles;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    if (!roles.insert(role_of(plan, links, rank)).second) continue;
    for (std::size_t stream = 0; stream < links[index(rank)].size(); ++stream)
      if (!forwards_in_order(plan, static_cast<std::int32_t>(stream), rank,
                             links[index(rank)][stream].left))
        return false;
  }
  return true;
}

plan::Plan join_parts(const plan::Plan& plan) {
  return *joined_plan(plan);
}

bool is_simple(const plan::Plan& plan) {
  if (plan.of_elements()) return false;
  bool simple = true;
  for (const plan::Code& code : plan.codes) {
    simple = simple && code.computes.empty();
    for (const plan::Stream& stream : code.streams) {
      for (const plan::Item& item : stream.items) {
        const auto* loop = std::get_if<plan::Loop>(&item);
        simple = simple &&
                 (loop == nullptr || (loop->items.size() == 1 &&
                                      std::holds_alternative<plan::Transfer>(loop->items.front())));
      }
      each_transfer(stream.items, [&](const plan::Transfer& transfer) {
        const bool reduces = transfer.reduce != ReduceOp::none;
        simple = simple && transfer.group < 0 && transfer.kind != plan::TransferKind::collective &&
                 transfer.source.is_row() && transfer.destination.is_row() &&
                 (!reduces || transfer.operand.is_row());
      });
    }
  }
  return simple;
}

}  // namespace hemiola::program

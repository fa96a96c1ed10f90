#include "program/lower.h"

#include <fmt/format.h>

#include <array>
#include <set>

#include "plan/area.h"
#include "program/lower_parts.h"

namespace hemiola::program {
namespace {

BufferKind kind_of(plan::Role role) {
  switch (role) {
    case plan::Role::input:
      return BufferKind::input;
    case plan::Role::output:
      return BufferKind::output;
    default:
      return BufferKind::scratch;
  }
}

Program frame_of(const plan::Plan& plan, const LowerOptions& options) {
  Program program;
  program.name = plan.name;
  program.source = plan.name;
  program.format = "template";
  program.collective = plan.collective;
  program.protocol = options.protocol;
  program.ranks = plan.ranks;
  program.root = plan.root;
  program.chunks_per_size = plan.chunks_per_size;
  for (const plan::Tensor& tensor : plan.tensors) {
    Buffer buffer{.name = tensor.name, .kind = kind_of(tensor.role), .chunks = {tensor.elements()}};
    if (tensor.role == plan::Role::transit) buffer.chunks = {0};  // lives in the connections
    program.buffers.push_back(std::move(buffer));
  }
  if (options.in_place) share_memory(program, plan);
  return program;
}

template <class Visit>
void each_transfer(const std::vector<plan::Item>& items, Visit&& visit) {
  for (const plan::Item& item : items) {
    if (const auto* transfer = std::get_if<plan::Transfer>(&item))
      visit(*transfer);
    else
      each_transfer(std::get<plan::Loop>(item).items, visit);
  }
}

/// Plans of chunks in rows and nothing else, with loops of one transfer.
bool is_simple(const plan::Plan& plan) {
  if (plan.of_elements()) return false;
  bool simple = true;
  for (const plan::Code& code : plan.codes) {
    simple = simple && code.computes.empty() && code.streams.size() == 1;
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

/// Whether the pushes of `rank` that wait for something pass on, in order, what its left neighbour
/// sends.
bool forwards_in_order(const plan::Plan& plan, int rank, int left) {
  struct Arrival {
    std::int64_t number;
    plan::Area area;
  };
  std::vector<Arrival> arrivals;
  std::int64_t number = 0;
  plan::for_each_transfer(plan.stream(left, 0), left, [&](const auto& transfer, const auto& at) {
    if (transfer.kind == plan::TransferKind::push)
      arrivals.push_back({number, plan::evaluate(transfer.destination, at)});
    ++number;
  });
  std::size_t next = 0;
  bool good = true;
  plan::for_each_transfer(plan.stream(rank, 0), rank, [&](const auto& transfer, const auto& at) {
    if (transfer.kind == plan::TransferKind::copy) good = good && transfer.after.empty();
    if (!good || transfer.after.empty()) return;
    const plan::Dependency& dependency = transfer.after.front();
    good = transfer.after.size() == 1 && !dependency.computed && next < arrivals.size() &&
           dependency.rank(at) == left && dependency.stream == 0 &&
           dependency.transfer(at) == arrivals[next].number &&
           plan::evaluate(transfer.source, at) == arrivals[next].area;
    ++next;
  });
  return good;
}

/// Regions of a tensor are equally long and start at multiples of that, so that slices of regions
/// that overlap are the same bytes.
bool is_cut_evenly(const plan::Plan& plan, const plan::Stream& stream) {
  std::vector<std::int64_t> counts(plan.tensors.size(), 0);
  bool even = true;
  const auto note = [&](const plan::Region& region) {
    std::int64_t& count = counts[static_cast<std::size_t>(region.tensor)];
    if (count == 0) count = region.count();
    const Affine& first = region.first();
    const bool multiple =
        first.offset % count == 0 &&
        (first.scale % count == 0 || (first.constant % count == 0 && first.rank % count == 0 &&
                                      first.loop[0] % count == 0 && first.modulus % count == 0));
    even = even && region.count() == count && multiple;
  };
  each_transfer(stream.items, [&](const plan::Transfer& transfer) {
    note(transfer.source);
    note(transfer.destination);
    if (transfer.reduce != ReduceOp::none) note(transfer.operand);
  });
  return even;
}

}  // namespace

void share_memory(Program& program, const plan::Plan& plan) {
  if (!plan.in_place_safe) {
    throw Failure(
        fmt::format("'{}' cannot run in place: it writes outputs that peers still read as inputs",
                    plan.name),
        {.file = "<option>"}, "leave in_place out");
  }
  program.in_place = true;
  std::int32_t input = -1, output = -1;
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    if (program.buffers[i].kind == BufferKind::input) input = static_cast<std::int32_t>(i);
    if (program.buffers[i].kind == BufferKind::output) output = static_cast<std::int32_t>(i);
  }
  if (input < 0 || output < 0) return;
  Buffer& in = program.buffers[static_cast<std::size_t>(input)];
  Buffer& out = program.buffers[static_cast<std::size_t>(output)];
  const std::int64_t in_chunks = in.chunks.front(), out_chunks = out.chunks.front();
  if (in_chunks < out_chunks) {
    in.alias = output;
    in.alias_chunk = {.rank = 1, .scale = in_chunks};
  } else {
    out.alias = input;
    if (out_chunks < in_chunks) out.alias_chunk = {.rank = 1, .scale = out_chunks};
  }
}

std::string_view name_of(Realization realization) {
  constexpr std::array<std::string_view, 5> kNames{"load-store", "bulk", "copy-engine",
                                                   "co-located", "multicast"};
  return kNames.at(static_cast<std::size_t>(realization));
}

std::string_view name_of(Sync sync) {
  constexpr std::array<std::string_view, 3> kNames{"own", "channels", "connections"};
  return kNames.at(static_cast<std::size_t>(sync));
}

bool is_chain(const plan::Plan& plan) {
  if (!is_simple(plan)) return false;
  const Affine* peer = nullptr;
  bool chain = true;
  for (const plan::Code& code : plan.codes) {
    each_transfer(code.streams.front().items, [&](const plan::Transfer& transfer) {
      if (transfer.kind == plan::TransferKind::copy) return;
      if (peer == nullptr) peer = &transfer.peer;
      const Affine& p = transfer.peer;
      chain = chain && transfer.kind == plan::TransferKind::push && p == *peer &&
              p == neighbour(p.constant, plan.ranks);
    });
  }
  if (!chain || peer == nullptr) return false;
  std::set<std::pair<std::int32_t, std::int32_t>> roles;  // own and left code
  for (int rank = 0; rank < plan.ranks && chain; ++rank) {
    const auto left = static_cast<int>(neighbour(-peer->constant, plan.ranks)({.rank = rank}));
    const std::pair role{plan.code_of[static_cast<std::size_t>(rank)],
                         plan.code_of[static_cast<std::size_t>(left)]};
    if (roles.insert(role).second) chain = forwards_in_order(plan, rank, left);
  }
  return chain;
}

bool is_exchange(const plan::Plan& plan) {
  if (!is_simple(plan) || plan.codes.size() != 1 || is_chain(plan)) return false;
  const plan::Stream& stream = plan.codes.front().streams.front();
  return is_cut_evenly(plan, stream) && has_exchange_steps(plan, stream);
}

Program lower(const plan::Plan& plan, const LowerOptions& options) {
  if (options.workgroups < 0 || options.threads < 0) {
    throw Failure("numbers of workgroups and threads are not negative", {.file = "<option>"});
  }
  Program program = frame_of(plan, options);
  if (options.sync == Sync::connections) {
    return lower_connections(plan, options, std::move(program));
  } else if (options.sync == Sync::channels) {
    program = lower_channels(plan, options, std::move(program));
  } else if (options.realization != Realization::load_store) {
    program = lower_general(plan, options, std::move(program));
  } else if (is_chain(plan)) {
    program = lower_chain(plan, options, std::move(program));
  } else if (is_exchange(plan)) {
    program = lower_exchange(plan, options, std::move(program));
  } else {
    program = lower_general(plan, options, std::move(program));
  }
  program.finish();
  return program;
}

std::vector<Run> runs_of(const plan::Plan& plan, const plan::Stream& stream) {
  std::vector<Run> runs;
  std::int64_t number = 0;
  for (std::size_t i = 0; i < stream.items.size(); ++i) {
    Run run{.first = number, .item = i};
    if (const auto* loop = std::get_if<plan::Loop>(&stream.items[i])) {
      if (loop->items.size() != 1 || !std::holds_alternative<plan::Transfer>(loop->items.front())) {
        throw Failure(
            fmt::format("plan '{}' has a loop of several items, which cannot be lowered yet",
                        plan.name),
            {.pointer = fmt::format("/{}/{}", stream.name, i)});
      }
      run.transfer = &std::get<plan::Transfer>(loop->items.front());
      run.count = loop->count;
    } else {
      run.transfer = &std::get<plan::Transfer>(stream.items[i]);
    }
    number += run.count;
    if (run.count > 0) runs.push_back(run);
  }
  return runs;
}

std::string place_of(const plan::Stream& stream, const Run& run) {
  return fmt::format("/{}/{}", stream.name, run.item);
}

Affine from_iteration(const Affine& value, std::int64_t start, std::size_t depth) {
  Affine shifted = at_iteration(value, start);
  shifted.loop[depth] = value.loop[0];
  return shifted;
}

Affine at_iteration(const Affine& value, std::int64_t iteration) {
  Affine fixed = value;
  fixed.constant += value.loop[0] * iteration;
  fixed.loop = {};
  if (fixed.modulus > 0) fixed.constant %= fixed.modulus;
  return fixed;
}

Affine seen_from(const Affine& value, std::int64_t distance, std::int64_t step,
                 std::int64_t ranks) {
  if (value.rank == 0) return value;
  Affine seen = value;
  // The other rank is itself taken modulo `ranks`: that only goes unnoticed under the same modulus.
  if (value == Affine{.rank = 1, .scale = value.scale, .offset = value.offset})
    seen.modulus = ranks;
  if (seen.modulus == 0 || ranks % seen.modulus != 0) {
    throw Failure("a chunk of the plan is not cyclic in the rank, which cannot be lowered yet");
  }
  seen.constant -= value.rank * distance;
  seen.loop[0] -= value.rank * step;
  return seen;
}

Operand operand_at(const plan::Region& region, const Affine& rank) {
  return {.rank = rank, .buffer = region.tensor, .chunk = region.first(), .chunks = region.count()};
}

bool is_in_place(const Program& program, const plan::Transfer& copy) {
  const auto place = [&](const plan::Region& region, const Indices& at) {
    std::int64_t chunk = region.first()(at);
    const Buffer& buffer = program.buffers[static_cast<std::size_t>(region.tensor)];
    if (buffer.alias < 0) return std::pair{region.tensor, chunk};
    return std::pair{buffer.alias, chunk + buffer.alias_chunk(at)};
  };
  for (int rank = 0; rank < program.ranks; ++rank) {
    const Indices at{.rank = rank};
    if (place(copy.source, at) != place(copy.destination, at)) return false;
  }
  return true;
}

}  // namespace hemiola::program

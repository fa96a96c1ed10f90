#include "program/lower/lower.h"

#include <fmt/format.h>

#include <array>

#include "machine/machine.h"
#include "plan/in_place.h"
#include "program/lower/parts.h"

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
  if (options.in_place) share_memory(program, plan, options.copies.command == CopyCommand::swap);
  return program;
}

/// Regions of a tensor are equally long and start at multiples of that, so that slices of regions
/// that overlap are the same bytes.
bool is_cut_evenly(const plan::Plan& plan, const plan::Stream& stream) {
  std::vector<std::int64_t> counts(plan.tensors.size(), 0);
  bool even = true;
  const auto note = [&](const plan::Region& region) {
    std::int64_t& count = counts[index(region.tensor)];
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

void share_memory(Program& program, const plan::Plan& plan, bool swaps) {
  if (!plan.in_place_safe && !swaps) {
    throw Failure(
        fmt::format("'{}' cannot run in place: it writes outputs that peers still read as inputs",
                    plan.name),
        kOption, "leave in_place out");
  }
  program.in_place = true;
  std::int32_t input = -1, output = -1;
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    if (program.buffers[i].kind == BufferKind::input) input = static_cast<std::int32_t>(i);
    if (program.buffers[i].kind == BufferKind::output) output = static_cast<std::int32_t>(i);
  }
  if (input < 0 || output < 0) return;
  Buffer& in = program.buffers[index(input)];
  Buffer& out = program.buffers[index(output)];
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
  return kNames.at(index(realization));
}

std::string_view name_of(Sync sync) {
  constexpr std::array<std::string_view, 3> kNames{"own", "channels", "connections"};
  return kNames.at(index(sync));
}

bool is_exchange(const plan::Plan& plan) {
  if (!is_simple(plan) || plan.codes.size() != 1 || is_chain(plan)) return false;
  if (plan.codes.front().streams.size() != 1) return false;
  const plan::Stream& stream = plan.codes.front().streams.front();
  return is_cut_evenly(plan, stream) && has_exchange_steps(plan, stream);
}

namespace {

bool crosses_network(const plan::Plan& plan, const LowerOptions& options) {
  const machine::Machine* machine = options.machine;
  if (machine == nullptr) return false;
  for (int rank = 1; rank < std::min(plan.ranks, machine->ranks()); ++rank)
    if (machine->reach(0, rank) == machine::Reach::network) return true;
  return false;
}

/// What is said of copy engines fits the plan, as far as that can be told before it is lowered.
void check_copies(const plan::Plan& plan, const LowerOptions& options) {
  const CopyOptions& copies = options.copies;
  const bool engines = options.realization == Realization::copy_engine && options.sync == Sync::own;
  if (copies == CopyOptions{} || engines) {
    if (!engines || copies.command != CopyCommand::swap) return;
    if (plan.collective != Collective::all_to_all)
      throw Failure(fmt::format("command=swap changes what two places hold, which '{}' has no use "
                                "for: it is an algorithm for {}",
                                plan.name, name_of(plan.collective)),
                    kOption, "swaps are for all-to-all; choose command=copy or broadcast");
    if (!options.in_place)
      throw Failure("command=swap changes what two places hold: input and output are one memory",
                    kOption, "give in_place=1 as well");
    return;
  }
  const std::string word = copies.prelaunch                      ? "prelaunch"
                           : copies.batch != 1                   ? "batch"
                           : copies.queues != CopyQueues::stream ? "queues"
                                                                 : "command";
  throw Failure(fmt::format("'{}' is said of copy engines, which move nothing here", word), kOption,
                options.sync == Sync::own
                    ? "give realization=copy-engine as well"
                    : fmt::format("sync={} leaves all data to workgroups", name_of(options.sync)));
}

bool general_does(const LowerOptions& options) {
  return options.protocol == Protocol::simple && !options.in_place;
}

}  // namespace

Program lower(const plan::Plan& plan, const LowerOptions& wanted) {
  LowerOptions options = wanted;
  options.in_place = wanted.in_place || plan::is_in_place(plan);  // there is no other way
  if (options.workgroups < 0 || options.threads < 0)
    throw Failure("numbers of workgroups and threads are not negative", kOption);
  check_copies(plan, options);
  const bool general = options.realization != Realization::load_store;
  const bool over_nics = general_does(options) && crosses_network(plan, options);
  Program program;
  if (options.sync == Sync::connections) {
    program = lower_connections(plan, options, frame_of(plan, options));
  } else if (options.sync == Sync::channels) {
    program = lower_channels(plan, options, frame_of(plan, options));
  } else if (!general && is_chain(plan)) {
    const plan::Plan whole = join_parts(plan);
    program = lower_chain(whole, options, frame_of(whole, options));
  } else if (!general && is_exchange(plan) && !over_nics) {
    program = lower_exchange(plan, options, frame_of(plan, options));
  } else {
    program = lower_general(plan, options, frame_of(plan, options));
  }
  if (plan.collective == Collective::custom)
    program.plan = std::make_shared<const plan::Plan>(plan);
  if (options.sync != Sync::connections) program.finish();  // read from MSCCL XML, and finished
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
  if (seen.modulus == 0 || ranks % seen.modulus != 0)
    throw Failure("a chunk of the plan is not cyclic in the rank, which cannot be lowered yet");
  seen.constant -= value.rank * distance;
  seen.loop[0] -= value.rank * step;
  return seen;
}

Operand operand_at(const plan::Region& region, const Affine& rank) {
  return {.rank = rank, .buffer = region.tensor, .chunk = region.first(), .chunks = region.count()};
}

OpKind kind_of(const Does& does) {
  const bool pulls = does.pulls, pushes = does.pushes, arrives = does.arrives;
  if (does.group_loads)
    return does.group_stores ? OpKind::group_load_reduce_store : OpKind::group_load_reduce;
  if (does.group_stores) return OpKind::group_store;
  if (does.reduces && (arrives || does.leaves))
    return pushes ? OpKind::reduce_send_packets : OpKind::reduce_packets;
  if (does.reduces && pulls) return pushes ? OpKind::read_reduce_send : OpKind::read_reduce;
  if (does.reduces) return pushes ? OpKind::reduce_send : OpKind::reduce;
  if (arrives) return does.leaves ? OpKind::read_put_packets : OpKind::unpack_packets;
  return pulls         ? OpKind::get
         : does.leaves ? OpKind::put_packets
         : pushes      ? OpKind::put
                       : OpKind::copy;
}

bool is_in_place(const Program& program, const plan::Transfer& copy) {
  const auto place = [&](const plan::Region& region, const Indices& at) {
    std::int64_t chunk = region.first()(at);
    const Buffer& buffer = program.buffers[index(region.tensor)];
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

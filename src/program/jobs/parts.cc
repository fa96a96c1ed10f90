// The distinct programs of a job, and what their calls can share.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "core/digest.h"
#include "core/index.h"
#include "machine/machine.h"
#include "program/jobs/job.h"
#include "program/jobs/layout.h"

namespace hemiola::program {
namespace {

/// Whether a call of the program goes on from the number of calls before it, not from counters.
bool counts_calls(const Program& program) {
  const auto rotates = [](const Buffer& buffer) { return buffer.rotation > 1; };
  if (std::ranges::any_of(program.buffers, rotates)) return true;
  return std::ranges::any_of(program.bodies, [](const Body& body) {
    return std::ranges::any_of(body.ops, [](const Op& op) {
      return op.kind == OpKind::dep_wait || op.kind == OpKind::compare_swap ||
             op.kind == OpKind::clear;
    });
  });
}

void add_affine(Digest& digest, const Affine& value) {
  digest.add(value.constant).add(value.rank).add(value.loop[0]).add(value.loop[1]);
  digest.add(value.modulus).add(value.scale).add(value.offset);
}

/// Who is joined by which connection, each once.
void add_connections(Digest& digest, const Program& program) {
  std::set<std::uint64_t> ends;
  const auto note = [&](const ConnectionRef& end, bool incoming) {
    if (end.inbound < 0 && end.outbound < 0) return;
    Digest one;
    one.add(end.inbound).add(end.outbound).add(incoming ? 1 : 0);
    add_affine(one, end.peer);
    ends.insert(one.value());
  };
  for (const Body& body : program.bodies) {
    for (const Op& op : body.ops) {
      note(op.send_to, false);
      note(op.recv_from, true);
      for (const ConnectionRef& more : op.more_to) note(more, false);
      for (const ConnectionRef& more : op.more_from) note(more, true);
    }
  }
  for (const std::uint64_t end : ends) digest.add(static_cast<std::int64_t>(end));
}

/// Launches that differ in their ranks alone.
using WorkKey = std::tuple<const Program*, std::int64_t, DataType, ReduceOp>;
WorkKey work_of(const Launch& launch) {
  return {launch.program.get(), launch.options.size.count, launch.options.type, launch.options.op};
}

std::vector<int> ranks_of(const Launch& launch) {
  std::vector<int> ranks = launch.ranks;
  if (launch.alone) ranks.resize(1);
  return ranks;
}

}  // namespace

std::uint64_t shared_layout(const Bound& bound) {
  const Program& program = bound.program();
  Digest digest;
  digest.add(static_cast<std::int64_t>(program.protocol)).add(program.ranks);
  digest.add(program.fifo.slots).add(program.fifo.step.count).add(program.fifo.slices);
  digest.add(program.fifo.call.count).add(program.executed_by.threads_post ? 1 : 0);
  digest.add(program.inbound).add(program.outbound).add(program.fifo.pulls ? 1 : 0);
  digest.add(program.barriers);
  for (const Buffer& buffer : program.buffers) {
    digest.add(static_cast<std::int64_t>(buffer.kind)).add(buffer.alias).add(buffer.bytes.count);
    digest.add(buffer.packets ? 1 : 0);
  }
  for (const Semaphore& semaphore : program.semaphores)
    digest.add(semaphore.initial).add(semaphore.local ? 1 : 0).add(semaphore.shared ? 1 : 0);
  add_connections(digest, program);
  for (const std::vector<int>& group : program.groups)
    for (const int member : group) digest.add(member);
  if (counts_calls(program)) {
    // Programs of one name may count otherwise (another parameter): it goes on from itself only.
    const auto itself = reinterpret_cast<std::uintptr_t>(bound.frame().program.get());
    digest.add(static_cast<std::int64_t>(itself)).add(bound.size().count);
    digest.add(static_cast<std::int64_t>(bound.type()));
  }
  return digest.value() | std::uint64_t{1} << 63;
}

std::vector<std::int32_t> part_of_launches(const std::vector<JobPart>& parts,
                                           std::size_t launches) {
  std::vector<std::int32_t> part_of(launches);
  for (std::size_t p = 0; p < parts.size(); ++p)
    for (const std::int32_t launch : parts[p].launches)
      part_of[index(launch)] = static_cast<std::int32_t>(p);
  return part_of;
}

std::vector<JobPart> parts_of(const Job& job, const machine::SharedMachine& machine) {
  // Whether lists of ranks are alike is asked only where there are several: of a thousand ranks it
  // is a question of a million routes.
  std::map<WorkKey, std::set<std::vector<int>>> lists;
  for (const Launch& launch : job.launches) lists[work_of(launch)].insert(ranks_of(launch));
  std::map<std::pair<WorkKey, std::uint64_t>, std::size_t> known;
  std::map<std::vector<int>, std::uint64_t> ways;
  std::vector<JobPart> parts;
  for (std::size_t i = 0; i < job.launches.size(); ++i) {
    const Launch& launch = job.launches[i];
    const std::vector<int> ranks = ranks_of(launch);
    const WorkKey work = work_of(launch);
    std::uint64_t way = 0;
    if (lists[work].size() > 1) {
      const auto [between, are_new] = ways.try_emplace(ranks, 0);
      if (are_new) between->second = machine->ways_between(ranks);
      way = between->second;
    }
    const auto [part, is_new] = known.try_emplace({work, way}, parts.size());
    if (is_new) {
      try {
        parts.push_back(
            {bind(launch.program, machine::select_ranks(machine, ranks), launch.options), {}});
      } catch (const Failure& failure) {
        Diagnostics all;
        all.error("launch '" + launch.name + "' cannot be bound", launch.where);
        all.append(failure.diagnostics());
        throw Failure(std::move(all), failure.code());
      }
    }
    parts[part->second].launches.push_back(static_cast<std::int32_t>(i));
  }
  return parts;
}

}  // namespace hemiola::program

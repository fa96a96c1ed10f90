// NCCL's kernels: rings (src/device/all_reduce.h, all_gather.h, reduce_scatter.h, broadcast.h,
// reduce.h of NVIDIA/nccl 2.30), grouped send and receive (sendrecv.h). Trees: nccl_tree.cc;
// through the switch: nccl_nvls.cc.
#include "program/kernels/nccl.h"

#include <fmt/format.h>

#include "machine/machine.h"
#include "program/kernels/rccl_tuner.h"
#include "program/lower/lower.h"

namespace hemiola::program {
namespace {

// Dependent loads of a line each: communicator, channel, work (src/device/common.h).
constexpr int kPrologue = 3;
constexpr std::int32_t kNcclLine = 128, kNcclAccess = 16;

std::vector<plan::ParameterInfo> nccl_parameters(bool ll128, bool algorithms) {
  std::vector<std::string> protocols{"auto", "ll", "simple"};
  if (ll128) protocols.insert(protocols.begin() + 2, "ll128");
  std::vector<plan::ParameterInfo> all{
      {"protocol", "auto", protocols, "auto: what NCCL's tuner takes at this size"},
      {"channels", "0", {}, "workgroups, of grouped sends per peer; 0: as NCCL chooses"}};
  if (ll128) {
    all.push_back({"threads", "0", {}, "threads per workgroup; 0: as NCCL chooses"});
    all.push_back({"in_place", "0", {"0", "1"}, "input and output share memory"});
  }
  if (algorithms)
    all.push_back({"algorithm",
                   "auto",
                   {"auto", "ring", "tree", "nvls", "nvlstree"},
                   "auto: what the tuner takes"});
  return all;
}

// Simple: a chunk of 4 steps in 2 slices; broadcast and reduce a step at a time (collectives.h).
bool has_slices(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::all_gather ||
         collective == Collective::reduce_scatter;
}

Program ring(const KernelArguments& arguments, Collective collective, const NcclChoice& choice) {
  LowerOptions options;
  options.protocol = choice.protocol;
  options.machine = arguments.machine.get();
  options.workgroups = choice.channels;
  options.threads = choice.threads;
  options.in_place = nccl_in_place(arguments);
  const bool simple = choice.protocol == Protocol::simple;
  if (simple && has_slices(collective)) options.piece = MiB(2);
  if (simple && !has_slices(collective) && rccl_model(arguments.machine.get()) != nullptr)
    options.piece = rccl_chain_chunk(arguments.size, choice.channels, Fifo{}.step);
  const std::string plan = fmt::format("{}/ring", name_of(collective));
  const machine::Machine* machine = arguments.machine.get();
  if (machine != nullptr && machine->ranks() != arguments.ranks) machine = nullptr;
  Program program = lower(plan::make(plan, arguments.ranks, {}, machine), options);
  if (simple && has_slices(collective)) program.fifo = {4, MiB(1), 2};
  program.fifo.pulls = nccl_pulls(arguments);
  for (Kernel& kernel : program.kernels) {
    kernel.unroll = nccl_unroll(choice.protocol, arguments);
    kernel.posts_apart = simple;
    kernel.large_code = nccl_large_code(choice.protocol);
    if (choice.protocol == Protocol::ll) nccl_ll_accesses(kernel, collective, arguments.type);
  }
  finish_nccl_kernels(program);
  return program;
}

Program finished(Program program, const KernelArguments& arguments) {
  program.name = program.source = arguments.name;
  program.format = "kernel";
  program.library_call = true;
  program.warnings.append(tuner_warnings(arguments.machine.get()));
  program.plan = nullptr;
  return program;
}

template <Collective collective>
Program make_nccl(const KernelArguments& arguments) {
  const NcclChoice choice = choose_nccl(arguments, collective);
  const auto made = [&] {
    switch (choice.algorithm) {
      case NcclAlgorithm::tree:
        return nccl_tree(arguments, choice);
      case NcclAlgorithm::nvls:
      case NcclAlgorithm::nvls_tree:
        return nccl_nvls(arguments, choice);
      case NcclAlgorithm::ring:
        break;
    }
    return ring(arguments, collective, choice);
  };
  return finished(made(), arguments);
}

// Sends and receives of all peers at once: of the peer at distance d the channels d - 1, d - 1 + n
// - 1, ... The warps of a send and of a receive are parts of a block, of 10 and 9 warps where it
// serves one peer; what stays on the rank has blocks of its own, with as many warps as both
// (src/include/channel.h, ncclP2pChannelBaseForRound; src/device/sendrecv.h).
Program all_to_all(const KernelArguments& arguments) {
  const int n = arguments.ranks;
  const NcclChoice choice = choose_nccl_peer(arguments, {arguments.size.count / n});
  KernelWriter writer(arguments, Collective::all_to_all, n);
  Program& program = writer.program();
  const int each = choice.channels;
  const bool simple = choice.protocol == Protocol::simple;
  program.protocol = choice.protocol;
  program.fifo = {8, choice.step};
  program.fifo.pulls = nccl_pulls(arguments);
  program.inbound = program.outbound = (n - 1) * each;
  for (int c = 0; c < each; ++c) {
    for (int distance = 1; distance < n; ++distance) {
      const std::int32_t index = (distance - 1) * each + c;
      const Affine to = neighbour(distance, n), from = neighbour(n - distance, n);
      Op send = writer.move(OpKind::send, {{.buffer = writer.input(), .chunk = to}}, {});
      Op recv = writer.move(OpKind::recv, {}, {{.buffer = writer.output(), .chunk = from}});
      send.channel = recv.channel = Channel::none;
      send.slice = recv.slice = c;
      send.slices = recv.slices = each;
      send.send_to = {to, index, index, index};
      recv.recv_from = {from, index, index, index};
      writer.begin(c, each);
      writer.add(std::move(send));
      writer.begin_part();
      writer.add(std::move(recv));
    }
    const bool spare = !simple && choice.warp == 32;
    writer.begin(c, each, 2 * choice.threads - (spare ? 32 : 0));
    writer.add(writer.move(OpKind::copy, {{.buffer = writer.input(), .chunk = own_rank()}},
                           {{.buffer = writer.output(), .chunk = own_rank()}}));
  }
  program = writer.finish("ncclDevKernel_SendRecv", choice.threads,
                          nccl_unroll(choice.protocol, arguments));
  Kernel& kernel = program.kernels.front();
  kernel.posts_apart = simple;
  kernel.large_code = simple ? 1 : 0;  // half a block: it sends or it receives
  if (choice.protocol == Protocol::ll)
    nccl_ll_accesses(kernel, Collective::all_to_all, arguments.type);
  finish_nccl_kernels(program);
  return finished(std::move(program), arguments);
}

}  // namespace

bool nccl_in_place(const KernelArguments& arguments) {
  return arguments.word("in_place") == "1";
}

int nccl_unroll(Protocol protocol, const KernelArguments& arguments) {
  const RcclModel* rccl = rccl_model(arguments.machine.get());
  if (rccl != nullptr && protocol == Protocol::simple)
    return rccl_unroll(*rccl, nccl_nodes(arguments));
  return protocol == Protocol::simple ? 8 : protocol == Protocol::ll ? 1 : 4;
}

int nccl_large_code(Protocol protocol) {
  return protocol == Protocol::ll ? 0 : 2;
}

// Element by element is how storeData of prims_ll.h stores 8 B, and DataLoader loads elements of 4
// B and more; smaller ones it loads 4 B at a time. What adds nothing moves single bytes.
void nccl_ll_accesses(Kernel& kernel, Collective collective, DataType type) {
  const bool adds = collective == Collective::all_reduce || collective == Collective::reduce ||
                    collective == Collective::reduce_scatter;
  const int element = adds ? size_of(type) : 1;
  kernel.store_bytes = element;
  kernel.load_bytes = std::max(element, 4);
}

void finish_nccl_kernels(Program& program) {
  std::int64_t workgroups = 0;
  for (Kernel& kernel : program.kernels) kernel.fills_unit = true;
  for (const Kernel& kernel : program.kernels)
    workgroups = std::max(workgroups, static_cast<std::int64_t>(kernel.bodies.size()));
  const auto buffer = static_cast<std::int32_t>(program.buffers.size());
  program.buffers.push_back({.name = "work", .bytes = {workgroups * kPrologue * kNcclLine}});
  for (const Kernel& kernel : program.kernels) {
    for (std::size_t w = 0; w < kernel.bodies.size(); ++w) {
      std::vector<Op>& ops = program.bodies[index(kernel.bodies[w])].ops;
      std::vector<Op> prologue;
      for (int i = 0; i < kPrologue; ++i) {
        Op load{.kind = OpKind::load, .src = {{.buffer = buffer}}};
        load.slice = (static_cast<std::int32_t>(w) * kPrologue + i) * (kNcclLine / kNcclAccess);
        load.slices = static_cast<std::int32_t>(workgroups) * kPrologue * (kNcclLine / kNcclAccess);
        load.bytes = {kNcclAccess};
        load.where = fmt::format("/prologue/{}", i);
        prologue.push_back(std::move(load));
      }
      prologue.push_back({.kind = OpKind::sync, .where = "/prologue"});
      ops.insert(ops.begin(), prologue.begin(), prologue.end());
    }
  }
}

std::vector<KernelInfo> nccl_kernels() {
  const std::vector<plan::ParameterInfo> parameters = nccl_parameters(true, false);
  return of_collectives(
      {{"all-reduce/nccl", "NCCL's all-reduce; ring, tree or NVLS by its tuner",
        nccl_parameters(true, true), make_nccl<Collective::all_reduce>},
       {"all-gather/nccl", "NCCL's all-gather, a ring", parameters,
        make_nccl<Collective::all_gather>},
       {"reduce-scatter/nccl", "NCCL's reduce-scatter, a ring", parameters,
        make_nccl<Collective::reduce_scatter>},
       {"broadcast/nccl", "NCCL's broadcast, a ring", parameters, make_nccl<Collective::broadcast>},
       {"reduce/nccl", "NCCL's reduce, a ring", parameters, make_nccl<Collective::reduce>},
       {"all-to-all/nccl", "grouped sends and receives of NCCL, as nccl-tests does all-to-all",
        nccl_parameters(false, false), all_to_all}});
}

}  // namespace hemiola::program

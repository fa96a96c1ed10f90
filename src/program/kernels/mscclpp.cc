// Kernels of the MSCCL++ tutorial 03-memory-channel (microsoft/mscclpp@1f5f065d,
// examples/tutorials/03-memory-channel/bidir_memory_channel.cu): every rank moves its input to the
// next rank's output at the same time, 32 blocks of 1024 threads, 16 B per thread and iteration.
#include "program/kernels/kernel.h"

namespace hemiola::program {
namespace {

constexpr int kMscclppThreads = 1024;

/// Thread 0 of the grid tells its peer, and is told.
void meet(KernelWriter& writer, int workgroup, std::int32_t semaphore, bool release) {
  if (workgroup != 0) return;
  const int n = writer.ranks();
  writer.add({.kind = release ? OpKind::signal : OpKind::relaxed_signal,
              .channel = Channel::memory,
              .semaphores = {{neighbour(1, n), semaphore}}});
  writer.add({.kind = release ? OpKind::wait : OpKind::relaxed_wait,
              .channel = Channel::memory,
              .semaphores = {{own_rank(), semaphore}}});
}

template <class Move>
Program make_mscclpp(const KernelArguments& arguments, const char* name, Move&& move) {
  KernelWriter writer(arguments, Collective::send_recv, 1);
  const auto blocks = static_cast<int>(arguments.number("blocks"));
  const std::int32_t handle = writer.fixed("channel handle", {16 * blocks});
  const std::int32_t semaphore = writer.semaphore("channel");
  for (int w = 0; w < blocks; ++w) {
    writer.begin(w, blocks);
    writer.load(handle);
    meet(writer, w, semaphore, false);
    writer.grid_barrier();
    move(writer, w, semaphore);
  }
  return writer.finish(name, kMscclppThreads, 1);
}

Program put(const KernelArguments& arguments) {
  return make_mscclpp(
      arguments, "bidirPutKernel", [](KernelWriter& writer, int w, std::int32_t semaphore) {
        writer.add(
            writer.move(OpKind::put, {{.buffer = writer.input()}},
                        {{.rank = neighbour(1, writer.ranks()), .buffer = writer.output()}}));
        writer.grid_barrier();
        meet(writer, w, semaphore, true);
      });
}

Program get(const KernelArguments& arguments) {
  return make_mscclpp(arguments, "bidirGetKernel", [](KernelWriter& writer, int, std::int32_t) {
    writer.add(writer.move(OpKind::get,
                           {{.rank = neighbour(-1, writer.ranks()), .buffer = writer.input()}},
                           {{.buffer = writer.output()}}));
  });
}

Program packets(const KernelArguments& arguments) {
  std::int32_t buffer = -1;
  return make_mscclpp(
      arguments, "bidirPutPacketKernel", [&](KernelWriter& writer, int w, std::int32_t) {
        if (w == 0) {  // alternates between two halves by call
          buffer = writer.scratch("packets", 1);
          writer.program().buffers.back().packets = true;
          writer.program().buffers.back().rotation = 2;
        }
        writer.add(writer.move(
            OpKind::put_packets, {{.buffer = writer.input()}},
            {{.rank = neighbour(1, writer.ranks()), .buffer = buffer, .access = Access::packet}}));
        writer.add(writer.move(OpKind::unpack_packets,
                               {{.buffer = buffer, .access = Access::packet}},
                               {{.buffer = writer.output()}}));
      });
}

// examples/tutorials/04-port-channel/bidir_port_channel.cu: one thread; signals, too, go through
// the proxy and a copy engine.
Program port(const KernelArguments& arguments) {
  KernelWriter writer(arguments, Collective::send_recv, 1);
  const std::int32_t semaphore = writer.semaphore("channel");
  const int n = writer.ranks();
  const Op wait{
      .kind = OpKind::wait, .channel = Channel::memory, .semaphores = {{own_rank(), semaphore}}};
  writer.begin(0, 1);
  writer.add({.kind = OpKind::signal,
              .channel = Channel::port,
              .semaphores = {{neighbour(1, n), semaphore}}});
  writer.add(wait);
  writer.add({.kind = OpKind::put_signal,
              .channel = Channel::port,
              .src = {{.buffer = writer.input()}},
              .dst = {{.rank = neighbour(1, n), .buffer = writer.output()}},
              .semaphores = {{neighbour(1, n), semaphore}}});
  writer.add(wait);
  return writer.finish("bidirPutKernel", 1, 1);
}

}  // namespace

std::vector<KernelInfo> mscclpp_kernels() {
  const std::vector<plan::ParameterInfo> parameters{{"blocks", "32", {}, "workgroups"}};
  return of_collectives(
      {{"send-recv/mscclpp-put", "MSCCL++ memory channel: put, then signal and wait", parameters,
        put},
       {"send-recv/mscclpp-get", "MSCCL++ memory channel: get", parameters, get},
       {"send-recv/mscclpp-packets", "MSCCL++ memory channel: LL packets", parameters, packets}});
}

std::vector<KernelInfo> mscclpp_port_kernels() {
  return of_collectives({{"send-recv/mscclpp-port",
                          "MSCCL++ port channel: put with signal through proxy and copy engine",
                          {},
                          port}});
}

}  // namespace hemiola::program

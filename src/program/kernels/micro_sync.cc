// Microbenchmarks of synchronisation: flags, compare-and-swap, fences, barriers, launches.

#include "program/kernels/micro.h"

namespace hemiola::program {
namespace {

constexpr std::int64_t kMostRounds = 1'000'000;
constexpr int kSyncThreads = 32;

std::int64_t rounds_of(const KernelArguments& arguments) {
  return arguments.number("rounds", 1, kMostRounds);
}

// Two workgroups, of one GPU or of two, set each other's flag in turn. Each polls in its own
// memory.
Program ping_pong(const KernelArguments& arguments) {
  const bool remote = arguments.word("memory") == "peer";
  if (remote) check_peer(arguments, "memory");
  const bool release = arguments.word("release") == "1";
  MicroWriter writer(arguments);
  const std::int32_t ping = writer.semaphore("ping"), pong = writer.semaphore("pong");
  const auto signal = [&](int rank, std::int32_t semaphore) {
    return Op{.kind = release ? OpKind::signal : OpKind::relaxed_signal,
              .channel = Channel::memory,
              .semaphores = {{constant(rank), semaphore}}};
  };
  const auto wait = [&](int rank, std::int32_t semaphore) {
    return Op{.kind = release ? OpKind::wait : OpKind::relaxed_wait,
              .channel = Channel::memory,
              .semaphores = {{constant(rank), semaphore}}};
  };
  const int other = remote ? 1 : 0;
  const std::int64_t rounds = rounds_of(arguments);
  const std::int32_t first = writer.body(repeated(rounds, {signal(other, ping), wait(0, pong)}));
  const std::int32_t second = writer.body(repeated(rounds, {wait(other, ping), signal(0, pong)}));
  if (remote) {
    writer.run_on(0, {writer.kernel({first}, kSyncThreads)});
    writer.run_on(1, {writer.kernel({second}, kSyncThreads)});
  } else {
    writer.run_on(0, {writer.kernel({first, second}, kSyncThreads)});
  }
  return writer.finish();
}

// Workgroups pass a turn round: each spins with atomicCAS until it finds its own number, and leaves
// the next one's with the same access.
Program hand_over(const KernelArguments& arguments) {
  const std::int64_t blocks = arguments.number("blocks", 2, 1024);
  const std::int64_t rounds = rounds_of(arguments);
  MicroWriter writer(arguments);
  const std::int32_t turn = writer.semaphore("turn");
  std::vector<std::int32_t> bodies;
  for (std::int64_t block = 0; block < blocks; ++block) {
    bodies.push_back(writer.body(repeated(rounds, {{.kind = OpKind::compare_swap,
                                                    .semaphores = {{own_rank(), turn}},
                                                    .target = block,
                                                    .count = blocks}})));
  }
  writer.run_on(0, {writer.kernel(std::move(bodies), kSyncThreads)});
  return writer.finish();
}

// An atomic update, a fence behind it, the next one: each fence waits for the update before it. Two
// counters in turn, a line apart: where the L2 has two partitions, one in each.
Program fence(const KernelArguments& arguments) {
  constexpr int kInLine = 16;  // semaphores of 8 B
  MicroWriter writer(arguments);
  std::vector<Op> updates;
  for (int counter = 0; counter < 2; ++counter) {
    updates.push_back(
        {.kind = OpKind::dep_signal, .semaphores = {{own_rank(), writer.semaphore("counter")}}});
    for (int i = 1; i < kInLine; ++i) writer.semaphore("the rest of its line");
  }
  const std::int32_t body = writer.body(repeated(rounds_of(arguments), updates));
  writer.run_on(0, {writer.kernel({body}, kSyncThreads)});
  return writer.finish();
}

Program barrier(const KernelArguments& arguments) {
  const int blocks = blocks_of(arguments);
  MicroWriter writer(arguments);
  writer.program().barriers = 1;
  const std::int32_t body = writer.body(
      repeated(rounds_of(arguments), {{.kind = OpKind::barrier, .workgroups = blocks}}));
  const auto threads = static_cast<int>(arguments.number("threads", 1, 1024));
  writer.run_on(0, {writer.kernel(std::vector<std::int32_t>(index(blocks), body), threads)});
  return writer.finish();
}

Program launch(const KernelArguments& arguments) {
  MicroWriter writer(arguments);
  const std::int32_t body = writer.body({});
  const auto blocks = index(arguments.number("blocks", 1, 1'000'000));
  const auto threads = static_cast<int>(arguments.number("threads", 1, 1024));
  writer.run_on(0, {writer.kernel(std::vector<std::int32_t>(blocks, body), threads)});
  return writer.finish();
}

}  // namespace

std::vector<KernelInfo> micro_sync_kernels() {
  const plan::ParameterInfo rounds{"rounds", "16", {}, "how often"};
  return on_one_rank(
      {{"micro/ping-pong",
        "two workgroups set each other's flag in turn",
        {{"memory", "own", {"own", "peer"}, "own: of one GPU; peer: of two"},
         {"release", "0", {"0", "1"}, "1: a fence before each flag"},
         rounds},
        ping_pong},
       {"micro/hand-over",
        "workgroups pass a turn round by compare-and-swap",
        {{"blocks", "2", {}, "workgroups"}, rounds},
        hand_over},
       {"micro/fence", "pairs of atomic updates with a fence after each", {rounds}, fence},
       {"micro/barrier",
        "barriers among the workgroups of a GPU",
        {{"blocks", "0", {}, "workgroups; 0: one per compute unit"},
         {"threads", "32", {}, "per workgroup"},
         rounds},
        barrier},
       {"micro/launch",
        "a kernel that does nothing",
        {{"blocks", "1", {}, "workgroups"}, {"threads", "32", {}, "per workgroup"}},
        launch}});
}

}  // namespace hemiola::program

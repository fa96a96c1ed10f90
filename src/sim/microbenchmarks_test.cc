// The built-in microbenchmarks, exact to the femtosecond: chains of loads, compare-and-swap,
// fences, launches, copies.

#include <gtest/gtest.h>

#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

using namespace test;

Result run_micro(const machine::Machine& machine, const std::string& name,
                 const std::vector<std::pair<std::string, std::string>>& parameters,
                 const Options& options = {}, Bytes size = KiB(4)) {
  const program::Program program = program::load(
      name,
      {.ranks = machine.ranks(), .parameters = parameters, .machine = machine::share(machine)});
  return simulate(machine, program::bind(program, machine::share(machine), {.size = size}),
                  options);
}

TEST(PointerChase, loads_one_after_the_other) {
  const machine::Machine machine = distinct("ring:2");
  const Costs c(machine);
  for (const int hops : {1, 2, 7}) {
    const Result own = run_micro(machine, "micro/pointer-chase", {{"hops", std::to_string(hops)}});
    EXPECT_EQ(own.rank_end[0].fs, c.start() + hops * c.local_load(kSector) + c.end());
    const Result peer = run_micro(machine, "micro/pointer-chase",
                                  {{"hops", std::to_string(hops)}, {"memory", "peer"}});
    EXPECT_EQ(peer.rank_end[0].fs,
              c.start() + hops * c.remote_load(kSector, c.link(0), c.link(kSector)) + c.end());
    EXPECT_EQ(peer.counters.at("requests.loads"), hops);
    EXPECT_EQ(peer.rank_end[1], c.gpu.launch_stream_latency) << "who only owns the memory";
  }
}

TEST(PointerChase, goes_round_its_footprint) {
  // Four lines: all later loads hit, in the L1, or where that is passed by in the L2.
  const machine::Machine machine = distinct("ring:2", {{"gpu.l1.size", "4 KiB"},
                                                       {"gpu.l1.ways", "4"},
                                                       {"gpu.l2.size", "64 KiB"},
                                                       {"gpu.l2.ways", "4"}});
  for (const std::string cache : {"l1", "l2"}) {
    const Result result = run_micro(machine, "micro/pointer-chase",
                                    {{"footprint", "512"}, {"hops", "12"}, {"cache", cache}});
    EXPECT_EQ(result.counters.at("l1.hits"), cache == "l1" ? 8 : 0);
    EXPECT_EQ(result.counters.at("l2.misses"), 4);
    EXPECT_EQ(result.counters.at("l2.hits"), cache == "l1" ? 0 : 8);
    EXPECT_EQ(result.counters.at("hbm.read_bytes"), 4 * kLine);
  }
  const Result other = run_micro(machine, "micro/pointer-chase",
                                 {{"footprint", "512"}, {"hops", "2"}, {"first", "other"}});
  EXPECT_EQ(other.counters.at("requests.loads"), 4 + 2);
  EXPECT_EQ(other.counters.at("l2.misses"), 4 + 1) << "the other one's, and the flag";
  const Result strided = run_micro(machine, "micro/pointer-chase",
                                   {{"footprint", "1KiB"}, {"stride", "256"}, {"start", "128"}});
  EXPECT_EQ(strided.counters.at("requests.loads"), 4) << "once around";
}

TEST(PingPong, costs_nothing_but_the_ways_of_its_flags) {
  // `distinct` has an overhead of 17 ns for operations of a library's code.
  const machine::Machine dear = distinct("ring:2", {{"gpu.sync.op_overhead", "5 us"}});
  const machine::Machine cheap = distinct("ring:2");
  for (const std::string memory : {"own", "peer"}) {
    EXPECT_EQ(run_micro(dear, "micro/ping-pong", {{"memory", memory}}).time,
              run_micro(cheap, "micro/ping-pong", {{"memory", memory}}).time);
  }
}

TEST(HandOver, a_turn_is_passed_by_the_access_that_finds_it) {
  const machine::Machine machine = distinct("ring:2");
  const Costs c(machine);
  const auto time = [&](int rounds) {
    const Result result =
        run_micro(machine, "micro/hand-over", {{"rounds", std::to_string(rounds)}});
    EXPECT_EQ(result.counters.at("requests.flags"), 0) << "nobody stores a flag";
    return result.rank_end[0].fs;
  };
  // Both spin alike: a turn comes with the first access after the other's, which left when that one
  // had not been there yet, or waited for sync.poll_interval.
  const std::int64_t turn = (time(40) - time(20)) / 40;
  const std::int64_t poll = c.issue() + c.cu(0) + c.noc() + c.slice(kSector) + c.cu(kSector) +
                            c.noc() + c.gpu.sync_poll_interval.fs;
  EXPECT_GT(turn, poll / 4);
  EXPECT_LE(turn, poll);
}

TEST(HandOver, more_workgroups_take_their_turns_in_order) {
  const machine::Machine machine = distinct("ring:2");
  // Ends only if every workgroup finds its own number, 5 x 3 of them, in both repetitions.
  const Result result = run_micro(machine, "micro/hand-over", {{"blocks", "5"}, {"rounds", "3"}},
                                  {.warmup = 1, .iterations = 1});
  EXPECT_GE(result.counters.at("requests.polls"), 2 * 15);
  EXPECT_GT(result.time.fs, 0);
}

TEST(Fence, stands_between_two_updates) {
  const machine::Machine machine = distinct("ring:2");
  const Costs c(machine);
  const auto time = [&](int rounds) {
    return run_micro(machine, "micro/fence", {{"rounds", std::to_string(rounds)}}).rank_end[0].fs;
  };
  const std::int64_t update = c.issue() + c.cu(kSector) + c.noc() + c.gpu.l2_atomic_time.fs +
                              c.gpu.l2_latency.fs + c.hbm(kSector) + c.noc();
  EXPECT_EQ(time(9) - time(4), 2 * 5 * (update + c.gpu.sync_fence_latency.fs));
}

TEST(Launch, follows_the_one_before_after_the_interval) {
  const machine::Machine machine = distinct("ring:2");
  const Costs c(machine);
  EXPECT_EQ(run_micro(machine, "micro/launch", {}).rank_end[0].fs, c.start() + c.end());
  for (const Launch launch : {Launch::stream, Launch::graph}) {
    const Result result =
        run_micro(machine, "micro/launch", {}, {.launch = launch, .warmup = 1, .iterations = 4});
    EXPECT_EQ(result.time, launch == Launch::stream ? c.gpu.launch_stream_interval
                                                    : c.gpu.launch_graph_interval);
  }
}

TEST(Copies, of_an_engine_send_consecutive_bursts_over_all_paths) {
  // Twelve links between two GPUs of a DGX A100; 24 bursts of 4 KiB.
  const machine::Machine machine = machine::load("dgx-a100");
  const Result result = run_micro(machine, "micro/copy", {{"engine", "dma"}}, {}, Bytes{24 * 4096});
  int used = 0;
  for (const LinkUse& link : result.links) {
    if (!link.from.ends_with("xpu.0") || link.payload_bytes == 0) continue;
    ++used;
    EXPECT_EQ(link.payload_bytes, 2 * 4096);
  }
  EXPECT_EQ(used, 12);
}

TEST(Copies, move_their_bytes_between_the_ranks_that_take_part) {
  const machine::Machine machine = distinct("switch:4");
  for (const std::string engine : {"cu", "dma", "proxy"}) {
    for (const std::string direction : {"write", "read"}) {
      if (engine == "proxy" && direction == "read") continue;
      for (const auto& [ways, pairs] : {std::pair("one", 1), {"both", 2}, {"all", 12}}) {
        const Result result = run_micro(
            machine, "micro/copy",
            {{"engine", engine}, {"direction", direction}, {"ways", ways}, {"blocks", "2"}});
        std::int64_t leaving = 0;
        for (const LinkUse& link : result.links)
          if (link.from.find("switch") == std::string::npos) leaving += link.payload_bytes;
        EXPECT_EQ(leaving, pairs * 4096) << engine << ' ' << direction << ' ' << ways;
      }
    }
  }
  const Result own = run_micro(machine, "micro/copy", {{"memory", "own"}});
  EXPECT_EQ(own.counters.at("hbm.written_bytes"), 4096);
  EXPECT_TRUE(own.links.empty());
}

}  // namespace
}  // namespace hemiola::sim

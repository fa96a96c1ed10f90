// A ring all-reduce against its closed form.

#include <gtest/gtest.h>

#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

using namespace test;

// One channel of one wavefront; a chunk of m lines is one slice and one batch; ideal GPUs; a ring
// of one link class. All ranks do the same at the same time, so one of them tells all. It makes 2
// (n - 1) sends
//
//   send, (n - 2) x receive-reduce-send, receive-reduce-copy-send, (n - 2) x receive-copy-send,
//   receive
//
// and an operation that receives and sends takes, from the end of the one before it,
//
//   flag on its way, seen by the next poll            link(32 B) + up to a poll interval
//   sync, s m loads, reduction, d m stores, sync      femtoseconds
//   stores on the wire, their acknowledgements        m serial(128 B) + latency + serial(0) +
//   latency
//
// so with latency L and serial time S of a line the whole is about 2 (n - 1) (3 L + m S). The
// latency is long against m S: the credit flag, which goes the other way, never meets data.
class Ring {
 public:
  Ring(const Costs& costs, std::int64_t lines) : c(costs), m(lines), now(costs.start()) {}

  void send() { work(1, 1, 0, false); }
  void receive(std::int64_t sources, bool sends, bool keeps) {
    await();
    work(sources, sends ? 1 : 0, keeps ? 1 : 0, true);
  }
  std::int64_t end() const { return acknowledged + c.end(); }

 private:
  // The poll follows the flag of the operation before it through the CU. It sees a flag that the
  // slice accepted before it.
  void await() {
    const std::int64_t first = now + 2 * c.issue() + c.cu(0) + c.noc();
    const std::int64_t back = c.slice(kSector) + c.read(kSector) + c.cu(kSector) + c.noc();
    const std::int64_t period = back + c.gpu.sync_poll_interval.fs + c.issue() + c.cu(0) + c.noc();
    ASSERT_GT(flag, first);
    now = first + ((flag - first) / period + 1) * period + back;
  }
  void work(std::int64_t sources, std::int64_t remote, std::int64_t local, bool credits) {
    now += c.gpu.sync_barrier_latency.fs;
    now += sources * m * c.issue() + (c.local_load(kLine) - c.issue());
    if (sources > 1) now += c.gpu.cu_reduce_rate_4byte.time_for(m * kLine).fs;
    if (remote > 0) {
      Stream s(m, now);
      s.serve(c.issue()).serve(c.cu(kLine)).after(c.noc() + c.io(kLine));
      s.serve(c.serial(kLine))
          .after(c.wire.latency.fs + c.io(kLine) + c.slice(kLine) + c.hbm(kLine) + c.io(0));
      s.serve(c.serial(0)).after(c.wire.latency.fs + c.io(0) + c.noc());
      acknowledged = s.last();
    }
    now += (remote + local) * m * c.issue();
    if (local > 0) acknowledged = std::max(acknowledged, now - c.issue() + c.local_store(kLine));
    now += c.gpu.sync_barrier_latency.fs;
    if (credits) acknowledged = std::max(acknowledged, now + flag_round_trip());
    if (remote > 0) {
      now = acknowledged;  // a fence of 1 fs is none
      flag = now + c.to_remote_slice(kSector, c.link(kSector));
    }
  }
  std::int64_t flag_round_trip() const {
    return c.to_remote_slice(kSector, c.link(kSector)) + c.gpu.l2_atomic_time.fs +
           c.gpu.l2_latency.fs + c.hbm(kSector) + c.io(0) + c.link(0) + c.io(0) + c.noc();
  }

  const Costs& c;
  std::int64_t m, now;
  std::int64_t flag = 0;          ///< acceptance of the neighbour's (and so of the own) last flag
  std::int64_t acknowledged = 0;  ///< of the last store
};

TEST(RingAllReduce, takes_its_closed_form_on_ideal_gpus) {
  for (const std::int64_t ranks : {3, 4, 5}) {
    for (const std::int64_t lines : {1, 2, 4}) {
      const machine::Machine machine =
          ideal("ring:" + std::to_string(ranks), {{"link.link.bandwidth", "10 GB/s"},
                                                  {"link.link.latency", "500 ns"},
                                                  {"gpu.sync.poll_interval", "9973 ps"}});
      const Costs c(machine);
      program::LoadOptions options{.ranks = static_cast<int>(ranks)};
      options.parameters = {{"channels", "1"}, {"threads", "32"}, {"protocol", "simple"}};
      const program::Bound program =
          program::bind(program::load("all-reduce/ring", options), machine::share(machine),
                        {.size = {ranks * lines * kLine}});
      const Result result = simulate(machine, program);
      Ring ring(c, lines);
      ring.send();
      for (std::int64_t i = 0; i < ranks - 2; ++i) ring.receive(2, true, false);
      ring.receive(2, true, true);
      for (std::int64_t i = 0; i < ranks - 2; ++i) ring.receive(1, true, true);
      ring.receive(1, false, true);
      EXPECT_EQ(result.time.fs, ring.end()) << ranks << " ranks, " << lines << " lines";
      for (const Time end : result.rank_end) EXPECT_EQ(end, result.time);
      // The same from far away: nothing else is of any size.
      const std::int64_t each = 3 * c.wire.latency.fs + lines * c.serial(kLine);
      EXPECT_NEAR(static_cast<double>(result.time.fs), static_cast<double>(2 * (ranks - 1) * each),
                  static_cast<double>(2 * (ranks - 1)) * 15e6 + 1.1e9);
      EXPECT_EQ(result.counters.at("stores.injected_bytes"),
                ranks * 2 * (ranks - 1) * lines * kLine);
    }
  }
}

TEST(RingAllReduce, large_sizes_reach_the_bandwidth_of_the_links) {
  const machine::Machine machine = ideal("ring:4", {{"link.link.bandwidth", "10 GB/s"},
                                                    {"link.link.latency", "10 ns"},
                                                    {"gpu.sync.poll_interval", "20 ns"}});
  program::LoadOptions options{.ranks = 4};
  options.parameters = {{"channels", "4"}, {"threads", "128"}, {"piece", "4KiB"}};
  const program::Bound program = program::bind(program::load("all-reduce/ring", options),
                                               machine::share(machine), {.size = MiB(1)});
  const Result result = simulate(machine, program);
  EXPECT_GE(result.time, result.bound.bandwidth);
  EXPECT_LT(result.time.fs, result.bound.bandwidth.fs * 11 / 10);
}

}  // namespace
}  // namespace hemiola::sim

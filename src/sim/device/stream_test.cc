// Streams of lines through servers in a row: on chip, links, switches, credits, finite queues and
// arbitration. Every expectation is the recurrence departure = max(arrival, previous) + service.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/result/trace.h"
#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

using namespace test;

/// What each link did, in order.
class LinkLog : public TraceSink {
 public:
  struct Use {
    std::int64_t wire, begin, end;
    bool operator==(const Use&) const = default;
  };
  void stream(int, int, std::string_view, Time, Time) override {}
  void workgroup(int, int, int, Time, Time) override {}
  void operation(int, int, std::string_view, Time, Time, const FlowEnds&) override {}
  void link(int link, std::int64_t wire_bytes, int, Time begin, Time end) override {
    uses[link].push_back({wire_bytes, begin.fs, end.fs});
  }
  void engine(int, std::string_view, std::string_view, Time, Time, const FlowEnds&) override {}
  void request(int, std::string_view, std::string_view, Time, Time) override {}
  bool wants_requests(Time) const override { return false; }

  std::vector<std::int64_t> ends(int link) {
    std::vector<std::int64_t> out;
    for (const Use& use : uses[link]) out.push_back(use.end);
    return out;
  }
  std::vector<std::int64_t> wires(int link) {
    std::vector<std::int64_t> out;
    for (const Use& use : uses[link]) out.push_back(use.wire);
    return out;
  }
  std::map<int, std::vector<Use>> uses;
};

/// All lines of a move in one batch: one wavefront of 32 threads moves four lines an iteration.
machine::Machine in_one_batch(const std::string& topology, Settings more = {}) {
  more.emplace_back("gpu.cu.unroll", "1024");
  return distinct(topology, more);
}
Ops put_lines(int from, int to) {
  return {transfer(OpKind::put, {at(from, kInput)}, {at(to, kOutput)})};
}
Shape lines(std::int64_t count) {
  return {.chunk_bytes = count * kLine};
}

/// When the data of a batch of local loads has all come, from the first issue on.
std::int64_t loaded(const Costs& c, std::int64_t count, std::int64_t begin) {
  return Stream(count, begin)
      .serve(c.issue())
      .serve(c.cu(0))
      .after(c.noc())
      .serve(c.gpu.l2_slice_rate.time_for(kLine).fs)
      .after(c.gpu.l2_latency.fs)
      .serve(c.hbm(kLine))
      .after(c.gpu.hbm_latency.fs)
      .serve(c.cu(kLine))
      .after(c.noc())
      .last();
}
/// From the issue of stores to their arrival at the first link.
Stream stores_at_link(const Costs& c, std::int64_t count, std::int64_t begin) {
  return Stream(count, begin)
      .serve(c.issue())
      .serve(c.cu(kLine))
      .after(c.noc())
      .serve(c.io(kLine) - c.gpu.noc_io_latency.fs)
      .after(c.gpu.noc_io_latency.fs);
}
/// From the arrival at the destination's port to that of the acknowledgements at the link back.
Stream& stored(Stream& s, const Costs& c) {
  return s.serve(c.io(kLine) - c.gpu.noc_io_latency.fs)
      .after(c.gpu.noc_io_latency.fs)
      .serve(c.gpu.l2_slice_rate.time_for(kLine).fs)
      .after(c.gpu.l2_latency.fs)
      .serve(c.hbm(kLine))
      .serve(c.io(0) - c.gpu.noc_io_latency.fs)
      .after(c.gpu.noc_io_latency.fs);
}
Stream& over_link(Stream& s, const Costs& c, std::int64_t payload) {
  return s.serve(c.serial(payload)).after(c.wire.latency.fs);
}
std::int64_t acknowledged(Stream& s, const Costs& c) {
  return s.serve(c.io(0) - c.gpu.noc_io_latency.fs)
      .after(c.gpu.noc_io_latency.fs)
      .after(c.noc())
      .last();
}

TEST(StreamOfLines, a_local_copy_turns_the_memory_bus_round_once) {
  const machine::Machine machine = in_one_batch("ring:2", {{"gpu.hbm.turnaround", "37 ns"}});
  const Costs c(machine);
  for (const std::int64_t count : {1, 2, 7, 40}) {
    const Result result = run(machine, {{{copy(at(0, kInput), at(0, kOutput))}}, {}}, lines(count));
    Stream stores(count, loaded(c, count, c.start() + c.overhead()));
    stores.serve(c.issue()).serve(c.cu(kLine)).after(c.noc());
    stores.serve(c.gpu.l2_slice_rate.time_for(kLine).fs).after(c.gpu.l2_latency.fs);
    stores.times.front() += Time::from_ns(37).fs;  // the first write after the reads
    stores.serve(c.hbm(kLine)).after(c.noc());
    EXPECT_EQ(result.time.fs, stores.last() + c.end()) << count << " lines";
  }
}

TEST(StreamOfLines, a_memory_at_half_efficiency_takes_twice_as_long_for_each_line) {
  const machine::Machine machine = in_one_batch("ring:2", {{"gpu.hbm.efficiency_permille", "500"}});
  const Costs c(machine);
  ASSERT_EQ(c.hbm(kLine), Rate{20'000'000'000}.time_for(kLine).fs);
  Stream stores(40, loaded(c, 40, c.start() + c.overhead()));
  stores.serve(c.issue()).serve(c.cu(kLine)).after(c.noc());
  stores.serve(c.gpu.l2_slice_rate.time_for(kLine).fs).after(c.gpu.l2_latency.fs);
  stores.serve(c.hbm(kLine)).after(c.noc());
  const Result result = run(machine, {{{copy(at(0, kInput), at(0, kOutput))}}, {}}, lines(40));
  EXPECT_EQ(result.time.fs, stores.last() + c.end());
}

TEST(StreamOfLines, a_put_through_one_link_departs_line_by_line) {
  const machine::Machine machine = in_one_batch("ring:2");
  const Costs c(machine);
  for (const std::int64_t count : {1, 3, 17, 100}) {
    LinkLog log;
    const Result result = run(machine, {{put_lines(0, 1)}, {}}, lines(count), {.trace = &log});
    Stream s = stores_at_link(c, count, loaded(c, count, c.start() + c.overhead()));
    s.serve(c.serial(kLine));
    EXPECT_EQ(log.ends(0), s.times) << count << " lines";
    stored(s.after(c.wire.latency.fs), c);
    over_link(s, c, 0);
    EXPECT_EQ(result.time.fs, acknowledged(s, c) + c.end()) << count << " lines";
    EXPECT_EQ(result.links.at(0).requests, count);
    EXPECT_EQ(result.links.at(0).busy.fs, count * c.serial(kLine));
  }
}

TEST(StreamOfLines, a_slow_link_is_busy_without_a_gap) {
  const machine::Machine machine = in_one_batch("ring:2", {{"link.link.bandwidth", "1 GB/s"}});
  const Costs c(machine);
  LinkLog log;
  run(machine, {{put_lines(0, 1)}, {}}, lines(64), {.trace = &log});
  const std::vector<LinkLog::Use>& uses = log.uses[0];
  ASSERT_EQ(uses.size(), 64U);
  EXPECT_EQ(uses.front().begin,
            stores_at_link(c, 64, loaded(c, 64, c.start() + c.overhead())).times.front());
  EXPECT_EQ(uses.back().end - uses.front().begin, 64 * c.serial(kLine));
}

TEST(StreamOfLines, a_put_through_a_switch_queues_at_each_link) {
  const machine::Machine machine = in_one_batch("switch:2");
  const Costs c(machine);
  const Result result = run(machine, {{put_lines(0, 1)}, {}}, lines(33));
  Stream s = stores_at_link(c, 33, loaded(c, 33, c.start() + c.overhead()));
  over_link(s, c, kLine).after(c.switches.latency.fs);
  stored(over_link(s, c, kLine), c);
  over_link(s, c, 0).after(c.switches.latency.fs);
  over_link(s, c, 0);
  EXPECT_EQ(result.time.fs, acknowledged(s, c) + c.end());
}

TEST(StreamOfLines, a_get_sends_control_packets_out_and_lines_back) {
  const machine::Machine machine = in_one_batch("ring:2");
  const Costs c(machine);
  const Ops get = {transfer(OpKind::get, {at(1, kInput)}, {at(0, kOutput)})};
  const Result result = run(machine, {{get}, {}}, lines(25));
  const std::int64_t io = c.gpu.noc_io_latency.fs;
  Stream s(25, c.start() + c.overhead());
  s.serve(c.issue()).serve(c.cu(0)).after(c.noc()).serve(c.io(0) - io).after(io);
  over_link(s, c, 0).serve(c.io(0) - io).after(io);
  s.serve(c.gpu.l2_slice_rate.time_for(kLine).fs).after(c.gpu.l2_latency.fs);
  s.serve(c.hbm(kLine)).after(c.gpu.hbm_latency.fs).serve(c.io(kLine) - io).after(io);
  over_link(s, c, kLine).serve(c.io(kLine) - io).after(io).serve(c.cu(kLine)).after(c.noc());
  Stream stores(25, s.last());
  stores.serve(c.issue()).serve(c.cu(kLine)).after(c.noc());
  stores.serve(c.gpu.l2_slice_rate.time_for(kLine).fs).after(c.gpu.l2_latency.fs);
  stores.serve(c.hbm(kLine)).after(c.noc());
  EXPECT_EQ(result.time.fs, stores.last() + c.end());
}

// Both senders' lines reach the output at the same times; the one with the smaller relative rank
// goes first each time.
TEST(StreamOfLines, two_senders_share_a_switch_output_in_the_order_of_their_tags) {
  const machine::Machine machine = in_one_batch("switch:3", {{"link.link.bandwidth", "5 GB/s"}});
  const Costs c(machine);
  LinkLog log;
  run(machine, {{}, {put_lines(1, 0)}, {put_lines(2, 0)}}, lines(20), {.trace = &log});
  Stream s = stores_at_link(c, 20, loaded(c, 20, c.start() + c.overhead()));
  over_link(s, c, kLine).after(c.switches.latency.fs);
  std::vector<std::int64_t> both;
  for (const std::int64_t time : s.times) both.insert(both.end(), {time, time});
  s.times = both;
  const int into_rank_0 = 1;  // links come in pairs: GPU i to the switch 2 i, back 2 i + 1
  EXPECT_EQ(log.ends(into_rank_0), s.serve(c.serial(kLine)).times);
  // Rank 1 was first each time: its last acknowledgement is one line ahead of rank 2's.
  EXPECT_EQ(log.ends(2 * 2 + 1).back() - log.ends(2 * 1 + 1).back(), c.serial(kLine));
}

// --- Credits.

/// A link with a receive buffer of `credits` slots: request k starts when it has come, the link is
/// free, and request k - credits has left the buffer one latency ago. `leave` serves what empties
/// the buffer (0: it leaves on arrival, after `node`).
struct Credited {
  Stream out;   ///< departures from the link
  Stream left;  ///< when each has left the buffer
  Credited(const Stream& arrivals, std::int64_t service, std::int64_t latency, std::int64_t node,
           std::int64_t leave, std::size_t credits)
      : out(arrivals), left(arrivals) {
    std::int64_t free = 0, server = 0;
    for (std::size_t k = 0; k < out.times.size(); ++k) {
      std::int64_t start = std::max(arrivals.times[k], free);
      if (k >= credits) start = std::max(start, left.times[k - credits] + latency);
      out.times[k] = free = start + service;
      const std::int64_t arrival = free + latency + node;
      left.times[k] = server = leave > 0 ? std::max(arrival, server) + leave : arrival;
    }
  }
};

TEST(StreamOfLines, credits_let_a_buffer_of_lines_go_each_round_trip) {
  for (const std::int64_t credits : {1, 2, 5, 9, 50}) {
    const machine::Machine machine =
        in_one_batch("ring:2", {{"link.link.credits", std::to_string(credits)}});
    const Costs c(machine);
    const std::int64_t latency = c.wire.latency.fs, io = c.gpu.noc_io_latency.fs;
    const auto slots = static_cast<std::size_t>(credits);
    LinkLog log;
    const Result result = run(machine, {{put_lines(0, 1)}, {}}, lines(60), {.trace = &log});
    const Stream at_link = stores_at_link(c, 60, loaded(c, 60, c.start() + c.overhead()));
    Credited there(at_link, c.serial(kLine), latency, 0, c.io(kLine) - io, slots);
    EXPECT_EQ(log.ends(0), there.out.times) << credits << " credits";
    const std::int64_t round_trip = c.serial(kLine) + latency + (c.io(kLine) - io) + latency;
    if (credits < 10) {
      ASSERT_LT(credits * c.serial(kLine), round_trip);
      EXPECT_EQ(there.out.times[40 + slots] - there.out.times[40], round_trip);
    }
    Stream s = there.left.after(io);
    s.serve(c.gpu.l2_slice_rate.time_for(kLine).fs).after(c.gpu.l2_latency.fs);
    s.serve(c.hbm(kLine)).serve(c.io(0) - io).after(io);
    Credited back(s, c.serial(0), latency, 0, c.io(0) - io, slots);
    EXPECT_EQ(log.ends(1), back.out.times) << credits << " credits";
    EXPECT_EQ(result.time.fs, back.left.last() + io + c.noc() + c.end()) << credits << " credits";
    EXPECT_EQ(result.counters.at("credits.taken"), 120);
    EXPECT_EQ(result.counters.at("credits.returned"), 120);
  }
}

TEST(StreamOfLines, a_switch_gives_a_slot_back_when_the_line_has_entered_its_output_queue) {
  const machine::Machine machine = in_one_batch("switch:2", {{"link.link.credits", "3"}});
  const Costs c(machine);
  LinkLog log;
  run(machine, {{put_lines(0, 1)}, {}}, lines(30), {.trace = &log});
  const Stream at_link = stores_at_link(c, 30, loaded(c, 30, c.start() + c.overhead()));
  Credited up(at_link, c.serial(kLine), c.wire.latency.fs, c.switches.latency.fs, 0, 3);
  EXPECT_EQ(log.ends(0), up.out.times);
  Credited down(up.left, c.serial(kLine), c.wire.latency.fs, 0,
                c.io(kLine) - c.gpu.noc_io_latency.fs, 3);
  EXPECT_EQ(log.ends(3), down.out.times);
}

TEST(StreamOfLines, a_link_without_credits_behind_one_with_credits_takes_a_line_as_it_comes) {
  machine::Machine machine = in_one_batch("mesh:1x3", {{"link.link.credits", "2"}});
  machine.link_classes.push_back(machine.link_classes[0]);
  machine.link_classes[1].credits = 0;
  machine.link_classes[1].bandwidth = Rate{1'000'000'000};  // a queue forms behind it
  machine.links[2].link_class = machine.links[3].link_class = 1;
  machine.forget_routes();
  const Costs c(machine);
  LinkLog log;
  run(machine, {{put_lines(0, 2)}, {}, {}}, lines(30), {.trace = &log});
  const Stream at_link = stores_at_link(c, 30, loaded(c, 30, c.start() + c.overhead()));
  Credited first(at_link, c.serial(kLine), c.wire.latency.fs, 2 * c.gpu.noc_io_latency.fs, 0, 2);
  EXPECT_EQ(log.ends(0), first.out.times);
  EXPECT_EQ(log.ends(2),
            first.left.serve(machine.link_classes[1].bandwidth.time_for(kLine + 20).fs).times);
}

// Two senders to rank 0 fill its output queue of two lines; all links are equally fast, so from the
// fourth line of the output on, line j enters the queue when line j - 2 starts, senders in turn.
// What stands behind in the same receive buffer waits with it: here the one line from rank 1 to
// rank 3.
TEST(StreamOfLines, a_full_switch_queue_holds_back_what_stands_behind_in_the_receive_buffer) {
  constexpr std::int64_t kLines = 40;
  const auto begin_at_rank_3 = [&](const std::string& queue, std::int64_t& first,
                                   std::int64_t& serial) {
    const machine::Machine machine =
        in_one_batch("switch:4", {{"switch.queue", queue}, {"link.link.bandwidth", "2 GB/s"}});
    const Costs c(machine);
    LinkLog log;
    const Operand all = at(1, kInput, 0, kLines), there = at(0, kOutput, 0, kLines);
    const Ops first_sender = {transfer(OpKind::put, {all}, {there}),
                              transfer(OpKind::put, {at(1, kInput)}, {at(3, kOutput)})};
    const Ops second_sender = {transfer(OpKind::put, {at(2, kInput, 0, kLines)}, {there})};
    const Result result = run(machine, {{}, {first_sender}, {second_sender}, {}},
                              {.chunk_bytes = kLine, .chunks = kLines}, {.trace = &log});
    serial = c.serial(kLine);
    first = stores_at_link(c, kLines, loaded(c, kLines, c.start() + c.overhead())).times.front() +
            c.link(kLine) + c.switches.latency.fs;
    const std::vector<LinkLog::Use>& output = log.uses[1];  // links in pairs: up 2 i, down 2 i + 1
    EXPECT_EQ(output.size(), 2U * kLines);
    for (std::size_t j = 0; j < output.size(); ++j) {
      EXPECT_EQ(output[j].begin, first + static_cast<std::int64_t>(j) * serial) << j;
    }
    for (const LinkUse& use : result.links) {
      if (queue == "2") {
        EXPECT_LE(use.to == "switch.0.switch.0" ? 0 : use.max_queue, 2);
      }
    }
    return log.uses[7].front().begin;
  };
  std::int64_t first = 0, serial = 0;
  const std::int64_t unlimited = begin_at_rank_3("0", first, serial);
  EXPECT_EQ(unlimited, first + kLines * serial) << "as it arrives";
  const std::int64_t held = begin_at_rank_3("2", first, serial);
  EXPECT_EQ(held, first + (2 * kLines - 4) * serial);
}

// --- Arbitration. Lines A, three flags, lines B come while the first line is on the (slow) wire.

Ops lines_flags_lines() {
  const auto relaxed = flag(OpKind::relaxed_signal, 1, 0);
  return {transfer(OpKind::put, {at(0, kInput, 0)}, {at(1, kOutput, 0)}), relaxed, relaxed, relaxed,
          transfer(OpKind::put, {at(0, kInput, 1)}, {at(1, kOutput, 1)})};
}

struct Policy {
  std::string name;
  std::string order;  ///< d data, f flag
};
const std::vector<Policy> kPolicies = {{"fifo", "ddddfffdddd"},
                                       {"data_first", "ddddddddfff"},
                                       {"control_first", "dfffddddddd"},
                                       {"fair", "dfdfdfddddd"}};

std::string order_of(const std::vector<LinkLog::Use>& uses, std::int64_t flag_wire) {
  std::string order;
  for (const LinkLog::Use& use : uses) order += use.wire == flag_wire ? 'f' : 'd';
  return order;
}

TEST(Arbitration, a_link_chooses_between_lines_and_flags_by_its_policy) {
  for (const Policy& policy : kPolicies) {
    const machine::Machine machine = ideal("ring:2", {{"link.link.bandwidth", "1 GB/s"},
                                                      {"link.link.header", "20 B"},
                                                      {"link.link.credits", "64"},
                                                      {"link.link.arbitration", policy.name}});
    LinkLog log;
    run(machine, {{lines_flags_lines()}, {}}, {.chunk_bytes = 4 * kLine, .chunks = 2},
        {.trace = &log});
    const std::vector<LinkLog::Use>& uses = log.uses[0];
    EXPECT_EQ(order_of(uses, kSector + 20), policy.order) << policy.name;
    for (std::size_t i = 1; i < uses.size(); ++i) EXPECT_EQ(uses[i].begin, uses[i - 1].end);
  }
}

TEST(Arbitration, an_io_port_chooses_between_lines_and_flags_by_its_policy) {
  for (const Policy& policy : kPolicies) {
    const machine::Machine machine = ideal("ring:2", {{"link.link.bandwidth", "inf"},
                                                      {"link.link.header", "20 B"},
                                                      {"gpu.noc.io_rate", "1 GB/s"},
                                                      {"gpu.noc.arbitration", policy.name}});
    const Rate port = machine.model(0).noc_io_rate;
    LinkLog log;
    run(machine, {{lines_flags_lines()}, {}}, {.chunk_bytes = 4 * kLine, .chunks = 2},
        {.trace = &log});
    const std::vector<LinkLog::Use>& uses = log.uses[0];
    ASSERT_EQ(order_of(uses, kSector + 20), policy.order) << policy.name;
    for (std::size_t i = 1; i < uses.size(); ++i) {
      const std::int64_t bytes = policy.order[i] == 'f' ? kSector : kLine;
      EXPECT_EQ(uses[i].begin - uses[i - 1].begin, port.time_for(bytes).fs)
          << policy.name << " " << i;
    }
  }
}

}  // namespace
}  // namespace hemiola::sim

// L1, L2, the memory-side cache and the memory behind them: docs/model.md, "Memory".

#include <gtest/gtest.h>

#include "sim/model/tags.h"
#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

using namespace test;

/// One set of `ways` lines in the one slice.
Settings l2(int ways) {
  return {{"gpu.l2.ways", std::to_string(ways)},
          {"gpu.l2.size", std::to_string(ways * kLine) + " B"}};
}
Settings with_more(Settings settings, const Settings& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}
/// Loads of whole chunks, one after the other. A chunk is one line; nothing is stored anywhere else
/// than in the last chunk of the output.
Ops loads(const std::vector<std::int64_t>& chunks) {
  Ops ops;
  for (const std::int64_t chunk : chunks)
    ops.push_back(transfer(OpKind::copy, {at(0, kInput, chunk)}, {}));
  return ops;
}
constexpr Shape kChunks{.chunk_bytes = kLine, .chunks = 8};

std::int64_t hit(const Costs& c) {
  return c.issue() + c.cu(0) + c.noc() + c.slice(kLine) + c.cu(kLine) + c.noc();
}

TEST(L2, a_miss_fetches_the_line_and_a_hit_does_not) {
  const machine::Machine machine = distinct("ring:2", l2(4));
  const Costs c(machine);
  const Result result = run(machine, {{loads({0, 0, 1, 0})}, {}}, kChunks);
  EXPECT_EQ(result.time.fs,
            c.start() + 4 * c.overhead() + 2 * c.local_load(kLine) + 2 * hit(c) + c.end());
  EXPECT_EQ(result.counters.at("l2.hits"), 2);
  EXPECT_EQ(result.counters.at("l2.misses"), 2);
  EXPECT_EQ(result.counters.at("hbm.read_bytes"), 2 * kLine);
}

TEST(L2, the_least_recently_used_line_leaves) {
  const machine::Machine machine = distinct("ring:2", l2(2));
  // 0 and 1 fill the set; 0 is used again; 2 takes the place of 1.
  const Result result = run(machine, {{loads({0, 1, 0, 2, 0, 1})}, {}}, kChunks);
  EXPECT_EQ(result.counters.at("l2.hits"), 2);
  EXPECT_EQ(result.counters.at("l2.misses"), 4);
}

TEST(L2, a_store_of_whole_sectors_allocates_without_a_fetch_and_is_acknowledged_by_the_slice) {
  const machine::Machine machine = distinct("ring:2", l2(4));
  const Costs c(machine);
  const Result result = run(
      machine,
      {{{copy(at(0, kInput), at(0, kOutput)), transfer(OpKind::copy, {at(0, kOutput)}, {})}}, {}});
  // The load of what was stored hits; it overlaps the acknowledgement of the store.
  const std::int64_t issued = c.start() + c.overhead() + c.local_load(kLine) + c.issue();
  EXPECT_EQ(result.time.fs, issued + c.overhead() + hit(c) + c.end());
  EXPECT_EQ(result.counters.at("hbm.written_bytes"), 0);
  EXPECT_EQ(result.counters.at("l2.hits"), 1);
}

TEST(L2, a_dirty_victim_is_written_to_memory) {
  const machine::Machine machine =
      distinct("ring:2", with_more(l2(1), {{"gpu.hbm.turnaround", "37 ns"}}));
  const Costs c(machine);
  // The store to the output is the one dirty line; the load of another line drives it out. The
  // write back goes to memory just before the fetch, and the bus turns round twice.
  const Result result = run(machine,
                            {{{copy(at(0, kInput, 0), at(0, kOutput, 0)),
                               transfer(OpKind::copy, {at(0, kInput, 1)}, {})}},
                             {}},
                            kChunks);
  EXPECT_EQ(result.counters.at("l2.write_backs"), 1);
  EXPECT_EQ(result.counters.at("hbm.written_bytes"), kLine);
  const std::int64_t issued = c.start() + c.overhead() + c.local_load(kLine) + c.issue();
  EXPECT_EQ(result.time.fs, issued + c.overhead() + c.local_load(kLine) + 2 * Time::from_ns(37).fs +
                                c.hbm(kLine) + c.end());
}

/// Two workgroups on two CUs load the same line, the second one `interval` after the first.
Result two_loads(const machine::Machine& machine) {
  return run(machine, {{loads({0}), loads({0})}, {}}, kChunks);
}

TEST(L2, a_hit_on_a_line_that_is_on_its_way_waits_for_it) {
  const machine::Machine machine = distinct("ring:2", l2(4));
  const Costs c(machine);
  const Result result = two_loads(machine);
  // Both go on when the line has come, in the order of acceptance, on CUs of their own.
  EXPECT_EQ(result.time.fs, c.start() + c.overhead() + c.local_load(kLine) + c.end());
  EXPECT_EQ(result.counters.at("l2.hits"), 1);
  EXPECT_EQ(result.counters.at("l2.misses"), 1);
  EXPECT_EQ(result.counters.at("hbm.read_bytes"), kLine);
}

TEST(L2, a_hit_on_a_line_that_is_on_its_way_is_not_back_before_its_look_up) {
  // The second load comes so late that the line arrives during its look-up.
  const machine::Machine machine =
      distinct("ring:2", with_more(l2(4), {{"gpu.dispatch.interval", "250 ns"}}));
  const Costs c(machine);
  const Result result = two_loads(machine);
  EXPECT_EQ(result.time.fs,
            c.start() + c.gpu.dispatch_interval.fs + c.overhead() + hit(c) + c.end());
  EXPECT_EQ(result.counters.at("hbm.read_bytes"), kLine);
}

TEST(L2, a_hit_on_a_line_that_is_on_its_way_makes_it_the_most_recent_one) {
  const machine::Machine machine = distinct("ring:2", l2(2));
  // Workgroup 0 loads lines 0, 2 and 0; workgroup 1 in between 1 and, while 0 is on its way, 0.
  // CU 1 is 11 ns behind: acceptance is 0, 0 (pending), 1 would be too late to pend, so both lines
  // come from one batch: reduce loads 1 then 0.
  const Ops first = {transfer(OpKind::copy, {at(0, kInput, 0)}, {}),
                     transfer(OpKind::copy, {at(0, kInput, 2)}, {}),
                     transfer(OpKind::copy, {at(0, kInput, 0)}, {})};
  const Ops second = {transfer(OpKind::reduce, {at(0, kInput, 1), at(0, kInput, 0)}, {})};
  const Result result = run(machine, {{first, second}, {}}, kChunks);
  // Order of acceptance: 0, 1, 0 (pending: now the most recent), 2 (drives 1 out), 0 (hit).
  EXPECT_EQ(result.counters.at("l2.misses"), 3);
  EXPECT_EQ(result.counters.at("l2.hits"), 2);
}

TEST(L2, remote_loads_are_cached_by_the_owner) {
  const machine::Machine machine = distinct("ring:2", l2(4));
  const Costs c(machine);
  const auto get = transfer(OpKind::get, {at(1, kInput)}, {at(0, kOutput)});
  const Result result = run(machine, {{{get, get}}, {}});
  EXPECT_EQ(result.counters.at("hbm.read_bytes"), kLine);
  EXPECT_EQ(result.counters.at("l2.hits"), 2) << "the second load and the second store";
}

/// Two partitions with a slice and one set of `ways` lines each; CU 0 is in partition 0.
Settings partitions(int ways, const std::string& copies) {
  return with_more(l2(2 * ways), {{"gpu.l2.ways", std::to_string(ways)},
                                  {"gpu.l2.slices", "2"},
                                  {"gpu.l2.copies", copies},
                                  {"gpu.noc.partitions", "2"},
                                  {"gpu.noc.partition_latency", "211 ns"}});
}

TEST(Partitions, a_load_leaves_a_copy_where_it_came_from) {
  const std::int64_t way = 2 * Time::from_ns(211).fs;
  for (const std::string copies : {"true", "false"}) {
    const machine::Machine machine = distinct("ring:2", partitions(4, copies));
    const Costs c(machine);
    const Result result = run(machine, {{loads({1, 1, 1})}, {}}, kChunks);
    const std::int64_t again = copies == "true" ? 2 * hit(c) : 2 * (hit(c) + way);
    EXPECT_EQ(result.time.fs,
              c.start() + 3 * c.overhead() + c.local_load(kLine) + way + again + c.end());
    EXPECT_EQ(result.counters.at("l2.hits"), 2);
    EXPECT_EQ(result.counters.at("hbm.read_bytes"), kLine);
    // A line of its own partition is near in any case.
    EXPECT_EQ(run(machine, {{loads({0, 0, 0})}, {}}, kChunks).time.fs,
              c.start() + 3 * c.overhead() + c.local_load(kLine) + 2 * hit(c) + c.end());
  }
}

TEST(Partitions, a_store_ends_copies) {
  const machine::Machine machine = distinct("ring:2", partitions(4, "true"));
  const Costs c(machine);
  const std::int64_t way = 2 * Time::from_ns(211).fs;
  // Into slice 1, whose line has a copy in partition 0: the third load goes over again.
  const auto time = [&](std::int64_t stored) {
    Ops ops = loads({1, 1});
    ops.push_back(copy(at(0, kInput, 0), at(0, kInput, stored)));
    ops.push_back(signal(0));
    ops.push_back(wait(0));
    const Ops last = loads({1});
    ops.insert(ops.end(), last.begin(), last.end());
    return run(machine, {{ops}, {{signal(0)}}}, kChunks).time.fs;
  };
  EXPECT_EQ(time(1), time(3) + way) << "3 is another line of slice 1";
}

TEST(Partitions, copies_take_the_room_of_own_lines) {
  const auto misses = [](const std::string& copies, const std::vector<std::int64_t>& chunks) {
    return run(distinct("ring:2", partitions(1, copies)), {{loads(chunks)}, {}}, kChunks)
        .counters.at("l2.misses");
  };
  EXPECT_EQ(misses("true", {0, 1, 0}), 3) << "the copy of 1 drives 0 out";
  EXPECT_EQ(misses("false", {0, 1, 0}), 2);
  EXPECT_EQ(misses("true", {1, 0, 1}), 2) << "0 drives only the copy out";
}

TEST(Partitions, a_copy_drives_a_dirty_line_out_which_is_written_back) {
  // The output's first line is in slice 1 (it begins at line 16384), the second one in slice 0.
  const Ops ops = {copy(at(0, kInput, 0), at(0, kOutput, 1)),
                   transfer(OpKind::copy, {at(0, kInput, 1)}, {})};
  const auto written = [&](int ways) {
    return run(distinct("ring:2", partitions(ways, "true")), {{ops}, {}}, kChunks)
        .counters.at("l2.write_backs");
  };
  EXPECT_EQ(written(1), 1);
  EXPECT_EQ(written(3), 0) << "room for both inputs and the output";
}

TEST(MemorySideCache, a_hit_saves_the_memory_and_not_the_way_to_it) {
  // No L2: every load reaches the memory-side cache.
  const machine::Machine machine = distinct("ring:2", {{"gpu.msc.ways", "4"},
                                                       {"gpu.msc.size", "512 B"},
                                                       {"gpu.msc.rate", "70 GB/s"},
                                                       {"gpu.msc.latency", "19 ns"}});
  const Costs c(machine);
  const std::int64_t cache = c.gpu.msc_rate.time_for(kLine).fs + c.gpu.msc_latency.fs;
  const Result result = run(machine, {{loads({0, 0, 1})}, {}}, kChunks);
  EXPECT_EQ(result.time.fs,
            c.start() + 3 * (c.overhead() + hit(c) + cache) + 2 * c.read(kLine) + c.end());
  EXPECT_EQ(result.counters.at("msc.hits"), 1);
  EXPECT_EQ(result.counters.at("msc.misses"), 2);
  EXPECT_EQ(result.counters.at("hbm.read_bytes"), 2 * kLine);
}

TEST(MemorySideCache, a_dirty_victim_turns_the_memory_bus_round) {
  const Settings one = {
      {"gpu.msc.ways", "1"}, {"gpu.msc.size", "128 B"}, {"gpu.msc.rate", "70 GB/s"}};
  const Ops ops = {copy(at(0, kInput, 0), at(0, kOutput, 0)),
                   transfer(OpKind::copy, {at(0, kInput, 1)}, {})};
  const auto time = [&](const Settings& more) {
    const machine::Machine machine = distinct("ring:2", with_more(one, more));
    return run(machine, {{ops}, {}}, kChunks).time.fs;
  };
  EXPECT_EQ(time({{"gpu.hbm.turnaround", "37 ns"}}), time({}) + 2 * Time::from_ns(37).fs);
}

TEST(Memory, channels_serve_their_own_blocks_at_their_share_of_the_rate) {
  const machine::Machine machine = distinct("ring:2", {{"gpu.hbm.channels", "4"},
                                                       {"gpu.hbm.rate", "4 GB/s"},
                                                       {"gpu.hbm.interleave", "256 B"},
                                                       {"gpu.cu.unroll", "4"}});
  const Costs c(machine);
  const Rate share{1'000'000'000};
  // 1 KiB: two lines in each of four channels; all channels work at the same time. The slow memory
  // hides every other queue: the last block is reached after seven lines, and its second line is
  // the last.
  const Result result =
      run(machine, {{{transfer(OpKind::copy, {at(0, kInput)}, {})}}, {}}, {.chunk_bytes = 1024});
  const std::int64_t seventh =
      c.start() + c.overhead() + 7 * c.issue() + c.cu(0) + c.noc() + c.slice(kLine);
  EXPECT_EQ(result.time.fs, seventh + 2 * share.time_for(kLine).fs + c.gpu.hbm_latency.fs +
                                c.cu(kLine) + c.noc() + c.end());
}

TEST(L1, plain_local_loads_hit_until_an_acquire) {
  const machine::Machine machine = distinct(
      "ring:2", {{"gpu.l1.size", "512 B"}, {"gpu.l1.ways", "4"}, {"gpu.l1.latency", "31 ns"}});
  const Costs c(machine);
  const Result twice = run(machine, {{loads({0, 0})}, {}}, kChunks);
  EXPECT_EQ(twice.time.fs, c.start() + 2 * c.overhead() + c.local_load(kLine) + c.issue() +
                               c.gpu.l1_latency.fs + c.end());
  EXPECT_EQ(twice.counters.at("l1.hits"), 1);
  Ops ops = loads({0, 0});
  ops.insert(ops.begin() + 1, wait(0));
  const Result acquired = run(machine, {{ops}, {{signal(0)}}}, kChunks);
  EXPECT_EQ(acquired.counters.at("l1.hits"), 0);
  EXPECT_EQ(acquired.counters.at("l1.misses"), 2);
}

TEST(L1, remote_loads_bypass_it) {
  const machine::Machine machine =
      distinct("ring:2", {{"gpu.l1.size", "512 B"}, {"gpu.l1.ways", "4"}});
  const auto get = transfer(OpKind::get, {at(1, kInput)}, {at(0, kOutput)});
  const Result result = run(machine, {{{get, get}}, {}});
  EXPECT_EQ(result.counters.at("l1.hits") + result.counters.at("l1.misses"), 0);
  EXPECT_EQ(result.counters.at("requests.remote_loads"), 2);
}

TEST(Mesh, a_request_pays_every_router_on_its_way_and_so_does_its_acknowledgement) {
  // One row of three routers: CU 2 on the right, the slice (top edge) on the left.
  const machine::Machine machine = distinct("ring:2", {{"gpu.noc.kind", "mesh"},
                                                       {"gpu.noc.mesh_columns", "3"},
                                                       {"gpu.noc.mesh_rows", "1"},
                                                       {"gpu.noc.hop_latency", "43 ns"},
                                                       {"gpu.noc.link_rate", "90 GB/s"},
                                                       {"gpu.cu.count", "3"}});
  const Costs c(machine);
  const std::int64_t hop = c.gpu.noc_hop_latency.fs;
  const auto router = [&](std::int64_t payload) {
    return c.gpu.noc_link_rate.time_for(c.on_chip(payload)).fs + hop;
  };
  const Result result = run(machine, {{{}, {}, {copy(at(0, kInput), at(0, kOutput))}}, {}});
  const std::int64_t load = c.issue() + c.cu(0) + hop + 2 * router(0) + c.slice(kLine) +
                            c.read(kLine) + 2 * router(kLine) + c.cu(kLine) + hop;
  const std::int64_t store =
      c.issue() + c.cu(kLine) + hop + 2 * router(kLine) + c.slice(kLine) + c.hbm(kLine) + 3 * hop;
  EXPECT_EQ(result.time.fs,
            c.start() + 2 * c.gpu.dispatch_interval.fs + c.overhead() + load + store + c.end());
}

TEST(Tags, a_cache_of_no_lines_misses_always) {
  Tags tags(0, 16);
  EXPECT_FALSE(tags.exists());
  EXPECT_FALSE(tags.access(1, true).hit);
  EXPECT_FALSE(tags.access(1, true).hit);
}

TEST(Tags, a_forgotten_line_makes_room_and_leaves_the_others) {
  Tags tags(3, 3);
  for (const std::int32_t line : {1, 2, 3}) EXPECT_FALSE(tags.access(line, true).hit);
  tags.forget(2);
  tags.forget(7);
  EXPECT_FALSE(tags.access(4, false).evicted_dirty);
  EXPECT_TRUE(tags.access(1, false).hit);
  EXPECT_TRUE(tags.access(3, false).hit);
  EXPECT_FALSE(tags.access(2, false).hit);
}

TEST(Tags, an_emptied_cache_has_nothing_however_much_it_held) {
  for (const std::int32_t lines : {1, 60, 700}) {
    Tags tags(1024, 4);
    for (int again = 0; again < 2; ++again) {
      for (std::int32_t line = 0; line < lines; ++line)
        EXPECT_FALSE(tags.access(line, true).hit) << lines;
      for (std::int32_t line = 0; line < lines; ++line)
        EXPECT_TRUE(tags.access(line, false).hit) << lines;
      tags.clear();
    }
  }
}

TEST(Tags, an_emptied_cache_has_no_dirty_victims) {
  Tags tags(1, 1);
  EXPECT_FALSE(tags.access(1, true).hit);
  tags.clear();
  EXPECT_FALSE(tags.access(2, false).evicted_dirty);
}

}  // namespace
}  // namespace hemiola::sim

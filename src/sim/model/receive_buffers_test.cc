// What finds no room in a finite queue, and who comes next when there is some.

#include "sim/model/receive_buffers.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/testing/random_cases.h"

namespace hemiola::sim {
namespace {

using namespace test;

constexpr int kGpus = 5;

/// A switch and what waits in front of it. Requests have numbers: 100 * the link they come over +
/// the one they go on over + 1000 * how many come before them on their link.
struct Switch {
  machine::Machine machine;
  Fabric fabric;
  std::vector<std::int32_t> in, out;               ///< servers of links
  std::vector<std::vector<std::int32_t>> entered;  ///< by out

  explicit Switch(std::int64_t room)
      : machine(machine::load("switch:" + std::to_string(kGpus),
                              {.set = {{"switch.queue", std::to_string(room)}}})),
        fabric(machine),
        entered(kGpus) {
    for (std::size_t l = 0; l < machine.links.size(); ++l) {
      const bool leaves = machine.nodes[index(machine.links[l].from)].switch_model.queue > 0;
      (leaves ? out : in).push_back(fabric.link_base + static_cast<std::int32_t>(l));
    }
  }
  std::size_t out_of(std::int32_t id) const { return index(id % 100); }
  std::int32_t in_of(std::int32_t id) const { return in[index(id / 100 % 10)]; }
  WantedQueue wanted(std::int32_t id) const {
    return {out[out_of(id)], static_cast<std::uint32_t>(id / 100 % 10)};
  }
  void enter(std::int32_t server, std::int32_t id) {
    EXPECT_EQ(server, out[out_of(id)]);
    arbiter_of(fabric, server).add(id, false);
    entered[out_of(id)].push_back(id);
  }
  void come(std::int32_t id) {
    const std::int32_t server = out[out_of(id)];
    if (!waits_for_room(fabric, in_of(id), server, id)) enter(server, id);
  }
  /// All links `picking` take one each, in that order.
  void pick(const std::vector<std::size_t>& picking) {
    std::vector<std::int32_t> freed;
    for (const std::size_t o : picking) {
      Arbiter& queue = arbiter_of(fabric, out[o]);
      if (queue.data.empty()) continue;
      queue.data.pop_front();
      freed.push_back(out[o]);
    }
    admit(
        fabric, freed, [&](std::int32_t id) { return wanted(id); },
        [&](std::int32_t server, std::int32_t id) { enter(server, id); });
  }
};

std::int32_t request(int in, int out, int place) {
  return 1000 * place + 100 * in + out;
}

TEST(ReceiveBuffers, a_head_that_waits_holds_up_what_is_behind_it) {
  Switch at(1);
  at.come(request(0, 1, 0));
  at.come(request(2, 1, 0));  // no room
  at.come(request(2, 3, 1));  // there would be
  EXPECT_EQ(at.entered[1], (std::vector{request(0, 1, 0)}));
  EXPECT_TRUE(at.entered[3].empty());
  at.pick({1});
  EXPECT_EQ(at.entered[1], (std::vector{request(0, 1, 0), request(2, 1, 0)}));
  EXPECT_EQ(at.entered[3], (std::vector{request(2, 3, 1)}));
}

TEST(ReceiveBuffers, of_heads_that_come_forward_at_one_instant_the_lower_tag_is_first) {
  for (const std::vector<std::size_t>& picking : {std::vector<std::size_t>{1, 2}, {2, 1}}) {
    Switch at(1);
    at.come(request(0, 1, 0));
    at.come(request(0, 2, 1));
    at.come(request(0, 3, 2));
    at.come(request(4, 1, 0));
    at.come(request(4, 3, 1));  // behind it
    at.come(request(3, 2, 0));
    at.come(request(3, 3, 1));
    at.pick(picking);
    // Both have brought what is behind them in front of queue 3, which is full.
    at.pick({3});
    EXPECT_EQ(at.entered[3], (std::vector{request(0, 3, 2), request(3, 3, 1)}));
  }
}

TEST(ReceiveBuffers, what_enters_does_not_depend_on_who_picks_first) {
  int waited = 0;
  EXPECT_TRUE(rc::check("equal", [&] {
    const std::int64_t room = between(1, 3);
    Switch a(room), b(room);
    std::vector<int> count(kGpus);
    for (int turn = 0; turn < 8; ++turn) {
      for (std::int64_t n = between(0, 12); n > 0; --n) {
        const auto in = static_cast<int>(between(0, kGpus - 1));
        const std::int32_t id =
            request(in, static_cast<int>(between(0, kGpus - 1)), count[index(in)]++);
        a.come(id);
        b.come(id);
      }
      std::vector<std::size_t> picking;
      for (std::size_t o = 0; o < kGpus; ++o)
        if (between(0, 2) > 0) picking.push_back(o);
      a.pick(picking);
      std::rotate(picking.begin(),
                  picking.begin() + std::min<std::ptrdiff_t>(between(0, 4), std::ssize(picking)),
                  picking.end());
      if (between(0, 1) == 0) std::reverse(picking.begin(), picking.end());
      b.pick(picking);
      RC_ASSERT(a.entered == b.entered);
      for (const std::int32_t out : a.out) {
        RC_ASSERT(arbiter_of(a.fabric, out).queued() <= room);
        RC_ASSERT(arbiter_of(a.fabric, out).blocked == arbiter_of(b.fabric, out).blocked);
        waited += std::ssize(arbiter_of(a.fabric, out).blocked) > 1;
      }
    }
  }));
  EXPECT_GT(waited, 100);
}

}  // namespace
}  // namespace hemiola::sim

// What collectives have to leave behind, and plans checked against that.
#pragma once

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "plan/testing/plans.h"

namespace hemiola::plan {

inline std::uint64_t sum_of_inputs(int ranks, std::int64_t chunk) {
  std::uint64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += Execution::input(rank, chunk);
  return sum;
}

/// What chunk `chunk` of the output has to be; a rank's part of a size is `parts` chunks.
inline std::uint64_t expected(const Plan& plan, int rank, std::int64_t chunk, std::int64_t parts) {
  switch (plan.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
      return sum_of_inputs(plan.ranks, chunk);
    case Collective::reduce_scatter:
      return sum_of_inputs(plan.ranks, rank * parts + chunk);
    case Collective::all_gather:
      return Execution::input(chunk / parts, chunk % parts);
    case Collective::all_to_all:
      return Execution::input(chunk / parts, rank * parts + chunk % parts);
    case Collective::broadcast:
      return Execution::input(plan.root, chunk);
    case Collective::send_recv:
      return Execution::input((rank + plan.ranks - 1) % plan.ranks, chunk);
    default:
      ADD_FAILURE() << "no rule for this collective";
      return 0;
  }
}

inline void expect_right(const Plan& plan, std::uint32_t seed, bool in_place = false) {
  Execution execution(plan, seed, in_place);
  ASSERT_TRUE(execution.run()) << plan.name << " over " << plan.ranks << " ranks waits for ever";
  const std::int64_t parts = std::max<std::int64_t>(1, plan.chunks_per_size / plan.ranks);
  for (std::size_t tensor = 0; tensor < plan.tensors.size(); ++tensor) {
    if (plan.tensors[tensor].role != Role::output) continue;
    for (int rank = 0; rank < plan.ranks; ++rank) {
      if (plan.collective == Collective::reduce && rank != plan.root) continue;
      for (std::int64_t chunk = 0; chunk < plan.tensors[tensor].elements(); ++chunk) {
        ASSERT_EQ(execution.value(rank, static_cast<std::int32_t>(tensor), chunk),
                  expected(plan, rank, chunk, parts))
            << plan.name << " over " << plan.ranks << " ranks: rank " << rank << ", chunk " << chunk
            << (in_place ? ", in place" : "");
      }
    }
  }
}

/// Out of place, and in place where the plan says that this is safe.
inline void expect_right_in_any_order(const Plan& plan, std::uint32_t seed) {
  expect_right(plan, seed);
  if (plan.in_place_safe) expect_right(plan, seed, true);
}

inline bool is_wrong_in_some_order(const Plan& plan) {
  bool is_wrong = false;
  for (std::uint32_t seed = 0; seed < 100 && !is_wrong; ++seed) {
    ::testing::TestPartResultArray failures;  // reading what is not there is the expected finding
    ::testing::ScopedFakeTestPartResultReporter quiet(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    expect_right(plan, seed);
    is_wrong = failures.size() > 0;
  }
  return is_wrong;
}

/// Calls `visit` for every transfer that waits for something.
inline void for_each_waiting(std::vector<Item>& items,
                             const std::function<void(Transfer&)>& visit) {
  for (Item& item : items)
    if (auto* loop = std::get_if<Loop>(&item))
      for_each_waiting(loop->items, visit);
    else if (!std::get<Transfer>(item).after.empty())
      visit(std::get<Transfer>(item));
}

/// Without any one of its dependencies the plan is wrong in some order.
inline void expect_no_needless_wait(Plan plan) {
  for (std::size_t c = 0; c < plan.codes.size(); ++c) {
    for (std::size_t s = 0; s < plan.codes[c].streams.size(); ++s) {
      for_each_waiting(plan.codes[c].streams[s].items, [&](Transfer& transfer) {
        const auto kept = transfer.after;
        for (std::size_t i = 0; i < kept.size(); ++i) {
          transfer.after.erase(transfer.after.begin() + static_cast<std::ptrdiff_t>(i));
          EXPECT_TRUE(is_wrong_in_some_order(plan))
              << plan.name << ", code " << c << ", stream " << s << ", for rank "
              << kept[i].rank({}) << ", transfer " << kept[i].transfer({});
          transfer.after = kept;
        }
      });
    }
  }
}

}  // namespace hemiola::plan

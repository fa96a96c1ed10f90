#include "report/values/link_history.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <random>

namespace hemiola::report {
namespace {

constexpr std::int64_t kWidth = LinkHistory::kFirstWidth.fs;

TEST(LinkHistory, spreads_a_request_over_the_bins_it_occupies) {
  LinkHistory history;
  history.add({kWidth / 2}, {2 * kWidth}, 300, 5);
  ASSERT_EQ(history.bins().size(), 2u);
  EXPECT_EQ(history.bins()[0].bytes, 100);
  EXPECT_EQ(history.bins()[1].bytes, 200);
  EXPECT_EQ(history.bins()[1].queue, 5);
  EXPECT_EQ(history.end(), Time{2 * kWidth});
}

TEST(LinkHistory, puts_a_request_of_no_length_into_one_bin) {
  LinkHistory history;
  history.add({kWidth}, {kWidth}, 128, 0);
  ASSERT_EQ(history.bins().size(), 2u);
  EXPECT_EQ(history.bins()[0].bytes, 0);
  EXPECT_EQ(history.bins()[1].bytes, 128);
}

struct Carried {
  std::int64_t begin, length, bytes, queue;
};

std::vector<Carried> random_requests() {
  return *rc::gen::container<std::vector<Carried>>(rc::gen::construct<Carried>(
      rc::gen::inRange<std::int64_t>(0, 5'000 * kWidth),
      rc::gen::inRange<std::int64_t>(0, 100 * kWidth), rc::gen::inRange<std::int64_t>(0, 100'000),
      rc::gen::inRange<std::int64_t>(0, 50)));
}

RC_GTEST_PROP(LinkHistory, keeps_every_byte_in_a_bounded_number_of_bins, ()) {
  LinkHistory history;
  std::int64_t bytes = 0;
  for (const Carried& request : random_requests()) {
    history.add({request.begin}, {request.begin + request.length}, request.bytes, request.queue);
    bytes += request.bytes;
  }
  std::int64_t kept = 0;
  for (const LinkHistory::Bin& bin : history.bins()) kept += bin.bytes;
  RC_ASSERT(kept == bytes);
  RC_ASSERT(history.bins().size() <= LinkHistory::kBins);
}

RC_GTEST_PROP(LinkHistory, does_not_depend_on_the_order_of_calls, (unsigned seed)) {
  std::vector<Carried> requests = random_requests();
  const auto record = [&] {
    LinkHistory history;
    for (const Carried& request : requests)
      history.add({request.begin}, {request.begin + request.length}, request.bytes, request.queue);
    return history;
  };
  const LinkHistory first = record();
  std::shuffle(requests.begin(), requests.end(), std::mt19937(seed));
  const LinkHistory second = record();
  RC_ASSERT(first.width() == second.width());
  RC_ASSERT(first.bins().size() == second.bins().size());
  for (std::size_t i = 0; i < first.bins().size(); ++i) {
    RC_ASSERT(first.bins()[i].bytes == second.bins()[i].bytes);
    RC_ASSERT(first.bins()[i].queue == second.bins()[i].queue);
  }
}

}  // namespace
}  // namespace hemiola::report

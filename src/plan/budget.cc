#include "plan/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <variant>
#include <vector>

#include "core/diagnostics.h"

namespace hemiola::plan {
namespace {

/// Up to the largest number there is, which stands for all above it.
std::int64_t times(std::int64_t a, std::int64_t b) {
  const __int128 product = static_cast<__int128>(a) * b;
  return product > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(product);
}
std::int64_t plus(std::int64_t a, std::int64_t b) {
  return a > INT64_MAX - b ? INT64_MAX : a + b;
}

std::int64_t steps_of(const std::vector<Item>& items) {
  std::int64_t steps = 0;
  for (const Item& item : items) {
    const auto* loop = std::get_if<Loop>(&item);
    steps = plus(steps, loop == nullptr ? 1
                                        : times(std::max<std::int64_t>(0, loop->count),
                                                std::max<std::int64_t>(1, steps_of(loop->items))));
  }
  return steps;
}

std::int64_t tiles_of(const Compute& compute) {
  std::int64_t tiles = 1;
  for (const ComputeAxis& axis : compute.axes) {
    if (axis.tile < 1 || axis.extent < 1) return 0;  // validate() says what is wrong
    tiles = times(tiles, (axis.extent - 1) / axis.tile + 1);
  }
  return tiles;
}

/// A sum over the ranks, which may not pass `most`.
class Sum {
 public:
  Sum(const Plan& plan, const std::string& source, std::int64_t most, std::string_view what)
      : plan_(plan), source_(source), most_(most), what_(what) {}

  void add(std::int64_t count, std::int64_t ranks, const std::string& pointer) {
    sum_ = plus(sum_, times(count, ranks));
    if (sum_ <= most_) return;
    throw Failure(fmt::format("plan '{}': {} {} on {} ranks, {} in all, are more than the {} that "
                              "a plan of a file may have",
                              plan_.name, count, what_, ranks, sum_, most_),
                  {.file = source_, .pointer = pointer}, "take fewer rounds, ranks or parts");
  }

 private:
  const Plan& plan_;
  const std::string& source_;
  std::int64_t most_, sum_ = 0;
  std::string_view what_;
};

}  // namespace

void check_budget(const Plan& plan, const std::string& source) {
  std::vector<std::int64_t> ranks(plan.codes.size());
  for (const std::int32_t code : plan.code_of) ++ranks.at(static_cast<std::size_t>(code));
  Sum transfers(plan, source, kMostTransfers, "transfers and rounds of loops");
  Sum tiles(plan, source, kMostTiles, "tiles");
  for (std::size_t c = 0; c < plan.codes.size(); ++c) {
    const Code& code = plan.codes[c];
    for (std::size_t s = 0; s < code.streams.size(); ++s)
      transfers.add(steps_of(code.streams[s].items), ranks[c],
                    fmt::format("/codes/{}/streams/{}", c, s));
    for (std::size_t k = 0; k < code.computes.size(); ++k)
      tiles.add(tiles_of(code.computes[k]), ranks[c], fmt::format("/codes/{}/computes/{}", c, k));
  }
}

}  // namespace hemiola::plan

#include "core/modulo.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>

namespace hemiola {
namespace {

/// Of any magnitude.
std::uint32_t any_number() {
  const int shift = *rc::gen::inRange(0, 32);
  return *rc::gen::arbitrary<std::uint32_t>() >> shift;
}

TEST(Modulo, gives_the_remainder) {
  EXPECT_TRUE(rc::check([] {
    const std::uint32_t divisor = std::max(1U, any_number()), x = any_number();
    const Modulo modulo(divisor);
    for (const std::uint32_t number : {x, x - x % divisor, x - x % divisor - 1, UINT32_MAX})
      RC_ASSERT(modulo(number) == number % divisor);
  }));
}

TEST(Modulo, of_one_is_nothing) {
  EXPECT_EQ(Modulo(1)(12345), 0U);
}

}  // namespace
}  // namespace hemiola

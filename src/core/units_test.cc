#include "core/units.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>
#include <string>

namespace hemiola {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

/// A non-negative int64 of any magnitude.
std::int64_t any_magnitude() {
  const int shift = *rc::gen::inRange(0, 63);
  return *rc::gen::inRange<std::int64_t>(0, kMax) >> shift;
}

TEST(Units, a_time_is_exact_in_every_unit) {
  EXPECT_EQ(parse_time("7 fs"), Time{7});
  EXPECT_EQ(parse_time("12.8 ps"), Time{12'800});
  EXPECT_EQ(parse_time("500 ns"), Time::from_ns(500));
  EXPECT_EQ(parse_time("2.5 us"), Time::from_ns(2500));
  EXPECT_EQ(parse_time("0.005 ms"), Time::from_us(5));
  EXPECT_EQ(parse_time("1.000000000000001 s"), Time{1'000'000'000'000'001});
  EXPECT_EQ(parse_time("0ns"), Time{0});
}

TEST(Units, blanks_around_and_inside_are_allowed_and_none_is_needed) {
  EXPECT_EQ(parse_time("  500 \t ns\n"), Time::from_ns(500));
  EXPECT_EQ(parse_bytes("64MiB"), MiB(64));
  EXPECT_EQ(parse_rate("450GB/s"), Rate{450'000'000'000});
}

TEST(Units, byte_units_are_decimal_binary_or_those_of_nccl_tests) {
  EXPECT_EQ(parse_bytes("128 B"), Bytes{128});
  EXPECT_EQ(parse_bytes("1 GB"), Bytes{1'000'000'000});
  EXPECT_EQ(parse_bytes("1 GiB"), GiB(1));
  EXPECT_EQ(parse_bytes("3 TB"), Bytes{3'000'000'000'000});
  EXPECT_EQ(parse_bytes("3 TiB"), GiB(3 * 1024));
  EXPECT_EQ(parse_bytes("8K"), KiB(8));
  EXPECT_EQ(parse_bytes("8M"), MiB(8));
  EXPECT_EQ(parse_bytes("8G"), GiB(8));
  EXPECT_EQ(parse_bytes("1.5 KiB"), Bytes{1536});
}

TEST(Units, bits_per_second_are_an_eighth_of_bytes) {
  EXPECT_EQ(parse_rate("400 Gb/s"), Rate{50'000'000'000});
  EXPECT_EQ(parse_rate("1 Tb/s"), Rate{125'000'000'000});
  EXPECT_EQ(parse_rate("8 Kb/s"), Rate{1'000});
  EXPECT_EQ(parse_rate("4 TiB/s"), Rate{std::int64_t{4} << 40});
  EXPECT_EQ(parse_rate("12.5 GB/s"), Rate{12'500'000'000});
}

TEST(Units, only_inf_is_an_ideal_rate) {
  ASSERT_TRUE(parse_rate("inf"));
  EXPECT_TRUE(parse_rate("inf")->is_ideal());
  EXPECT_EQ(parse_rate("0 GB/s"), std::nullopt);
  EXPECT_EQ(parse_rate("0.1 B/s"), std::nullopt);
  EXPECT_EQ(parse_frequency("0 GHz"), std::nullopt);
}

TEST(Units, a_frequency_has_an_integer_period) {
  EXPECT_EQ(parse_frequency("1.755 GHz"), Frequency{1'755'000'000});
  EXPECT_EQ(parse_frequency("100 MHz"), Frequency{100'000'000});
  EXPECT_EQ(Frequency{1'000'000'000}.period(), Time{1'000'000});
  EXPECT_EQ(Frequency{1'755'000'000}.period(), Time{569'801});
}

TEST(Units, malformed_text_is_nothing_for_every_kind) {
  for (const char* text :
       {"",       " ",        "ns",        "GB/s",     "B",        "-5 ns", "-5 B",
        "+5 GHz", "5",        "5 parsecs", "5 GBps",   "5 ns x",   "5 n s", "5. ns",
        ".5 ns",  "1e3 ns",   "1,000 ns",  "0x10 B",   "5 gb/s",   "5 NS",  "5 mb",
        "5 kB",   "1.2.3 ns", "nan",       "infinity", "5 GB/s/s", "5 b/s", "5 Ghz"}) {
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
    EXPECT_EQ(parse_rate(text), std::nullopt) << text;
    EXPECT_EQ(parse_frequency(text), std::nullopt) << text;
  }
}

TEST(Units, a_unit_of_another_quantity_is_not_taken) {
  EXPECT_EQ(parse_time("5 GB"), std::nullopt);
  EXPECT_EQ(parse_bytes("5 GB/s"), std::nullopt);
  EXPECT_EQ(parse_rate("5 GB"), std::nullopt);
  EXPECT_EQ(parse_frequency("5 s"), std::nullopt);
}

TEST(Units, overflow_is_nothing_and_the_last_value_before_it_is_exact) {
  EXPECT_EQ(parse_time("9223372036854775807 fs"), Time::max());
  EXPECT_EQ(parse_time("9223372036854775808 fs"), std::nullopt);
  EXPECT_EQ(parse_time("9223.372036854775807 s"), Time::max());
  EXPECT_EQ(parse_time("9224 s"), std::nullopt);
  EXPECT_EQ(parse_time("99999999999999999999999999999999999999999 s"), std::nullopt);
  EXPECT_EQ(parse_bytes("8388608 TiB"), std::nullopt);
  EXPECT_EQ(parse_bytes("8388607 TiB"), GiB(std::int64_t{8388607} << 10));
}

TEST(Units, digits_that_do_not_matter_do_no_harm) {
  EXPECT_EQ(parse_time("000000000000000000000000500.000000000000000000000 ns"), Time::from_ns(500));
}

TEST(Units, a_fraction_below_the_resolution_rounds_but_never_to_zero) {
  EXPECT_EQ(parse_time("1.0000004 ns"), Time::from_ns(1));
  EXPECT_EQ(parse_time("1.0000006 ns"), Time{1'000'001});
  EXPECT_EQ(parse_time("0.5 fs"), Time{1});
  EXPECT_EQ(parse_time("0.4 fs"), std::nullopt);
}

TEST(Units, a_count_is_a_bare_decimal_integer) {
  EXPECT_EQ(parse_count(" 42 "), 42);
  EXPECT_EQ(parse_count("9223372036854775807"), kMax);
  for (const char* text : {"", "-1", "+1", "1.0", "0x1", "1 2", "9223372036854775808", "12a"})
    EXPECT_EQ(parse_count(text), std::nullopt) << text;
}

TEST(Units, text_is_the_largest_unit_with_a_whole_part) {
  EXPECT_EQ(to_string(Time{12'800}), "12.8 ps");
  EXPECT_EQ(to_string(Time::from_ns(500)), "500 ns");
  EXPECT_EQ(to_string(Time::from_ns(1500)), "1.5 us");
  EXPECT_EQ(to_string(Time{1'000'001}), "1.000001 ns");
  EXPECT_EQ(to_string(Time{0}), "0 ns");
  EXPECT_EQ(to_string(Time{-1500}), "-1.5 ps");
  EXPECT_EQ(to_string(Time{std::numeric_limits<std::int64_t>::min()}), "-9223.372036854775808 s");
  EXPECT_EQ(to_string(MiB(64)), "64 MiB");
  EXPECT_EQ(to_string(Bytes{1000}), "1000 B");
  EXPECT_EQ(to_string(Bytes{0}), "0 B");
  EXPECT_EQ(to_string(Rate{450'000'000'000}), "450 GB/s");
  EXPECT_EQ(to_string(Rate::ideal()), "inf");
  EXPECT_EQ(to_string(Frequency{1'755'000'000}), "1.755 GHz");
}

TEST(Units, every_quantity_survives_text_exactly) {
  EXPECT_TRUE(rc::check([] {
    const std::int64_t value = any_magnitude();
    RC_ASSERT(parse_time(to_string(Time{value})) == Time{value});
    RC_ASSERT(parse_bytes(to_string(Bytes{value})) == Bytes{value});
    RC_ASSERT(parse_rate(to_string(Rate{value})) == Rate{value});
    RC_ASSERT(parse_count(std::to_string(value)) == value);
    if (value > 0) RC_ASSERT(parse_frequency(to_string(Frequency{value})) == Frequency{value});
  }));
}

TEST(Units, random_text_is_never_misread) {
  EXPECT_TRUE(rc::check([] {
    const auto text =
        *rc::gen::container<std::string>(rc::gen::elementOf(std::string("0159. -GMKTBib/snfz")));
    if (const auto time = parse_time(text)) RC_ASSERT(time->fs >= 0);
    if (const auto bytes = parse_bytes(text)) RC_ASSERT(bytes->count >= 0);
    if (const auto rate = parse_rate(text)) RC_ASSERT(rate->bytes_per_second > 0);
  }));
}

TEST(Rate, time_is_rounded_to_the_nearest_femtosecond_and_never_zero) {
  EXPECT_EQ(Rate{10'000'000'000'000}.time_for(128), Time{12'800});
  EXPECT_EQ(Rate{450'000'000'000}.time_for(128), Time{284'444});
  EXPECT_EQ(Rate::ideal().time_for(1 << 30), Time{1});
  EXPECT_EQ(Rate{kMax}.time_for(1), Time{1});
  EXPECT_EQ(Rate{1}.time_for(9000), Time{9'000'000'000'000'000'000});
}

TEST(Rate, time_is_within_half_a_femtosecond_of_the_exact_quotient) {
  EXPECT_TRUE(rc::check([] {
    const auto rate = *rc::gen::inRange<std::int64_t>(1'000'000, 100'000'000'000'000);
    const auto bytes = *rc::gen::inRange<std::int64_t>(1, 1 << 20);
    const auto time = Rate{rate}.time_for(bytes);
    const __int128 exact = static_cast<__int128>(bytes) * 1'000'000'000'000'000;
    const __int128 error = static_cast<__int128>(time.fs) * rate - exact;
    if (time.fs > 1) RC_ASSERT(2 * error <= rate && -2 * error <= rate);
  }));
}

}  // namespace
}  // namespace hemiola

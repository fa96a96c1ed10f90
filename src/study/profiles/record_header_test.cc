// The recorder for devices (include/hemiola/record.h), with a clock of the host: what it writes is
// a profile.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <vector>

static std::uint64_t fake_clock = 0;
#define HEMIOLA_RECORD_CLOCK() (fake_clock += 100)
#include "../../../include/hemiola/record.h"
#include "core/text.h"
#include "sim/result/profile.h"
#include "study/profiles/profile_file.h"

namespace hemiola::study {
namespace {

struct Device {
  std::vector<hemiola_record_entry> entries;
  std::uint32_t count = 0;
  hemiola_recorder recorder;
  explicit Device(std::uint32_t rank, std::uint32_t capacity = 8)
      : entries(capacity), recorder{entries.data(), &count, capacity, rank} {}
  hemiola_recording recording(std::int64_t clock_offset = 0) const {
    return {entries.data(), count, static_cast<std::uint32_t>(entries.size()), clock_offset};
  }
};

constexpr hemiola_record_buffer kBuffers[] = {{"flags", 4096}, {"@semaphores", 64}};

/// A file of this process in the folder for temporary ones.
std::string recorded_file() {
  return (std::filesystem::path(testing::TempDir()) / "hemiola_record_test.csv").string();
}

TEST(RecordHeader, writes_a_profile_of_all_ranks_on_one_clock) {
  fake_clock = 1000;
  Device first(0), second(1);
  hemiola_record_write(first.recorder, 1, 0, 64, 8, 7);    // at 1100
  hemiola_record_write(second.recorder, 0, 1, 8, 8, 1);    // at 1200
  hemiola_record_write(first.recorder, 1, 0, 128, 4, -1);  // at 1300
  const hemiola_recording recordings[] = {first.recording(), second.recording(-150)};
  ASSERT_EQ(
      hemiola_write_profile(recorded_file().c_str(), 2, 1'000'000'000, kBuffers, 2, recordings),
      hemiola_record_done);
  const sim::Profile profile = read_profile(read_file(recorded_file()), "recorded.csv");
  EXPECT_TRUE(profile.at_ports);
  EXPECT_EQ(profile.ranks, 2);
  ASSERT_EQ(profile.rows.size(), 3U);
  EXPECT_EQ(profile.rows[0].time, Time{}) << "the first of all is the origin: 1200 - 150";
  EXPECT_EQ(profile.rows[0].source, 1);
  EXPECT_EQ(profile.rows[0].kind, sim::ProfileKind::add);
  EXPECT_EQ(profile.rows[1].time, Time::from_ns(50));
  EXPECT_EQ(profile.rows[1].offset, 64);
  EXPECT_EQ(profile.rows[1].value, 7);
  EXPECT_EQ(profile.rows[2].time, Time::from_ns(250));
  EXPECT_EQ(profile.rows[2].size, 4);
  EXPECT_EQ(profile.rows[2].value, -1);
}

TEST(RecordHeader, says_what_is_lost_or_wrong) {
  Device device(0, 1), other(1);
  hemiola_record_write(device.recorder, 1, 0, 0, 8, 1);
  const hemiola_recording whole[] = {device.recording(), other.recording()};
  EXPECT_EQ(hemiola_write_profile("/nowhere/at/all.csv", 2, 1, kBuffers, 2, whole),
            hemiola_record_not_written);
  EXPECT_EQ(hemiola_write_profile(recorded_file().c_str(), 2, 1, kBuffers, 0, whole),
            hemiola_record_unknown_name);
  hemiola_record_write(device.recorder, 1, 0, 8, 8, 1);
  EXPECT_EQ(device.count, 2U);
  EXPECT_EQ(device.entries[0].offset, 0U) << "the first one stays";
  const hemiola_recording lost[] = {device.recording(), other.recording()};
  EXPECT_EQ(hemiola_write_profile(recorded_file().c_str(), 2, 1, kBuffers, 2, lost),
            hemiola_record_lost);
}

}  // namespace
}  // namespace hemiola::study

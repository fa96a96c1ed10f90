// Profiles are read as they were written, whatever the order of their rows, and refused with the
// row.
#include "study/profiles/profile_file.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "core/testing/failure.h"
#include "sim/result/profile.h"

namespace hemiola::study {
namespace {

using sim::Profile;
using sim::ProfileKind;
using sim::ProfileRow;

constexpr const char* kProfileHead =
    "# hemiola profile 1\n# ranks 4\n# buffer flags 4 KiB\n# buffer data 65536\n"
    "id,source:rank,destination:rank,time:ns,kind,buffer,offset:bytes,size,value,request,after,"
    "tag\n";

Profile read(const std::string& rows) {
  return read_profile(kProfileHead + rows, "p.csv");
}

std::string message(const std::string& text) {
  return test::message_of([&] { read_profile(text, "p.csv"); });
}

TEST(ProfileFile, times_are_since_the_origin_in_the_unit_of_the_heading) {
  const Profile profile = read_profile(
      "# ranks 3\n# clock 2 GHz\n# origin 100\n# buffer flags 64\n"
      "source,destination,time:cycles,buffer\n1,0,104,flags\n2,0,101,flags\n",
      "p.csv");
  ASSERT_EQ(profile.rows.size(), 2U);
  EXPECT_EQ(profile.rows[0].time, Time::from_ps(500));
  EXPECT_EQ(profile.rows[0].source, 2);
  EXPECT_EQ(profile.rows[1].time, Time::from_ns(2));
  EXPECT_EQ(profile.rows[1].size, 8);
}

TEST(ProfileFile, rows_wait_for_rows_and_for_signals) {
  const Profile profile = read(
      "b,2,0,3.5,write,data,0,16,,,a,\na,1,0,7,add,flags,8,8,1,,,first\n"
      ",3,0,1.25,write,flags,0,8,5,,flags+64>=2,\n");
  ASSERT_EQ(profile.rows.size(), 3U);
  const ProfileRow& signal = profile.rows[0];
  EXPECT_EQ(signal.after_buffer, 0);
  EXPECT_EQ(signal.after_offset, 64);
  EXPECT_EQ(signal.after_value, 2);
  EXPECT_EQ(signal.time, Time::from_ps(1250));
  EXPECT_EQ(profile.rows[1].after_row, 2);
  EXPECT_EQ(profile.rows[2].tag, "first");
}

TEST(ProfileFile, says_of_which_run_it_is_a_recording) {
  Profile profile{.file = "p.csv", .ranks = 8};
  profile.recorded = {.ranks = {0, 5},
                      .words = "all-reduce/ring of 1 MiB on dgx-h100",
                      .wait = "spin",
                      .machine = 1,
                      .program = 0xfedcba9876543210,
                      .host = 0,
                      .rows = 42};
  for (const std::string& text : {write_profile_csv(profile), write_profile_json(profile)}) {
    const sim::RecordedRun read = read_profile(text, "p").recorded;
    EXPECT_EQ(read.ranks, profile.recorded.ranks);
    EXPECT_EQ(read.words, profile.recorded.words);
    EXPECT_EQ(read.wait, "spin");
    EXPECT_EQ(read.machine, 1U);
    EXPECT_EQ(read.program, 0xfedcba9876543210);
    EXPECT_EQ(read.host, 0U);
    EXPECT_EQ(read.rows, 42U);
  }
  profile.recorded = {};
  EXPECT_EQ(write_profile_csv(profile).find("recorded"), std::string::npos);
  EXPECT_FALSE(read_profile(write_profile_csv(profile), "p").recorded.known());
  const auto refused = [](const std::string& head) {
    return message("# ranks 4\n" + head + "\nsource,destination,time:ns\n");
  };
  EXPECT_NE(refused("# recorded ranks 0,9").find("9"), std::string::npos);
  EXPECT_NE(refused("# recorded rows 0011223344556677").find("at which ranks"), std::string::npos);
  EXPECT_NE(refused("# recorded ranks 0\n# recorded rows 1234").find("16 hexadecimal digits"),
            std::string::npos);
  EXPECT_NE(refused("# recorded by me").find("a recorded run has no 'by'"), std::string::npos);
}

TEST(ProfileFile, says_how_long_answers_took_where_that_was_noted) {
  Profile profile{.file = "p.csv", .ranks = 2};
  profile.rows.push_back(
      {.source = 1, .kind = ProfileKind::acknowledgement, .size = 128, .request = 0});
  EXPECT_EQ(write_profile_csv(profile).find("took"), std::string::npos);
  profile.rows[0].took = 1'234'567;
  for (const std::string& text : {write_profile_csv(profile), write_profile_json(profile)})
    EXPECT_EQ(read_profile(text, "p").rows, profile.rows);
}

TEST(ProfileFile, has_buffers_whose_names_and_sizes_have_blanks) {
  const Profile profile = read_profile(
      "# ranks 2\n# buffer fifo 0 4194304\n# buffer fifo 1 4 MiB\n# buffer work 1KiB\n"
      "# buffer @semaphores 64 B\nsource,destination,time:ns,buffer\n1,0,1,fifo 1\n",
      "p.csv");
  ASSERT_EQ(profile.buffers.size(), 4U);
  EXPECT_EQ(profile.buffers[0].name, "fifo 0");
  EXPECT_EQ(profile.buffers[0].bytes, 4 << 20);
  EXPECT_EQ(profile.buffers[1].name, "fifo 1");
  EXPECT_EQ(profile.buffers[1].bytes, 4 << 20);
  EXPECT_EQ(profile.buffers[2].name, "work");
  EXPECT_EQ(profile.buffers[2].bytes, 1024);
  EXPECT_EQ(profile.buffers[3].name, "@semaphores");
  EXPECT_EQ(profile.rows.front().buffer, 1);
  const Profile again = read_profile(write_profile_csv(profile), "p.csv");
  EXPECT_EQ(again.rows, profile.rows);
}

TEST(ProfileFile, is_refused_with_the_row) {
  const std::pair<const char*, const char*> cases[] = {
      {",1,0,5,write,flag,0,8,,,,\n", "p.csv:6: error: there is no buffer 'flag'"},
      {",1,0,5,write,flags,4090,8,,,,\n",
       "8 B at offset 4090 lie outside buffer 'flags' of 4096 B"},
      {",1,0,5,write,flags,9223372036854775807,8,,,,\n", "lie outside buffer"},
      {",1,0,5,write,flags,-8,8,,,,\n", "offset '-8' is no integer of at least 0"},
      {",1,0,5,write,flags,0,0,,,,\n", "size '0' is no integer of at least 1"},
      {",1,0,-5,write,flags,0,8,,,,\n", "time -5 ns is before the origin, 0"},
      {",1,0,soon,write,flags,0,8,,,,\n", "time 'soon' is no number of ns"},
      {",1,0,1e300,write,flags,0,8,,,,\n", "time '1e300' is no number of ns"},
      {",4,0,5,write,flags,0,8,,,,\n", "source '4' is no integer from 0 to 3"},
      {",0,0,5,write,flags,0,8,,,,\n", "rank 0 is source and destination"},
      {",1,,5,write,flags,0,8,,,,\n", "this row has no destination"},
      {",1,0,5,wirte,flags,0,8,,,,\n", "'wirte' is no kind of request"},
      {",1,0,5,response,,,128,,,,\n", "to the how-manieth request"},
      {",1,0,5,write,flags,0,8,,,z,\n", "it comes after row 'z', which is not there"},
      {",1,0,5,write,flags,0,8,,,flags+4096>=1,\n", "offset 4096 lies outside the buffer"},
      {",1,0,5,write,flags,0,8,,,flags+x>=1,\n", "'flags+x>=1' is no signal"},
      {"a,1,0,5,write,flags,0,8,,,,\na,1,0,6,write,flags,0,8,,,,\n", "another row has the id 'a'"},
      {"a,1,0,5,write,flags,0,8,,,b,\nb,1,0,6,write,flags,0,8,,,a,\n", "this row waits for itself"},
      {",1,0,5,write,fla", "this row has 6 cells, but there are 12 columns"},
      {",1,0,5,write,flags,0,8,,,,\n# end 2 rows\n", "there are 1 rows, but its end says 2"},
  };
  for (const auto& [rows, expected] : cases)
    EXPECT_NE(message(std::string(kProfileHead) + rows).find(expected), std::string::npos)
        << rows << message(std::string(kProfileHead) + rows);
  EXPECT_NE(message("# ranks 1\ntime:ns\n").find("from 2 to 32767, not '1'"), std::string::npos);
  EXPECT_NE(message("# ranks 2\nsource,tiem:ns\n").find("did you mean 'time'"), std::string::npos);
  EXPECT_NE(message("# ranks 2\nsource:ns,time:ns\n").find("is of type 'rank'"), std::string::npos);
  EXPECT_NE(message("# ranks 2\ntime:cycles\n").find("cycles of which clock?"), std::string::npos);
  EXPECT_NE(message("# ranks 2\n# at links\ntime:ns\n").find("rows begin at 'links'"),
            std::string::npos);
  EXPECT_NE(message("# ranks 2\ntime\n").find("times have the unit ''"), std::string::npos);
  EXPECT_NE(message("").find("no heading"), std::string::npos);
}

TEST(ProfileFile, bursts_of_messages_are_refused_with_the_row) {
  const std::string head =
      "# ranks 4\n# buffer data 65536\n"
      "source,destination,time:ns,kind,buffer,offset,size,message,packets,flag:bytes\n";
  EXPECT_EQ(read_profile(head + "1,0,5,burst,,,32,3,2,8\n", "p.csv").rows.at(0).flag, 8);
  EXPECT_EQ(read_profile(head + "1,0,5,burst,data,64,4096,,,\n", "p.csv").rows.at(0).message, -1);
  const std::pair<const char*, const char*> cases[] = {
      {"1,0,5,write,data,0,8,3,,\n", "p.csv:4: error: a row of kind write is of no message"},
      {"1,0,5,add,data,0,8,,,8\n", "a row of kind add is of no message"},
      {"1,0,5,burst,data,0,8,,2,\n", "a flag stands with the last burst of a message"},
      {"1,0,5,burst,data,0,8,3,,8\n", "a flag stands with the last burst of a message"},
      {"1,0,5,burst,data,0,8,-3,,\n", "message '-3' is no integer of at least 0"},
      {"1,0,5,burst,data,0,8,3,0,\n", "packets '0' is no integer of at least 1"},
      {"1,0,5,burst,data,65000,1000,,,\n", "1000 B at offset 65000 lie outside buffer 'data'"},
      {"1,0,5,burst,,,4294967296,,,\n", "a burst of 4294967296 B"},
      {"1,0,5,write,,,8,,,\n", "this row has no buffer"},
  };
  for (const auto& [row, expected] : cases)
    EXPECT_NE(message(head + row).find(expected), std::string::npos) << message(head + row);
}

TEST(ProfileFile, in_json_is_refused_with_the_pointer) {
  const std::string head = R"({"hemiola_profile": 1, "ranks": 2, "unit": "us",
    "buffers": [{"name": "flags", "bytes": 64}], "rows": [)";
  const std::string row = R"({"source": 1, "destination": 0, "time": 1.5, "buffer": "flags")";
  EXPECT_EQ(read_profile(head + row + "}]}", "p.json").rows.at(0).time, Time::from_ns(1500));
  const auto says = [&](const std::string& rest, const std::string& expected) {
    const std::string text = message(head + row + rest);
    EXPECT_NE(text.find(expected), std::string::npos) << text;
  };
  says(R"(, "offset": 64}]})", "lie outside buffer 'flags' of 64 B (at /rows/0)");
  says(R"(, "ofset": 0}]})", "ofset");
  says(R"(, "size": [8]}]})", "/rows/0/size");
  says(R"(, "size": 8)", "p.csv:2");
}

Profile any_profile() {
  Profile profile{.file = "p.csv", .ranks = *rc::gen::inRange(2, 9)};
  profile.at_ports = *rc::gen::inRange(0, 2) == 1;
  profile.buffers = {{"flags", 4096}, {"data", 1 << 20}};
  const int count = *rc::gen::inRange(0, 30);
  for (int r = 0; r < count; ++r) {
    ProfileRow row;
    row.time = {*rc::gen::inRange<std::int64_t>(0, 5) * 1'000'001};
    row.source = *rc::gen::inRange(0, profile.ranks);
    row.destination = (row.source + 1) % profile.ranks;
    row.kind = *rc::gen::element(ProfileKind::write, ProfileKind::add, ProfileKind::packet,
                                 ProfileKind::read, ProfileKind::response,
                                 ProfileKind::acknowledgement, ProfileKind::burst);
    row.size = *rc::gen::inRange(1, 200);
    row.value = *rc::gen::inRange(-3, 3);
    row.stream = *rc::gen::inRange(-1, 3);
    if (row.is_answer()) {
      row.request = *rc::gen::inRange(0, 5);
    } else if (row.kind != ProfileKind::burst || *rc::gen::inRange(0, 2) == 0) {
      row.buffer = *rc::gen::inRange(0, 2);
      row.offset = *rc::gen::inRange(0, 1000);
    }
    if (row.kind == ProfileKind::burst && *rc::gen::inRange(0, 3) > 0) {
      row.message = *rc::gen::inRange(0, 9);
      if (*rc::gen::inRange(0, 2) == 0) row.packets = *rc::gen::inRange(1, 9);
      if (row.packets > 0) row.flag = *rc::gen::inRange(-1, 9);
    }
    row.links = *rc::gen::inRange(0, 4);
    row.path = *rc::gen::inRange(-1, 3);
    row.order = r;  // no two are equal
    row.tag = *rc::gen::element<std::string>("", "a, b", "\"q\"", "#");
    switch (*rc::gen::inRange(0, 3)) {
      case 0:
        if (r > 0) row.after_row = *rc::gen::inRange(0, r);
        break;
      case 1:
        row.after_buffer = 1;
        row.after_offset = *rc::gen::inRange(0, 100);
        row.after_value = *rc::gen::inRange(-2, 9);
        break;
      default:
        break;
    }
    profile.rows.push_back(row);
  }
  return profile;
}

TEST(ProfileFile, is_read_as_it_was_written_in_any_order_of_rows) {
  EXPECT_TRUE(rc::check("equal", [] {
    const Profile made = any_profile();
    const Profile sorted = read_profile(write_profile_csv(made), "p.csv");
    RC_ASSERT(sorted.rows.size() == made.rows.size());
    RC_ASSERT(sorted.at_ports == made.at_ports);
    RC_ASSERT(read_profile(write_profile_json(made), "p.csv").at_ports == made.at_ports);
    for (const ProfileRow& row : made.rows) {
      const auto same = [&](const ProfileRow& other) {
        ProfileRow a = row, b = other;
        a.after_row = b.after_row = -1;  // another place
        return a == b;
      };
      RC_ASSERT(std::any_of(sorted.rows.begin(), sorted.rows.end(), same));
    }
    RC_ASSERT(read_profile(write_profile_json(made), "p.csv").rows == sorted.rows);
    RC_ASSERT(read_profile(write_profile_csv(sorted), "p.csv").rows == sorted.rows);
    // Lines of rows the other way round.
    std::string text = write_profile_csv(made);
    const std::size_t rows = text.find('\n', text.find("\nid:") + 1) + 1, end = text.find("# end");
    std::vector<std::string> lines;
    for (std::size_t at = rows; at < end; at = text.find('\n', at) + 1)
      lines.push_back(text.substr(at, text.find('\n', at) + 1 - at));
    std::reverse(lines.begin(), lines.end());
    std::string turned = text.substr(0, rows);
    for (const std::string& line : lines) turned += line;
    RC_ASSERT(read_profile(turned + text.substr(end), "p.csv").rows == sorted.rows);
  }));
}

}  // namespace
}  // namespace hemiola::study

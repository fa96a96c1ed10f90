#include "core/text.h"
#include "core/expansion.h"
#include "core/testing/failure.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>

namespace hemiola {
namespace {

namespace fs = std::filesystem;

/// A folder of its own for each test, removed afterwards.
class Text : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "hemiola-text-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  int entries() const {
    return static_cast<int>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

std::string gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(text.size() + 1024, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string noise(std::size_t size) {
  std::mt19937 random(1);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random() & 0xff);
  return text;
}

using test::message_of;

TEST_F(Text, a_file_comes_back_byte_for_byte) {
  const std::string content = noise(1'000'003);
  EXPECT_EQ(read_file(file("plain", "x" + content)), "x" + content);
}

TEST_F(Text, a_gzip_file_is_expanded_whatever_its_name) {
  std::string content = noise(700'001);
  for (char& c : content) c = static_cast<char>(' ' + (c & 0x3f));
  EXPECT_EQ(read_file(file("packed.json", gzip(content))), content);
}

TEST_F(Text, what_is_compressed_to_fill_the_memory_is_refused_before_it_does) {
  const std::size_t more = Expansion::kFree + (std::size_t{1} << 20);
  EXPECT_NE(message_of([&] {
              read_file(file("zeros.gz", gzip(std::string(more, '\0'))));
            }).find("neither text, nor a trace, nor an archive"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              read_file(file("blanks.gz", gzip(std::string(more, ' '))));
            }).find("expands to more than 64 MiB"),
            std::string::npos);
  // In a few steps, and as much as its size allows where that is more.
  Expansion expansion("file", std::size_t{1} << 20);
  for (std::size_t i = 0; i < Expansion::kMostRatio; ++i) expansion.add(std::size_t{1} << 20);
  EXPECT_THROW(expansion.add(1), Failure);
}

TEST_F(Text, the_start_of_a_file_is_read_and_expanded_alone) {
  EXPECT_EQ(read_start(file("start.gz", gzip(std::string(100'000, 'x'))), 10), "xxxxxxxxxx");
  EXPECT_EQ(read_start(file("start", "abc"), 10), "abc");
  EXPECT_EQ(read_start(path("not there"), 10), "");
}

TEST_F(Text, gzip_members_that_follow_each_other_are_one_file) {
  EXPECT_EQ(read_file(file("two", gzip("one ") + gzip("two") + std::string(512, '\0'))), "one two");
}

TEST_F(Text, a_gzip_file_that_ends_early_is_an_error_at_any_length) {
  const std::string packed = gzip(noise(2'000));
  for (std::size_t length = 2; length < packed.size(); length += 97) {
    const std::string name = file("cut", packed.substr(0, length));
    EXPECT_EQ(message_of([&] { read_file(name); }),
              name +
                  ": error: is a gzip stream that ends early\n"
                  "  hint: pack the file again, or give the unpacked one");
  }
}

TEST_F(Text, a_damaged_gzip_file_is_an_error) {
  std::string packed = gzip(noise(2'000));
  packed[packed.size() - 6] = static_cast<char>(packed[packed.size() - 6] ^ 1);  // its checksum
  const std::string name = file("damaged", packed);
  EXPECT_NE(message_of([&] { read_file(name); }).find("damaged gzip"), std::string::npos);
  const std::string tail = file("tail", gzip("good") + "garbage");
  EXPECT_NE(message_of([&] { read_file(tail); }).find("damaged gzip"), std::string::npos);
}

TEST_F(Text, what_cannot_be_read_says_why) {
  EXPECT_EQ(message_of([&] { read_file(path("none")); }), path("none") + ": error: no such file");
  EXPECT_EQ(message_of([&] { read_file(folder_.string()); }),
            folder_.string() + ": error: is a folder, not a file");
  EXPECT_EQ(message_of([&] { read_file(file("empty", "")); }), path("empty") + ": error: is empty");
  EXPECT_EQ(message_of([&] { read_file(file("void.gz", gzip(""))); }),
            path("void.gz") + ": error: is empty");
  EXPECT_EQ(message_of([] { read_file("/dev/zero"); }),
            "/dev/zero: error: is a device, not a file");
  EXPECT_EQ(message_of([&] { read_file(file("x", "y") + "/z"); }),
            path("x/z") + ": error: no such file");
}

TEST_F(Text, writing_replaces_the_file_and_leaves_nothing_else) {
  write_file(path("out"), "first");
  write_file(path("out"), "second");
  EXPECT_EQ(read_file(path("out")), "second");
  EXPECT_EQ(entries(), 1);
}

TEST_F(Text, a_failed_write_leaves_the_old_file_and_no_partial_one) {
  file("out", "old");
  fs::create_directory(path("folder"));
  EXPECT_EQ(message_of([&] { write_file(path("folder"), "new"); }),
            path("folder") + ": error: is a folder, not a file");
  EXPECT_NE(message_of([&] { write_file(path("none/out"), "new"); }).find("cannot be written"),
            std::string::npos);
  EXPECT_EQ(read_file(path("out")), "old");
  EXPECT_EQ(entries(), 2);
}

TEST_F(Text, writing_through_a_link_keeps_the_link) {
  file("real", "old");
  fs::create_symlink("real", path("link"));
  write_file(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_file(path("real")), "new");
}

TEST_F(Text, writing_to_a_device_does_not_replace_it) {
  write_file("/dev/null", "text");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(Locate, counts_lines_and_columns_from_one) {
  const std::string text = "ab\ncd\n\nx";
  const auto at = [&](std::size_t offset) {
    const SourceLocation where = locate("f", text, offset);
    return std::pair(where.line, where.column);
  };
  EXPECT_EQ(at(0), std::pair(1, 1));
  EXPECT_EQ(at(2), std::pair(1, 3));
  EXPECT_EQ(at(3), std::pair(2, 1));
  EXPECT_EQ(at(6), std::pair(3, 1));
  EXPECT_EQ(at(7), std::pair(4, 1));
  EXPECT_EQ(at(99), std::pair(4, 2));
  EXPECT_EQ(locate("f", "", 0).line, 1);
}

}  // namespace
}  // namespace hemiola

// Which files a path stands for.
#include "workload/traces/files.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "workload/testing/traces.h"

namespace hemiola::workload {
namespace {

using test::ChakraText;
using test::failure_of;
using test::Folder;

std::string one_node(std::string_view name = "a") {
  ChakraText file;
  file.add(1, name, chakra::COMP_NODE);
  file.number("num_ops", 5);
  return file.str();
}

void pack(const std::string& path, bool as_zip,
          const std::vector<std::pair<std::string, std::string>>& members) {
  archive* out = archive_write_new();
  if (as_zip) {
    archive_write_set_format_zip(out);
  } else {
    archive_write_set_format_ustar(out);
    archive_write_add_filter_gzip(out);
  }
  ASSERT_EQ(archive_write_open_filename(out, path.c_str()), ARCHIVE_OK);
  for (const auto& [name, content] : members) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_write_header(out, entry);
    archive_write_data(out, content.data(), content.size());
    archive_entry_free(entry);
  }
  archive_write_close(out);
  archive_write_free(out);
}

std::string gzip(const Folder& folder, const std::string& name, const std::string& content) {
  const std::string path = folder / name;
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
  return path;
}

TEST(TraceFiles, APrefixAPatternAFolderAndAFile) {
  const Folder folder;
  for (int rank = 0; rank < 11; ++rank)
    folder.write("run.b2." + std::to_string(rank) + ".et", one_node());
  EXPECT_EQ(read_workload({.path = folder / "run.b2"}).ranks, 11);
  EXPECT_EQ(read_workload({.path = folder / "run.b2.%d.et"}).ranks, 11);
  EXPECT_EQ(read_workload({.path = folder.path()}).ranks, 11);
  EXPECT_EQ(read_workload({.path = folder / "run.b2.10.et"}).ranks, 1);
  EXPECT_EQ(read_workload({.path = folder / "run.b2", .name = "mine"}).name, "mine");
}

TEST(TraceFiles, ArchivesOfAllKindsAndOneInsideAnother) {
  const Folder folder;
  const std::vector<std::pair<std::string, std::string>> members{{"a/t.0.et", one_node("zero")},
                                                                 {"a/t.1.et", one_node("one")},
                                                                 {"a/._t.0.et", "x"},
                                                                 {"README", "text"}};
  pack(folder / "t.tgz", false, members);
  pack(folder / "t.zip", true, members);
  gzip(folder, "single.0.et.gz", one_node());
  for (const char* name : {"t.tgz", "t.zip"}) {
    const Workload workload = read_workload({.path = folder / name});
    EXPECT_EQ(workload.ranks, 2) << name;
    EXPECT_EQ(workload.name, "t") << name;
    EXPECT_TRUE(is_trace(folder / name));
  }
  EXPECT_EQ(read_workload({.path = folder / "single.0.et.gz"}).nodes(), 1);
  std::ifstream packed(folder / "single.0.et.gz", std::ios::binary);
  const std::string inner((std::istreambuf_iterator<char>(packed)), {});
  pack(folder / "outer.zip", true, {{"t.0.et.gz", inner}});
  EXPECT_EQ(read_workload({.path = folder / "outer.zip"}).nodes(), 1);
}

TEST(TraceFiles, GroupsBesideTheTraceAreTakenAndSaid) {
  const Folder folder;
  ChakraText file;
  file.collective(1, chakra::ALL_REDUCE, 64, "5");
  folder.write("t.0.et", file.str());
  folder.write("t.1.et", file.str());
  folder.write("t.json", R"({"5": [1, 0]})");
  for (const std::string& path : {folder / "t", folder.path(), folder / "t.%d.et"}) {
    const Workload workload = read_workload({.path = path});
    EXPECT_EQ(workload.families.at(0).groups, (std::vector<std::vector<int>>{{1, 0}}));
    EXPECT_TRUE(
        test::has_notice(workload, "process groups were taken from the file beside the traces"));
  }
  folder.write("other.json", R"({"5": [0, 1]})");
  EXPECT_EQ(failure_of(folder, {.path = folder.path() + "/"}),
            "t.json: error: two files say which process groups there are: this one and other.json\n"
            "  hint: name the one that holds with --groups");
  EXPECT_EQ(
      read_workload({.path = folder / "t", .groups = folder / "other.json"}).families.at(0).groups,
      (std::vector<std::vector<int>>{{0, 1}}));
}

TEST(TraceFiles, ThePlaceOfRanksInNamesIsWhereTheyDiffer) {
  EXPECT_EQ(ranks_by_name({"w2_step_12.1694128201554.json", "w0_step_12.1694128201545.json",
                           "w1_step_12.1694128201556.json"}),
            (std::vector{2, 0, 1}));
  EXPECT_EQ(ranks_by_name({"a9/x.0.et", "a9/x.1.et"}), (std::vector{0, 1}));
  EXPECT_EQ(ranks_by_name({"x.et", "y.et"}), std::nullopt);
  EXPECT_EQ(ranks_by_name({"a.tgz:r1/trace.json", "a.tgz:r0/trace.json"}), (std::vector{1, 0}));
}

TEST(TraceFiles, TwoFilesOfOneRankAreNamed) {
  const Folder folder;
  const std::string text =
      R"({"distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": [{"ph": "X", "cat": "kernel", )"
      R"("name": "a", "ts": 1, "dur": 1, "args": {"stream": 7, "device": 0}}]})";
  folder.write("step_1.json", text);
  folder.write("step_2.json", text);
  const std::string said = failure_of(folder, {.path = folder.path()});
  EXPECT_NE(said.find("two files say that they are of rank 0"), std::string::npos) << said;
}

TEST(TraceFiles, WhatIsMissingOrIsSomethingElse) {
  const Folder folder;
  EXPECT_EQ(failure_of(folder, {.path = folder / "nothing"}),
            "nothing: error: no such file, and no files of ranks that begin with it");
  const Folder empty;
  EXPECT_EQ(failure_of(empty, {.path = empty.path()}),
            empty.path() +
                ": error: has no trace in it\n"
                "  hint: Chakra, PyTorch and Kineto traces can be read: docs/traces.md");
  folder.write("t.0.et", one_node());
  folder.write("t.2.et", one_node());
  folder.write("t.3.et", one_node());
  const std::string missing =
      "t.3.et: error: the file of rank 1 is missing: there are 3 files, up to that of rank 3\n"
      "  hint: give the traces of all ranks, or one file and --replicate";
  EXPECT_EQ(failure_of(folder, {.path = folder / "t"}), missing);
  EXPECT_EQ(failure_of(folder, {.path = folder.path()}), missing);
  EXPECT_EQ(failure_of(folder, {.path = folder / "t", .replicate = 8}), missing);
  const Folder other;
  other.write("plan.json", R"({"hemiola_plan": 1})");
  EXPECT_EQ(failure_of(other, {.path = other / "plan.json"}),
            "plan.json: error: is a chunk plan, not a trace\n"
            "  hint: Chakra, PyTorch and Kineto traces can be read: docs/traces.md");
  other.write("garbage.et", std::string("\x01\x02\x03\xff\xfe", 5));
  EXPECT_EQ(failure_of(other, {.path = other / "garbage.et"}),
            "garbage.et: error: is no Chakra trace: its first message is no GlobalMetadata");
  other.write("half.gz", std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03\xff\xff\xff\xff", 14));
  EXPECT_EQ(failure_of(other, {.path = other / "half.gz"}),
            "half.gz: error: is a damaged gzip stream\n"
            "  hint: pack the file again, or give the unpacked one");
  other.write("half.zip", "PK\x03\x04garbage");
  EXPECT_EQ(failure_of(other, {.path = other / "half.zip"}),
            "half.zip: error: is a damaged archive: Truncated ZIP file header\n"
            "  hint: pack the files again, or give them unpacked");
}

TEST(TraceFiles, SomethingIsATraceByItsContent) {
  const Folder folder;
  folder.write("t.0.et", one_node());
  folder.write("odd_name", one_node());
  folder.write("et.json", R"({"schema": "1.0.1", "nodes": []})");
  folder.write("kineto.json", R"({"schemaVersion": 1, "traceEvents": []})");
  folder.write("plan.json", R"({"hemiola_plan": 1})");
  folder.write("plan.et", R"({"gpus": []})");
  folder.write("job.yaml", "launches:\n  - program: x\n");
  for (const char* name : {"t.0.et", "odd_name", "et.json", "kineto.json", "t", "t.%d.et"})
    EXPECT_TRUE(is_trace(folder / name)) << name;
  EXPECT_TRUE(is_trace(folder.path()));
  for (const char* name : {"plan.json", "plan.et", "job.yaml", "nothing"})
    EXPECT_FALSE(is_trace(folder / name)) << name;
  folder.write("t.2.et", one_node());
  EXPECT_TRUE(is_trace(folder / "t")) << "the reader says what is missing";
}

}  // namespace
}  // namespace hemiola::workload

#include "workload/iteration/search.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/testing/failure.h"
#include "core/text.h"
#include "workload/testing/models.h"
#include "workload/testing/traces.h"

namespace hemiola::workload {
namespace {

TEST(Search, APartThatIsTornIsAMessage) {
  const test::Folder folder;
  study::Laboratory laboratory;
  study::Parts parts(folder / "parts", "head");
  SearchRequest request{.make = {.model = generated::tiny_gpt(2), .global_batch = 2},
                        .machine = {.name = "dgx-h100", .ranks = "2"},
                        .parts = &parts};
  request.costs.level = Level::estimate;
  const SearchOutcome made = search(laboratory, request);
  ASSERT_EQ(made.rows.size(), 3u);
  EXPECT_EQ(search(laboratory, request).rows.front().time, made.rows.front().time);
  int torn = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder / "parts")) {
    if (file.path().extension() != ".part") continue;
    const std::string text = read_file(file.path().string());
    write_file(file.path().string(), text.substr(0, text.size() / 2));
    ++torn;
  }
  EXPECT_EQ(torn, 3);
  EXPECT_EQ(hemiola::test::message_of([&] { search(laboratory, request); }),
            "--parts: error: a part is no run of a parallelism\n"
            "  hint: remove this folder, or give another one");
}

}  // namespace
}  // namespace hemiola::workload

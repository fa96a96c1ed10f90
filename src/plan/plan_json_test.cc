#include "plan/plan_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hemiola/parts/build_plan.h"
#include "machine/machine.h"
#include "plan/template.h"
#include "plan/testing/small_sizes.h"

namespace hemiola::plan {
namespace {

using ::testing::HasSubstr;

/// Two ranks gather the halves of a matrix and multiply as halves arrive.
constexpr const char* kGatherGemm = R"({
  "hemiola_plan": 1,
  "name": "gather and multiply",
  "collective": "custom",
  "mesh": [{"axis": "tp", "size": 2}],
  "tensors": [
    {"name": "a", "role": "input", "shape": [16, 8], "dtype": "half", "strides": [10, 1]},
    {"name": "b", "role": "input", "shape": [8, 4], "dtype": "half"},
    {"name": "c", "role": "output", "shape": [16, 4], "dtype": "half"}
  ],
  "groups": [[0, 1]],
  "codes": [
    {
      "ranks": "all",
      "resident": [
        {"tensor": "a", "begin": ["8*rank", 0], "extent": [8, 8]},
        {"tensor": "b", "begin": [0, 0], "extent": [8, 4]}
      ],
      "computes": [
        {
          "name": "gemm",
          "kernel": "gemm",
          "axes": [
            {"name": "m", "extent": 16, "tile": 4},
            {"name": "n", "extent": 4, "tile": 4},
            {"name": "k", "extent": 8, "tile": 8, "reduced": true}
          ],
          "operands": [
            {"tensor": "a", "use": "read", "axes": ["m", "k"]},
            {"tensor": "b", "use": "read", "axes": ["k", "*"], "begin": [0, 0]},
            {"tensor": "c", "use": "write", "axes": ["m", "n"]}
          ],
          "flop_per_point": 2,
          "order": ["n", "m", "k"],
          "by_arrival": true
        }
      ],
      "streams": [
        {
          "name": "gather",
          "channel": "nvlink",
          "items": [
            {
              "loop": 2,
              "items": [
                {
                  "op": "pull",
                  "peer": "(rank + 1) % 2",
                  "source": {"tensor": "a", "begin": ["(rank + 1) % 2 * 8 + 4", 0], "extent": [4, 8]},
                  "destination": {
                    "tensor": "a",
                    "boxes": [
                      {"begin": ["(rank + 1) % 2 * 8 + 4", 0], "extent": [2, 8]},
                      {"begin": ["(rank + 1) % 2 * 8 + 6", 0], "extent": [2, 8]}
                    ]
                  },
                  "after": [{"rank": "rank", "computed": {"tensor": "c", "begin": [0, 0], "extent": [4, 4]}}]
                }
              ]
            }
          ]
        }
      ],
      "expected": [{"region": {"tensor": "a", "begin": [0, 0], "extent": [16, 8]}, "value": "gathered"}]
    }
  ]
}
)";

TEST(PlanJson, a_canonical_file_is_written_back_as_it_is) {
  EXPECT_EQ(write_plan(read_plan(kGatherGemm, "file")), kGatherGemm);
}

TEST(PlanJson, every_template_survives_a_round_trip) {
  for (const TemplateInfo& info : templates()) {
    for (const int ranks : {2, 3, 8}) {
      const machine::Machine machine = machine::load("ring:" + std::to_string(ranks));
      const Plan plan =
          make(info.name, ranks, small_sizes(info, ranks), info.needs_machine ? &machine : nullptr);
      const std::string text = write_plan(plan);
      const Plan again = read_plan(text, "file");
      EXPECT_EQ(write_plan(again), text) << info.name;
      EXPECT_EQ(again.tensors, plan.tensors);
      for (int rank = 0; rank < ranks; ++rank) {
        ASSERT_EQ(again.code(rank).streams.size(), plan.code(rank).streams.size());
        for (std::size_t s = 0; s < plan.code(rank).streams.size(); ++s) {
          EXPECT_EQ(count_transfers(again.code(rank).streams[s]),
                    count_transfers(plan.code(rank).streams[s]));
        }
      }
    }
  }
}

TEST(PlanJson, lists_of_ranks_are_short) {
  EXPECT_EQ(ranks_text({0, 1, 2, 5, 8, 9}), "0-2,5,8-9");
}

struct Bad {
  std::string name;
  std::string from, to;            ///< the edit that breaks kGatherGemm
  std::vector<std::string> words;  ///< of the message: place, what, hint
};
void PrintTo(const Bad& bad, std::ostream* out) {
  *out << bad.name;
}

class BadPlan : public testing::TestWithParam<Bad> {};

TEST_P(BadPlan, is_one_message_with_pointer_line_and_hint) {
  const Bad& bad = GetParam();
  std::string text = kGatherGemm;
  const std::size_t at = text.find(bad.from);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, bad.from.size(), bad.to);
  std::string message = "no failure";
  try {
    read_plan(text, "file");
  } catch (const Failure& failure) {
    message = failure.what();
    EXPECT_EQ(failure.diagnostics().items().size(), 1U);
    EXPECT_EQ(failure.code(), ExitCode::bad_input);
  }
  EXPECT_THAT(message, HasSubstr("file:"));
  for (const std::string& word : bad.words) EXPECT_THAT(message, HasSubstr(word));
}

const std::string kFrom = "(rank + 1) % 2 * 8 + 4\", 0], \"extent\": [4, 8]";
INSTANTIATE_TEST_SUITE_P(
    All, BadPlan,
    testing::Values(
        Bad{"unknown_key", "\"mesh\"", "\"mess\"", {"file:5:", "'mess'", "mesh", "/mess"}},
        Bad{"unknown_tensor",
            "\"tensor\": \"a\", \"use\"",
            "\"tensor\": \"x\", \"use\"",
            {"there is no tensor 'x'", "/codes/0/computes/0/operands/0/tensor", "a, b, c"}},
        Bad{"region_outside",
            kFrom,
            "rank * 8 + 10\", 0], \"extent\": [4, 8]",
            {"/codes/0/streams/0/items/0/items/0/source", "rank 1", "outside tensor 'a'",
             "18 to 21 of 16 along axis 0"}},
        Bad{"rank_outside",
            "\"peer\": \"(rank + 1) % 2\"",
            "\"peer\": \"rank + 1\"",
            {"/items/0/peer", "its peer is rank 2", "ranks are 0 to 1"}},
        Bad{"own_peer", "\"peer\": \"(rank + 1) % 2\"", "\"peer\": \"rank\"", {"its own rank"}},
        Bad{"not_affine",
            "\"peer\": \"(rank + 1) % 2\"",
            "\"peer\": \"rank * rank\"",
            {"/items/0/peer", "two variables"}},
        Bad{"no_such_dependency",
            "{\"rank\": \"rank\", \"computed\": {\"tensor\": \"c\", \"begin\": [0, 0], \"extent\": "
            "[4, 4]}}",
            "{\"rank\": 1, \"stream\": 0, \"transfer\": 2}",
            {"/after/0", "transfer 2 of stream 0 of rank 1", "numbered from 0"}},
        Bad{"later_dependency",
            "{\"rank\": \"rank\", \"computed\": {\"tensor\": \"c\", \"begin\": [0, 0], \"extent\": "
            "[4, 4]}}",
            "{\"rank\": \"rank\", \"transfer\": \"i\"}",
            {"own stream, which comes later"}},
        Bad{"nothing_computes_it",
            "\"computed\": {\"tensor\": \"c\"",
            "\"computed\": {\"tensor\": \"b\"",
            {"/after/0/computed", "computes writes tensor 'b'"}},
        Bad{"type_mismatch",
            "\"shape\": [16, 4], \"dtype\": \"half\"",
            "\"shape\": [16, 4], \"dtype\": \"chunk\"",
            {"/tensors/2/dtype", "no data type, unlike 'a'", "throughout"}},
        Bad{"unequal_sizes",
            "\"extent\": [4, 8]}",
            "\"extent\": [3, 8]}",
            {"differ in size: 24 and 32"}},
        Bad{"overlapping_boxes", "* 8 + 6\"", "* 8 + 5\"", {"boxes 0 and 1 that overlap"}},
        Bad{"axes_missing",
            "\"begin\": [\"8*rank\", 0]",
            "\"begin\": [\"8*rank\"]",
            {"/resident/0/begin", "1 begins for the 2 axes"}},
        Bad{"strides_overlap", "[10, 1]", "[4, 1]", {"/tensors/0", "share memory"}},
        Bad{"unknown_axis", "[\"k\", \"*\"]", "[\"k\", \"q\"]", {"no axis 'q'", "m, n, k"}},
        Bad{"compute_outside",
            "\"extent\": 16, \"tile\": 4",
            "\"extent\": 17, \"tile\": 4",
            {"touches [0, 17) of axis 0 of tensor 'a'", "which has 16"}},
        Bad{"rank_twice",
            "\"ranks\": \"all\"",
            "\"ranks\": \"0-1,1\"",
            {"'0-1,1' names a rank twice"}},
        Bad{"rank_missing", "\"ranks\": \"all\"", "\"ranks\": \"0\"", {"rank 1 has no code"}},
        Bad{"ranks_garbled", "\"ranks\": \"all\"", "\"ranks\": \"0-x\"", {"not a list of ranks"}},
        Bad{"absurd_mesh", "\"size\": 2", "\"size\": 1000000000000", {"/mesh/0/size", "range"}},
        Bad{"absurd_loop", "\"loop\": 2", "\"loop\": -1", {"/items/0/loop", "range"}},
        Bad{"duplicate_key",
            "\"name\": \"gather\",",
            "\"name\": \"gather\", \"name\": \"x\",",
            {"'name' stands twice"}},
        Bad{"truncated", "\"expected\"", "", {"malformed"}},
        Bad{"wrong_version", "\"hemiola_plan\": 1", "\"hemiola_plan\": 2", {"/hemiola_plan"}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hemiola::plan

// Kernels after public reports, each with its repaired twin (tests/kernels): what is wrong is found
// at the line that says so, and nothing is found in the twin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "compile/rules/rules.h"
#include "compile/skeleton/vocabulary.h"
#include "core/diagnostics.h"
#include "core/text.h"

namespace hemiola::compile {
namespace {

const std::string kFolder = HEMIOLA_SOURCE_DIR "/tests/kernels/";

RuleReport checked(const std::string& name, const std::string& target = "cuda") {
  Library library;
  const Module& module = library.load(kFolder + name + ".py");
  return check_rules(library, module, {.target = target});
}

/// The line that ends with "# wrong: ...".
int wrong_line(const std::string& name) {
  const std::string text = read_file(kFolder + name + ".py");
  const std::size_t at = text.find("# wrong");
  return 1 + static_cast<int>(
                 std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

struct Pair {
  const char* name;
  const char* rule;
  bool is_endless = false;
  const char* target = "cuda";
};
void PrintTo(const Pair& pair, std::ostream* out) {
  *out << pair.name;
}

class KernelPairs : public testing::TestWithParam<Pair> {
 protected:
  void SetUp() override {
    if (!can_parse()) GTEST_SKIP() << why_it_cannot_parse();
  }
};

TEST_P(KernelPairs, are_told_apart) {
  const auto [name, rule, is_endless, target] = GetParam();
  const RuleReport wrong = checked(name, target);
  ASSERT_FALSE(wrong.violations.empty());
  EXPECT_EQ(wrong.violations.front().rule, rule);
  EXPECT_EQ(wrong.violations.front().span.line, wrong_line(name));
  EXPECT_EQ(wrong.violations.front().is_endless, is_endless);
  const RuleReport right = checked(std::string(name) + "_repaired", target);
  for (const Violation& one : right.violations) ADD_FAILURE() << one.span.line << ": " << one.what;
  EXPECT_THAT(right.not_judged, testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    reports, KernelPairs,
    testing::Values(
        Pair{"lock_for_peers", "scope"}, Pair{"ready_is_one", "replay"},
        Pair{"no_last_barrier", "reuse"}, Pair{"produced_is_not_consumed", "reuse"},
        Pair{"told_without_order", "signal-release"}, Pair{"one_counter_for_all_pieces", "order"},
        Pair{"own_word_zeroed", "reset", true}, Pair{"lock_before_all_warps", "signal-barrier"},
        Pair{"lock_zeroed_by_its_setter", "reset"}, Pair{"volatile_look", "plain-flag"},
        Pair{"second_stage_relaxed", "signal-release"},
        Pair{"fewer_lanes_than_ranks", "endless", true},
        Pair{"flags_and_data_overlap", "plain-flag"}, Pair{"set_back_too_early", "reset", true},
        Pair{"half_of_the_caches", "half-caches", false, "rdna"}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    counts, KernelPairs,
    testing::Values(
        Pair{"one_arrival_short", "order"}, Pair{"count_zeroed_behind_the_word", "reset", true},
        Pair{"slots_one_ack_short", "reuse"}, Pair{"root_misses_one_ack", "reuse"},
        Pair{"all_signal_one_word", "endless", true}, Pair{"word_of_another_tile", "order"},
        Pair{"unlocked_by_a_store", "plain-flag"}, Pair{"first_rank_leaves", "endless", true},
        Pair{"consumers_come_first", "endless", true}, Pair{"fence_of_one_gpu", "scope"},
        Pair{"second_look_relaxed", "wait-acquire"}, Pair{"uneven_shares", "endless", true},
        Pair{"across_the_node", "endless", true},
        Pair{"count_kept_every_other_call", "endless", true}, Pair{"last_peer_skipped", "order"}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    styles, KernelPairs,
    testing::Values(
        Pair{"ring_of_heaps", "scope"}, Pair{"wait_for_own_word", "endless", true},
        Pair{"more_lanes_than_ranks", "endless", true},
        Pair{"count_that_goes_past", "overtaken", true},
        Pair{"back_to_the_wrong_neighbour", "reuse"}, Pair{"empty_share_leaves", "endless", true},
        Pair{"tma_reads_generic_stores", "proxy-fence"},
        Pair{"tile_waits_for_later_tile", "endless", true},
        Pair{"rounds_differ_by_rank", "endless", true},
        Pair{"first_consumer_sets_back", "reset", true}, Pair{"communicates_without_wait", "order"},
        Pair{"word_of_nobody", "endless", true},
        Pair{"host_zeroes_without_barrier", "endless", true}, Pair{"mask_by_rank", "endless", true},
        Pair{"assembly_at_gpu_scope", "scope"}, Pair{"bits_that_are_replaced", "shared-word", true},
        Pair{"barrier_that_relaxes_once", "wait-acquire"}, Pair{"peer_behind_the_last", "peer"},
        Pair{"given_back_before_read", "reuse"}, Pair{"leaves_before_all_arrived", "arrival"}),
    [](const auto& info) { return std::string(info.param.name); });

/// A kernel whose text says neither what `a` and `b` are nor whose memory `there` is.
const char* const kUnnamed = R"py(
import triton
import triton.language as tl


@triton.jit
def exchange(x, box, word, box_there, word_there, y, a, b, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(box_there + (a % b) * BLOCK + at, tl.load(x + at))
    tl.debug_barrier()
    tl.atomic_xchg(word_there, a, sem="release", scope="sys")
    while tl.atomic_add(word, 0, sem="acquire", scope="sys") < a:
        pass
    tl.debug_barrier()
    tl.store(y + at, tl.load(box + (a % b) * BLOCK + at))
)py";

class Protocols : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_parse()) GTEST_SKIP() << why_it_cannot_parse();
  }

  void TearDown() override { std::filesystem::remove(file_); }

  RuleReport with(const std::string& protocol) {
    write_file(file_, protocol);
    Library library;
    return check_rules(library, library.add("kernel.py", kUnnamed), {.protocol = file_});
  }
  std::string refusal_of(const std::string& protocol) {
    try {
      with(protocol);
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "";
  }

  // Its own of each test: they run at the same time.
  const std::string file_ =
      testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + ".yaml";
};

TEST_F(Protocols, say_what_parameters_are) {
  const std::string there =
      "  box_there: box at (rank + 1) % world\n  word_there: word at (rank + 1) % world\n";
  const RuleReport deep = with("ranks: 2\nparameters:\n  a: call + 1\n  b: 2\n" + there);
  EXPECT_THAT(deep.violations, testing::IsEmpty());
  EXPECT_THAT(deep.not_judged, testing::IsEmpty());
  const RuleReport flat = with("ranks: 2\nparameters:\n  a: call + 1\n  b: 1\n" + there);
  ASSERT_EQ(flat.violations.size(), 1U);
  EXPECT_EQ(flat.violations[0].rule, "reuse");
  // Ranks in a ring of four may be further ahead than two calls.
  const RuleReport ring = with("ranks: 4\nparameters:\n  a: call + 1\n  b: 2\n" + there);
  ASSERT_EQ(ring.violations.size(), 1U);
  EXPECT_EQ(ring.violations[0].rule, "reuse");
}

TEST_F(Protocols, say_whether_ranks_meet_between_calls) {
  const std::string rest =
      "ranks: 2\nparameters:\n  a: 1\n  b: 1\n  box_there: box at 1 - rank\n"
      "  word_there: word at 1 - rank\n";
  EXPECT_THAT(with("between: meet\n" + rest).violations, testing::IsEmpty());
  EXPECT_FALSE(with("between: nothing\n" + rest).violations.empty());
}

TEST_F(Protocols, are_refused_where_they_are_none) {
  EXPECT_THAT(refusal_of("rank: 2\n"), testing::HasSubstr("unknown key 'rank'"));
  EXPECT_THAT(refusal_of("ranks: 0\n"), testing::HasSubstr("no number from 1 to 64"));
  EXPECT_THAT(refusal_of("between: coffee\n"), testing::HasSubstr("coffee"));
  EXPECT_THAT(refusal_of("parameters:\n  c: 1\n"), testing::HasSubstr("no parameter 'c'"));
  EXPECT_THAT(refusal_of("- 1\n"), testing::HasSubstr("map"));
}

TEST(Vocabulary, knows_calls_by_the_end_of_their_name) {
  using skeleton::Vocabulary;
  using Meaning = skeleton::Word::Meaning;
  const auto meaning = [](const char* name) {
    const skeleton::Word* word = Vocabulary::own().find(name);
    return word == nullptr ? Meaning::none : word->meaning;
  };
  EXPECT_EQ(meaning("iris.put"), Meaning::put);
  EXPECT_EQ(meaning("triton_dist.language.wait"), Meaning::wait);
  EXPECT_EQ(meaning("triton_dist.language.extra.libshmem_device.putmem_signal_nbi_block"),
            Meaning::put);
  EXPECT_EQ(meaning("libshmem_device.sig_op"), Meaning::signal);
  EXPECT_EQ(meaning("nvshmem_quiet"), Meaning::fence);
  EXPECT_EQ(meaning("triton.language.load"), Meaning::load);
  EXPECT_EQ(Vocabulary::own().find("triton.language.exp"), nullptr);
  EXPECT_EQ(Vocabulary::own().find("torch.put"), nullptr);
}

}  // namespace
}  // namespace hemiola::compile

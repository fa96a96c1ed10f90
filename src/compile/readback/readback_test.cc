// Fused files read back: each proven as it was written, and found where a line of it is changed.
#include "compile/readback/readback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compile/testing/fused_text.h"
#include "core/testing/failure.h"
#include "machine/machine.h"
#include "sim/simulate.h"
#include "verify/verify.h"

namespace hemiola::compile {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

program::Bound bound_of(FusedReading reading, const machine::SharedMachine& machine = nullptr) {
  const Bytes size = reading.program.fixed_size;
  return program::bind(std::make_shared<const program::Program>(std::move(reading.program)),
                       machine, {size, DataType::float32, ReduceOp::sum});
}

verify::Proof proof_of(const std::string& text, std::int64_t processors = 0) {
  return verify::check(bound_of(read_fused("fused.py", text, {.processors = processors})));
}

class ReadBack : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_parse()) GTEST_SKIP() << why_it_cannot_parse();
  }
};

TEST_F(ReadBack, files_are_proven_as_they_were_written) {
  for (const char* kernel : {"gemm", "gemm_persistent", "gemm_tma"}) {
    for (const char* plan :
         {"ag-gemm/swizzle", "ag-gemm/ring", "gemm-rs/direct", "gemm-rs/ring", "a2a-gemm/direct"}) {
      const std::string text = fused_text(kernel, plan);
      EXPECT_TRUE(is_fused_text(text));
      for (const std::int64_t processors : {0, 1, 3})
        EXPECT_EQ(proof_of(text, processors).summary, "proven")
            << kernel << ' ' << plan << ' ' << processors;
    }
  }
  EXPECT_EQ(proof_of(fused_text("attention", "ring-attention/ring")).summary, "proven");
}

TEST_F(ReadBack, launches_are_waves_of_one_grid_or_one_after_the_other) {
  for (const char* plan : {"ag-gemm/sequence", "ag-gemm/shards", "gemm-rs/sequence",
                           "gemm-ar/sequence", "gemm-a2a-gemm/direct", "mlp/domino"}) {
    const std::string text = fused_text("gemm_persistent", plan);
    for (const std::int64_t processors : {0, 1})
      EXPECT_EQ(proof_of(text, processors).summary, "proven") << plan << ' ' << processors;
  }
  // The second product before the first has made what it sends, and without what it waits for.
  const std::string text = fused_text("gemm_persistent", "gemm-a2a-gemm/direct");
  EXPECT_EQ(proof_of(changed(text, "copies[0].wait_signal(t.done[rank, peer * 2 + step], step=0)",
                             "pass"))
                .verdict,
            verify::Verdict::wrong);
  const std::size_t second = text.find("t.work_2.wave(");
  ASSERT_NE(second, text.npos);
  const std::size_t after = text.find(", after=[", second), end = text.find("])", after);
  EXPECT_EQ(proof_of(text.substr(0, after) + text.substr(end + 1)).verdict, verify::Verdict::wrong);
}

TEST_F(ReadBack, a_wait_that_is_gone_is_a_race_at_its_line) {
  const std::string text = fused_text("gemm_persistent", "ag-gemm/swizzle");
  const verify::Proof proof =
      proof_of(changed(text, "        if hm_need != hm_known:", "        if False:"));
  EXPECT_EQ(proof.verdict, verify::Verdict::wrong);
  EXPECT_THAT(proof.summary, HasSubstr("data race"));
  ASSERT_EQ(proof.counterexample.size(), 2U);
  EXPECT_THAT(proof.counterexample[0].where, HasSubstr("line "));
  // The wave itself, without its wait.
  EXPECT_EQ(proof_of(changed(text, ", after=[(t.arrived[rank, 0], 0)]", "")).verdict,
            verify::Verdict::wrong);
}

TEST_F(ReadBack, a_signal_that_is_gone_is_a_deadlock) {
  const std::string consumer = fused_text("gemm", "ag-gemm/ring");
  EXPECT_EQ(
      proof_of(changed(consumer, "copies[0].signal(t.arrived[rank, 0], to=(rank + 1) % 2, step=0)",
                       "pass"))
          .verdict,
      verify::Verdict::deadlock);
  const std::string producer = fused_text("gemm", "gemm-rs/direct");
  // Nobody is the last of a part, or whoever is does not leave its count as it was.
  for (const auto& [from, to] : {std::pair{"tl.load(row) - 1:", "tl.load(row):"},
                                 std::pair{"tl.store(counters + part, 0)", "pass"}})
    EXPECT_THAT([&] { proof_of(changed(producer, from, to)); },
                ThrowsMessage<Failure>(HasSubstr("nobody sets the count back")));
  EXPECT_EQ(proof_of(changed(producer, "t.work.part(0, to=[0])", "t.work.part(0, to=[])")).verdict,
            verify::Verdict::deadlock);
}

// Tiles that wait for their rank's own copies may hold what these need.
TEST_F(ReadBack, what_needs_compute_units_comes_before_the_kernel) {
  const std::string text = fused_text("gemm_persistent", "a2a-gemm/direct");
  ASSERT_NE(text.find("compute[0].wait(copies[1])"), text.npos);
  EXPECT_EQ(proof_of(text).summary, "proven");
  std::string inside = changed(text, "    compute[0].wait(copies[1])\n",
                               "    copies[1].signal(t.arrived[rank, 1], to=rank, step=0)\n");
  const std::size_t wave = inside.find("after=[");
  ASSERT_NE(wave, inside.npos);
  inside.insert(wave + 7, "(t.arrived[rank, 1], 0), ");
  EXPECT_THAT([&] { proof_of(inside); },
              ThrowsMessage<Failure>(HasSubstr("this needs compute units")));
}

TEST_F(ReadBack, copies_of_another_chunk_are_wrong_values) {
  const std::string text = fused_text("gemm", "ag-gemm/swizzle");
  // The own rows, where those of the peer belong: a copy within the GPU, before the kernel.
  const std::string own =
      changed(text, "t.a_at[(rank + 1) % 2][32 * ((rank + 1) % 2):32 * ((rank + 1) % 2 + 1)]",
              "t.a[32 * rank:32 * (rank + 1)]");
  const verify::Proof proof = proof_of(changed(
      own, "    compute[0].launch(", "    compute[0].wait(copies[0])\n    compute[0].launch("));
  EXPECT_EQ(proof.verdict, verify::Verdict::wrong) << proof.summary;
  EXPECT_THAT(proof.summary, Not(HasSubstr("race")));
}

TEST_F(ReadBack, sums_by_atomics_are_one_after_the_other) {
  for (const char* plan : {"ag-gemm/swizzle", "gemm-rs/direct"}) {
    const std::string text =
        fused_text("gemm_split_k", plan,
                   {{"BLOCK_M", "16"}, {"BLOCK_N", "16"}, {"BLOCK_K", "16"}, {"SPLIT_K", "2"}});
    EXPECT_EQ(proof_of(text).summary, "proven") << plan;
    // As stores they would overwrite each other: the sum is not there.
    EXPECT_THROW(proof_of(changed(text, "tl.atomic_add(c_ptrs", "tl.store(c_ptrs")), Failure)
        << plan;
  }
}

TEST_F(ReadBack, collectives_are_what_their_members_do_together) {
  for (const char* plan : {"gemm-rs/collective", "gemm-ar/partitioned"})
    EXPECT_EQ(proof_of(fused_text("gemm", plan)).summary, "proven") << plan;
  const std::string text = fused_text("gemm", "gemm-ar/partitioned");
  const verify::Proof early =
      proof_of(changed(text, "copies[0].wait_signal(t.done[rank, 1], step=0)", "pass"));
  EXPECT_EQ(early.verdict, verify::Verdict::wrong) << early.summary;
  const verify::Proof twice =
      proof_of(changed(text, "t.c[32:64], t.partial[32:64]", "t.c[32:64], t.partial[0:32]"));
  EXPECT_EQ(twice.verdict, verify::Verdict::wrong) << twice.summary;
}

TEST_F(ReadBack, what_orders_the_memory_between_threads_counts) {
  const std::string text = fused_text("gemm", "gemm-rs/direct");
  EXPECT_EQ(proof_of(changed(text, "        tl.debug_barrier()", "        pass")).verdict,
            verify::Verdict::wrong);
}

TEST_F(ReadBack, tables_that_cannot_be_are_wrong_where_they_are_said) {
  const std::string text = fused_text("gemm", "ag-gemm/swizzle");
  const auto wrong = [&](const std::string& from, const std::string& to, const std::string& said) {
    try {
      read_fused("fused.py", changed(text, from, to));
      ADD_FAILURE() << "nothing is wrong with " << to;
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), ExitCode::wrong_program) << failure.what();
      EXPECT_THAT(failure.what(), HasSubstr(said));
      EXPECT_GT(failure.diagnostics().items().front().where.line, 0) << failure.what();
    }
  };
  wrong("{\"M\": (rank * 32, 32)}", "{\"M\": (rank * 32, 24)}", "straddle the chunk");
  wrong("{\"M\": (rank * 32, 32)}", "{\"M\": (rank * 32, 16)}", "is in no wave");
  wrong("hm_rows + 4 * ", "hm_rows + 0 * ", "is taken twice");
  wrong("    rt.end()", "    pass", "rt.end()");
  wrong("    tl.store(c_ptrs", "    tl.device_print(c_ptrs", "nothing writes the output 'c'");
  wrong("step=0)", "step=7)", "step 7 of a signal");
}

TEST_F(ReadBack, what_is_not_followed_is_refused_with_its_place) {
  const std::string text = fused_text("gemm", "ag-gemm/swizzle");
  const auto refused = [](const std::string& file, const std::string& said) {
    try {
      read_fused("fused.py", file);
      ADD_FAILURE() << "it is read back";
    } catch (const NotReadBack& failure) {
      EXPECT_EQ(failure.code(), ExitCode::bad_input);
      EXPECT_THAT(failure.what(), HasSubstr("not read back: "));
      EXPECT_THAT(failure.what(), HasSubstr(said));
      EXPECT_GT(failure.diagnostics().items().front().where.column, 0);
    }
  };
  refused(changed(text, "    copies[0].copy(", "    copies[0].teleport("), ".teleport()");
  refused(changed(text, "    rt.begin()", "    with rt: pass"), "with_statement");
  refused(changed(text, "mask=", "mask=a_ptr if M else "), "mask");
}

TEST_F(ReadBack, every_text_ends_in_a_refusal) {
  const std::string text = fused_text("gemm", "ag-gemm/swizzle");
  const auto end = [&](const std::string& from, const std::string& to, const std::string& said) {
    try {
      read_fused("fused.py", changed(text, from, to),
                 {.most_steps = 100'000, .most_words = 1 << 20});
      ADD_FAILURE() << "it is read back with " << to;
    } catch (const Failure& failure) {
      EXPECT_NE(failure.code(), ExitCode::internal) << failure.what();
      EXPECT_THAT(failure.what(), HasSubstr(said)) << to;
      EXPECT_GT(failure.diagnostics().items().front().where.line, 0) << failure.what();
    }
  };
  // Constants and functions that stand for themselves.
  end("RANKS = 2", "RANKS = RANKS", "too deeply");
  end("RANKS = 2", "RANKS = rt.ranks()", "nothing says what 'rt' is");
  end("RANKS = 2", "RANKS = types.get()", "it is not known what 'types.get' does");
  end("RANKS = 2", "again = lambda x: again(x)\nRANKS = again(2)", "too deeply");
  end("RANKS = 2", "RANKS = 2000", "a file for 2000 ranks");
  // Loops without end, or with too many turns.
  const std::string begin = "    t = types.SimpleNamespace()\n";
  const auto in_setup = [&](const std::string& line, const std::string& said) {
    end(begin, begin + "    " + line + "\n", said);
  };
  in_setup("while True: pass", "takes too long");
  in_setup("while rank < 2: pass", "nothing says what 'rank' is");
  in_setup("while 1: rank = 1", "takes too long");
  in_setup("for i in range(1000000000000): pass", "takes too long");
  in_setup("many = [i for i in range(1000000000)]", "a list with too many numbers");
  in_setup("many = [i for i in range(80000)]", "too much memory");
  in_setup("many = [0]\n    for i in range(60): many = [many, many]", "too much memory");
  in_setup("many = [0]\n    for i in range(60): many = many + many", "too much memory");
  in_setup("t.many = rt.streams(1000000000)", "too many streams");
  in_setup("t.many = rt.signals((1000000, 1000000), steps=1)", "too many signals");
  in_setup("t.many = rt.signals((4, -4), steps=1)", "-4 elements along an axis");
  in_setup("t.many = rt.local(\"d\", (1099511627776, 1099511627776), torch.half)", "of this size");
  in_setup("t.many = rt.local(\"d\", (0, 16), torch.half)", "0 elements along an axis");
  in_setup("t.many = rt.group([0, 7])", "no rank 7");
  // Numbers that do not fit are no numbers any more.
  in_setup("t.many = rt.streams(1099511627776 * 1099511627776)", "no whole number");
  in_setup("t.many = rt.streams(3 ** 62)", "no whole number");
  in_setup("t.many = rt.streams(9223372036854775807)", "a number of this form");
  // Tables.
  end("grid=1", "grid=7", "the axes 0, 1 and 2");
  end("AXES = {\"M\": 64,", "AXES = {\"M\": -64,", "-64 elements");
  end("AXES = {\"M\": 64,", "AXES = {\"M\": 1099511627776,", "tiles");
  end("    t.work.ready()", "    t.work.ready()\n    t.work.ready()", "after ready()");
  end("\"N\": tl.program_id(1)", "\"N\": tl.program_id(1) + tl.program_id", "does not say 'N'");
}

TEST_F(ReadBack, blocks_of_a_kernel_that_do_not_go_together_are_refused) {
  const std::string text = fused_text("gemm", "ag-gemm/swizzle");
  const auto refused = [&](const std::string& from, const std::string& to) {
    EXPECT_THROW(read_fused("fused.py", changed(text, from, to), {.most_steps = 1'000'000}),
                 Failure)
        << to;
  };
  refused("tl.arange(0, BLOCK_K)", "tl.arange(16, 0)");
  refused("tl.arange(0, BLOCK_K)", "tl.arange(0, 1000000000)");
  refused("offs_k[None, :] * stride_ak", "offs_k[None, :] * 1099511627776");
  refused("tl.zeros((BLOCK_M, BLOCK_N)", "tl.zeros((BLOCK_M, 4 - BLOCK_N)");
  refused("tl.load(hm_row + 1)", "tl.load(hm_row + 10000)");
  refused("in_k = offs_k <", "in_k = tl.arange(0, 8) <");
}

TEST_F(ReadBack, numbers_of_a_trace_are_bounded) {
  const std::string text = fused_text("gemm", "ag-gemm/swizzle");
  const std::string huge = std::to_string(INT64_MAX);
  for (const std::string& event :
       {"\"call\": 0, \"program\": " + huge + ", \"tile\": 0, \"at\": {}",
        "\"call\": " + huge + ", \"program\": 0, \"tile\": 0, \"at\": {}",
        "\"call\": 0, \"program\": 0, \"wait\": 0, \"value\": " + huge})
    EXPECT_THROW(compare_trace("fused.py", text, "trace", "{\"rank\": 0, " + event + "}\n"),
                 Failure)
        << event;
}

TEST_F(ReadBack, files_are_timed) {
  const auto machine = machine::share(machine::load("dgx-h100"));
  const program::Bound bound = bound_of(
      read_fused("fused.py", fused_text("gemm_persistent", "ag-gemm/swizzle"), {.processors = 132}),
      machine);
  const sim::Result result = sim::simulate(bound, {.engine = sim::Engine::reference});
  // Two barriers are launched around the kernel.
  EXPECT_GT(result.time.fs, 5'000'000'000);
  EXPECT_LT(result.time.fs, 60'000'000'000);
}

/// As hemiola_rt writes it, of one tile and what it does.
std::string trace_of(const FusedReading& reading) {
  std::string made;
  for (std::size_t rank = 0; rank < reading.traces.size(); ++rank) {
    made += "{\"rank\": " + std::to_string(rank) + ", \"first_signal\": 10}\n";
    for (std::size_t program = 0; program < reading.traces[rank].size(); ++program) {
      for (const TraceEvent& event : reading.traces[rank][program]) {
        made += "{\"rank\": " + std::to_string(rank) +
                ", \"call\": 1, \"program\": " + std::to_string(program);
        if (event.kind == TraceEvent::Kind::tile) {
          made += ", \"tile\": " + std::to_string(event.number) + ", \"at\": {";
          for (const auto& [axis, tile] : event.at)
            made += (made.ends_with('{') ? "\"" : ", \"") + axis + "\": " + std::to_string(tile);
          made += "}}\n";
          continue;
        }
        const auto slot = static_cast<std::size_t>(event.number);
        made += event.kind == TraceEvent::Kind::wait
                    ? ", \"wait\": "
                    : ", \"to\": " + std::to_string(event.rank) + ", \"signal\": ";
        made += std::to_string(event.number + 10) +
                ", \"value\": " + std::to_string(event.value + reading.steps[slot]) + "}\n";
      }
    }
  }
  return made;
}

TEST_F(ReadBack, traces_are_compared_tile_by_tile) {
  const std::string text = fused_text("gemm", "ag-gemm/swizzle");
  const std::string trace = trace_of(read_fused("fused.py", text, {.traces = true}));
  const TraceComparison same = compare_trace("fused.py", text, "trace", trace);
  EXPECT_EQ(same.difference, "");
  EXPECT_EQ(same.tiles, 16);
  EXPECT_EQ(same.waits, 8);
  const TraceComparison other = compare_trace(
      "fused.py", changed(text, ", after=[(t.arrived[rank, 0], 0)]", ""), "trace", trace);
  EXPECT_THAT(other.difference, HasSubstr("waits for arrived[0, 0] to reach 1"));
  EXPECT_GT(other.line, 0);
  const TraceComparison missing =
      compare_trace("fused.py", text, "trace", trace.substr(0, trace.find("{\"rank\": 1")));
  EXPECT_THAT(missing.difference, HasSubstr("nothing of rank 1"));
  EXPECT_THAT(test::message_of([&] { compare_trace("fused.py", text, "trace", "{\"rank\": 0\n"); }),
              HasSubstr("trace:1"));
}

}  // namespace
}  // namespace hemiola::compile

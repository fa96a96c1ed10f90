// hemiola compile: what it prints, writes and refuses. tests/torch executes what is written of
// plans.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "program.h"

namespace hemiola::test {
namespace {

const std::string kKernels = HEMIOLA_SOURCE_DIR "/examples/kernels/";
constexpr const char* kTwoKernels =
    "import triton\n"
    "import triton.language as tl\n"
    "\n"
    "@triton.jit\n"
    "def first(x, B: tl.constexpr):\n"
    "    tl.store(x + tl.program_id(0) * B + tl.arange(0, B), 0)\n"
    "\n"
    "@triton.jit\n"
    "def second(x, B: tl.constexpr):\n"
    "    tl.store(x + tl.program_id(0) * B + tl.arange(0, B), 1)\n";

#if HEMIOLA_KERNELS

TEST(Compile, describes_a_kernel_and_writes_the_same_bytes_each_time) {
  const Workplace place;
  const std::string command =
      "compile " + kKernels + "gemm.py --describe --bind a=a_ptr --role a=consumer --json ";
  const Outcome first = place.run(command + "one.json"), second = place.run(command + "two.json");
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out, second.out);
  EXPECT_NE(first.out.find("a_ptr  [M, K]  read     by pointers  consumer, is 'a' of the plan"),
            std::string::npos)
      << first.out;
  auto one = nlohmann::json::parse(place.read("one.json"));
  auto two = nlohmann::json::parse(place.read("two.json"));
  EXPECT_EQ(one["understood"], true);
  EXPECT_EQ(one["axes"][0]["tiles"], "tl.cdiv(M, BLOCK_M)");
  one.erase("command");
  two.erase("command");
  EXPECT_EQ(one, two);
}

TEST(Compile, bad_input_is_one_message_with_a_place_and_writes_nothing) {
  const Workplace place;
  place.write("two.py", kTwoKernels);
  place.write("damaged.py", "import triton\n\n@triton.jit\ndef f(x:\n    return x\n");
  place.write("plain.py", "def f(x):\n    return x\n");
  place.write("empty.py", "");
  const std::string before = place.files();
  const struct {
    const char* arguments;
    const char* message;
  } cases[] = {
      {"two.py --describe", "two.py:5:1: error: it has 2 kernels: first, second"},
      {"two.py --describe --kernel secnd", "hint: did you mean 'second'?"},
      {"two.py --describe --kernel first --bind a=y", "kernel 'first' has no parameter 'y'"},
      {"two.py --describe --kernel first --constexpr B",
       "--constexpr: error: 'B' is not NAME=VALUE"},
      {"two.py --describe --kernel first --role x=reader", "'reader'"},
      {"two.py --describe --kernel first --target rocm", "'rocm'"},
      {"two.py", "--describe shows what is in the kernel"},
      {"--describe", "no kernel is given"},
      {"damaged.py --describe", "damaged.py:3:1: error: not Python"},
      {"plain.py --describe", "no function is decorated with @triton.jit"},
      {"empty.py --describe", "empty.py"},
      {"missing.py --describe", "missing.py"},
      {"two.py --describe --kernle first", "--kernel"},
  };
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = place.run(std::string("compile --json out.json ") + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << outcome.out << outcome.err;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << arguments << ": " << outcome.err;
    EXPECT_EQ(outcome.err.find("error:"), outcome.err.rfind("error:")) << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_EQ(place.files(), before) << arguments;
  }
}

TEST(Compile, a_kernel_that_is_not_understood_is_described_with_the_reason) {
  const Workplace place;
  place.write(
      "k.py",
      "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, F, B: tl.constexpr):\n"
      "    o = F(tl.program_id(0)) * B + tl.arange(0, B)\n    tl.store(x + o, 0)\n");
  const Outcome outcome = place.run("compile k.py --describe");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("k.py:7:5: tl.store of 'x': 'F' is called, which is not known before "
                             "the kernel is launched"),
            std::string::npos)
      << outcome.out;
}

TEST(Compile, helpers_come_from_imports_and_from_files_that_are_given) {
  const Workplace place;
  place.write(
      "tiles.py",
      "import triton\nimport triton.language as tl\n\n@triton.jit\ndef offsets(B: tl.constexpr):\n"
      "    return tl.program_id(0) * B + tl.arange(0, B)\n");
  const std::string body =
      "@triton.jit\ndef k(x, n, B: tl.constexpr):\n    o = offsets(B)\n    tl.store(x + o, 0, "
      "mask=o < n)\n";
  const std::string head = "import triton\nimport triton.language as tl\n";
  place.write("imports.py", head + "from tiles import offsets\n\n" + body);
  place.write("elsewhere.py", head + "from somewhere.else_where import offsets\n\n" + body);
  const std::string found = "n     tl.program_id(0)  B      n     tl.cdiv(n, B)  yes";
  EXPECT_NE(place.run("compile imports.py --describe").out.find(found), std::string::npos);
  EXPECT_EQ(place.run("compile elsewhere.py --describe").out.find(found), std::string::npos);
  const Outcome given = place.run("compile elsewhere.py --describe --helper tiles.py");
  EXPECT_NE(given.out.find(found), std::string::npos) << given.out << given.err;
}

/// The file of a small all-gather and product.
void make_fused(const Workplace& place) {
  ASSERT_EQ(place
                .run("plan make ag-gemm/swizzle --ranks 2 --param m=64 --param n=64 --param k=64 "
                     "-o plan.json")
                .code,
            0);
  ASSERT_EQ(place
                .run("compile " + kKernels +
                     "gemm_persistent.py --plan plan.json --constexpr BLOCK_M=16 -o fused.py")
                .code,
            0);
}

TEST(CheckFused, proves_what_the_text_says_and_run_times_it) {
  const Workplace place;
  make_fused(place);
  const Outcome check = place.run("check fused.py --json check.json");
  EXPECT_EQ(check.code, 0) << check.err;
  EXPECT_TRUE(contains(check.out, "no rule is broken\n")) << check.out;
  EXPECT_TRUE(contains(check.out, "fused.py, one workgroup at 12 KiB\ncheck: proven: every rank"))
      << check.out;
  const auto json = nlohmann::json::parse(place.read("check.json"));
  EXPECT_EQ(json.at("kernels").size(), 1U);
  EXPECT_EQ(json.at("program").at("verdict"), "proven");
  EXPECT_TRUE(contains(place.run("check fused.py --machine dgx-h100 --quiet").out,
                       "fused.py at 12 KiB on dgx-h100\ncheck: proven"));
  const Outcome run = place.run("run fused.py --machine dgx-h100 --json run.json");
  EXPECT_EQ(run.code, 0) << run.err;
  const auto result = nlohmann::json::parse(place.read("run.json")).at("results").at(0);
  EXPECT_EQ(result.at("checked"), "full");
}

TEST(CheckFused, finds_what_is_changed_in_the_text) {
  const Workplace place;
  make_fused(place);
  const std::string text = place.read("fused.py");
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string made = text;
    made.replace(made.find(from), from.size(), to);
    place.write("changed.py", made);
  };
  changed(", after=[(t.arrived[rank, 0], 0)]", "");
  const Outcome race = place.run("check changed.py");
  EXPECT_EQ(race.code, 3);
  EXPECT_TRUE(contains(race.out, "check: wrong: data race on bytes")) << race.out;
  EXPECT_TRUE(contains(race.out, ", at line ")) << race.out;
  EXPECT_EQ(place.run("run changed.py --machine dgx-h100").code, 3);
  changed("copies[0].signal(t.arrived[rank, 0], to=rank, step=0)", "pass");
  EXPECT_EQ(place.run("check changed.py").code, 4);
  changed("{\"M\": (rank * 32, 32)}", "{\"M\": (rank * 32, 8)}");
  const Outcome straddles = place.run("check changed.py");
  EXPECT_EQ(straddles.code, 3);
  EXPECT_TRUE(contains(straddles.err, "tiles of 16 elements along M straddle the chunk"))
      << straddles.err;
  changed("    copies[0].copy(", "    copies[0].teleport(");
  const Outcome unread = place.run("check changed.py");
  EXPECT_EQ(unread.code, 6);
  EXPECT_TRUE(contains(unread.out, "check: the program is not proven: not read back: "))
      << unread.out;
  EXPECT_TRUE(contains(unread.err, "only the rules were checked")) << unread.err;
  EXPECT_EQ(place.run("check changed.py --warnings-as-errors").code, 3);
  EXPECT_EQ(place.run("run changed.py --machine dgx-h100").code, 2);
}

TEST(CheckFused, refuses_options_that_choose_nothing) {
  const Workplace place;
  make_fused(place);
  const struct {
    const char* arguments;
    const char* message;
  } cases[] = {
      {"check fused.py --size 1MiB", "a fused file has its sizes in itself"},
      {"run fused.py --machine dgx-h100 --param workgroups=2", "no parameter 'workgroups=2'"},
      {"check plan.json --trace t.jsonl", "--trace: error: a trace is of a file"},
      {"check fused.py --trace plan.json", "plan.json:1"},
  };
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = place.run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << outcome.err;
    EXPECT_TRUE(contains(outcome.err, message)) << outcome.err;
  }
}

#else

TEST(Compile, says_that_this_build_cannot_read_kernels) {
  const Workplace place;
  place.write("two.py", kTwoKernels);
  const Outcome outcome = place.run("compile two.py --describe --kernel first");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("kernels cannot be read"), std::string::npos) << outcome.err;
}

#endif

constexpr const char* kMake =
    "plan make ag-gemm/sequence --ranks 4 --param m=128 --param n=64 --param k=64 -o plan.json";

TEST(CompilePlan, writes_a_file_and_says_what_is_in_it) {
  const Workplace place;
  ASSERT_EQ(place.run(kMake).code, 0);
  const Outcome outcome = place.run("compile --plan plan.json -o overlap.py");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "overlap.py: ag-gemm/sequence on 4 ranks as PyTorch; of a rank 12 copies on 3 streams, "
            "4 products on 1, 12 waits, 0 signals\n");
  EXPECT_TRUE(contains(place.read("overlap.py"), "hemiola compile --plan plan.json -o overlap.py"));
  EXPECT_EQ(place.files(), "overlap.py plan.json ");
}

TEST(CompilePlan, writes_the_runtime_beside_it_where_that_is_asked_for) {
  const Workplace place;
  ASSERT_EQ(place.run(kMake).code, 0);
  ASSERT_EQ(place.run("compile --plan plan.json -o overlap.py --runtime").code, 0);
  EXPECT_TRUE(contains(place.read("hemiola_rt/__init__.py"), "def connect("));
  EXPECT_TRUE(contains(place.read("hemiola_rt/_check.py"), "def load_file("));
}

TEST(CompilePlan, does_not_compile_a_wrong_plan_unless_it_is_told_to) {
  const Workplace place;
  ASSERT_EQ(place.run(kMake).code, 0);
  // A product that no longer waits for the first of its chunks.
  std::string text = place.read("plan.json");
  const std::size_t first = text.find('{', text.find("\"after\": ["));
  ASSERT_NE(first, text.npos);
  text.erase(first, text.find("},", first) + 2 - first);
  place.write("wrong.json", text);
  const Outcome outcome = place.run("compile --plan wrong.json -o overlap.py");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(contains(outcome.err, "wrong.json: check: wrong: data race on a[1, 0:8, 0:64]"))
      << outcome.err;
  EXPECT_EQ(place.files(), "plan.json wrong.json ");
  EXPECT_EQ(place.run("compile --plan wrong.json -o overlap.py --no-check").code, 0);
}

TEST(CompilePlan, refuses_bad_usage_and_input_with_one_message) {
  const Workplace place;
  ASSERT_EQ(place.run(kMake).code, 0);
  place.write("half.json", place.read("plan.json").substr(0, 900));
  place.write("text.json", "no plan at all\n");
  ASSERT_EQ(place.run("plan make ag-gemm/swizzle --ranks 4 -o tiles.json").code, 0);
  const std::string before = place.files();
  const auto expect = [&](const std::string& arguments, const std::string& message) {
    const Outcome outcome = place.run("compile " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_TRUE(contains(outcome.err, message)) << outcome.err;
  };
  expect("-o overlap.py", "--plan: error: is missing");
  expect("--plan plan.json", "--output: error: is missing");
  expect("--plan absent.json -o overlap.py", "absent.json: error: no such file");
  expect("--plan half.json -o overlap.py", "half.json:");
  expect("--plan text.json -o overlap.py", "text.json: error: is no plan but");
  expect("--plan ag-gemm/sequence -o overlap.py", "is a template, whose sizes are not said");
  expect("--plan tiles.json -o overlap.py", "waits for its data inside the kernel, tile by tile");
  expect("--plan plan.json -o /", "--output: error: '/' is a folder, not a file");
  expect("--plan plan.json -o absent/overlap.py", "is in a folder that is not there");
  expect("--plan plan.json -o overlap.py --plann x", "unknown option '--plann'");
  EXPECT_EQ(place.files(), before) << "nothing is written";
}

}  // namespace
}  // namespace hemiola::test

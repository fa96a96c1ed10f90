// Which kernel is meant, annotations, configurations, places.
#include "compile/testing/describe.h"

namespace hemiola::compile {
namespace {

TEST(Describe, takes_a_where_without_its_three_arguments_for_no_choice) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const Description description = described_kernel(
      "def k(a, c, N, B: tl.constexpr):\n"
      "    i = tl.program_id(0) * B + tl.arange(0, B)\n"
      "    j = tl.where(i, N)\n"
      "    tl.store(c + i, tl.load(a + j))\n");
  EXPECT_FALSE(description.accesses.empty());
}

const std::string kImports = "import triton\nimport triton.language as tl\n\n";
const std::string kBody =
    "(x, n, B: tl.constexpr):\n"
    "    p = tl.program_id(0)\n"
    "    o = p * B + tl.arange(0, B)\n"
    "    tl.store(x + o, tl.load(x + o, mask=o < n), mask=o < n)\n";

TEST(ChoosingAKernel, names_those_that_there_are) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const std::string two =
      kImports + "@triton.jit\ndef one" + kBody + "\n@triton.jit\ndef two" + kBody;
  EXPECT_EQ(failure_of(two),
            "kernel.py:5:1: error: it has 2 kernels: one, two\n  hint: --kernel NAME says which "
            "one is meant");
  EXPECT_EQ(failure_of(two, {.kernel = "tow"}),
            "kernel.py:1:1: error: there is no kernel 'tow'\n  hint: did you mean 'two'?");
  EXPECT_EQ(failure_of(two, {.kernel = "two"}), "");
}

TEST(ChoosingAKernel, helpers_are_not_meant) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const std::string text = kImports +
                           "@triton.jit\ndef helper(a):\n    return a\n\n@triton.jit\ndef main" +
                           kBody + "    helper(p)\n";
  EXPECT_EQ(described(text).kernel, "main");
}

TEST(ChoosingAKernel, finds_those_inside_of_functions_and_classes) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const std::string text = kImports +
                           "def make():\n"
                           "    FAR = 3\n"
                           "    class Holder:\n"
                           "        @staticmethod\n"
                           "        @triton.jit\n"
                           "        def inner(x, n, B: tl.constexpr):\n"
                           "            p = tl.program_id(0)\n"
                           "            o = p * B + tl.arange(0, B)\n"
                           "            tl.store(x + o, FAR, mask=o < n)\n"
                           "    return Holder\n";
  EXPECT_EQ(described(text).kernel, "inner");
  EXPECT_EQ(failure_of(text), "");
}

TEST(Describe, swizzled_tiles_are_grouped_ones) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const Description description = described_kernel(
      "def k(c, M, N, s, B: tl.constexpr, G: tl.constexpr):\n"
      "    i, j = tl.swizzle2d(tl.program_id(0), tl.program_id(1), tl.cdiv(M, B), tl.cdiv(N, B), "
      "G)\n"
      "    m = i * B + tl.arange(0, B)\n"
      "    n = j * B + tl.arange(0, B)\n"
      "    tl.store(c + m[:, None] * s + n[None, :], 0, mask=(m < M)[:, None] & (n < N)[None, "
      ":])\n");
  EXPECT_TRUE(description.is_understood);
  EXPECT_EQ(description.scheduler.order, Scheduler::Order::grouped);
  EXPECT_EQ(description.scheduler.group_size, "G");
}

// N is as many queries as keys, and these are another axis.
TEST(Describe, keys_of_self_attention_are_no_axis_of_tiles) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const Description description = described_kernel(
      "def k(q, v, o, N, D: tl.constexpr, B: tl.constexpr):\n"
      "    m = tl.program_id(0) * B + tl.arange(0, B)\n"
      "    d = tl.arange(0, D)\n"
      "    a = tl.load(q + m[:, None] * D + d[None, :], mask=(m < N)[:, None])\n"
      "    acc = tl.zeros((B, D), tl.float32)\n"
      "    for start in range(0, N, B):\n"
      "        n = start + tl.arange(0, B)\n"
      "        t = tl.load(v + n[:, None] * D + d[None, :], mask=(n < N)[:, None])\n"
      "        acc = tl.dot(tl.dot(a, tl.trans(t)).to(tl.float16), t, acc)\n"
      "    tl.store(o + m[:, None] * D + d[None, :], acc, mask=(m < N)[:, None])\n");
  ASSERT_EQ(description.axes.size(), 1U);
  EXPECT_EQ(description.axes[0].name, "N");
  ASSERT_EQ(description.loops.size(), 1U);
  EXPECT_EQ(description.loops[0].axis, "start");
}

TEST(ChoosingAKernel, says_when_there_is_none) {
  HEMIOLA_NEEDS_PYTHON_READER();
  EXPECT_NE(
      failure_of("def f(x):\n    return x\n").find("no function is decorated with @triton.jit"),
      std::string::npos);
}

TEST(ReadingPython, says_where_it_is_not) {
  HEMIOLA_NEEDS_PYTHON_READER();
  EXPECT_NE(failure_of("import triton\ndef f(:\n    pass\n").find("kernel.py:2:"),
            std::string::npos);
  EXPECT_NE(failure_of(std::string("a = 1\0b", 7)).find("zero bytes"), std::string::npos);
  const std::string deep(2000, '(');
  EXPECT_NE(failure_of("x = " + deep + "1" + std::string(2000, ')') + "\n"), "");
}

TEST(ReadingPython, refuses_what_only_the_grammar_takes) {
  HEMIOLA_NEEDS_PYTHON_READER();
  for (const char* text :
       {"x = 1\n    y = 2\n", "if x:\n    y = 1\n      z = 2\n", "if x:\n# nothing\ny = 1\n",
        "def f():\n\nx = 1\n", "for i in x: y = 1\n    z = 2\n", "as = 1\n", "x = f(as[0])\n",
        "def f(a, a):\n    pass\n", "def f(a=1, b):\n    pass\n", "f(a=1, b)\n", "f(a=1, a=2)\n",
        "f(**a, *b)\n", "x = a * *b\n", "x = *a\n", "def f(a: tl:constexpr):\n    pass\n",
        "print x\n"})
    EXPECT_NE(failure_of(text).find("error: not Python: "), std::string::npos) << text;
  for (const char* text :
       {"if x:\n    y = 1\nelif z: y = 2; z = 1\nelse:\n  y = 3\n", "if x: \\\n  y = 1\nz = 1\n",
        "def f(a, *, b=1, c):\n    pass\n",
        "def f(a: int = 1, *b: int, c: str, **d: int):\n  pass\n", "f(*a, b=1, *c(), **d)\n",
        "x = [*a(b), *c]; y = {*a}; z = {**a}; w = *a, *b()\n",
        "class A:\n    @b\n    def f(self):  # why\n        # why not\n        return (\n1)\n",
        "try:\n    pass\nexcept *E as e:\n    pass\nfinally:\n    pass\n", "print(x); match = 1\n"})
    EXPECT_EQ(failure_of(text).find("not Python"), std::string::npos) << text << failure_of(text);
}

TEST(Annotations, override_names_and_the_region) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const Description d = described(kImports +
                                  "@triton.jit\ndef k(x, n, B: tl.constexpr):\n"
                                  "    # @sy.dispatch begin\n"
                                  "    p = tl.program_id(0)\n"
                                  "    q = p + 0\n"
                                  "    # @sy.pid_map ROWS=p\n"
                                  "    # @sy.dispatch end\n"
                                  "    o = p * B + tl.arange(0, B)\n"
                                  "    tl.store(x + o, tl.load(x + o, mask=o < n), mask=o < n)\n"
                                  "    # @sy.producer_epilogue\n");
  ASSERT_EQ(d.axes.size(), 1U);
  EXPECT_EQ(d.axes[0].name, "ROWS");
  EXPECT_EQ(d.axes[0].provenance, Provenance::annotated);
  EXPECT_EQ(d.dispatch.region.line, 7);
  EXPECT_EQ(d.dispatch.region.last_line, 9);
  EXPECT_EQ(d.operands.at(0).axes, std::vector<std::string>{"ROWS"});
  ASSERT_EQ(d.signals.size(), 1U);
  EXPECT_EQ(d.signals[0].statement.line, 13);
}

TEST(Annotations, have_messages_with_a_place) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const auto with = [&](const std::string& comment) {
    return failure_of(kImports + "@triton.jit\ndef k(x, n, B: tl.constexpr):\n    # " + comment +
                      "\n    p = tl.program_id(0)\n    tl.store(x + p, 1)\n");
  };
  EXPECT_EQ(
      with("@sy.pid_mop M=p"),
      "kernel.py:6:5: error: unknown annotation '@sy.pid_mop'\n  hint: did you mean 'pid_map'?");
  EXPECT_EQ(with("@sy.pid_map M=pp"),
            "kernel.py:6:5: error: kernel 'k' has no variable 'pp'\n  hint: did you mean 'p'?");
  EXPECT_NE(with("@sy.pid_map M"), "");
  EXPECT_NE(with("@sy.dispatch begin"), "");
  EXPECT_NE(with("@sy.dispatch"), "");
  EXPECT_EQ(with("@sy.tile_id"), "");
}

TEST(Configurations, of_a_comprehension_are_written_out) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const Description d = described(kImports +
                                  "BLOCKS = [64, 128]\n"
                                  "@wrapper()\n"
                                  "@triton.autotune(configs=[triton.Config({'B': b}, num_warps=w, "
                                  "num_stages=2) for b in BLOCKS for w in (4, 8)], key=['n'])\n"
                                  "@triton.heuristics({'EVEN': lambda a: a['n'] % 2 == 0})\n"
                                  "@triton.jit\ndef k" +
                                  kBody);
  ASSERT_EQ(d.tuning.configurations.size(), 4U);
  EXPECT_EQ(d.tuning.configurations[1].constants.at("B"), "64");
  EXPECT_EQ(d.tuning.configurations[1].warps, "8");
  EXPECT_EQ(d.tuning.configurations[3].stages, "2");
  EXPECT_EQ(d.tuning.keys, std::vector<std::string>{"n"});
  EXPECT_EQ(d.tuning.heuristics.at("EVEN"), "lambda a: a['n'] % 2 == 0");
  EXPECT_EQ(d.tuning.wrappers, std::vector<std::string>{"wrapper"});
}

TEST(Configurations, that_are_computed_are_said_to_be) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const Description d = described(
      kImports + "@triton.autotune(configs=load('x'), key=[])\n@triton.jit\ndef k" + kBody);
  EXPECT_TRUE(d.tuning.configurations.empty());
  EXPECT_EQ(d.tuning.unknown, "they come from a call of 'load' (kernel.py:4)");
}

TEST(Places, are_exact_in_bytes) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const std::string text = example_text("gemm_persistent");
  Library library;
  const Description d = describe(library, library.add("gemm_persistent.py", text), {});
  ASSERT_EQ(d.waits.size(), 4U);
  EXPECT_EQ(text.substr(d.waits[0].offset, 30), "        for ki in range(steps_");
  EXPECT_EQ(d.waits[0].indentation, 8);
  EXPECT_TRUE(d.waits[1].is_inside_loop);
  EXPECT_EQ(text.substr(d.waits[1].offset, 33), "            a = tl.load(a_ptr + (");
  ASSERT_EQ(d.signals.size(), 1U);
  EXPECT_EQ(text.substr(d.signals[0].offset, 16), "\n\ndef matmul(a, ");
  EXPECT_EQ(text.substr(d.dispatch.region.begin, d.dispatch.region.end - d.dispatch.region.begin),
            "        pid_m, pid_n = compute_pid(tile_id, in_group, tiles_m, GROUP_M)\n");
  ASSERT_TRUE(d.dispatch.tile_id_assigned);
  EXPECT_EQ(text.substr(d.dispatch.tile_id_assigned->begin, 11), "for tile_id");
}

TEST(Places, of_a_statement_that_shares_its_line_cannot_be_used) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const Description d =
      described(kImports +
                "@triton.jit\ndef k(x, B: tl.constexpr):\n    o = tl.program_id(0) * B + "
                "tl.arange(0, B); v = tl.load(x + o); tl.store(x + o, v)\n");
  ASSERT_FALSE(d.waits.empty());
  EXPECT_FALSE(d.waits[0].is_own_line);
  EXPECT_FALSE(d.signals.at(0).is_own_line);
}

TEST(Examples, are_understood) {
  HEMIOLA_NEEDS_PYTHON_READER();
  for (const std::string& name : example_kernels())
    EXPECT_TRUE(described(example_text(name)).is_understood) << name;
}

TEST(Requests, name_parameters_that_there_are) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const std::string text = kImports + "@triton.jit\ndef k" + kBody;
  EXPECT_NE(failure_of(text, {.bind = {{"a", "y"}}}), "");
  EXPECT_NE(failure_of(text, {.constants = {{"BB", "1"}}}), "");
  const Description d = described(text, {.bind = {{"a", "x"}}, .roles = {{"a", Role::consumer}}});
  EXPECT_EQ(d.operands.at(0).bound_as, "a");
  EXPECT_EQ(d.operands[0].role, Role::consumer);
}

}  // namespace
}  // namespace hemiola::compile

// What following a kernel makes of its addresses.
#include <algorithm>

#include "compile/describe/axes.h"
#include "compile/testing/describe.h"

namespace hemiola::compile {
namespace {

/// The tile axes as "name=coordinate x block of size".
std::string axes_text(const Description& d) {
  std::string all;
  for (const TileAxis& axis : d.axes)
    all += (all.empty() ? "" : "; ") + axis.name + '=' + axis.coordinate + " x " + axis.block +
           " of " + axis.size;
  return all;
}

TEST(Following, pointers_that_move_in_a_loop_are_an_index_times_a_step) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const Description d = described_kernel(
      "def k(x, y, K, stride, B: tl.constexpr):\n"
      "    p = x + tl.program_id(0) * stride + tl.arange(0, B)\n"
      "    for i in range(0, tl.cdiv(K, B)):\n"
      "        v = tl.load(p)\n"
      "        tl.store(y + i * B + tl.arange(0, B), v)\n"
      "        p += B\n");
  const AccessDescription& load = d.accesses.front();
  ASSERT_EQ(load.axes.size(), 2U);
  EXPECT_EQ(load.axes[0].loops.at(0).step, "B");
  EXPECT_EQ(load.axes[1].stride, "stride");
  EXPECT_EQ(load.axes[1].kind, IndexKind::tile);
}

TEST(Following, a_while_loop_with_a_counter_is_a_range) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const Description d = described_kernel(
      "def k(x, n, W: tl.constexpr, B: tl.constexpr):\n"
      "    t = tl.program_id(0)\n"
      "    while t < tl.cdiv(n, B):\n"
      "        o = t * B + tl.arange(0, B)\n"
      "        tl.store(x + o, tl.load(x + o, mask=o < n), mask=o < n)\n"
      "        t += W\n");
  EXPECT_TRUE(d.scheduler.is_persistent);
  EXPECT_EQ(d.scheduler.workers, "W");
  EXPECT_EQ(d.scheduler.tiles, "tl.cdiv(n, B)");
  EXPECT_EQ(axes_text(d), "n=t x B of n");
  EXPECT_TRUE(d.is_understood);
}

TEST(Following, helpers_are_followed_through_several_levels) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const Description d = described(
      "import triton\nimport triton.language as tl\n\n"
      "@triton.jit\ndef inner(p, n):\n    return p // n, p % n\n\n"
      "@triton.jit\ndef outer(p, n, unused=3):\n    return inner(n=n, p=p)\n\n"
      "@triton.jit\ndef k(x, M, N, s, B: tl.constexpr):\n"
      "    a, b = outer(tl.program_id(0), tl.cdiv(N, B))\n"
      "    r = a * B + tl.arange(0, B)\n"
      "    c = b * B + tl.arange(0, B)\n"
      "    m = (r[:, None] < M) & (c[None, :] < N)\n"
      "    tl.store(x + r[:, None] * s + c[None, :], tl.load(x + r[:, None] * s + c[None, :], "
      "mask=m), mask=m)\n");
  EXPECT_EQ(axes_text(d), "M=a x B of M; N=b x B of N");
  EXPECT_EQ(d.scheduler.order, Scheduler::Order::linear);
}

TEST(Following, a_coordinate_that_two_branches_give_is_the_variable) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const Description d = described_kernel(
      "def k(x, n, FLIP: tl.constexpr, B: tl.constexpr):\n"
      "    if FLIP:\n"
      "        p = tl.program_id(1)\n"
      "    else:\n"
      "        p = tl.program_id(0)\n"
      "    o = p * B + tl.arange(0, B)\n"
      "    tl.store(x + o, tl.load(x + o, mask=o < n), mask=o < n)\n");
  EXPECT_EQ(axes_text(d), "n=p x B of n");
  ASSERT_TRUE(d.axes[0].assigned);
  EXPECT_EQ(d.axes[0].assigned->line, 7);
}

TEST(Following, a_constant_decides_a_condition) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const std::string text =
      "def k(x, y, n, BIAS: tl.constexpr, B: tl.constexpr):\n"
      "    o = tl.program_id(0) * B + tl.arange(0, B)\n"
      "    if BIAS:\n"
      "        v = tl.load(y + o)\n"
      "    else:\n"
      "        v = tl.load(x + o)\n"
      "    tl.store(x + o, v)\n";
  EXPECT_EQ(described_kernel(text).accesses.size(), 3U);
  const Description d = described_kernel(text, {.constants = {{"BIAS", "False"}}});
  ASSERT_EQ(d.accesses.size(), 2U);
  EXPECT_EQ(d.accesses[0].operand, "x");
  EXPECT_FALSE(d.accesses[0].conditional);
}

TEST(Following, the_same_condition_holds_in_a_second_branch) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const Description d = described_kernel(
      "def k(x, y, n, s, HAS: tl.constexpr, B: tl.constexpr):\n"
      "    o = tl.program_id(0) * B + tl.arange(0, B)\n"
      "    if HAS:\n"
      "        p = y + o * s\n"
      "    else:\n"
      "        p = None\n"
      "    if HAS:\n"
      "        p += s\n"
      "    v = tl.load(x + o)\n"
      "    if HAS:\n"
      "        v += tl.load(p)\n"
      "    tl.store(x + o, v)\n");
  const AccessDescription& load = d.accesses.at(1);
  EXPECT_EQ(load.operand, "y");
  ASSERT_EQ(load.axes.size(), 1U);
  EXPECT_EQ(load.axes[0].stride, "s");
  EXPECT_EQ(load.axes[0].offset, "1");
}

TEST(Following, wrapped_rows_know_their_size) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const Description d = described_kernel(
      "def k(x, y, M, s, B: tl.constexpr):\n"
      "    r = (tl.program_id(0) * B + tl.arange(0, B)) % M\n"
      "    tl.store(y + r, tl.load(x + r * s))\n");
  EXPECT_TRUE(d.accesses[0].axes.at(0).wraps);
  EXPECT_EQ(d.accesses[0].axes[0].size, "M");
  EXPECT_EQ(d.axes.at(0).tiles, "tl.cdiv(M, B)");
}

TEST(Following, a_loaded_index_is_said) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const Description d = described_kernel(
      "def k(table, ids, out, n_cols, B: tl.constexpr):\n"
      "    p = tl.program_id(0)\n"
      "    row = tl.load(ids + p)\n"
      "    c = tl.arange(0, B)\n"
      "    tl.store(out + p * n_cols + c, tl.load(table + row * n_cols + c, mask=c < n_cols), "
      "mask=c < n_cols)\n");
  const AccessDescription& load = d.accesses.at(1);
  EXPECT_EQ(load.operand, "table");
  ASSERT_EQ(load.axes.size(), 2U);
  EXPECT_EQ(load.axes[1].kind, IndexKind::indirect);
  EXPECT_EQ(load.axes[1].indirect, std::vector<int>{d.accesses[0].id});
  EXPECT_EQ(d.family, Family::element_wise);
}

TEST(Following, what_is_not_known_has_a_reason_and_a_place) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const Description d = described_kernel(
      "def k(x, n, B: tl.constexpr):\n"
      "    o = tl.program_id(0) * B + mystery + tl.arange(0, B)\n"
      "    tl.store(x + o, tl.load(x + o))\n");
  EXPECT_FALSE(d.is_understood);
  ASSERT_FALSE(d.unknown.empty());
  EXPECT_EQ(d.unknown[0].what, "tl.store of 'x': 'mystery' has no value here");
  EXPECT_EQ(d.unknown[0].span.line, 8);
  EXPECT_NE(d.unknown[0].hint.find("kernel.py:7:32"), std::string::npos);
}

// What goes from one descriptor of the host into another has no extents in the text: those of the
// tile are left. What is computed has its own.
TEST(Following, blocks_between_descriptors_of_the_host_are_those_of_the_tile) {
  HEMIOLA_NEEDS_PYTHON_READER();
  for (const auto& [stored, range] :
       {std::pair("x.load([m]) * 2", ""), std::pair("tl.zeros((B,), tl.float32)", "B")}) {
    const Description d = described_kernel(std::string("def k(x, y, B: tl.constexpr):\n"
                                                       "    m = tl.program_id(0) * B\n"
                                                       "    y.store([m], ") +
                                           stored + ")\n");
    const AxisIndex& axis = d.accesses.back().axes.front();
    EXPECT_EQ(axis.range, range) << stored;
    EXPECT_EQ(axis.tiles.at(0).block, "B") << stored;
  }
}

TEST(Following, an_endless_recursion_of_helpers_ends) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const Description d = described(
      "import triton\nimport triton.language as tl\n\n"
      "@triton.jit\ndef f(x):\n    return f(x + 1)\n\n"
      "@triton.jit\ndef k(x, B: tl.constexpr):\n"
      "    o = f(tl.program_id(0)) * B + tl.arange(0, B)\n"
      "    tl.store(x + o, 1.0)\n");
  EXPECT_FALSE(d.is_understood);
}

/// Addresses of the examples, put together again from their axes, are what they were.
TEST(Splitting, loses_nothing_of_an_address) {
  HEMIOLA_NEEDS_PYTHON_READER();
  int compared = 0;
  for (const std::string& name : example_kernels()) {
    Library library;
    const Module& module = library.add(name, example_text(name));
    const auto trace = follow(library, choose_kernel(module, ""), {});
    AxisSplitter splitter(*trace, {});
    for (const RawAccess& access : trace->accesses) {
      if (access.mechanism != Mechanism::pointer) continue;
      const SplitAccess split = splitter.split(access);
      ASSERT_TRUE(split.base) << name;
      const bool is_rewritten = std::any_of(split.axes.begin(), split.axes.end(),
                                            [](const SplitAxis& a) { return a.wraps || a.clamps; });
      if (is_rewritten) continue;
      Expr sum = trace->algebra.add(trace->algebra.of(*split.base), split.offset);
      for (const SplitAxis& axis : split.axes)
        sum = trace->algebra.add(sum, trace->algebra.multiply({{axis.stride}}, axis.sum));
      EXPECT_EQ(sum, access.address) << name << ": " << trace->algebra.text(access.address);
      ++compared;
    }
  }
  EXPECT_GT(compared, 15);
}

}  // namespace
}  // namespace hemiola::compile

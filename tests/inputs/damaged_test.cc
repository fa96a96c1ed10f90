// Real files, damaged: truncated and with other bytes nothing may crash or hang, and a program that
// lost a wait or a dependency is found out.
#include <gtest/gtest.h>

#include <string>

#include "core/text.h"
#include "inputs.h"
#include "verify/verify.h"

namespace hemiola::test {
namespace {

using program::Program;
using verify::Verdict;

Program parse(const std::string& text) {
  return text.find("<algo") != std::string::npos ? program::read_msccl(text, "damaged")
                                                 : program::read_mscclpp(text, "damaged");
}

/// The verdict at 1 KiB or the next legal size; Failure if the file cannot be read.
Verdict verdict_of(const std::string& text) {
  return verify::check(bound_at(parse(text), nullptr, KiB(1))).verdict;
}

std::string text_of(const std::string& file) {
  return read_file(shared_input(file).string());
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

class Damaged : public ::testing::TestWithParam<const char*> {};

TEST_P(Damaged, truncated_files_are_refused) {
  SKIP_WITHOUT_INPUTS();
  for (const auto& file : files_of(GetParam())) {
    SCOPED_TRACE(file.filename().string());
    const std::string text = read_file(file.string());
    for (const std::size_t part : {0, 1, 2, 3})
      EXPECT_THROW(parse(text.substr(0, 20 + part * (text.size() - 20) / 4)), Failure) << part;
  }
}

TEST_P(Damaged, files_with_other_bytes_are_refused_or_understood) {
  SKIP_WITHOUT_INPUTS();
  std::uint64_t random = 1;
  const auto next = [&random](std::uint64_t below) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>((random >> 33) % below);
  };
  int refused = 0;
  for (const auto& file : files_of(GetParam())) {
    const std::string text = read_file(file.string());
    for (int variant = 0; variant < 6; ++variant) {
      std::string damaged = text;
      // Digits often give a file that can be read and says something else.
      const std::string letters = "0123456789-\"<>{}[],\xff";
      for (int flips = 0; flips < 3; ++flips)
        damaged[next(damaged.size())] = letters[next(letters.size())];
      try {
        verdict_of(damaged);
      } catch (const Failure& failure) {
        ++refused;
        EXPECT_EQ(failure.code(), ExitCode::bad_input) << file << ": " << failure.what();
        EXPECT_TRUE(failure.diagnostics().has_errors()) << file;
      }
    }
  }
  EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(Formats, Damaged, ::testing::Values("mscclpp_json", "msccl_xml"),
                         [](const auto& info) { return std::string(info.param); });

/// The first step of a type that waits for another workgroup, from "<step" on.
std::string first_dependent_step(const std::string& text, const std::string& type) {
  std::size_t at = 0;
  while ((at = text.find("<step", at + 1)) != std::string::npos) {
    std::string step = text.substr(at, text.find("/>", at) - at);
    if (step.find("type=\"" + type + "\"") == std::string::npos) continue;
    if (step.find("depid=\"-1\"") == std::string::npos) return step;
  }
  return {};
}

/// `step` with another value of an attribute.
std::string with(const std::string& step, const std::string& attribute, const std::string& value) {
  const std::size_t begin = step.find(attribute + "=\"") + attribute.size() + 2;
  return step.substr(0, begin) + value + step.substr(step.find('"', begin));
}

TEST(DamagedPrograms, without_a_dependency_two_workgroups_race) {
  SKIP_WITHOUT_INPUTS();
  const std::string text = text_of("msccl_xml/allreduce_allpairs_8g_LL.xml");
  // A nop waits for workgroup 2 before the sum reads what that has received; now for 3, twice.
  const std::string step = first_dependent_step(text, "nop");
  ASSERT_NE(step.find("depid=\"2\""), std::string::npos) << step;
  EXPECT_EQ(verdict_of(text), Verdict::proven);
  EXPECT_EQ(verdict_of(replaced(text, step, with(step, "depid", "3"))), Verdict::wrong);
}

TEST(DamagedPrograms, without_its_last_step_a_ring_lacks_a_chunk) {
  SKIP_WITHOUT_INPUTS();
  // The last step of a ring keeps what it receives: dropping it loses the result of that chunk.
  const std::string text = text_of("msccl_xml/allreduce_ring_8g_1ch_LL128.xml");
  const std::size_t step = text.rfind("<step");
  const std::size_t end = text.find("/>", step);
  ASSERT_NE(end, std::string::npos);
  std::string damaged = text;
  EXPECT_EQ(verdict_of(damaged.erase(step, end + 2 - step)), Verdict::wrong);
}

TEST(DamagedPrograms, without_a_signal_its_wait_cannot_end) {
  SKIP_WITHOUT_INPUTS();
  const Program whole = program::load(shared_input("mscclpp_json/alltoall_8g.json").string());
  Program program = whole;
  // The first signal of the first body that has one.
  for (program::Body& body : program.bodies) {
    const auto signal = std::find_if(body.ops.begin(), body.ops.end(), [](const program::Op& op) {
      return op.kind == program::OpKind::signal || op.kind == program::OpKind::put_signal;
    });
    if (signal == body.ops.end()) continue;
    body.ops.erase(signal);
    break;
  }
  EXPECT_EQ(verify::check(bound_at(whole, nullptr, KiB(1))).verdict, Verdict::proven);
  EXPECT_EQ(verify::check(bound_at(program, nullptr, KiB(1))).verdict, Verdict::deadlock);
}

}  // namespace
}  // namespace hemiola::test

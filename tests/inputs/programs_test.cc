// Every real collective program: proven, and timed on a machine that it was written for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "core/testing/long_tests.h"
#include "inputs.h"
#include "sim/simulate.h"
#include "verify/verify.h"

namespace hemiola::test {
namespace {

using program::Program;
using ::testing::HasSubstr;

constexpr Bytes kSizes[] = {KiB(1), MiB(1), MiB(16)};

class RealProgram : public ::testing::TestWithParam<Input> {
 protected:
  Program load() const { return program::load(shared_input(GetParam().file).string()); }
};

/// Where and at which size a program is proven: alone at a middle size and on its machine at a
/// large one, or everywhere at every size. Alone at 1 KiB it is proven by verify/inputs_test.cc.
std::vector<std::pair<machine::SharedMachine, Bytes>> places_and_sizes(const Input& input) {
  const machine::SharedMachine nowhere, machine = machine::share(machine_of(input));
  if (!long_tests()) return {{nowhere, MiB(1)}, {machine, MiB(16)}};
  std::vector<std::pair<machine::SharedMachine, Bytes>> all;
  for (const Bytes size : kSizes) {
    all.emplace_back(nowhere, size);
    all.emplace_back(machine, size);
  }
  return all;
}

TEST_P(RealProgram, is_proven_alone_and_on_its_machine) {
  SKIP_WITHOUT_INPUTS();
  if (GetParam().long_proof && !long_tests()) GTEST_SKIP() << "in tools/test long";
  const Program program = load();
  for (const auto& [place, size] : places_and_sizes(GetParam())) {
    const verify::Proof proof = verify::check(bound_at(program, place, size));
    EXPECT_EQ(proof.verdict, verify::Verdict::proven)
        << to_string(size) << (place ? " on " + place->name : "") << ": " << proof.summary;
  }
}

TEST_P(RealProgram, is_timed_and_the_result_adds_up) {
  SKIP_WITHOUT_INPUTS();
  const Program program = load();
  const machine::Machine machine = machine_of(GetParam());
  for (const Bytes size : kSizes) {
    if (size > GetParam().timed_up_to) break;
    SCOPED_TRACE(to_string(size));
    const sim::Result result = sim::simulate(bound_at(program, machine::share(machine), size));
    EXPECT_GT(result.bound.time(), Time{});
    EXPECT_GE(result.time, result.bound.time());
    EXPECT_LT(result.time, Time::from_us(10'000));
    // A switch makes several of one store.
    if (result.counters.at("requests.multicasts") == 0) {
      EXPECT_EQ(result.counters.at("stores.injected_bytes"),
                result.counters.at("stores.delivered_bytes"));
    }
    ASSERT_EQ(result.attribution.size(), static_cast<std::size_t>(program.ranks));
    for (const sim::Attribution& rank : result.attribution)
      EXPECT_EQ(std::accumulate(rank.begin(), rank.end(), std::int64_t{0}), result.time.fs);
  }
}

std::string name_of_test(const ::testing::TestParamInfo<Input>& info) {
  std::string name = std::filesystem::path(info.param.file).filename().string();
  for (char& letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Inputs, RealProgram, ::testing::ValuesIn(right_programs()), name_of_test);

TEST(RealPrograms, are_all_listed) {
  SKIP_WITHOUT_INPUTS();
  std::set<std::string> listed{"mscclpp_json/reduce_tbg.json"};
  for (const Input& input : right_programs()) listed.insert(input.file);
  std::set<std::string> found;
  for (const char* folder : {"mscclpp_json", "msccl_xml"})
    for (const auto& file : files_of(folder))
      found.insert(std::string(folder) + "/" + file.filename().string());
  EXPECT_EQ(found, listed);
}

// Two workgroups share each copy of two chunks, so that workgroup 1 copies the second chunk; the
// get of one chunk is shared too, and workgroup 0 waits only for the other workgroup 0.
// docs/inputs.md.
TEST(RealPrograms, reduce_tbg_gets_what_another_workgroup_copies) {
  SKIP_WITHOUT_INPUTS();
  const Program program = program::load(shared_input("mscclpp_json/reduce_tbg.json").string());
  for (const Bytes size : kSizes) {
    const verify::Proof proof = verify::check(bound_at(program, nullptr, size));
    ASSERT_EQ(proof.verdict, verify::Verdict::wrong);
    EXPECT_THAT(proof.summary, HasSubstr("data race"));
    ASSERT_EQ(proof.counterexample.size(), 2u);
    const verify::Witness& copy = proof.counterexample[0];
    const verify::Witness& get = proof.counterexample[1];
    EXPECT_THAT(copy.operation, HasSubstr("copy"));
    EXPECT_EQ(copy.where, "/gpus/1/threadblocks/1/ops/0");
    EXPECT_THAT(get.operation, HasSubstr("get"));
    EXPECT_EQ(get.where, "/gpus/0/threadblocks/0/ops/7");
  }
}

}  // namespace
}  // namespace hemiola::test

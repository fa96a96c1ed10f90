// Every operator whose output lies on the GPU is a kernel, an alias, or covered.
#include "workload/traces/pytorch/roles.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "workload/testing/traces.h"
#include "workload/traces/files.h"
#include "workload/traces/kineto/events.h"
#include "workload/traces/kineto/launches.h"
#include "workload/traces/pytorch/operators.h"

namespace hemiola::workload {
namespace {

/// Operators by hand: storages are numbers, tensors have the number of their storage.
class Operators {
 public:
  Operators& add(std::uint64_t id, std::string_view name, std::uint64_t parent,
                 const std::vector<int>& inputs, const std::vector<int>& outputs) {
    texts_.push_back(values(inputs));
    texts_.push_back(values(outputs));
    nodes_.push_back({.id = id, .name = name, .parent = parent});
    return *this;
  }
  std::vector<OperatorRole> roles() {
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      nodes_[n].values = texts_[2 * n];
      nodes_[n].output_values = texts_[2 * n + 1];
    }
    return roles_of(nodes_).roles;
  }

 private:
  static std::string values(const std::vector<int>& storages) {
    std::vector<std::string> tensors;
    for (const int one : storages)
      tensors.push_back(fmt::format(R"([{}, {}, 0, 64, 4, "cuda:0"])", one, one));
    return fmt::format("[{}]", fmt::join(tensors, ", "));
  }
  std::vector<TorchNode> nodes_;
  std::vector<std::string> texts_;
};

using enum OperatorRole;

TEST(OperatorRoles, AnOperatorThatAllocatesItsOutputIsAKernel) {
  EXPECT_EQ(
      Operators().add(1, "aten::addmm", 0, {1, 2}, {3}).add(2, "aten::empty", 1, {}, {3}).roles(),
      (std::vector{kernel, alias}));
  EXPECT_EQ(Operators()
                .add(1, "aten::convolution_backward", 0, {1, 2}, {3, 4})
                .add(2, "aten::empty", 1, {}, {3})
                .add(3, "aten::view", 1, {2}, {2})
                .roles(),
            (std::vector{kernel, alias, alias}));
}

TEST(OperatorRoles, AnOperatorIsCoveredByWhatItCalls) {
  EXPECT_EQ(Operators()
                .add(1, "aten::linear", 0, {1, 2}, {3})
                .add(2, "aten::t", 1, {2}, {2})
                .add(3, "aten::addmm", 1, {1, 2}, {3})
                .add(4, "aten::empty", 3, {}, {3})
                .roles(),
            (std::vector{covered, alias, kernel, alias}));
  // One of two outputs is made below: the other is its own.
  EXPECT_EQ(Operators()
                .add(1, "aten::convolution_backward", 0, {1, 2}, {3, 4})
                .add(2, "aten::sum", 1, {1}, {4})
                .roles(),
            (std::vector{kernel, kernel}));
  // What it calls writes something else.
  EXPECT_EQ(Operators()
                .add(1, "aten::_softmax_backward_data", 0, {1, 2}, {3})
                .add(2, "aten::mul", 1, {1, 2}, {4})
                .roles(),
            (std::vector{kernel, kernel}));
}

TEST(OperatorRoles, FillsAndCopiesCoverOnlyWhatIsMadeOfThem) {
  EXPECT_EQ(Operators()
                .add(1, "aten::max_pool2d_with_indices_backward", 0, {1, 2}, {3})
                .add(2, "aten::zero_", 1, {3}, {3})
                .add(3, "aten::fill_", 2, {3}, {3})
                .roles(),
            (std::vector{kernel, covered, kernel}));
  EXPECT_EQ(Operators()
                .add(1, "aten::contiguous", 0, {1}, {3})
                .add(2, "aten::clone", 1, {1}, {3})
                .add(3, "aten::copy_", 2, {3, 1}, {3})
                .roles(),
            (std::vector{covered, covered, kernel}));
}

TEST(OperatorRoles, CallsAndTheirInsidesAreNoKernels) {
  EXPECT_EQ(Operators()
                .add(1, "c10d::allgather_", 0, {1}, {2})
                .add(2, "aten::copy_", 1, {3, 1}, {3})
                .add(3, "record_param_comms", 1, {3}, {2})
                .add(4, "nccl:all_gather", 3, {3}, {2})
                .roles(),
            (std::vector{call, kernel, call, call}));
}

TEST(OperatorRoles, CallersThatCallEachOtherAreStillCounted) {
  EXPECT_EQ(Operators().add(1, "aten::mul", 2, {1}, {3}).add(2, "aten::mul", 1, {1}, {4}).roles(),
            (std::vector{kernel, kernel}));
}

TEST(OperatorRoles, DeepNestingCostsNoMoreThanItsLength) {
  Operators deep;
  constexpr std::uint64_t kDeep = 100'000;
  for (std::uint64_t id = 1; id < kDeep; ++id) deep.add(id, "aten::linear", id - 1, {1}, {2});
  deep.add(kDeep, "aten::addmm", kDeep - 1, {1}, {2});
  const std::vector<OperatorRole> roles = deep.roles();
  EXPECT_EQ(roles.front(), covered);
  EXPECT_EQ(roles.back(), kernel);
}

// --- Conservation, on traces of others.
// ------------------------------------------------------------

OperatorRoles roles_of_file(const std::string& path, const TorchNodes& file) {
  const OperatorRoles found = roles_of(file.nodes);
  for (std::size_t n = 0; n < file.nodes.size(); ++n) {
    const bool is_on_gpu = effect_of(file.nodes[n]).is_on_gpu;
    const OperatorRole role = found.roles[n];
    // Each in one of the three, or a call; and nothing of the host among them.
    if (role != call) {
      EXPECT_EQ(is_on_gpu, role != host) << path << ": " << file.nodes[n].name;
    }
    EXPECT_EQ(role == kernel, !found.writes[n].empty()) << path << ": " << file.nodes[n].name;
  }
  const OperatorCounts& c = found.counts;
  EXPECT_EQ(c.kernels + c.aliases + c.covered + c.calls + c.host,
            static_cast<std::int64_t>(file.nodes.size()));
  return found;
}

std::string content_of(const std::string& path) {
  return find_traces(path).ranks.at(0).content();
}

TEST(TraceInputs, OperatorsOfExecutionTracesAreConserved) {
  const std::map<std::string, std::int64_t> kernels{{"chakra/linear_et.json.gz", 219},
                                                    {"chakra/resnet_et.json.gz", 2217},
                                                    {"chakra/resnet_1gpu_et.json.gz", 2217},
                                                    {"chakra/1.0.2-chakra.0.0.4.tgz", 10}};
  for (const auto& [name, count] : kernels) {
    HEMIOLA_SHARED_INPUT(path, name);
    const TorchNodes file = parse_pytorch(path, content_of(path));
    EXPECT_EQ(roles_of_file(path, file).counts.kernels, count) << path;
  }
}

/// The names of the operators around an operator, from outside, without those of autograd: its
/// path.
using OperatorPath = std::vector<std::string>;

/// Of each kernel that a Kineto trace says was launched: the operators around its launch.
std::map<OperatorPath, std::int64_t> kernels_by_operator(const KinetoEvents& events) {
  const KinetoLaunches launches = find_launches(events);
  std::map<OperatorPath, std::int64_t> found;
  for (std::size_t e = 0; e < events.gpu.size(); ++e) {
    const std::int32_t runtime = launches.runtime_of[e];
    if (events.gpu[e].kind != GpuEvent::Kind::kernel || runtime < 0) continue;
    const std::int32_t inner = launches.around[static_cast<std::size_t>(runtime)].inner;
    if (inner < 0) continue;
    ++found[{std::string(events.host[static_cast<std::size_t>(inner)].name)}];
  }
  return found;
}

// Of the same program, profiled and observed: whatever launched a kernel counts as a kernel, in
// every one of its occurrences, and nothing else does but where the profile has another version of
// an operator.
TEST(TraceInputs, KernelsOfAProfileAreThoseOfTheExecutionTrace) {
  for (const std::string name : {"linear", "resnet"}) {
    HEMIOLA_SHARED_INPUT(observed, "chakra/" + name + "_et.json.gz");
    HEMIOLA_SHARED_INPUT(profiled, "kineto/" + name + "_kineto.json.gz");
    const TorchNodes file = parse_pytorch(observed, content_of(observed));
    const OperatorRoles found = roles_of_file(observed, file);
    std::map<std::string, std::set<OperatorRole>> roles;
    for (std::size_t n = 0; n < file.nodes.size(); ++n)
      roles[std::string(file.nodes[n].name)].insert(found.roles[n]);
    const KinetoEvents kineto = parse_kineto(profiled, content_of(profiled));
    std::int64_t matched = 0, unmatched = 0;
    std::string list;
    for (const auto& [path, kernels] : kernels_by_operator(kineto)) {
      const auto at = roles.find(path.back());
      if (at == roles.end() || !at->second.contains(kernel)) {
        unmatched += kernels;
        list += fmt::format(" {} ({})", path.back(), kernels);
        continue;
      }
      matched += kernels;
    }
    RecordProperty(name + "_matched", static_cast<int>(matched));
    // The ResNets are of two versions of PyTorch: the later one adds up its own loss, and updates
    // in place.
    const std::string others =
        name == "resnet"
            ? " aten::_foreach_add (60) aten::nll_loss_backward (30) aten::nll_loss_forward (30)"
            : "";
    EXPECT_EQ(list, others) << name << ": " << unmatched << " kernels without an operator, "
                            << matched << " with one";
  }
}

}  // namespace
}  // namespace hemiola::workload

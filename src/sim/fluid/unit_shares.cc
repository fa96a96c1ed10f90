#include "sim/fluid/unit_shares.h"

#include <numeric>

#include "sim/support/index.h"

namespace hemiola::sim {

std::vector<UnitShare> share_units(const program::Bound& program, const Classes& fold,
                                   Shares& shares) {
  const std::size_t classes = fold.agents().size();
  std::vector<UnitShare> units(classes);
  for (std::size_t c = 0; c < classes; ++c) {
    const Agent& agent = fold.agents()[c].first;
    if (agent.kernel < 0) continue;
    const program::Kernel& kernel = program.kernels()[index(agent.kernel)];
    const std::size_t block = kernel.block_of(index(agent.workgroup));
    units[c].parts = static_cast<std::int64_t>(kernel.parts_from(block));
  }
  std::vector<std::size_t> joined(classes);
  std::iota(joined.begin(), joined.end(), std::size_t{0});
  const auto root = [&](std::size_t c) {
    while (joined[c] != c) c = joined[c] = joined[joined[c]];
    return c;
  };
  const auto class_of = [&](std::size_t member) { return index(fold.class_of_member(member)); };
  std::vector<std::size_t> first_parts;  // members
  for (std::size_t m = 0; m < fold.members().size(); ++m) {
    if (units[class_of(m)].parts <= 1) continue;
    const Agent& agent = fold.members()[m];
    const program::Kernel& kernel = program.kernels()[index(agent.kernel)];
    const std::size_t first = m - index(agent.workgroup) + kernel.block_of(index(agent.workgroup));
    joined[root(class_of(m))] = root(class_of(first));
    if (first == m) first_parts.push_back(m);
  }
  std::vector<std::int64_t> blocks(classes);
  for (const std::size_t first : first_parts) ++blocks[root(class_of(first))];
  for (std::size_t c = 0; c < classes; ++c) {
    if (units[c].parts <= 1) continue;
    UnitShare& shared = units[root(c)];
    if (shared.resource < 0) shared.resource = shares.add_resource({kSecond}, Reason::issue);
    units[c].resource = shared.resource;
    units[c].blocks = blocks[root(c)];
  }
  return units;
}

}  // namespace hemiola::sim

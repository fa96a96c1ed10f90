// Bounds that follow from what links carry.
#include <map>
#include <utility>

#include "sim/fluid/count.h"
#include "sim/support/index.h"

namespace hemiola::sim {

// Of one repetition: the time of a run of several is that of one.
LowerBound bound_of_links(const machine::Machine& machine, const Classes& fold,
                          const std::vector<std::int64_t>& certain,
                          const std::vector<std::int64_t>& single, int repetitions) {
  struct Cut {
    std::int64_t wire = 0, rate = 0;
    bool ideal = false;
  };
  std::map<std::pair<machine::NodeId, bool>, Cut> cuts;
  LowerBound bound;
  const auto consider = [&bound](std::int64_t wire, std::int64_t rate, const std::string& name) {
    const Time time = Rate{rate}.time_for(wire);
    // Rounding to whole femtoseconds per request may go down, as in bound().
    const Time below{time.fs - time.fs / 20'000};
    if (below <= bound.bandwidth) return;
    bound.bandwidth = below;
    bound.bottleneck = name;
  };
  for (std::size_t l = 0; l < machine.links.size(); ++l) {
    const std::int32_t number = fold.link_class(static_cast<machine::LinkId>(l));
    if (number < 0 || certain[index(number)] == 0) continue;
    const machine::Link& link = machine.links[l];
    const Rate rate = machine.class_of(static_cast<machine::LinkId>(l)).bandwidth;
    const auto ends_here = [&](machine::NodeId node) {
      const machine::NodeKind kind = machine.nodes[index(node)].kind;
      return kind == machine::NodeKind::xpu || kind == machine::NodeKind::nic;
    };
    for (const bool out : {true, false}) {
      if (!ends_here(out ? link.from : link.to)) continue;
      Cut& cut = cuts[{out ? link.from : link.to, out}];
      cut.wire += certain[index(number)] / fold.links_in(number) / repetitions;
      cut.rate += rate.bytes_per_second;
      cut.ideal = cut.ideal || rate.is_ideal();
    }
    const std::int64_t alone = single[index(number)] / fold.links_in(number) / repetitions;
    if (rate.is_ideal() || alone == 0) continue;
    consider(alone, rate.bytes_per_second,
             machine.nodes[index(link.from)].name + " -> " + machine.nodes[index(link.to)].name);
  }
  for (const auto& [key, cut] : cuts) {
    if (cut.ideal || cut.wire == 0) continue;
    consider(cut.wire, cut.rate,
             (key.second ? "out of " : "into ") + machine.nodes[index(key.first)].name);
  }
  return bound;
}

}  // namespace hemiola::sim

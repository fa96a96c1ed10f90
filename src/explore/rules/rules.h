// Rules: which schedule to take, from static sizes and constants of the machine, in a
// microsecond or two. For frameworks and runtimes that cannot simulate (docs/explore.md, rules).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "explore/rules/piece_model.h"
#include "explore/space/operator.h"
#include "explore/space/schedule.h"
#include "hemiola/parts/schedule_rule.h"
#include "machine/machine.h"

namespace hemiola::parts {
class Registry;
}

namespace hemiola::explore {

/// Who moves data, as rules suppose: by what a machine has, the same for all operators.
struct RuleMover {
  double per_byte = 0;         ///< of a byte that goes to each peer, all at once
  double shift = 0;            ///< of a byte that goes to one peer, one after the other
  double inside = 0;           ///< the same inside a node, where there are several
  double chunk = 0;            ///< of a transfer, whatever its size
  double units = 0;            ///< compute units that it takes
  double engine = 0, row = 0;  ///< of a byte, and of a row apart from others: of copy engines
  double adding = 0;           ///< of a byte that is loaded to be added
  double copied = 0;           ///< of a byte that is copied in own memory
};

/// What rules know of a machine: asked once, used for many operators. Times are femtoseconds.
struct RuleMachine {
  double link_per_byte = 0;      ///< all peers at once: of a byte that goes to each of them
  double library_per_byte = 0;   ///< the same of the library, whose rings do not take all links
  double exchange_per_byte = 0;  ///< ... and of its all-to-all
  /// Of a byte that goes to one GPU of every other node, and of such a transfer, whatever its size.
  double across_per_byte = 0, across_chunk = 0;
  double nodes = 1;             ///< of as many GPUs each
  double one_link = 1;          ///< one peer after the other over all at once
  double flagged_per_byte = 0;  ///< ... in lines with flags in them; 0: it has none
  double hop = 0;               ///< of such a line, from rank to rank
  double chunk = 0;             ///< of a transfer, whatever its size
  double around_switch = 0;     ///< of a sum that a switch makes, whatever its size
  double gap = 0;               ///< between two launches of a stream
  bool multicasts = false;      ///< a switch adds up and sends to all GPUs
  PieceModel pieces;
  /// More and fewer workgroups, and copy engines; of operators that only move, and of those that
  /// add up. Without copy engines the last is as the first.
  std::array<RuleMover, 3> moves{}, sums{};
  /// Of kernels, the largest first, each a few times smaller; with what is touched in the memory,
  /// and in the cache on its side.
  std::array<std::array<TileTerms, 4>, 2> tiles{};

  /// Of rank 0 and its ways to the others. Failure: ranks that do not reach each other.
  static RuleMachine of(const machine::Machine& machine, DataType type);
};

/// A text that users may write or fit. Either a binary tree of thresholds:
///
///     hemiola-rule 1
///     name tree
///     if ratio < 0.4 then 1 else 2          # node 0; a node's number is its place
///     pick 1D hetero fused, 4 steps         # node 1
///     pick serial                           # node 2
///
/// or the family for which analytic_times() times a factor is the least; 1 for those without one:
///
///     hemiola-rule 1
///     name fitted
///     factor serial 1.1
class Rule {
 public:
  static constexpr std::string_view kHeading = "hemiola-rule 1";

  /// Failure with the line: an unknown feature or family, a node that is not there, a node that
  /// comes before the one that names it (so that trees end), a tree with factors, nothing at all.
  static Rule parse(std::string_view text, const std::string& file);
  /// All factors 1.
  static Rule analytic();

  const std::string& name() const { return name_; }
  bool is_tree() const { return !nodes_.empty(); }
  Pick pick(const Operator& op, const RuleMachine& machine) const;
  /// Of a tree.
  Pick pick(const Features& features) const;

 private:
  struct Node {
    Feature feature = Feature::count;  ///< count: a leaf
    double threshold = 0;
    std::int32_t below = 0, above = 0;
    Pick pick{};
  };
  std::string name_;
  std::vector<Node> nodes_;  ///< empty: the least of the times
  std::array<double, kFamilies> factors_{};
};

/// The rules that come with Hemiola (data/rules), and analytic(), in the order of their names.
const std::vector<Rule>& shipped_rules();
/// Adds these to what `explore` asks.
void register_parts(parts::Registry& registry);
/// What all rules of the registry pick, by their names, in its order; null: the built-ins. Failure:
/// one picks a family that there is not, or no step.
std::vector<std::pair<std::string, Pick>> picks_of(const parts::Registry* parts, const Operator& op,
                                                   const RuleMachine& machine);

/// Family::text() back. Failure with all families.
Family parse_family(std::string_view text, const SourceLocation& where);

}  // namespace hemiola::explore

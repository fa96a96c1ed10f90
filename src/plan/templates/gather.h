// Ways to bring blocks, of which every rank has one, to all ranks: shared by the all-gathers and by
// the pipelines that compute on what arrives. Private to the layer.
#pragma once

#include <functional>
#include <vector>

#include "plan/template.h"

namespace hemiola::plan {

/// One block per rank, moved in `parts`.
struct Blocks {
  using Place = std::function<Region(const Affine& owner, std::int64_t part)>;
  Place own;       ///< where its owner has it from the start
  Place gathered;  ///< where it comes to be, on any rank
  std::int64_t parts = 1;
};

/// The partners of a direct exchange, by the counter of the outermost loop from 0 to ranks - 2: in
/// each step all ranks have different ones. On one node they are the next ranks (not clockwise: the
/// ones before). Over nodes what goes inside is soon over, so ranks of a node that took the next
/// ones would come to the first rank of the next node together, and one NIC of it would do all the
/// work: a step goes to another node and to another place in it.
Affine partners(const TemplateArguments& arguments, bool clockwise = true);
/// The rank whose partner this rank is, in the same step.
Affine partner_of(const TemplateArguments& arguments, bool clockwise = true);

/// Into `result` the sum of what all ranks have for this one, `source(rank)`: the own part, then
/// those of the partners, which it pulls, or ("transfer" is "push") which they put into a slot
/// each.
void reduce_directly(const TemplateArguments& arguments, Plan& plan, Stream& stream,
                     const std::function<Region(const Affine& rank)>& source, const Region& result);

/// With a peer, in the direction and by whom the parameter "transfer" says: what a rank has for
/// another, `from(taker)`, goes to where that one has it of its owner, `into(owner)`.
Transfer exchanged(const TemplateArguments& arguments, const Affine& peer,
                   const std::function<Region(const Affine& taker)>& from,
                   const std::function<Region(const Affine& owner)>& into);

/// A way to bring all blocks to all ranks: the codes and streams of the plan.
using GatherBlocks = void (*)(const TemplateArguments& arguments, Plan& plan, const Blocks& blocks);

/// Every rank exchanges with all others directly, in the "order" and by the "transfer" of the
/// parameters: transfers (ranks - 1) x parts, in this order.
void exchange_blocks(const TemplateArguments& arguments, Plan& plan, const Blocks& blocks);

/// Blocks are passed on from neighbour to neighbour: ranks - 1 steps of `parts` pushes each.
void ring_of_blocks(const TemplateArguments& arguments, Plan& plan, const Blocks& blocks);

/// Ranks are a mesh of outer x inner; rank = outer index * inner + inner index. One code for each
/// inner index.
void set_codes_by_inner_index(Plan& plan, std::vector<Code> codes);

/// On that mesh, of the parameter "inner": rings inside every group pass on what rings across the
/// groups bring.
void double_ring_of_blocks(const TemplateArguments& arguments, Plan& plan, const Blocks& blocks);

/// What ranks of inner index `i` do to bring their block to all others on that mesh, directly.
struct TwoLevels {
  std::vector<Item> across;  ///< of a loop over the other groups: the own block, to their rank `i`
  std::vector<Item> inside;  ///< the own block, to the rest of the group
  /// Of a loop over the other groups: the block of their rank `i`, to the rest of the own group,
  /// when `across` of that rank, whose first transfer is number `first` of its stream 0, is there.
  std::vector<Item> passed_on;
};
TwoLevels two_levels(std::int64_t ranks, std::int64_t inner, std::int64_t i, const Blocks& blocks,
                     std::int64_t first = 0);

/// The same mesh, directly: every rank sends its block to the ranks of its own inner index, and
/// what it has or gets of them to the rest of its group.
void two_levels_of_blocks(const TemplateArguments& arguments, Plan& plan, const Blocks& blocks);

/// The parameters of the above, and what they say. Failure: an inner size that does not divide the
/// ranks, no parts.
ParameterInfo order_parameter();
ParameterInfo split_parameter(const char* default_value = "1");
ParameterInfo waves_parameter();
ParameterInfo inner_parameter();
bool is_clockwise(const TemplateArguments& arguments);
/// A number of parts, from 1 to 4096. Failure: anything else.
std::int64_t parts_of(const TemplateArguments& arguments, const std::string& parameter);
std::int64_t split_of(const TemplateArguments& arguments);
std::int64_t waves_of(const TemplateArguments& arguments);
std::int64_t inner_of(const TemplateArguments& arguments);

}  // namespace hemiola::plan

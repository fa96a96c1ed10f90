// Ring algorithms along given rings, each with its share of the data. Private to the layer.
#pragma once

#include <vector>

#include "plan/template.h"
#include "plan/templates/ring_search.h"

namespace hemiola::plan {

ParameterInfo rings_parameter();

/// The rings that the machine has, if the parameter says so; else the one ring 0, 1, 2, ...
std::vector<Ring> rings_of(const TemplateArguments& arguments);

/// Every rank has a stream per ring, and chunk k of its part of the data goes around ring k. Ranks
/// share codes where the rings repeat.
Plan all_reduce_along(const TemplateArguments& arguments, const std::vector<Ring>& rings);
Plan reduce_scatter_along(const TemplateArguments& arguments, const std::vector<Ring>& rings);
Plan all_gather_along(const TemplateArguments& arguments, const std::vector<Ring>& rings);
/// Chains that end where the ring comes back to the root.
Plan broadcast_along(const TemplateArguments& arguments, const std::vector<Ring>& rings);

/// For plans with a code per rank, written with constant peers, that are chains
/// (program/lower/lower.h).
void name_peers_by_distance(Plan& plan);

/// The ring as a chain of parents that ends at, or, reversed, starts from the root.
Tree chain_to(const Ring& ring, int root);
Tree chain_from(const Ring& ring, int root);

}  // namespace hemiola::plan

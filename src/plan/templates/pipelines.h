// What the pipelines of transfers and compute have in common. Private to the layer.
#pragma once

#include <vector>

#include "plan/templates/gather.h"

namespace hemiola::plan {

ParameterInfo size_parameter(const char* name, const char* default_value, const char* description);
ParameterInfo data_type_parameter();
/// `sizes`, then the tile of a product (tile_m, tile_n, tile_k) and the type of its elements.
std::vector<ParameterInfo> with_tile(std::vector<ParameterInfo> sizes, const char* tile_m = "128");
/// Rows whose first parameters are those of a product: m, n, k (of the whole), tile_m, tile_n,
/// tile_k, dtype.
std::vector<TemplateInfo> of_products(std::vector<TemplateInfo> rows);
DataType data_type_of(const TemplateArguments& arguments);
/// At least 1. Failure else.
std::int64_t positive(const TemplateArguments& arguments, const char* parameter);
/// value / parts. Failure: `what` cannot be divided.
std::int64_t divided(const TemplateArguments& arguments, const char* what, std::int64_t value,
                     std::int64_t parts);

/// All of a tensor of the plan.
Region all_of(const Plan& plan, std::int32_t tensor);
/// Elements [begin, begin + extent) along `axis`, all along the others.
Region slab(const Plan& plan, std::int32_t tensor, std::size_t axis, const Affine& begin,
            std::int64_t extent);

/// Blocks of equal length along an axis, one per rank, of tensors that have them in the same place
/// everywhere. Failure: blocks do not divide into `parts`.
Blocks blocks_along(const TemplateArguments& arguments, const Plan& plan, std::int32_t tensor,
                    std::size_t axis, std::int64_t parts);

/// out[m, n] += a[m, k] b[k, n], sizes as the tensors', tiles as the parameters say.
Compute gemm_of(const TemplateArguments& arguments, const Plan& plan, std::int32_t a,
                std::int32_t b, std::int32_t out);

/// All codes run the compute, start with `resident` and end with all of `expected`.
void compute_everywhere(Plan& plan, const Compute& compute, const std::vector<Region>& resident,
                        const Expectation& expected);

}  // namespace hemiola::plan

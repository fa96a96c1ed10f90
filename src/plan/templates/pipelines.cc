#include "plan/templates/pipelines.h"

#include "hemiola/parts/build_plan.h"
#include "plan/templates/families.h"

namespace hemiola::plan {

ParameterInfo size_parameter(const char* name, const char* default_value, const char* description) {
  return {name, default_value, {}, description};
}

ParameterInfo data_type_parameter() {
  return {"dtype",
          "float16",
          {"float16", "bfloat16", "float32", "fp8_e4m3", "fp8_e5m2"},
          "type of the elements"};
}

std::vector<ParameterInfo> with_tile(std::vector<ParameterInfo> sizes, const char* tile_m) {
  sizes.push_back(size_parameter("tile_m", tile_m, "rows of a tile"));
  sizes.push_back(size_parameter("tile_n", "128", "columns of a tile"));
  sizes.push_back(size_parameter("tile_k", "64", "what a tile sums over in a step"));
  sizes.push_back(data_type_parameter());
  return sizes;
}

std::vector<TemplateInfo> of_products(std::vector<TemplateInfo> rows) {
  return of_elements(
      std::move(rows),
      with_tile({size_parameter("m", "8192", "rows of the product"),
                 size_parameter("n", "14336", "columns of the product, over all ranks"),
                 size_parameter("k", "4096", "what is summed over, over all ranks")}));
}

DataType data_type_of(const TemplateArguments& arguments) {
  return *parse_data_type(arguments.word("dtype"));
}

std::int64_t positive(const TemplateArguments& arguments, const char* parameter) {
  return arguments.number(parameter, 1, std::int64_t{1} << 24);
}

std::int64_t divided(const TemplateArguments& arguments, const char* what, std::int64_t value,
                     std::int64_t parts) {
  if (value % parts == 0) return value / parts;
  throw Failure("'" + arguments.name + "' cannot divide " + what + " = " + std::to_string(value) +
                    " into " + std::to_string(parts) + " parts",
                kOption, std::string("choose ") + what + ", split or the ranks");
}

Region all_of(const Plan& plan, std::int32_t tensor) {
  Box box;
  for (const std::int64_t extent : plan.tensors[index(tensor)].shape) box.push_back({{}, extent});
  return {tensor, {std::move(box)}};
}

Region slab(const Plan& plan, std::int32_t tensor, std::size_t axis, const Affine& begin,
            std::int64_t extent) {
  Region region = all_of(plan, tensor);
  region.boxes.front()[axis] = {begin, extent};
  return region;
}

Blocks blocks_along(const TemplateArguments& arguments, const Plan& plan, std::int32_t tensor,
                    std::size_t axis, std::int64_t parts) {
  const Tensor& whole = plan.tensors[index(tensor)];
  const std::int64_t length =
      divided(arguments, whole.name.c_str(), whole.shape[axis], plan.ranks * parts);
  const Blocks::Place place = [region = all_of(plan, tensor), axis, length, parts](
                                  const Affine& owner, std::int64_t part) {
    Region block = region;
    block.boxes.front()[axis] = {scaled(owner, length * parts, part * length), length};
    return block;
  };
  return {place, place, parts};
}

Compute gemm_of(const TemplateArguments& arguments, const Plan& plan, std::int32_t a,
                std::int32_t b, std::int32_t out) {
  const auto& left = plan.tensors[index(a)].shape;
  const auto& right = plan.tensors[index(b)].shape;
  Compute gemm{.name = "gemm", .kernel = "gemm", .axes = {}, .operands = {}};
  gemm.axes = {{"m", left[0], positive(arguments, "tile_m"), false},
               {"n", right[1], positive(arguments, "tile_n"), false},
               {"k", right[0], positive(arguments, "tile_k"), true}};
  gemm.operands = {{a, Use::read, {0, 2}}, {b, Use::read, {2, 1}}, {out, Use::accumulate, {0, 1}}};
  return gemm;
}

void compute_everywhere(Plan& plan, const Compute& compute, const std::vector<Region>& resident,
                        const Expectation& expected) {
  for (Code& code : plan.codes) {
    code.computes = {compute};
    code.resident = resident;
    code.expected = {expected};
  }
}

}  // namespace hemiola::plan

#include "plan/collective_shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hemiola::plan {
namespace {

std::int64_t count(const Plan& plan, Role role) {
  std::int64_t found = 0;
  for (const Tensor& tensor : plan.tensors) found += tensor.role == role ? 1 : 0;
  return found;
}

bool scatters(Collective collective) {
  return collective == Collective::reduce_scatter || collective == Collective::all_to_all;
}

/// Elements that the output has to have; 0 if no output fits the input.
std::int64_t elements_of_output(const Plan& plan, std::int64_t input) {
  if (scatters(plan.collective) && input % plan.ranks != 0) return 0;
  if (plan.collective == Collective::reduce_scatter) return input / plan.ranks;
  return plan.collective == Collective::all_gather ? input * plan.ranks : input;
}

std::string described(const Plan& plan, std::int32_t tensor) {
  const Tensor& it = plan.tensors[static_cast<std::size_t>(tensor)];
  return fmt::format("'{}' of shape [{}]", it.name, fmt::join(it.shape, ", "));
}

}  // namespace

std::int32_t only_tensor(const Plan& plan, Role role) {
  std::int32_t found = -1;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    if (plan.tensors[i].role != role) continue;
    if (found >= 0) return -1;
    found = static_cast<std::int32_t>(i);
  }
  return found;
}

std::int64_t elements_of_size(const Plan& plan) {
  if (plan.collective == Collective::custom) return 0;
  const Role role = plan.collective == Collective::all_gather ? Role::output : Role::input;
  const std::int32_t tensor = only_tensor(plan, role);
  return tensor < 0 ? 0 : plan.tensors[static_cast<std::size_t>(tensor)].elements();
}

std::optional<ShapeFault> wrong_collective_shape(const Plan& plan) {
  if (plan.collective == Collective::custom) return std::nullopt;
  const std::string_view name = name_of(plan.collective);
  const std::int32_t input = only_tensor(plan, Role::input);
  const std::int32_t output = only_tensor(plan, Role::output);
  if (input < 0 || output < 0)
    return ShapeFault{"/tensors",
                      fmt::format("the collective {} has one input and one output tensor; this "
                                  "plan has {} and {}",
                                  name, count(plan, Role::input), count(plan, Role::output)),
                      "name the collective custom, and say what each rank expects"};
  const std::int64_t in = plan.tensors[static_cast<std::size_t>(input)].elements();
  const std::int64_t out = plan.tensors[static_cast<std::size_t>(output)].elements();
  const std::int64_t needs = elements_of_output(plan, in);
  const std::string unit = plan.of_elements() ? "elements" : "chunks";
  if (needs == 0)
    return ShapeFault{fmt::format("/tensors/{}/shape", input),
                      fmt::format("tensor {} has {} {}, which are not equal parts for the {} "
                                  "ranks of the collective {}",
                                  described(plan, input), in, unit, plan.ranks, name),
                      fmt::format("a multiple of {}", plan.ranks)};
  if (out != needs)
    return ShapeFault{
        fmt::format("/tensors/{}/shape", output),
        fmt::format("tensor {} has {} {}; the collective {} of tensor {} among {} ranks needs {}",
                    described(plan, output), out, unit, name, described(plan, input), plan.ranks,
                    needs),
        fmt::format("give '{}' {} {}, or name the collective that the plan is",
                    plan.tensors[static_cast<std::size_t>(output)].name, needs, unit)};
  const std::int64_t size = elements_of_size(plan);
  if (!plan.of_elements() && plan.chunks_per_size != size)
    return ShapeFault{
        "/chunks_per_size",
        fmt::format("{} chunks per size are stated, but tensor {}, which nccl-tests calls the size "
                    "of the collective {}, has {}",
                    plan.chunks_per_size,
                    described(plan, plan.collective == Collective::all_gather ? output : input),
                    name, size),
        "leave chunks_per_size out: it follows from the tensors"};
  return std::nullopt;
}

}  // namespace hemiola::plan

#include "workload/models/generate_steps.h"

namespace hemiola::workload {
namespace {

// Flop for each element of a norm: RMS squares, adds, scales twice; a layer norm subtracts the
// mean, which it has to sum up, and adds a bias.
constexpr std::int64_t kRmsFlop = 4;
constexpr std::int64_t kLayerNormFlop = 7;

std::int64_t bytes_of_product(const machine::GemmShape& product, bool written) {
  const std::int64_t results =
      product.m * product.n * product.batch * size_of(product.output.value_or(product.type));
  if (written) return results;
  return (product.m + product.n) * product.k * product.batch * size_of(product.type) +
         (product.accumulate ? results : 0);
}

}  // namespace

void StepWriter::add(Steps& out, std::string_view name, const Compute& compute) {
  out.push_back(
      {.stream = streams.compute, .name = builder_.name(name), .work = builder_.compute(compute)});
}

void StepWriter::move(Steps& out, std::string_view name, std::int64_t read, std::int64_t written,
                      std::int64_t flop) {
  add(out, name, {.type = shape.stored, .flop = flop, .read = read, .written = written});
}

void StepWriter::attention(Steps& out, std::string_view name, const Compute& core) {
  add(out, name, core);
}

void StepWriter::product(Steps& out, std::string_view name, const machine::GemmShape& product) {
  add(out, name,
      {.kind = Compute::Kind::product,
       .product = product,
       .type = product.type,
       .flop = 2 * product.m * product.n * product.k * product.batch,
       .read = bytes_of_product(product, false),
       .written = bytes_of_product(product, true)});
}

DataType StepWriter::type_of(const Linear& linear) const {
  return linear.is_stored_type ? shape.stored : shape.multiplied;
}

void StepWriter::forward(Steps& out, const Linear& linear) {
  product(out, linear.name,
          {.m = linear.rows,
           .n = linear.outputs,
           .k = linear.inputs,
           .batch = linear.batch,
           .type = type_of(linear),
           .output = shape.stored});
}

void StepWriter::input_gradient(Steps& out, const Linear& linear) {
  product(out, linear.name + " input gradient",
          {.m = linear.rows,
           .n = linear.inputs,
           .k = linear.outputs,
           .batch = linear.batch,
           .type = type_of(linear),
           .output = shape.stored});
}

void StepWriter::weight_gradient(Steps& out, const Linear& linear) {
  const std::size_t first = out.size();
  const bool fused = request.fused_gradient_sum;
  product(out, linear.name + " weight gradient",
          {.m = linear.inputs,
           .n = linear.outputs,
           .k = linear.rows,
           .batch = linear.batch,
           .type = type_of(linear),
           .output = fused ? shape.summed : shape.stored,
           .accumulate = fused});
  if (linear.bias)
    move(out, linear.name + " bias gradient", bytes_of(linear.batch * linear.rows * linear.outputs),
         linear.batch * linear.outputs * shape.gradient,
         linear.batch * linear.rows * linear.outputs);
  if (!fused) {
    const std::int64_t elements = linear.batch * linear.inputs * linear.outputs;
    move(out, linear.name + " gradient sum", elements * (shape.element + shape.gradient),
         elements * shape.gradient, elements);
  }
  for (std::size_t i = first; i < out.size(); ++i) out[i].of_weight = true;
  (linear.is_expert ? out.back().ready_experts : out.back().ready) += linear.count();
}

void StepWriter::column_forward(Steps& out, const Linear& linear) {
  if (shape.sequence_parallel)
    tp(out, StepRole::exposed, Collective::all_gather, bytes_of(linear.rows * linear.inputs));
  forward(out, linear);
}

void StepWriter::column_backward(Steps& out, const Linear& linear) {
  const std::int64_t bytes = bytes_of(linear.rows * linear.inputs);
  // The input was kept divided, and the gradient of the weight needs all of it.
  if (shape.sequence_parallel) {
    tp(out, StepRole::begin, Collective::all_gather, bytes, true);
    if (!request.overlap_tensor_gradients) join(out);
  }
  input_gradient(out, linear);
  if (shape.sequence_parallel) join(out);
  tp(out, StepRole::begin, shape.tp_sum(), bytes);
  if (!request.overlap_tensor_gradients) join(out);
  weight_gradient(out, linear);
  join(out);
}

void StepWriter::row_forward(Steps& out, const Linear& linear) {
  forward(out, linear);
  tp(out, StepRole::exposed, shape.tp_sum(), bytes_of(linear.rows * linear.outputs));
}

void StepWriter::row_backward(Steps& out, const Linear& linear) {
  if (shape.sequence_parallel)
    tp(out, StepRole::exposed, Collective::all_gather, bytes_of(linear.rows * linear.outputs));
  gradients(out, linear);
}

void StepWriter::norm_forward(Steps& out, std::string_view name, std::int64_t rows,
                              std::int64_t width) {
  const bool layer = model.norm == Norm::layer;
  move(out, name, bytes_of(rows * width + (layer ? 2 : 1) * width), bytes_of(rows * width),
       (layer ? kLayerNormFlop : kRmsFlop) * rows * width);
}

void StepWriter::norm_backward(Steps& out, std::string_view name, std::int64_t rows,
                               std::int64_t width) {
  const bool layer = model.norm == Norm::layer;
  const std::int64_t count = (layer ? 2 : 1) * width;
  move(out, std::string(name) + " backward", bytes_of(2 * rows * width + width),
       bytes_of(rows * width) + count * shape.gradient,
       2 * (layer ? kLayerNormFlop : kRmsFlop) * rows * width);
  out.back().ready += count;
}

void StepWriter::residual_forward(Steps& out, std::string_view name) {
  const std::int64_t elements = shape.local_elements();
  const bool dropout = model.dropout && request.phase == Phase::train;
  move(out, name, bytes_of(2 * elements), bytes_of(elements) + (dropout ? elements : 0),
       elements * (dropout ? 1 + kDropoutFlop : 1));
}

void StepWriter::residual_begin_backward(Steps& out) {
  if (!model.dropout) return;
  const std::int64_t elements = shape.local_elements();
  move(out, "dropout backward", bytes_of(elements) + elements, bytes_of(elements),
       kDropoutFlop * elements);
}

void StepWriter::residual_end_backward(Steps& out) {
  const std::int64_t elements = shape.local_elements();
  move(out, "residual gradient", bytes_of(2 * elements), bytes_of(elements), elements);
}

void StepWriter::tp(Steps& out, StepRole role, Collective kind, std::int64_t bytes,
                    bool of_weight) {
  if (families.tp < 0) return;
  communicate(out, role, "tp " + std::string(name_of(kind)), streams.tp,
              {.kind = kind, .family = families.tp, .bytes = bytes, .type = shape.stored},
              of_weight);
}

void StepWriter::communicate(Steps& out, StepRole role, std::string_view name, std::uint16_t stream,
                             const CollectiveCall& call, bool of_weight) {
  out.push_back({.role = role,
                 .kind = NodeKind::collective,
                 .of_weight = of_weight,
                 .stream = stream,
                 .name = builder_.name(name),
                 .work = builder_.collective(call)});
}

void StepWriter::exchange(Steps& out, std::int64_t bytes, bool to_next) {
  const std::int32_t work =
      builder_.message({.family = families.ring, .from_first = to_next, .bytes = bytes});
  const auto add = [&](NodeKind kind, std::uint16_t stream, std::string_view name) {
    out.push_back({.role = StepRole::begin,
                   .kind = kind,
                   .stream = stream,
                   .name = builder_.name(name),
                   .work = work});
  };
  add(NodeKind::send, streams.cp_send, "cp send");
  add(NodeKind::receive, streams.cp_receive, "cp receive");
}

void StepWriter::join(Steps& out) {
  out.push_back({.role = StepRole::join});
}

PassSteps layer_steps(StepWriter& writer, bool mixture) {
  PassSteps steps;
  attention_forward(writer, steps.forward);
  mlp_forward(writer, steps.forward, mixture);
  if (writer.request.phase != Phase::train) return steps;
  if (writer.request.recompute == Recompute::full) steps.backward = steps.forward;
  mlp_backward(writer, steps.backward, mixture);
  attention_backward(writer, steps.backward);
  return steps;
}

}  // namespace hemiola::workload

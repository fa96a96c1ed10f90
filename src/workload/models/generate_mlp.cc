// The MLP of a layer: dense, or experts with their router and all-to-alls.
#include "workload/models/generate_steps.h"

namespace hemiola::workload {
namespace {

// Flop for each element: GELU in its form with a tanh, and a bias; SiLU of the gate times up.
constexpr std::int64_t kGeluFlop = 10;
constexpr std::int64_t kSwigluFlop = 5;
constexpr std::int64_t kRouterSoftmaxFlop = 5;
constexpr std::int64_t kScore = 4;  ///< bytes of a router's score

class Mlp {
 public:
  explicit Mlp(StepWriter& writer) : writer_(writer), model_(writer.model), shape_(writer.shape) {}

  void dense_forward(Steps& out) {
    writer_.column_forward(out, up(shape_.intermediate));
    activate(out, "activation", shape_.tokens * shape_.intermediate, false);
    writer_.row_forward(out, down(shape_.intermediate));
  }
  void dense_backward(Steps& out) {
    writer_.row_backward(out, down(shape_.intermediate));
    activate(out, "activation backward", shape_.tokens * shape_.intermediate, true);
    writer_.column_backward(out, up(shape_.intermediate));
  }
  void mixture_forward(Steps& out);
  void mixture_backward(Steps& out);

 private:
  bool has_bias() const { return model_.biases == Biases::all || model_.biases == Biases::output; }
  Linear up(std::int64_t intermediate) const {
    return {.name = model_.gated ? "gate and up" : "up",
            .rows = shape_.tokens,
            .inputs = shape_.hidden,
            .outputs = model_.gated ? 2 * intermediate : intermediate,
            .bias = has_bias()};
  }
  Linear down(std::int64_t intermediate) const {
    return {.name = "down",
            .rows = shape_.tokens,
            .inputs = intermediate,
            .outputs = shape_.hidden,
            .bias = has_bias()};
  }
  Linear of_experts(Linear linear) const {
    linear.name = "experts " + linear.name;
    linear.rows = shape_.rows_of_expert;
    linear.batch = shape_.busy_experts;
    linear.held = shape_.experts;
    linear.is_expert = true;
    return linear;
  }
  Linear shared(Linear linear) const {
    linear.name = "shared " + linear.name;
    return linear;
  }
  Linear router() const {
    return {.name = "router",
            .rows = shape_.local_tokens,
            .inputs = shape_.hidden,
            .outputs = model_.experts.count,
            .is_stored_type = true};
  }

  void activate(Steps& out, std::string_view name, std::int64_t elements, bool backward);
  void route(Steps& out, bool backward);
  void exchange(Steps& out, std::string_view name);
  void experts_forward(Steps& out);
  void experts_backward(Steps& out);
  void shared_forward(Steps& out);
  void shared_backward(Steps& out);
  void add(Steps& out, std::string_view name);

  /// Of tokens that this rank sends: each goes to several experts.
  std::int64_t sent_bytes() const {
    return writer_.bytes_of(shape_.local_tokens * model_.experts.per_token * shape_.hidden);
  }
  std::int64_t gathered_bytes() const {
    return writer_.bytes_of(shape_.expert_rows * shape_.hidden);
  }
  std::int64_t local_bytes() const { return writer_.bytes_of(shape_.local_elements()); }
  bool is_divided() const { return shape_.tp > 1 && shape_.sequence_parallel; }
  bool is_summed() const { return shape_.tp > 1 && !shape_.sequence_parallel; }

  StepWriter& writer_;
  const Model& model_;
  const RankShape& shape_;
};

void Mlp::activate(Steps& out, std::string_view name, std::int64_t elements, bool backward) {
  const std::int64_t in = writer_.bytes_of(model_.gated ? 2 * elements : elements);
  const std::int64_t result = writer_.bytes_of(elements);
  const std::int64_t flop = (model_.gated ? kSwigluFlop : kGeluFlop) * elements;
  if (backward)
    writer_.move(out, name, in + result, in, 2 * flop);
  else
    writer_.move(out, name, in, result, flop);
}

/// Scores of all experts become probabilities, and the best are chosen.
void Mlp::route(Steps& out, bool backward) {
  const std::int64_t scores = shape_.local_tokens * model_.experts.count;
  const std::int64_t chosen = shape_.local_tokens * model_.experts.per_token;
  if (backward) {
    writer_.move(out, "top-k backward", (scores + chosen) * kScore, writer_.bytes_of(scores),
                 kRouterSoftmaxFlop * scores);
    writer_.gradients(out, router());
    if (model_.experts.router_bias) out.back().ready += model_.experts.count;
  } else {
    writer_.forward(out, router());
    // A score and the number of its expert.
    writer_.move(out, "top-k", writer_.bytes_of(scores), (scores + 2 * chosen) * kScore,
                 kRouterSoftmaxFlop * scores);
  }
}

/// Tokens to their experts, or back.
void Mlp::exchange(Steps& out, std::string_view name) {
  if (writer_.families.ep < 0) return;
  writer_.communicate(out, StepRole::exposed, name, writer_.streams.ep,
                      {.kind = Collective::all_to_all,
                       .family = writer_.families.ep,
                       .bytes = sent_bytes(),
                       .type = shape_.stored});
}

void Mlp::experts_forward(Steps& out) {
  writer_.forward(out, of_experts(up(shape_.expert_intermediate)));
  activate(out, "experts activation",
           shape_.busy_experts * shape_.rows_of_expert * shape_.expert_intermediate, false);
  writer_.forward(out, of_experts(down(shape_.expert_intermediate)));
}

void Mlp::experts_backward(Steps& out) {
  const Linear second = of_experts(down(shape_.expert_intermediate));
  const Linear first = of_experts(up(shape_.expert_intermediate));
  writer_.gradients(out, second);
  activate(out, "experts activation backward",
           shape_.busy_experts * shape_.rows_of_expert * shape_.expert_intermediate, true);
  writer_.gradients(out, first);
}

/// Shared experts see every token. Without sequence parallelism their partial sums are added to
/// those of the other experts, so that one all-reduce is enough.
void Mlp::shared_forward(Steps& out) {
  const Linear first = shared(up(shape_.shared_intermediate));
  const Linear second = shared(down(shape_.shared_intermediate));
  writer_.column_forward(out, first);
  activate(out, "shared activation", shape_.tokens * shape_.shared_intermediate, false);
  if (is_summed())
    writer_.forward(out, second);
  else
    writer_.row_forward(out, second);
  add(out, "shared sum");
}

void Mlp::shared_backward(Steps& out) {
  const Linear first = shared(up(shape_.shared_intermediate));
  writer_.row_backward(out, shared(down(shape_.shared_intermediate)));
  activate(out, "shared activation backward", shape_.tokens * shape_.shared_intermediate, true);
  if (is_summed()) {
    writer_.gradients(out, first);
  } else {
    writer_.column_backward(out, first);
  }
  add(out, "shared gradient sum");
}

void Mlp::add(Steps& out, std::string_view name) {
  writer_.move(out, name, 2 * local_bytes(), local_bytes(), shape_.local_elements());
}

void Mlp::mixture_forward(Steps& out) {
  const std::int64_t chosen = shape_.local_tokens * model_.experts.per_token;
  route(out, false);
  writer_.move(out, "permute", local_bytes(), sent_bytes());
  exchange(out, "dispatch");
  if (is_divided()) writer_.tp(out, StepRole::exposed, Collective::all_gather, gathered_bytes());
  experts_forward(out);
  if (is_divided())
    writer_.tp(out, StepRole::exposed, Collective::reduce_scatter, gathered_bytes());
  exchange(out, "combine");
  writer_.move(out, "unpermute", sent_bytes() + chosen * kScore, local_bytes(),
               2 * chosen * shape_.hidden);
  if (shape_.shared_intermediate > 0) shared_forward(out);
  if (is_summed()) writer_.tp(out, StepRole::exposed, Collective::all_reduce, local_bytes());
}

void Mlp::mixture_backward(Steps& out) {
  const std::int64_t chosen = shape_.local_tokens * model_.experts.per_token;
  // The gradient of each probability needs what its expert gave.
  writer_.move(out, "unpermute backward", local_bytes() + sent_bytes() + chosen * kScore,
               sent_bytes() + chosen * kScore, 4 * chosen * shape_.hidden);
  exchange(out, "combine backward");
  if (is_divided()) writer_.tp(out, StepRole::exposed, Collective::all_gather, gathered_bytes());
  experts_backward(out);
  if (is_divided())
    writer_.tp(out, StepRole::exposed, Collective::reduce_scatter, gathered_bytes());
  exchange(out, "dispatch backward");
  writer_.move(out, "permute backward", sent_bytes(), local_bytes(), chosen * shape_.hidden);
  if (shape_.shared_intermediate > 0) shared_backward(out);
  if (is_summed()) writer_.tp(out, StepRole::exposed, Collective::all_reduce, local_bytes());
  route(out, true);
}

}  // namespace

void mlp_forward(StepWriter& writer, Steps& out, bool mixture) {
  writer.norm_forward(out, "mlp norm", writer.shape.local_tokens, writer.shape.hidden);
  if (mixture)
    Mlp(writer).mixture_forward(out);
  else
    Mlp(writer).dense_forward(out);
  writer.residual_forward(out, "mlp residual");
}

void mlp_backward(StepWriter& writer, Steps& out, bool mixture) {
  writer.residual_begin_backward(out);
  if (mixture)
    Mlp(writer).mixture_backward(out);
  else
    Mlp(writer).dense_backward(out);
  writer.norm_backward(out, "mlp norm", writer.shape.local_tokens, writer.shape.hidden);
  writer.residual_end_backward(out);
}

}  // namespace hemiola::workload

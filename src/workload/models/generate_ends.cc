// What is before the first layer and after the last: embedding, logits, loss.
#include "workload/models/generate_steps.h"

namespace hemiola::workload {
namespace {

constexpr std::int64_t kTokenBytes = 8;  ///< int64, as in PyTorch
constexpr std::int64_t kLogitBytes = 4;  ///< the loss is computed in float32
constexpr std::int64_t kExpSumFlop = 3;  ///< subtracts, exponentiates, adds

void embedding_forward(StepWriter& writer, Steps& out) {
  const RankShape& shape = writer.shape;
  const std::int64_t elements = shape.tokens * shape.hidden;
  writer.move(out, "embedding", writer.bytes_of(elements) + shape.tokens * kTokenBytes,
              writer.bytes_of(elements));
  // Each rank of tp has looked up the tokens of its share of the vocabulary.
  writer.tp(out, StepRole::exposed, shape.tp_sum(), writer.bytes_of(elements));
  const std::int64_t local = shape.local_elements();
  if (writer.model.positions == Positions::learned)
    writer.move(out, "positions", writer.bytes_of(2 * local), writer.bytes_of(local), local);
  if (writer.model.dropout && writer.request.phase == Phase::train)
    writer.move(out, "embedding dropout", writer.bytes_of(local), writer.bytes_of(local) + local,
                kDropoutFlop * local);
}

void embedding_backward(StepWriter& writer, Steps& out) {
  const RankShape& shape = writer.shape;
  const std::int64_t local = shape.local_elements();
  if (writer.model.dropout)
    writer.move(out, "embedding dropout backward", writer.bytes_of(local) + local,
                writer.bytes_of(local), kDropoutFlop * local);
  if (writer.model.positions == Positions::learned) {
    writer.move(out, "positions gradient", writer.bytes_of(local), local * shape.gradient, local);
    out.back().of_weight = true;
    out.back().ready = writer.model.sequence * shape.hidden;
  }
  const std::int64_t elements = shape.tokens * shape.hidden;
  if (shape.sequence_parallel)
    writer.tp(out, StepRole::exposed, Collective::all_gather, writer.bytes_of(elements), true);
  writer.move(out, "embedding gradient", writer.bytes_of(elements) + elements * shape.gradient,
              elements * shape.gradient, elements);
  out.back().of_weight = true;
  out.back().ready = shape.vocabulary * shape.hidden;
}

Linear logits(const StepWriter& writer) {
  return {.name = "logits",
          .rows = writer.shape.logit_rows,
          .inputs = writer.shape.hidden,
          .outputs = writer.shape.vocabulary,
          .is_stored_type = true};
}

/// A number for each token from all ranks of tp, which each have a share of the vocabulary.
void sum_over_vocabulary(StepWriter& writer, Steps& out, std::string_view name) {
  if (writer.families.tp < 0) return;
  writer.communicate(out, StepRole::exposed, name, writer.streams.tp,
                     {.kind = Collective::all_reduce,
                      .family = writer.families.tp,
                      .bytes = writer.shape.logit_rows * kLogitBytes,
                      .type = DataType::float32});
}

/// The softmax of all logits stays for the backward pass.
void loss_forward(StepWriter& writer, Steps& out) {
  const std::int64_t elements = writer.shape.logit_rows * writer.shape.vocabulary;
  const std::int64_t wide = elements * kLogitBytes;
  writer.move(out, "cross entropy maximum", writer.bytes_of(elements), wide, elements);
  sum_over_vocabulary(writer, out, "tp maximum");
  writer.move(out, "cross entropy sum", wide, wide, kExpSumFlop * elements);
  sum_over_vocabulary(writer, out, "tp predicted logit");
  sum_over_vocabulary(writer, out, "tp sum");
  writer.move(out, "cross entropy", wide, wide, elements);
}

/// Inference: logits of all ranks of tp, and the next token.
void choose_token(StepWriter& writer, Steps& out) {
  const RankShape& shape = writer.shape;
  const std::int64_t bytes = writer.bytes_of(shape.logit_rows * shape.vocabulary * shape.tp);
  writer.tp(out, StepRole::exposed, Collective::all_gather, bytes);
  writer.move(out, "next token", bytes, shape.logit_rows * kTokenBytes,
              shape.logit_rows * shape.vocabulary * shape.tp);
}

}  // namespace

PassSteps embedding_steps(StepWriter& writer) {
  PassSteps steps;
  embedding_forward(writer, steps.forward);
  if (writer.request.phase == Phase::train) embedding_backward(writer, steps.backward);
  return steps;
}

PassSteps head_steps(StepWriter& writer, bool own_table) {
  const RankShape& shape = writer.shape;
  PassSteps steps;
  if (writer.request.phase != Phase::train) {
    // Tokens whose logits nobody asks for are left out before the last norm.
    writer.norm_forward(steps.forward, "final norm", shape.logit_rows, shape.hidden);
    writer.forward(steps.forward, logits(writer));
    choose_token(writer, steps.forward);
    return steps;
  }
  writer.norm_forward(steps.forward, "final norm", shape.local_tokens, shape.hidden);
  writer.column_forward(steps.forward, logits(writer));
  loss_forward(writer, steps.forward);
  const std::int64_t elements = shape.logit_rows * shape.vocabulary;
  writer.move(steps.backward, "cross entropy backward", elements * kLogitBytes,
              writer.bytes_of(elements), elements);
  writer.column_backward(steps.backward, logits(writer));
  if (!own_table && writer.model.tied_embeddings) {
    // The embedding reports this gradient, which is the same table's.
    for (Step& step : steps.backward) step.ready = 0;
  }
  writer.norm_backward(steps.backward, "final norm", shape.local_tokens, shape.hidden);
  return steps;
}

}  // namespace hemiola::workload

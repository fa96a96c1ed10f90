// What a rank does for one layer (or for the embedding, or the logits) and one micro batch, as a
// list that is made once for each kind of layer and written into a trace as often as it occurs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workload/models/generate_shape.h"
#include "workload/workload.h"

namespace hemiola::workload {

/// Streams of every generated workload, in this order.
struct Streams {
  std::uint16_t compute = 0, tp = 0, dp = 0, pp_send = 0, pp_receive = 0, ep = 0, cp = 0,
                dp_gather = 0;
  // Of ring attention only, behind the others.
  std::uint16_t cp_send = 0, cp_receive = 0;
};

/// Families of groups; -1 where a group would have one rank.
struct Families {
  std::int32_t tp = -1;
  std::int32_t cp = -1;    ///< of attention that gathers
  std::int32_t ring = -1;  ///< pairs of neighbours of these, of attention that goes round
  /// DP x CP ranks: they hold the same dense parameters. Or Parallelism::shard of them.
  std::int32_t dp = -1;
  std::int32_t replicas = -1;                    ///< ranks that hold the same shard
  std::int32_t ep = -1;                          ///< EP of these
  std::int32_t expert_dp = -1;                   ///< ranks that hold the same experts
  std::int32_t even_pairs = -1, odd_pairs = -1;  ///< of neighbour stages (0, 1), (2, 3); (1, 2)
  std::int32_t wrap_pairs = -1;                  ///< (last, first), of the interleaved schedule
  std::int32_t embedding = -1;                   ///< (first, last): both hold tied embeddings
  std::int32_t model = -1;                       ///< all ranks that hold different parameters
};

constexpr std::int64_t kDropoutFlop = 2;  ///< for each element: multiplies by mask and scale

enum class StepRole : std::uint8_t {
  kernel,
  exposed,  ///< communication that the next kernel waits for
  begin,    ///< communication that runs on beside the next kernels
  join      ///< of all that was begun: the next kernel waits
};

struct Step {
  StepRole role = StepRole::kernel;
  NodeKind kind = NodeKind::compute;
  bool of_weight = false;  ///< of the pass that computes gradients of weights
  std::uint16_t stream = 0;
  std::uint32_t name = 0;
  std::int32_t work = -1;
  /// Gradients that are final for this micro batch when the step is over.
  std::int64_t ready = 0, ready_experts = 0;
};
using Steps = std::vector<Step>;

struct PassSteps {
  Steps forward;
  Steps backward;  ///< with what is computed again
};

/// One matrix of parameters, or as many as `batch`: `rows` x `inputs` times `inputs` x `outputs`.
struct Linear {
  std::string name;
  std::int64_t rows = 0, inputs = 0, outputs = 0;
  std::int64_t batch = 1;
  bool bias = false;
  bool is_expert = false;
  bool is_stored_type = false;  ///< never fp8: router and logits
  /// Matrices whose gradients and bytes count, if not all of them have work.
  std::int64_t held = 0;
  std::int64_t count() const {
    return (held == 0 ? batch : held) * (inputs * outputs + (bias ? outputs : 0));
  }
};

/// Writes steps; the functions below share it.
class StepWriter {
 public:
  StepWriter(WorkloadBuilder& builder, const MakeRequest& request, const RankShape& shape,
             const Streams& streams, const Families& families)
      : request(request),
        model(request.model),
        shape(shape),
        streams(streams),
        families(families),
        builder_(builder) {}

  // Kernels known by their bytes.
  void move(Steps& out, std::string_view name, std::int64_t read, std::int64_t written,
            std::int64_t flop = 0);
  void attention(Steps& out, std::string_view name, const Compute& core);
  void product(Steps& out, std::string_view name, const machine::GemmShape& product);

  void forward(Steps& out, const Linear& linear);
  void input_gradient(Steps& out, const Linear& linear);
  void weight_gradient(Steps& out, const Linear& linear);
  void gradients(Steps& out, const Linear& linear) {
    input_gradient(out, linear);
    weight_gradient(out, linear);
  }

  // Matrices whose columns are divided by tp: the input is whole, the gradient of it a sum.
  void column_forward(Steps& out, const Linear& linear);
  void column_backward(Steps& out, const Linear& linear);
  // Matrices whose rows are divided by tp: the output is a sum.
  void row_forward(Steps& out, const Linear& linear);
  void row_backward(Steps& out, const Linear& linear);

  void norm_forward(Steps& out, std::string_view name, std::int64_t rows, std::int64_t width);
  void norm_backward(Steps& out, std::string_view name, std::int64_t rows, std::int64_t width);

  /// The output of a block is added to what went in; training drops some of it before.
  void residual_forward(Steps& out, std::string_view name);
  void residual_begin_backward(Steps& out);
  /// The gradient of the block is added to the one that went past it.
  void residual_end_backward(Steps& out);

  /// Sum, or gather, over tp of so many bytes; nothing if tp is 1.
  void tp(Steps& out, StepRole role, Collective kind, std::int64_t bytes, bool of_weight = false);
  void communicate(Steps& out, StepRole role, std::string_view name, std::uint16_t stream,
                   const CollectiveCall& call, bool of_weight = false);
  /// A message to the next rank of the ring (or to the one before) and one from the other side,
  /// beside the next kernels.
  void exchange(Steps& out, std::int64_t bytes, bool to_next);
  static void join(Steps& out);

  std::int64_t bytes_of(std::int64_t elements) const { return elements * shape.element; }

  const MakeRequest& request;
  const Model& model;
  const RankShape& shape;
  const Streams& streams;
  const Families& families;

 private:
  DataType type_of(const Linear& linear) const;
  void add(Steps& out, std::string_view name, const Compute& compute);

  WorkloadBuilder& builder_;
};

// Attention of a layer from its norm to its residual.
void attention_forward(StepWriter& writer, Steps& out);
void attention_backward(StepWriter& writer, Steps& out);
// MLP or experts of a layer from the norm to the residual.
void mlp_forward(StepWriter& writer, Steps& out, bool mixture);
void mlp_backward(StepWriter& writer, Steps& out, bool mixture);

PassSteps layer_steps(StepWriter& writer, bool mixture);
PassSteps embedding_steps(StepWriter& writer);
/// `own_table`: the table of the logits is held here, not with the embedding.
PassSteps head_steps(StepWriter& writer, bool own_table);

}  // namespace hemiola::workload

// From a model and a parallelism to a workload: one iteration of training, a prefill, or one step
// of decode. docs/models.md is the manual: what each option does in which framework.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data_type.h"
#include "core/time.h"
#include "workload/models/model.h"
#include "workload/models/pipeline.h"
#include "workload/workload.h"

namespace hemiola::workload {

/// How many ranks divide what. Ranks are numbered as in Megatron-LM: tp fastest, then cp, dp, pp:
/// rank = tp + TP * (cp + CP * (dp + DP * pp)). Groups of ep are consecutive ranks of the DP x CP
/// ranks with the same tp and pp. Experts are divided by ep and each by tp.
struct Parallelism {
  int tp = 1;
  int pp = 1;
  int dp = 1;
  int cp = 1;
  int ep = 1;
  /// Of DP x CP ranks. 0: gradients are all-reduced. 1: optimizer states are divided (the
  /// distributed optimizer of Megatron-LM). 2: gradients, too, which are reduce-scattered in every
  /// micro batch. 3: parameters, too, which are gathered for every pass (FSDP).
  int zero = 0;
  /// Norms, dropout and residuals are divided by tokens among the ranks of tp. No effect if tp
  /// is 1.
  bool sequence_parallel = false;
  /// What ZeRO divides is divided among so many consecutive DP x CP ranks, and the groups of these
  /// are replicas (HSDP): their gradients are all-reduced behind the reduce-scatter. 0: among all.
  int shard = 0;

  std::int64_t ranks() const { return std::int64_t{tp} * pp * dp * cp; }
};

enum class Phase : std::uint8_t { train, prefill, decode };
enum class Recompute : std::uint8_t {
  none,
  selective,  ///< the core of attention (Korthikanti et al., arXiv:2205.05198)
  full        ///< whole layers, their communication too
};
enum class AttentionKernel : std::uint8_t {
  flash,   ///< one kernel, without a matrix of scores in memory
  unfused  ///< batched products for scores and context; softmax and dropout move the matrix of
           ///< scores through memory
};
enum class ContextParallel : std::uint8_t {
  gather,  ///< every rank gathers the keys and values of the whole sequence (Llama 3)
  ring     ///< attention goes piece by piece while keys and values move to the neighbour
};
std::string_view name_of(Phase phase);
std::string_view name_of(ContextParallel context);
std::optional<Phase> parse_phase(std::string_view name);
std::optional<Recompute> parse_recompute(std::string_view name);
std::optional<AttentionKernel> parse_attention(std::string_view name);
std::optional<ContextParallel> parse_context_parallel(std::string_view name);

struct MakeRequest {
  Model model;
  Parallelism parallelism{};
  Phase phase = Phase::train;
  /// Sequences of a rank at a time. 0: one; of prefill and decode all of `global_batch` that a
  /// replica has, divided by PP where that can be.
  std::int64_t micro_batch = 0;
  std::int64_t global_batch = 0;  ///< sequences of all ranks; 0: DP x PP x `micro_batch`
  std::int64_t sequence = 0;      ///< tokens; 0: the model's. Decode: of the prompt, not looked at
  std::int64_t context = 0;       ///< decode: tokens in the KV cache; 0: the model's sequence
  /// Of weights, activations and communication. fp8: of the operands of the layers' products; the
  /// rest is bfloat16.
  DataType type = DataType::bfloat16;
  /// Of gradients as they are summed and communicated. None: float32 with bfloat16 and fp8, else
  /// that of weights, as in Megatron-LM.
  std::optional<DataType> gradient_type{};
  Recompute recompute = Recompute::none;
  Schedule schedule = Schedule::one_forward_one_backward;
  int chunks = 1;  ///< of layers on each stage; `interleaved` needs 2 at least
  /// Layers of chunk c of stage s at [c PP + s]. Empty: the same number everywhere.
  std::vector<std::int64_t> stage_layers{};
  /// Without `stage_layers`: numbers of layers that do not divide are spread, so that chunks differ
  /// by one layer, first those that hold neither the embedding nor the logits get more. Llama 3
  /// 405B has 126 layers on 16 stages so (arXiv:2407.21783).
  bool uneven_stages = false;

  /// Gradients are communicated in buckets of so many bytes at least. 0: as Megatron-LM, 40 million
  /// parameters (or a million for each data-parallel rank) if `overlap_gradients`, else all.
  std::int64_t gradient_bucket = 0;
  /// In the last micro batch, while layers before are computed; or else after the last pass.
  bool overlap_gradients = true;
  /// ZeRO 1 and 2: parameters are gathered layer by layer before the first forward pass needs them;
  /// or else all of them after the optimizer.
  bool overlap_parameters = false;
  /// Layers whose parameters are gathered ahead of the one that is computed.
  int prefetch = 1;
  /// The all-reduce (reduce-scatter) of a gradient of inputs runs beside the product that computes
  /// the gradient of the weight; or else before it.
  bool overlap_tensor_gradients = true;
  /// Products add to the gradients; or else kernels of their own do.
  bool fused_gradient_sum = true;

  AttentionKernel attention = AttentionKernel::flash;
  bool fused_softmax = true;  ///< unfused attention: scale, mask and softmax are one kernel
  bool causal = true;
  ContextParallel context_parallel = ContextParallel::gather;  ///< how cp ranks divide attention

  /// Bytes of optimizer state for each parameter. Adam: float32 copy of the parameter, two moments.
  std::int64_t optimizer_bytes = 12;
  bool clip_gradients = true;
  /// The vocabulary is padded to a multiple of this times tp (make-vocab-size-divisible-by).
  std::int64_t vocabulary_multiple = 128;
  /// What the CPU needs for each kernel and call before the GPU has it.
  Time host_time{};
};

/// Failure, with the option as its place and the legal values as its hint, for what no framework
/// could run: sizes that do not divide, options that contradict each other.
void check(const MakeRequest& request);

/// One class for each stage. The model need not be complete. Failure as check().
Workload make_workload(const MakeRequest& request);

/// Flop of the model in one iteration of all ranks, whatever the implementation computes twice or
/// masks away: docs/models.md says exactly what counts.
double model_flop(const MakeRequest& request);

/// Parallelisms of so many ranks, each with the reason why it is out of the question.
struct Candidate {
  Parallelism parallelism{};
  std::int64_t memory = 0;  ///< bytes of the fullest GPU; 0: not computed, it is not legal
  std::string refused;      ///< why; empty: it can be run
};
/// All (tp, pp, dp, ep) for `ranks` GPUs with `memory` bytes each; everything else, such as cp and
/// zero, is as in `request`. In the order tp, pp, ep. The global batch of the request must be
/// given.
std::vector<Candidate> search_space(const MakeRequest& request, int ranks, std::int64_t memory);

}  // namespace hemiola::workload

#include "workload/models/make_options.h"

namespace hemiola::workload {
namespace {

template <class Parse>
auto word_of(const std::string& option, const std::string& word, const Parse& parse,
             const char* words) {
  const auto value = parse(word);
  if (!value) throw Failure("'" + word + "' is not one of its values", {.file = option}, words);
  return *value;
}

}  // namespace

MakeRequest make_request(const ModelIteration& of, const std::string& prefix) {
  return {
      .model = load_model(of.model),
      .parallelism = {.tp = of.tp,
                      .pp = of.pp,
                      .dp = of.dp,
                      .cp = of.cp,
                      .ep = of.ep,
                      .zero = of.zero,
                      .sequence_parallel = of.sequence_parallel,
                      .shard = of.shard},
      .phase = word_of(prefix + "phase", of.phase, parse_phase, "train, prefill or decode"),
      .micro_batch = of.micro_batch,
      .global_batch = of.global_batch,
      .sequence = of.sequence,
      .context = of.context,
      .type = of.type,
      .recompute =
          word_of(prefix + "recompute", of.recompute, parse_recompute, "none, selective or full"),
      .schedule = word_of(prefix + "pipeline", of.pipeline, parse_schedule,
                          "gpipe, 1f1b, interleaved or zero-bubble"),
      .chunks = of.chunks,
      .uneven_stages = of.uneven_stages,
      .gradient_bucket = of.bucket.count,
      .overlap_gradients = of.overlap,
      .prefetch = of.prefetch,
      .attention = word_of(prefix + "attention", of.attention, parse_attention, "flash or unfused"),
      .fused_softmax = of.fused_softmax,
      .context_parallel = word_of(prefix.empty() ? "context_parallel" : prefix + "context-parallel",
                                  of.context_parallel, parse_context_parallel, "gather or ring"),
      .optimizer_bytes = of.optimizer_bytes,
      .host_time = of.host_time};
}

}  // namespace hemiola::workload

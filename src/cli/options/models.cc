#include "cli/options/models.h"

#include "cli/options/inputs.h"
#include "cli/options/values.h"
#include "core/lists.h"
#include "workload/models/make_options.h"

namespace hemiola::cli {
namespace {

constexpr int kMostRanks = 1 << 20;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 40;

int ranks_of(const char* option, const std::string& text) {
  return int_value(option, text, 1, kMostRanks);
}

}  // namespace

void add_model_options(CLI::App& verb, ModelOptions& options) {
  const TextOptions add(verb);
  add("MODEL", options.model,
      "a shipped model (llama-70b), a text of yours, or a config.json of Hugging Face", "");
  add("--tp", options.tp, "ranks that divide each layer (tensor parallel)", "N");
  add("--pp", options.pp, "stages of layers (pipeline parallel)", "N");
  add("--dp", options.dp, "replicas (data parallel)", "N");
  add("--cp", options.cp, "ranks that divide each sequence (context parallel)", "N");
  add("--context-parallel", options.context_parallel,
      "of --cp: gather keys and values of the whole sequence, or pass them round a ring beside "
      "attention",
      "gather|ring");
  add("--ep", options.ep, "ranks that divide the experts, of those of dp and cp", "N");
  add("--zero", options.zero, "what replicas divide: 1 optimizer, 2 gradients, 3 parameters (FSDP)",
      "0..3");
  add("--shard", options.shard,
      "of --zero: among so many data-parallel ranks, whose groups are replicas (HSDP); 0: all",
      "N");
  verb.add_flag("--sp", options.sequence_parallel,
                "sequence parallel: norms and residuals are divided among tp ranks");
  verb.add_flag("--uneven-stages", options.uneven_stages,
                "stages may differ by a layer: 61 layers on 4 stages");
  add("--micro-batch", options.micro_batch,
      "sequences of a rank at a time; 0: 1, in inference all that a replica has", "N");
  add("--global-batch", options.global_batch,
      "sequences of all ranks; 0: a micro batch for each replica and stage", "N");
  add("--sequence", options.sequence, "tokens of a sequence; 0: the model's", "N");
  add("--context", options.context, "of decode: tokens that are there; 0: the model's sequence",
      "N");
  add("--recompute", options.recompute, "what backward computes again: none|selective|full",
      "MODE");
  add("--dtype", options.dtype, "of weights and activations", "TYPE");
  add("--phase", options.phase, "train|prefill|decode", "PHASE");
  add("--pipeline", options.pipeline, "gpipe|1f1b|interleaved|zero-bubble", "SCHEDULE");
  add("--chunks", options.chunks, "of interleaved: parts of the layers on each stage", "N");
  add("--bucket", options.gradient_bucket, "gradients that are communicated at a time", "SIZE");
  verb.add_flag("--no-overlap", options.no_overlap,
                "gradients are communicated after the last backward pass");
  add("--prefetch", options.prefetch, "of --zero 3: layers that are gathered ahead", "N");
  add("--attention", options.attention, "flash|unfused", "KERNEL");
  verb.add_flag("--unfused-softmax", options.unfused_softmax,
                "of unfused attention: scale, mask and softmax are kernels of their own");
  add("--optimizer-bytes", options.optimizer_bytes, "optimizer state of a parameter", "N");
  add("--host-time", options.host_time, "what the CPU needs for each kernel: 5us", "TIME");
}

workload::MakeRequest make_request(const ModelOptions& options) {
  if (options.model.empty())
    throw Failure("no model is named", {}, "there are: " + joined(workload::shipped_models()));
  workload::MakeRequest request{.model = workload::load_model(options.model)};
  workload::Parallelism& parallelism = request.parallelism;
  parallelism = {.tp = ranks_of("--tp", options.tp),
                 .pp = ranks_of("--pp", options.pp),
                 .dp = ranks_of("--dp", options.dp),
                 .cp = ranks_of("--cp", options.cp),
                 .ep = ranks_of("--ep", options.ep),
                 .zero = int_value("--zero", options.zero, 0, 3),
                 .sequence_parallel = options.sequence_parallel,
                 .shard = int_value("--shard", options.shard, 0, 1 << 20)};
  apply(workload::MakeWords{.phase = options.phase,
                            .recompute = options.recompute,
                            .pipeline = options.pipeline,
                            .attention = options.attention,
                            .context_parallel = options.context_parallel},
        "--", request);
  request.micro_batch = count_value("--micro-batch", options.micro_batch, 0, kMostTokens);
  request.global_batch = count_value("--global-batch", options.global_batch, 0, kMostTokens);
  request.sequence = count_value("--sequence", options.sequence, 0, kMostTokens);
  request.context = count_value("--context", options.context, 0, kMostTokens);
  request.type = data_type_value(options.dtype);
  request.chunks = ranks_of("--chunks", options.chunks);
  if (!options.gradient_bucket.empty()) {
    const std::vector<Bytes> sizes = size_values(options.gradient_bucket);
    request.gradient_bucket = sizes.front().count;
  }
  request.overlap_gradients = !options.no_overlap;
  request.uneven_stages = options.uneven_stages;
  request.fused_softmax = !options.unfused_softmax;
  request.optimizer_bytes = count_value("--optimizer-bytes", options.optimizer_bytes, 0, 1024);
  request.prefetch = int_value("--prefetch", options.prefetch, 0, 1024);
  if (!options.host_time.empty()) {
    const auto time = parse_time(options.host_time);
    if (!time || time->fs < 0)
      throw Failure("'" + options.host_time + "' is no time", {.file = "--host-time"},
                    "for example 5us");
    request.host_time = *time;
  }
  return request;
}

}  // namespace hemiola::cli

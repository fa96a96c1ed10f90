#include "cli/options/models.h"

#include "cli/options/inputs.h"
#include "cli/options/values.h"
#include "core/lists.h"

namespace hemiola::cli {
namespace {

constexpr int kMostRanks = 1 << 20;

}  // namespace

void add_model_options(CLI::App& verb, ModelIteration& options) {
  const AddOptions add(verb);
  const auto ranks = [&add](const char* name, int& value, const char* description) {
    add.count(name, value, 1, kMostRanks, description);
  };
  const auto tokens = [&add](const char* name, std::int64_t& value, const char* description) {
    add.count(name, value, 0, std::int64_t{1} << 40, description);
  };
  add("MODEL", options.model,
      "a shipped model (llama-70b), a text of yours, or a config.json of Hugging Face", "");
  ranks("--tp", options.tp, "ranks that divide each layer (tensor parallel)");
  ranks("--pp", options.pp, "stages of layers (pipeline parallel)");
  ranks("--dp", options.dp, "replicas (data parallel)");
  ranks("--cp", options.cp, "ranks that divide each sequence (context parallel)");
  add("--context-parallel", options.context_parallel,
      "of --cp: gather keys and values of the whole sequence, or pass them round a ring beside "
      "attention",
      "gather|ring");
  ranks("--ep", options.ep, "ranks that divide the experts, of those of dp and cp");
  add.count("--zero", options.zero, 0, 3,
            "what replicas divide: 1 optimizer, 2 gradients, 3 parameters (FSDP)", "0..3");
  add.count("--shard", options.shard, 0, kMostRanks,
            "of --zero: among so many data-parallel ranks, whose groups are replicas (HSDP); 0: "
            "all");
  verb.add_flag("--sp", options.sequence_parallel,
                "sequence parallel: norms and residuals are divided among tp ranks");
  verb.add_flag("--uneven-stages", options.uneven_stages,
                "stages may differ by a layer: 61 layers on 4 stages");
  tokens("--micro-batch", options.micro_batch,
         "sequences of a rank at a time; 0: 1, in inference all that a replica has");
  tokens("--global-batch", options.global_batch,
         "sequences of all ranks; 0: a micro batch for each replica and stage");
  tokens("--sequence", options.sequence, "tokens of a sequence; 0: the model's");
  tokens("--context", options.context, "of decode: tokens that are there; 0: the model's sequence");
  add("--recompute", options.recompute, "what backward computes again: none|selective|full",
      "MODE");
  add.data_type(options.type, "bf16", "of weights and activations");
  add("--phase", options.phase, "train|prefill|decode", "PHASE");
  add("--pipeline", options.pipeline, "gpipe|1f1b|interleaved|zero-bubble", "SCHEDULE");
  ranks("--chunks", options.chunks, "of interleaved: parts of the layers on each stage");
  add.read(
      "--bucket", {},
      [&options](const std::string& text) { options.bucket = size_values(text).front(); },
      "gradients that are communicated at a time", "SIZE");
  verb.add_flag_callback(
      "--no-overlap", [&options] { options.overlap = false; },
      "gradients are communicated after the last backward pass");
  add.count("--prefetch", options.prefetch, 0, 1024, "of --zero 3: layers that are gathered ahead");
  add("--attention", options.attention, "flash|unfused", "KERNEL");
  verb.add_flag_callback(
      "--unfused-softmax", [&options] { options.fused_softmax = false; },
      "of unfused attention: scale, mask and softmax are kernels of their own");
  add.count("--optimizer-bytes", options.optimizer_bytes, 0, 1024,
            "optimizer state of a parameter");
  add.read(
      "--host-time", {},
      [&options](const std::string& text) {
        const auto time = parse_time(text);
        if (!time || time->fs < 0)
          throw Failure("'" + text + "' is no time", {.file = "--host-time"}, "for example 5us");
        options.host_time = *time;
      },
      "what the CPU needs for each kernel: 5us", "TIME");
}

workload::MakeRequest make_request(const ModelIteration& options) {
  if (options.model.empty())
    throw Failure("no model is named", {}, "there are: " + joined(workload::shipped_models()));
  return workload::make_request(options, "--");
}

}  // namespace hemiola::cli

// Whole iterations of training and inference: of a model, or of a trace (docs/workloads.md).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hemiola/experiment.h"
#include "hemiola/machine.h"
#include "hemiola/simulate.h"
#include "hemiola/types.h"
#include "hemiola/units.h"

namespace hemiola {

/// One iteration of a model, and how its ranks divide it. Ranks: tp pp dp cp; tensor parallelism
/// varies fastest, then context, data and pipeline parallelism. What 0 stands for is `hemiola
/// workload make`'s.
struct ModelIteration {
  std::string model;            ///< a shipped one ("llama-70b"), a text of yours, a config.json
  std::string phase = "train";  ///< "train", "prefill", "decode"
  int tp = 1, pp = 1, dp = 1, cp = 1, ep = 1;
  int zero = 0;  ///< what replicas divide: 1 optimizer, 2 gradients, 3 parameters too (FSDP)
  bool sequence_parallel = false;
  int shard = 0;  ///< zero divides among so many replicas, whose groups are replicas; 0: all
  std::int64_t micro_batch = 0;  ///< sequences; 0: 1, in inference all that a replica has
  std::int64_t global_batch =
      0;                      ///< sequences of all ranks; 0: a micro batch per replica and stage
  std::int64_t sequence = 0;  ///< tokens; 0: the model's
  std::int64_t context = 0;   ///< of decode: tokens that are there; 0: the model's sequence
  DataType type = DataType::bfloat16;
  std::string recompute = "none";           ///< "none", "selective", "full"
  std::string pipeline = "1f1b";            ///< "gpipe", "1f1b", "interleaved", "zero-bubble"
  int chunks = 1;                           ///< of "interleaved": parts of the layers on each stage
  std::string attention = "flash";          ///< "flash", "unfused"
  bool fused_softmax = true;                ///< of "unfused"
  std::string context_parallel = "gather";  ///< of cp: "gather", "ring"
  bool uneven_stages = false;               ///< stages may differ by a layer
  Bytes bucket{};                           ///< gradients communicated at a time; 0: Megatron-LM's
  bool overlap = true;       ///< gradients are communicated beside the last backward pass
  int prefetch = 1;          ///< of zero = 3: layers that are gathered ahead
  int optimizer_bytes = 12;  ///< optimizer state of a parameter
  Time host_time{};          ///< what the CPU needs for each kernel and call
};

/// How a trace is read (docs/traces.md).
struct TraceOptions {
  bool lenient = false;  ///< what can be left out of a damaged one is, and is a notice
  std::string sizes;     ///< a file with the sizes of calls that do not say theirs
  std::string groups;    ///< a file of process groups; empty: the one beside the trace
  int replicate = 0;     ///< of a trace of one rank: so many ranks do the same; 0: it is all
};

/// Kernels, copies, collectives and messages of every rank on its streams, with what waits for
/// what. Immutable and cheap to copy.
class Workload {
 public:
  /// Failure, with the option's name as its place: what no framework runs so, an unknown model.
  static Workload make(const ModelIteration& iteration);
  /// A Chakra, PyTorch or Kineto trace: a file, a folder, a prefix of PREFIX.<rank>.et, a pattern
  /// t.%d.et or an archive. Failure with file and node.
  static Workload read(const std::string& path, const TraceOptions& options = {});

  const std::string& name() const;
  int ranks() const;
  std::int64_t nodes() const;  ///< of all ranks
  const std::vector<Diagnostic>& notices() const;

  /// PREFIX.<rank>.et for each rank (Chakra 0.0.4) and PREFIX.json with the process groups, for
  /// ASTRA-sim and others; read() gives the same workload again. Failure: cannot be written.
  void write_chakra(const std::string& prefix) const;

  struct Implementation;  ///< the library's
  explicit Workload(std::shared_ptr<const Implementation> self) : self_(std::move(self)) {}
  const Implementation& implementation() const { return *self_; }

 private:
  std::shared_ptr<const Implementation> self_;
};

/// How an iteration is timed.
struct IterationOptions {
  std::string engine = "fluid";                 ///< "estimate", "fluid", "sampled", "line"
  std::optional<LaunchMode> launch{};           ///< nothing: a graph for decode, else a stream
  std::map<std::string, std::string> detail{};  ///< engine by collective: {"all-reduce", "line"}
  std::string collectives;                      ///< a file: which programs collectives run
  std::string compute = "automatic";            ///< "automatic", "recorded", "model", "roofline"
  /// "simulated", or "recorded": what a trace says; "automatic": recorded where `compute` is, and
  /// the machine has the GPUs of the trace.
  std::string calls = "automatic";
  /// Times that were recorded on another GPU: "none", "model", "bytes"; empty: by models, or an
  /// error where `compute` is "recorded".
  std::string scale_recorded{};
  double scale_compute = 1;  ///< the time of kernels times this: 0.001 to 1000
  /// What takes no time: collectives, "messages"; "compute", or of it "products", "attention",
  /// "kernels"; "copies", "host"; or kernels by name, "*norm*".
  std::vector<std::string> without{};
  bool contention = true;  ///< launches beside each other take from each other
};

/// Where the time of ranks that do the same goes. The first six sum to the iteration's time.
struct RankTime {
  std::string name;  ///< "stage 0"
  std::vector<int> ranks;
  Time compute{}, exposed{}, copies{}, waiting{}, host{}, idle{};
  Time hidden{};  ///< communication beside kernels
  Time slowed{};  ///< what kernels lost to communication beside them
  std::map<std::string, std::int64_t> memory_bytes;  ///< of a model, by name
};

/// Calls of one kind, size and group.
struct IterationCall {
  std::string name;  ///< "all-reduce tp"
  int group = 0, groups = 0;
  std::int64_t calls = 0;  ///< of all groups
  Bytes size{};
  Time alone{};
};

/// Nodes of one name on the critical path.
struct PathShare {
  std::string name;
  std::int64_t nodes = 0;
  Time time{};  ///< of all of them
};

struct Iteration {
  std::string machine, workload;
  int ranks = 0;
  Time time{};
  Time recorded{};  ///< of a trace; 0: not known
  /// Of a model; 0 otherwise.
  double tokens_per_second_and_gpu = 0, model_flop_utilisation = 0;
  std::vector<RankTime> classes;
  std::vector<IterationCall> calls;  ///< the longest in all first
  std::vector<PathShare> path;       ///< the most first
  std::int64_t simulations = 0;
  std::vector<Diagnostic> notices;

  struct Implementation;  ///< the library's, for reports
  std::shared_ptr<const Implementation> self{};
};

/// Failure: ranks that the machine does not have, or more of them than the workload has, words that
/// are none of the known ones, nodes that wait for each other (deadlock), calls that differ between
/// ranks (wrong program). Interrupted when `watch` asks for it.
Iteration run_iteration(const Machine& machine, const Workload& workload,
                        const IterationOptions& options = {}, const Watch& watch = {});

/// The tables of `hemiola workload make`.
void print_iteration(std::ostream& out, const Iteration& iteration);
/// What --json, --trace (Perfetto's format) and --report (a page; Failure where the library was
/// built without) write, and the launches as a job (docs/jobs.md).
std::string iteration_json(const Iteration& iteration, const std::string& command = {});
std::string iteration_trace(const Iteration& iteration);
std::string iteration_page(const Iteration& iteration, const std::string& command = {});
std::string iteration_job(const Iteration& iteration);

/// A way to divide a model among GPUs.
struct ParallelismRow {
  int tp = 1, pp = 1, dp = 1, cp = 1, ep = 1, zero = 0;
  std::int64_t memory = 0;  ///< bytes of the GPU that needs most
  std::string refused;      ///< why it was not run; empty: it was
  Time time{};
  double tokens_per_second_and_gpu = 0, model_flop_utilisation = 0;
};

/// Every (tp, pp, dp, ep) of `iteration` on the ranks of a machine, those that fit into memory the
/// fastest first, then the others with the reason. Its tp, pp, dp and ep are not looked at, and its
/// global_batch is needed. `memory`: bytes of a GPU; 0: those of its device model. Failure: none
/// fits. Interrupted.
std::vector<ParallelismRow> search_parallelism(const Machine& machine,
                                               const ModelIteration& iteration,
                                               const IterationOptions& options = {},
                                               std::int64_t memory = 0, const Watch& watch = {});

}  // namespace hemiola

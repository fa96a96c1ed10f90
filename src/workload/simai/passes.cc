// The order in which ASTRA-sim 1 runs the passes of layers (Workload::iterate_...() of both
// sources in layers.h), as nodes of a rank.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "workload/simai/call_trace.h"
#include "workload/simai/layers.h"
#include "workload/simai/reader.h"

namespace hemiola::workload {
namespace {

using simai::Direction;
using simai::kForward;
using simai::kInputGradient;
using simai::kWeightGradient;
using simai::Layer;
using simai::LayerText;
using simai::Parallelism;

/// Model parallel ranks are neighbours, then expert parallel and data parallel ones, then stages of
/// the pipeline. They multiply to the ranks, expert parallel ones to a part of the data parallel.
struct GroupSizes {
  int ranks = 1, model = 0, data = 0, expert = 1, stages = 1;  ///< model 0: not said
};

class PassWalk {
 public:
  PassWalk(const LayerText& text, const std::string& file, const GroupSizes& sizes,
           WorkloadBuilder& builder, Tally& tally)
      : text_(text),
        file_(file),
        sizes_(sizes),
        builder_(builder),
        tally_(tally),
        trace_(builder, file) {}

  std::shared_ptr<const Trace> run() {
    switch (text_.parallelism) {
      case Parallelism::micro:
        for (Index i = 0; i < count(); ++i) call(i, kWeightGradient);
        break;
      case Parallelism::data:
        run_data();
        break;
      case Parallelism::dlrm:
        run_dlrm();
        break;
      default:
        for (Index i = 0; i < count(); ++i) forward(i);
        if (text_.parallelism != Parallelism::inference) backward();
    }
    return trace_.take();
  }

 private:
  using Index = std::int64_t;  ///< of a layer
  const Layer& layer(Index i) const { return text_.layers[index(i)]; }
  Index count() const { return static_cast<Index>(text_.layers.size()); }

  [[noreturn]] void fail(int line, const std::string& problem, const std::string& hint) const {
    throw Failure(problem, {.file = file_, .line = line}, hint);
  }

  void forward(Index i) {
    compute(i, kForward);
    wait(call(i, kForward));
  }

  /// The forward passes from the last checkpoint to the layer.
  void recompute(Index i) {
    Index first = i;
    while (first >= 0 && !layer(first).is_checkpoint) --first;
    bool is_plain = first >= 0 && first < i;
    for (Index j = first + 1; is_plain && j < i; ++j) is_plain = !layer(j).initiates;
    if (!is_plain)
      fail(1,
           fmt::format("layer {} initiates forward passes, and between it and the one before that "
                       "does is no checkpoint",
                       i),
           "layers are numbered from 0");
    for (Index j = first; j < i; ++j) forward(j);
  }

  /// A transformer's input gradients are waited for at once, others after the weight gradients.
  void backward() {
    const bool is_transformer = text_.parallelism == Parallelism::transformer;
    for (Index i = count() - 1; i >= 0; --i) {
      if (layer(i).initiates) recompute(i);
      compute(i, kInputGradient);
      std::optional<std::uint32_t> sent;
      if (is_transformer || i > 0) sent = call(i, kInputGradient);
      if (is_transformer) wait(sent);
      compute(i, kWeightGradient);
      call(i, kWeightGradient);
      if (!is_transformer) wait(sent);
    }
  }

  void run_data() {
    for (Index i = 0; i < count(); ++i) compute(i, kForward);
    for (Index i = count() - 1; i >= 0; --i) {
      compute(i, kWeightGradient);
      call(i, kWeightGradient);
      if (i > 0) compute(i, kInputGradient);
    }
  }

  /// The all-to-all of the embedding, layer 0, runs beside the bottom MLP.
  void run_dlrm() {
    std::optional<std::uint32_t> embedding;
    for (Index i = 0; i < count(); ++i) {
      compute(i, kForward);
      if (layer(i).passes[kForward].kind == Collective::all_to_all) {
        const auto called = call(i, kForward);
        if (i == 0) embedding = called;
      }
      if (i == text_.last_bottom_layer) wait(embedding);
    }
    for (Index i = count() - 1; i >= 0; --i) {
      compute(i, kWeightGradient);
      call(i, kWeightGradient);
      if (i > 0) compute(i, kInputGradient);
      if (i > 0 && i == text_.last_bottom_layer + 1) call(0, kInputGradient);
    }
  }

  void wait(std::optional<std::uint32_t> node) {
    if (node) trace_.wait(*node);
  }

  std::string name(Index i, Direction direction) const {
    static constexpr const char* kNames[] = {"forward", "input gradient", "weight gradient"};
    return layer(i).name + " " + kNames[direction];
  }

  void compute(Index i, Direction direction) {
    trace_.compute(name(i, direction), layer(i).passes[direction].compute);
  }

  /// Nothing if it moves nothing.
  std::optional<std::uint32_t> call(Index i, Direction direction) {
    const simai::Pass& pass = layer(i).passes[direction];
    if (!pass.kind) return std::nullopt;
    const auto leave_out = [&](std::string_view why) {
      tally_.add(fmt::format("ignored: calls {}", why), fmt::format("in line {}", layer(i).line));
      return std::nullopt;
    };
    if (pass.bytes == 0) return leave_out("of 0 bytes");
    const std::int32_t family = family_of(i, direction);
    if (family < 0) return leave_out("in passes in which the parallelism has none");
    if (builder_.workload().families[index(family)].groups.front().size() == 1)
      return leave_out("in groups of one rank");
    return trace_.call(name(i, direction),
                       {.kind = *pass.kind, .family = family, .bytes = pass.bytes},
                       layer(i).update);
  }

  std::int32_t family(std::string_view name, int size, int stride) {
    const auto [at, is_new] = families_.try_emplace({size, stride}, 0);
    if (is_new) at->second = builder_.family(name, strided_groups(sizes_.ranks, size, stride));
    return at->second;
  }

  /// -1: no group of this parallelism calls in this direction.
  std::int32_t family_of(Index i, Direction direction) {
    const Parallelism parallelism = layer(i).parallelism;
    const bool is_weight = direction == kWeightGradient;
    if (parallelism == Parallelism::data || parallelism == Parallelism::micro ||
        parallelism == Parallelism::dlrm) {
      const bool is_embedding = parallelism == Parallelism::dlrm && i == 0;
      return is_weight || is_embedding ? family("all", sizes_.ranks, 1) : -1;
    }
    if (parallelism == Parallelism::model || parallelism == Parallelism::inference)
      return is_weight ? -1 : family("all", sizes_.ranks, 1);
    if (sizes_.model == 0)
      fail(1, "nothing says how large a model parallel group is",
           "ASTRA-sim takes the first dimension of its network: write 'model_parallel_NPU_group: "
           "N' into the first line");
    const simai::Suffix suffix = layer(i).passes[direction].suffix;
    if (suffix == simai::Suffix::ep) return family("ep", sizes_.expert, sizes_.model);
    if (suffix == simai::Suffix::dp_ep)
      return family("dp_ep", sizes_.data / sizes_.expert, sizes_.model * sizes_.expert);
    const bool is_outer = parallelism == Parallelism::model_data;
    if (is_weight) return family("dp", sizes_.data, is_outer ? 1 : sizes_.model);
    return family("tp", sizes_.model, is_outer ? sizes_.data : 1);
  }

  const LayerText& text_;
  const std::string& file_;
  const GroupSizes& sizes_;
  WorkloadBuilder& builder_;
  Tally& tally_;
  simai::CallTrace trace_;
  std::map<std::pair<int, int>, std::int32_t> families_;  ///< by size and stride
};

GroupSizes sizes_of(const TraceRequest& request, const SourceLocation& at, const LayerText& text,
                    std::vector<Diagnostic>& notices) {
  const auto gpus = static_cast<int>(text.gpus);
  const int ranks = request.replicate.value_or(gpus);
  if (ranks == 0)
    throw Failure("nothing says how many ranks there are", at, "--replicate N runs it on N ranks");
  if (gpus > 0 && gpus != ranks)
    notices.push_back({Severity::warning,
                       fmt::format("runs on {} ranks, and is written for {}: model and expert "
                                   "parallel groups stay, data parallel ones have other sizes",
                                   ranks, gpus),
                       at,
                       {}});
  const auto stages = std::max<std::int64_t>(text.stages, 1);
  const auto expert = std::max<std::int64_t>(text.expert_parallel, 1);
  const std::int64_t inner = std::max<std::int64_t>(text.model_parallel, 1) * expert * stages;
  if (ranks % inner != 0)
    throw Failure(fmt::format("{} ranks are no multiple of {}: model parallel ranks x expert "
                              "parallel ones x stages",
                              ranks, inner),
                  at);
  return {ranks, static_cast<int>(text.model_parallel), static_cast<int>(ranks / inner * expert),
          static_cast<int>(expert), static_cast<int>(stages)};
}

/// What the layers do not say, or say otherwise than upstream runs them.
void remark(const LayerText& text, const SourceLocation& at, std::vector<Diagnostic>& notices) {
  if (text.stages > 1)
    notices.push_back(
        {Severity::warning,
         fmt::format("the layers are those of one of {} stages, which all run them at once: the "
                     "pipeline's bubble and its messages of {} bytes are not in the time",
                     text.stages, text.stage_bytes),
         at,
         fmt::format("SimAI adds (pp - 1) / (ga x vpp) = {} / ({} x {}) of the layers' time",
                     text.stages - 1, text.accumulation, text.virtual_stages)});
  if (text.parallelism == Parallelism::micro && text.layers.size() > 1)
    notices.push_back({Severity::note,
                       fmt::format("the calls of all {} layers run, one after the other; ASTRA-sim "
                                   "runs that of the first",
                                   text.layers.size()),
                       at,
                       {}});
  const bool has_all_gather = std::ranges::any_of(text.layers, [](const Layer& layer) {
    return std::ranges::any_of(
        layer.passes, [](const simai::Pass& pass) { return pass.kind == Collective::all_gather; });
  });
  if (!text.is_simai && has_all_gather)
    notices.push_back({Severity::note,
                       "an ALLGATHER's bytes are taken as those of its result, as SimAI does; in "
                       "ASTRA-sim 1 they are one rank's share",
                       at,
                       {}});
}

}  // namespace

Workload read_astra_text(const TraceRequest& request, const std::string& file,
                         std::string_view text) {
  simai::refuse_trace_options(request);
  const SourceLocation head{.file = file, .line = 1};
  Tally tally;
  tally.begin_file(file);
  const LayerText layers = simai::parse_layers(file, text, request.lenient, tally);
  std::vector<Diagnostic> notices;
  const GroupSizes sizes = sizes_of(request, head, layers, notices);
  remark(layers, head, notices);
  WorkloadBuilder builder(request.name, sizes.ranks);
  Workload& workload = builder.workload();
  workload.source = file;
  workload.classes.push_back(
      simai::class_of("all", PassWalk(layers, file, sizes, builder, tally).run(), 0, sizes.ranks));
  simai::refuse_nothing(workload);
  workload.notices = std::move(notices);
  tally.report(workload.notices);
  return builder.take();
}

}  // namespace hemiola::workload

// What no framework could run, before anything is generated.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "core/lists.h"
#include "workload/models/generate_shape.h"

namespace hemiola::workload {
namespace {

constexpr std::int64_t kMostRanksOfJob = 1 << 22;
constexpr std::int64_t kMostSequences = std::int64_t{1} << 32;
constexpr std::int64_t kMostNodes = std::int64_t{1} << 32;
constexpr std::size_t kMostHinted = 12;

/// Numbers that divide `number` and are at most `most`, as words.
std::string divisors(std::int64_t number, std::int64_t most) {
  std::vector<std::string> words;
  for (std::int64_t d = 1; d <= std::min(number, most) && words.size() < kMostHinted; ++d)
    if (number % d == 0) words.push_back(std::to_string(d));
  return joined(words);
}

class RequestChecker {
 public:
  explicit RequestChecker(const MakeRequest& request)
      : request_(request),
        by_(request.parallelism),
        model_(complete(request.model)),
        micro_batch_(micro_batch_of(request)) {}

  void run() {
    check_ranges();
    check_phase();
    check_tensor();
    check_pipeline();
    check_batch();
    check_sequence();
    check_experts();
    check_shard();
    check_types();
  }

 private:
  [[noreturn]] static void fail(const std::string& option, const std::string& message,
                                const std::string& hint) {
    throw Failure(message, SourceLocation{.file = option}, hint);
  }
  static void in_range(const char* option, std::int64_t value, std::int64_t least,
                       std::int64_t most) {
    if (value < least || value > most)
      fail(option, fmt::format("{} is out of range", value), fmt::format("{} to {}", least, most));
  }
  /// `count` of `what` has to be a multiple of the option's value.
  static void divides(const char* option, std::int64_t value, std::int64_t count,
                      const std::string& what) {
    if (count % value == 0) return;
    fail(option, fmt::format("{} {} cannot be divided by {}", count, what, value),
         fmt::format("one of {}", divisors(count, kMostRanksOfJob)));
  }

  void check_ranges() const {
    in_range("--tp", by_.tp, 1, kMostRanksOfJob);
    in_range("--pp", by_.pp, 1, kMostRanksOfJob);
    in_range("--dp", by_.dp, 1, kMostRanksOfJob);
    in_range("--cp", by_.cp, 1, kMostRanksOfJob);
    in_range("--ep", by_.ep, 1, kMostRanksOfJob);
    in_range("--zero", by_.zero, 0, 3);
    // Two factors at a time, so that no product overflows.
    if (std::int64_t{by_.tp} * by_.pp > kMostRanksOfJob ||
        std::int64_t{by_.dp} * by_.cp > kMostRanksOfJob || by_.ranks() > kMostRanksOfJob)
      fail("--dp", "these are too many ranks", fmt::format("at most {}", kMostRanksOfJob));
    in_range("--micro-batch", request_.micro_batch, 0, kMostSequences);
    in_range("--global-batch", request_.global_batch, 0, kMostSequences);
    in_range("--sequence", request_.sequence, 0, kMostSequences);
    in_range("--context", request_.context, 0, kMostSequences);
    in_range("--chunks", request_.chunks, 1, 1 << 16);
    in_range("--prefetch", request_.prefetch, 0, 1 << 16);
    in_range("--bucket", request_.gradient_bucket, 0, std::int64_t{1} << 50);
    in_range("--optimizer-bytes", request_.optimizer_bytes, 0, 1 << 16);
    in_range("--vocabulary-multiple", request_.vocabulary_multiple, 1, 1 << 20);
    if (request_.host_time < Time{}) fail("--host-time", "a time is negative", "0 ns or more");
  }

  void check_phase() const {
    if (request_.phase == Phase::train) return;
    const std::string phase(name_of(request_.phase));
    if (by_.zero != 0) fail("--zero", fmt::format("nothing of ZeRO is left in {}", phase), "0");
    if (request_.phase == Phase::decode && by_.cp != 1)
      fail("--cp", "one token of each sequence cannot be divided", "1");
    if (request_.schedule != Schedule::one_forward_one_backward &&
        request_.schedule != Schedule::gpipe)
      fail("--pipeline", fmt::format("{} has no backward passes to schedule", phase),
           "gpipe or 1f1b, which are the same here");
  }

  void check_tensor() const {
    divides("--tp", by_.tp, model_.heads, "heads");
    if (!model_.is_latent()) check_kv_heads();
    const bool dense = !model_.is_mixture() || model_.experts.first_dense_layers > 0;
    if (dense) divides("--tp", by_.tp, model_.intermediate, "columns of the MLP");
    if (model_.is_mixture())
      divides("--tp", by_.tp, model_.experts.intermediate, "columns of an expert");
  }

  void check_kv_heads() const {
    if (model_.kv_heads % by_.tp == 0) return;
    const bool may_repeat = request_.phase != Phase::train;
    if (may_repeat && by_.tp % model_.kv_heads == 0) return;
    fail(
        "--tp",
        fmt::format("{} heads of keys and values cannot be divided by {}", model_.kv_heads, by_.tp),
        fmt::format("one of {}{}", divisors(std::gcd(model_.kv_heads, model_.heads), 1 << 20),
                    may_repeat ? ", or a multiple of the last, which repeats them" : ""));
  }

  void check_pipeline() const {
    const std::int64_t parts = std::int64_t{by_.pp} * request_.chunks;
    const bool interleaved = request_.schedule == Schedule::interleaved;
    if (request_.chunks > 1 && !interleaved)
      fail("--chunks",
           fmt::format("{} has one chunk of layers on each stage", name_of(request_.schedule)),
           "1, or --pipeline interleaved");
    if (interleaved && request_.chunks < 2)
      fail("--chunks", "the interleaved schedule needs several chunks on each stage", "2 or more");
    if (interleaved && by_.pp < 2)
      fail("--pp", "the interleaved schedule needs several stages", "2 or more");
    if (!request_.stage_layers.empty())
      check_stage_layers(parts);
    else if (request_.uneven_stages)
      in_range("--pp", parts, 1, model_.layers);
    else if (model_.layers % parts != 0)
      refuse_stages();
  }

  [[noreturn]] void refuse_stages() const {
    std::vector<std::string> legal;
    for (std::int64_t pp = 1; pp * request_.chunks <= model_.layers; ++pp)
      if (model_.layers % (pp * request_.chunks) == 0 && legal.size() < kMostHinted)
        legal.push_back(std::to_string(pp));
    const std::string chunks =
        request_.chunks > 1 ? fmt::format(" of {} chunks", request_.chunks) : "";
    fail("--pp",
         fmt::format("{} layers cannot be divided by {} stages{}", model_.layers, by_.pp, chunks),
         fmt::format("{}; or stages with different numbers of layers",
                     legal.empty() ? "fewer chunks" : "one of " + joined(legal)));
  }

  void check_stage_layers(std::int64_t parts) const {
    const std::vector<std::int64_t>& layers = request_.stage_layers;
    if (static_cast<std::int64_t>(layers.size()) != parts)
      fail("--stage-layers", fmt::format("{} numbers of layers are given", layers.size()),
           fmt::format("{}, one for each chunk of each stage", parts));
    for (const std::int64_t count : layers) in_range("--stage-layers", count, 0, model_.layers);
    const std::int64_t sum = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
    if (sum != model_.layers)
      fail("--stage-layers", fmt::format("the stages have {} layers", sum),
           fmt::format("{} in all", model_.layers));
  }

  void check_batch() const {
    const std::int64_t step = micro_batch_ * by_.dp;
    const std::int64_t global = request_.global_batch == 0 ? step * by_.pp : request_.global_batch;
    if (global % step != 0)
      fail("--global-batch",
           fmt::format("{} sequences cannot be divided into micro batches of {} on {} "
                       "data-parallel ranks",
                       global, micro_batch_, by_.dp),
           fmt::format("a multiple of {}", step));
    const std::int64_t micro_batches = global / step;
    if (request_.schedule == Schedule::interleaved && micro_batches % by_.pp != 0)
      fail("--global-batch",
           fmt::format("the interleaved schedule cannot divide {} micro batches into rounds of {} "
                       "stages",
                       micro_batches, by_.pp),
           fmt::format("a multiple of {}", step * by_.pp));
    // A layer has some 50 nodes.
    if (micro_batches > kMostNodes / 50 / std::max<std::int64_t>(1, model_.layers / by_.pp))
      fail("--global-batch", fmt::format("{} micro batches are too many", micro_batches),
           "a larger --micro-batch or --dp");
  }

  void check_sequence() const {
    const std::int64_t sequence = request_.sequence == 0 ? model_.sequence : request_.sequence;
    const bool decode = request_.phase == Phase::decode;
    const std::int64_t context = request_.context == 0 ? model_.sequence : request_.context;
    if (model_.positions == Positions::learned && (decode ? context : sequence) > model_.sequence)
      fail(decode ? "--context" : "--sequence",
           fmt::format("{} positions were learned", model_.sequence),
           fmt::format("at most {}", model_.sequence));
    if (by_.cp > 1 && sequence % (2 * by_.cp) != 0)
      fail("--cp",
           fmt::format("a sequence of {} cannot be divided into two equal parts for each of {} "
                       "ranks",
                       sequence, by_.cp),
           fmt::format("one of {}", divisors(sequence / 2, kMostRanksOfJob)));
    check_ring();
    if (!by_.sequence_parallel) return;
    const std::int64_t tokens = decode ? micro_batch_ : micro_batch_ * (sequence / by_.cp);
    if (tokens % by_.tp != 0)
      fail("--sp", fmt::format("{} tokens cannot be divided by {} ranks", tokens, by_.tp),
           "without --sp, or a --tp that divides them");
  }

  void check_ring() const {
    if (request_.context_parallel != ContextParallel::ring) return;
    if (by_.cp == 1)
      fail("--context-parallel", "no ranks divide the sequence: there is no ring",
           "--cp 2 or more, or gather");
    // Its pieces are joined by the sums of their rows.
    if (request_.attention == AttentionKernel::unfused)
      fail("--context-parallel",
           "attention that keeps a matrix of scores has no pieces to go round",
           "--attention flash, or gather");
  }

  void check_shard() const {
    if (by_.shard == 0) return;
    in_range("--shard", by_.shard, 1, kMostRanksOfJob);
    if (by_.zero == 0)
      fail("--shard", "nothing is divided among data-parallel ranks", "--zero 1, 2 or 3");
    if (by_.ep > 1) fail("--shard", "experts are divided among these ranks already", "--ep 1");
    divides("--shard", by_.shard, std::int64_t{by_.dp} * by_.cp, "data-parallel ranks");
  }

  void check_experts() const {
    if (by_.ep == 1) return;
    if (!model_.is_mixture())
      fail("--ep", fmt::format("model '{}' has no experts", model_.name), "1");
    divides("--ep", by_.ep, model_.experts.count, "experts");
    divides("--ep", by_.ep, std::int64_t{by_.dp} * by_.cp, "data-parallel ranks");
  }

  void check_types() const {
    constexpr std::array kStored{DataType::float16, DataType::bfloat16, DataType::float32};
    const auto is_stored = [&](DataType type) {
      return std::ranges::find(kStored, type) != kStored.end();
    };
    if (!is_stored(stored_type(request_)))
      fail("--dtype", fmt::format("no model is kept in {}", name_of(request_.type)),
           "bfloat16, float16, float32, fp8_e4m3 or fp8_e5m2");
    if (!is_stored(gradient_type(request_)))
      fail("--gradient-dtype",
           fmt::format("no gradients are summed in {}", name_of(gradient_type(request_))),
           "float32, bfloat16 or float16");
  }

  const MakeRequest& request_;
  const Parallelism& by_;
  Model model_;
  std::int64_t micro_batch_ = 1;
};

}  // namespace

void check(const MakeRequest& request) {
  RequestChecker(request).run();
}

}  // namespace hemiola::workload

#include "workload/simai/layers.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "core/lists.h"
#include "core/units.h"
#include "workload/simai/call_trace.h"

namespace hemiola::workload::simai {
namespace {

constexpr std::int64_t kMostLayers = 1'000'000;

constexpr std::array<std::pair<std::string_view, Parallelism>, 11> kParallelisms{
    {{"DATA", Parallelism::data},
     {"MODEL", Parallelism::model},
     {"HYBRID_TRANSFORMER", Parallelism::transformer},
     {"HYBRID_TRANSFORMER_FWD_IN_BCKWD", Parallelism::transformer},
     {"HYBRID_DATA_MODEL", Parallelism::data_model},
     {"HYBRID_MODEL_DATA", Parallelism::model_data},
     {"HYBRID_CUSTOMIZED", Parallelism::customized},
     {"HYBRID_DLRM", Parallelism::dlrm},
     {"HYBRID_DLRM_ENHANCED", Parallelism::dlrm},
     {"MICRO", Parallelism::micro},
     {"DISTRIBUTED_INFERENCE", Parallelism::inference}}};

constexpr std::array<std::pair<std::string_view, Collective>, 4> kCollectives{
    {{"ALLREDUCE", Collective::all_reduce},
     {"ALLGATHER", Collective::all_gather},
     {"REDUCESCATTER", Collective::reduce_scatter},
     {"ALLTOALL", Collective::all_to_all}}};
constexpr std::array<std::pair<std::string_view, Suffix>, 3> kSuffixes{
    {{"", Suffix::none}, {"_EP", Suffix::ep}, {"_DP_EP", Suffix::dp_ep}}};

class LayerParser {
 public:
  LayerParser(const std::string& file, std::string_view text, bool lenient, Tally& tally)
      : file_(file), lenient_(lenient), tally_(tally), lines_(word_lines(text)) {}

  LayerText parse() {
    if (lines_.empty()) throw Failure("is empty", {.file = file_});
    read_head();
    if (lines_.size() < 2 || lines_[1].words.size() != 1)
      throw Failure("the second line is the number of layers", where(lines_.front().number + 1));
    const std::int64_t count = read_number(lines_[1].words[0], 1, kMostLayers, where(lines_[1]));
    const auto there = static_cast<std::int64_t>(lines_.size()) - 2;
    if (there != count)
      throw Failure(fmt::format("{} layers are announced, and there are {}", count, there),
                    where(there < count ? lines_.back() : lines_[index(count) + 2]),
                    there < count ? "the file is cut short" : "");
    text_.layers.reserve(index(count));
    for (std::size_t i = 2; i < lines_.size(); ++i) text_.layers.push_back(read_layer(lines_[i]));
    mark(checkpoints_, &Layer::is_checkpoint);
    mark(initiates_, &Layer::initiates);
    return std::move(text_);
  }

 private:
  SourceLocation where(int line) const { return {.file = file_, .line = line}; }
  SourceLocation where(const WordLine& line) const { return where(line.number); }

  Parallelism parallelism_of(std::string_view word, const WordLine& line) const {
    std::vector<std::string> names;
    for (const auto& [name, parallelism] : kParallelisms) {
      if (name == word) return parallelism;
      names.emplace_back(name);
    }
    throw Failure(fmt::format("'{}' is no parallelism of ASTRA-sim", word), where(line),
                  "there are " + joined(names));
  }

  void read_head() {
    const WordLine& head = lines_.front();
    text_.parallelism = parallelism_of(head.words[0], head);
    const bool is_dlrm = text_.parallelism == Parallelism::dlrm;
    if (is_dlrm && head.words.size() == 2) {  // ASTRA-sim 1 has the number alone
      text_.last_bottom_layer = read_number(head.words[1], 0, kMostLayers, where(head));
      return;
    }
    std::map<std::string, bool, std::less<>> seen;
    for (at_ = 1; at_ < head.words.size();) {
      std::string_view key = head.words[at_++];
      if (key.ends_with(':')) key.remove_suffix(1);
      if (std::exchange(seen[std::string(key)], true))
        throw Failure(fmt::format("'{}' stands twice", key), where(head));
      read_field(key, head);
    }
    if (is_dlrm && text_.last_bottom_layer < 0)
      throw Failure("nothing says which layer is the last of the bottom MLP", where(head),
                    "its number stands behind HYBRID_DLRM");
  }

  /// Of HYBRID_CUSTOMIZED.
  Parallelism own_parallelism(const WordLine& line) const {
    const Parallelism own = parallelism_of(line.words[12], line);
    if (own == Parallelism::customized)
      throw Failure("HYBRID_CUSTOMIZED does not say which groups a layer has", where(line));
    return own;
  }

  std::int64_t next_number(std::string_view key, const WordLine& head, std::int64_t least,
                           std::int64_t most) {
    if (at_ == head.words.size())
      throw Failure(fmt::format("'{}' has no number behind it", key), where(head));
    return read_number(head.words[at_++], least, most, where(head));
  }

  void read_field(std::string_view key, const WordLine& head) {
    struct Field {
      std::string_view name;
      std::int64_t LayerText::*value;
      std::int64_t least, most;
      bool is_simai = true;
    };
    static constexpr std::array<Field, 9> kFields{
        {{"model_parallel_NPU_group", &LayerText::model_parallel, 1, kMostRanks, false},
         {"ep", &LayerText::expert_parallel, 1, kMostRanks},
         {"expert_parallel_npu_group", &LayerText::expert_parallel, 1, kMostRanks},
         {"pp", &LayerText::stages, 1, kMostRanks},
         {"vpp", &LayerText::virtual_stages, 0, kMostLayers},
         {"ga", &LayerText::accumulation, 0, kMostLayers},
         {"all_gpus", &LayerText::gpus, 1, kMostRanks},
         {"pp_comm", &LayerText::stage_bytes, 0, kMostMemory},
         {"DLRM_LAST_BOTTOM_LAYER", &LayerText::last_bottom_layer, 0, kMostLayers}}};
    std::vector<std::string> names{"checkpoints", "checkpoint_initiates"};
    for (const Field& field : kFields) {
      names.emplace_back(field.name);
      if (field.name != key) continue;
      text_.*field.value = next_number(key, head, field.least, field.most);
      text_.is_simai = text_.is_simai || field.is_simai;
      return;
    }
    if (key != names[0] && key != names[1])
      throw Failure(fmt::format("'{}' is no field of the first line", key), where(head),
                    suggest(key, names));
    std::vector<std::int64_t>& layers = key == names[0] ? checkpoints_ : initiates_;
    for (std::int64_t left = next_number(key, head, 0, kMostLayers); left > 0; --left)
      layers.push_back(next_number(key, head, 0, kMostLayers));
  }

  void mark(const std::vector<std::int64_t>& layers, bool Layer::*flag) {
    for (const std::int64_t layer : layers) {
      if (layer >= static_cast<std::int64_t>(text_.layers.size()))
        throw Failure(fmt::format("layer {} is a checkpoint or initiates one, and there are layers "
                                  "0 to {}",
                                  layer, text_.layers.size() - 1),
                      where(lines_.front()));
      text_.layers[index(layer)].*flag = true;
    }
  }

  Layer read_layer(const WordLine& line) {
    const bool has_own = text_.parallelism == Parallelism::customized;
    const std::size_t words = has_own ? 13 : 12;
    if (line.words.size() != words)
      throw Failure(
          fmt::format("a layer has {} words, and here are {}", words, line.words.size()),
          where(line),
          "a name, a reserved number, three times a time, a collective and its bytes, the "
          "time of an update");
    Layer layer;
    layer.line = line.number;
    layer.name = std::string(line.words[0]);
    for (int d = 0; d < kDirections; ++d) {
      const std::size_t first = 2 + 3 * index(d);
      Pass& pass = layer.passes[index(d)];
      pass.compute = read_ns(line.words[first], line);
      read_collective(line.words[first + 1], line, pass);
      pass.bytes = read_number(line.words[first + 2], 0, kMostMemory, where(line));
    }
    layer.update = read_ns(line.words[11], line);
    layer.parallelism = has_own ? own_parallelism(line) : text_.parallelism;
    return layer;
  }

  /// Ticks of ASTRA-sim are CLOCK_PERIOD = 1 ns (system/Common.hh).
  Time read_ns(std::string_view word, const WordLine& line) {
    const std::int64_t ns = read_number(word, 0, kMostNs, where(line));
    all_ns_ += ns;
    if (all_ns_ > kMostNs)
      throw Failure("the times of the layers are more than 1000 s up to here", where(line),
                    "times are in nanoseconds");
    return Time::from_ns(ns);
  }

  void read_collective(std::string_view word, const WordLine& line, Pass& pass) {
    if (word == "NONE") return;
    for (const auto& [name, kind] : kCollectives) {
      if (!word.starts_with(name)) continue;
      for (const auto& [end, suffix] : kSuffixes) {
        if (word.substr(name.size()) != end) continue;
        pass.kind = kind;
        pass.suffix = suffix;
        return;
      }
    }
    if (!lenient_)
      throw Failure(fmt::format("'{}' is no collective", word), where(line),
                    "ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL, with nothing, _EP or _DP_EP "
                    "behind it, or NONE; --lenient leaves others out, as SimAI does");
    tally_.add(fmt::format("ignored: collectives '{}', which are not known", word),
               fmt::format("in line {}", line.number));
  }

  const std::string& file_;
  bool lenient_;
  Tally& tally_;
  std::vector<WordLine> lines_;
  std::size_t at_ = 0;  ///< word of the first line
  std::int64_t all_ns_ = 0;
  std::vector<std::int64_t> checkpoints_, initiates_;
  LayerText text_;
};

}  // namespace

LayerText parse_layers(const std::string& file, std::string_view text, bool lenient, Tally& tally) {
  return LayerParser(file, text, lenient, tally).parse();
}

}  // namespace hemiola::workload::simai

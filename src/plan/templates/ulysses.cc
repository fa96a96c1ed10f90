// Attention behind an all-to-all and back (DeepSpeed-Ulysses, arXiv 2309.14509): ranks have parts
// of the sequence with all heads; queries, keys and values go to the ranks of their heads, which
// have whole sequences of few heads then, and results return to the ranks of their rows.
//
// What arrives of a rank are queries and keys: tiles wait along both, and a kernel whose programs
// have a part of the keys each (split-KV) can begin with the first pair of them. Several heads of
// queries may share one of keys and values, and several ranks such a head; these all get it.
#include <fmt/format.h>

#include "hemiola/parts/build_plan.h"
#include "plan/templates/families.h"
#include "plan/templates/pipelines.h"

namespace hemiola::plan {
namespace {

/// Queries, keys and values of the own rows, all heads; of all rows, the own heads.
constexpr std::int32_t kOwn = 0, kArrived = 3, kMade = 6, kResult = 7;

/// What heads a rank has between the two exchanges.
struct RankHeads {
  std::int64_t groups = 1;  ///< of keys and values
  std::int64_t each = 1;    ///< heads of queries that share one (grouped-query attention)
  /// Ranks that have the same keys and values, where there are fewer of these than ranks.
  std::int64_t sharers = 1;

  static RankHeads of(const TemplateArguments& arguments) {
    const std::int64_t all = positive(arguments, "heads");
    const std::int64_t of_rank = divided(arguments, "heads", all, arguments.ranks);
    const std::int64_t asked = arguments.number("kv_heads");
    const std::int64_t kv = asked == 0 ? all : positive(arguments, "kv_heads");
    divided(arguments, "heads", all, kv);
    if (kv >= arguments.ranks) {
      const std::int64_t groups = divided(arguments, "kv_heads", kv, arguments.ranks);
      return {.groups = groups, .each = of_rank / groups};
    }
    if (arguments.ranks % kv != 0)
      throw Failure(fmt::format("'{}' cannot give {} ranks one of kv_heads = {} each, to as many "
                                "ranks as others",
                                arguments.name, arguments.ranks, kv),
                    kOption, "choose kv_heads that the ranks are a multiple of");
    return {.groups = 1, .each = of_rank, .sharers = arguments.ranks / kv};
  }
};

/// Without shared keys every rank does the same up to a rotation, and one code says it. Which
/// keys a rank shares with others is no affine function of the rank: each has a code of its own.
class UlyssesMaker {
 public:
  UlyssesMaker(const TemplateArguments& arguments, bool splits_keys)
      : arguments_(arguments),
        heads_(RankHeads::of(arguments)),
        depth_(positive(arguments, "head")),
        sequence_(positive(arguments, "sequence")),
        rows_(divided(arguments, "sequence", sequence_, arguments.ranks)),
        waves_(waves_of(arguments)),
        plan_(start_plan(arguments, 1)) {
    divided(arguments, "sequence", rows_, waves_);
    tensors(splits_keys);
  }

  Plan make() {
    const bool one_code = heads_.sharers == 1;
    std::vector<Code> codes;
    for (std::int64_t rank = 0; rank < (one_code ? 1 : plan_.ranks); ++rank) {
      own_ = one_code ? own_rank() : constant(rank);
      codes.push_back(code());
    }
    run_codes(plan_, std::move(codes));
    return std::move(plan_);
  }

 private:
  bool has_groups() const { return heads_.each > 1; }

  /// [heads, rows, depth]; heads of queries by group where groups have several.
  std::vector<std::int64_t> shape_of(bool of_queries, std::int64_t groups,
                                     std::int64_t rows) const {
    if (of_queries && has_groups()) return {groups, heads_.each, rows, depth_};
    return {groups, rows, depth_};
  }

  void tensors(bool splits_keys) {
    const DataType type = data_type_of(arguments_);
    const std::int64_t groups = heads_.groups, all = groups * plan_.ranks;
    const std::int64_t all_kv = all / heads_.sharers;
    const auto own = shape_of(true, all, rows_), own_kv = shape_of(false, all_kv, rows_);
    const auto whole = shape_of(true, groups, sequence_);
    const auto whole_kv = shape_of(false, groups, sequence_);
    plan_.tensors = {{"x_q", Role::input, own, type},      {"x_k", Role::input, own_kv, type},
                     {"x_v", Role::input, own_kv, type},   {"q", Role::scratch, whole, type},
                     {"k", Role::scratch, whole_kv, type}, {"v", Role::scratch, whole_kv, type},
                     {"o", Role::scratch, whole, type},    {"y", Role::output, own, type}};
    if (!splits_keys) return;
    // What parts of a sum over keys are weighed with, and who has the row: each by its row.
    std::vector<std::int64_t> by_row = whole;
    by_row.pop_back();
    for (const char* name : {"peak", "weight", "turn"}) {
      const bool is_turn = std::string_view(name) == "turn";
      plan_.tensors.push_back(
          {name, Role::scratch, by_row, is_turn ? DataType::int32 : DataType::float32});
    }
  }

  /// Some rows of the heads of one rank.
  Region heads_and_rows(std::int32_t tensor, const Affine& head, const Affine& row,
                        std::int64_t rows) const {
    Region region = all_of(plan_, tensor);
    Box& box = region.boxes.front();
    box.front() = {head, heads_.groups};
    box[box.size() - 2] = {row, rows};
    return region;
  }
  /// What the rank `taker` of heads takes of the rows of a wave of whoever has them.
  Region left(std::int32_t tensor, const Affine& taker, std::int64_t wave,
              std::int64_t waves) const {
    const bool is_shared = heads_.sharers > 1 && (tensor == kOwn + 1 || tensor == kOwn + 2);
    const Affine head =
        is_shared ? constant(taker({}) / heads_.sharers) : scaled(taker, heads_.groups);
    return heads_and_rows(tensor, head, constant(wave * (rows_ / waves)), rows_ / waves);
  }
  /// Where the rank of heads has the rows of the rank `owner`.
  Region arrived(std::int32_t tensor, const Affine& owner, std::int64_t wave,
                 std::int64_t waves) const {
    return heads_and_rows(tensor, constant(0), scaled(owner, rows_, wave * (rows_ / waves)),
                          rows_ / waves);
  }

  /// What `moves` does with each other rank, in the order in which they come.
  template <typename Moves>
  void with_all_peers(Stream& stream, const Moves& moves) const {
    const std::int64_t ranks = plan_.ranks, step = is_clockwise(arguments_) ? 1 : ranks - 1;
    if (!own_.is_constant()) return repeat(stream, ranks - 1, moves(around(ranks, step, step)));
    for (std::int64_t i = 1; i < ranks; ++i)
      for (Item& move : moves(constant((own_({}) + step * i) % ranks)))
        stream.items.push_back(std::move(move));
  }

  Code code() const {
    Code made;
    made.streams = {there(), back()};
    for (Stream& own : own_parts()) made.streams.push_back(std::move(own));
    made.computes = {attention()};
    made.resident.emplace();
    for (std::int32_t i = 0; i < 3; ++i) made.resident->push_back(all_of(plan_, kOwn + i));
    for (std::int64_t owner = 0; owner < plan_.ranks; ++owner) {
      made.expected.push_back({left(kResult, constant(owner), 0, 1), false,
                               arrived(kMade, own_, 0, 1), constant(owner)});
      for (std::int32_t i = 0; i < 3; ++i)
        made.expected.push_back({arrived(kArrived + i, constant(owner), 0, 1), false,
                                 left(kOwn + i, own_, 0, 1), constant(owner)});
    }
    return made;
  }

  bool is_push() const { return arguments_.word("transfer") == "push"; }

  Stream there() const {
    Stream stream{"exchange", {}};
    for (std::int64_t wave = 0; wave < waves_; ++wave) {
      with_all_peers(stream, [&](const Affine& peer) {
        std::vector<Item> moves;
        for (std::int32_t i = 0; i < 3; ++i)
          moves.emplace_back(is_push() ? push(peer, left(kOwn + i, peer, wave, waves_),
                                              arrived(kArrived + i, own_, wave, waves_))
                                       : pull(peer, left(kOwn + i, own_, wave, waves_),
                                              arrived(kArrived + i, peer, wave, waves_)));
        return moves;
      });
    }
    return stream;
  }

  /// What stays on the rank. Copies within a GPU take compute units, those to others do not: on
  /// streams of their own they hold up nobody.
  std::vector<Stream> own_parts() const {
    Stream there{"own part", {}}, back{"own return", {}};
    for (std::int64_t wave = 0; wave < waves_; ++wave) {
      for (std::int32_t i = 0; i < 3; ++i)
        there.items.emplace_back(
            copy(left(kOwn + i, own_, wave, waves_), arrived(kArrived + i, own_, wave, waves_)));
      const Region own = arrived(kMade, own_, wave, waves_);
      back.items.emplace_back(
          when_computed(copy(own, left(kResult, own_, wave, waves_)), own_, own));
    }
    return {std::move(there), std::move(back)};
  }

  Stream back() const {
    Stream stream{"return", {}};
    for (std::int64_t wave = 0; wave < waves_; ++wave) {
      const Region own = arrived(kMade, own_, wave, waves_);
      const Region kept = left(kResult, own_, wave, waves_);
      with_all_peers(stream, [&](const Affine& peer) {
        const Region of_peer = arrived(kMade, peer, wave, waves_);
        return std::vector<Item>{
            is_push()
                ? when_computed(push(peer, of_peer, kept), own_, of_peer)
                : when_computed(pull(peer, own, left(kResult, peer, wave, waves_)), peer, own)};
      });
    }
    return stream;
  }

  Compute attention() const {
    const bool is_causal = arguments_.word("causal") == "yes";
    Compute made{.name = is_causal ? kCausalAttention : "attention",
                 .kernel = "attention",
                 .axes = {},
                 .operands = {}};
    made.axes = {{"h", heads_.each > 1 ? heads_.each : heads_.groups, 1, false},
                 {"q", sequence_, positive(arguments_, "tile_q"), false},
                 {"kv", sequence_, positive(arguments_, "tile_kv"), true}};
    // Without groups a head of queries is one of keys.
    std::vector<std::int32_t> by_query{0, 1, -1}, by_key{0, 2, -1};
    if (has_groups()) {
      made.axes.insert(made.axes.begin(), {"g", heads_.groups, 1, false});
      by_query = {0, 1, 2, -1};
      by_key = {0, 3, -1};
    }
    made.operands = {{kArrived, Use::read, by_query},
                     {kArrived + 1, Use::read, by_key},
                     {kArrived + 2, Use::read, by_key},
                     {kMade, Use::accumulate, by_query}};
    by_query.pop_back();
    for (std::int32_t of_row = kResult + 1; of_row < std::ssize(plan_.tensors); ++of_row)
      made.operands.push_back({of_row, Use::accumulate, by_query});
    // Two products of 2 flop per element of a head; with a mask half of the pairs are left.
    made.flop_per_point = (is_causal ? 2 : 4) * depth_;
    return made;
  }

  const TemplateArguments& arguments_;
  RankHeads heads_;
  std::int64_t depth_, sequence_, rows_, waves_;
  Plan plan_;
  Affine own_{};  ///< the rank that the code is of
};

std::vector<ParameterInfo> ulysses_parameters(const char* keys) {
  ParameterInfo waves = waves_parameter();
  waves.default_value = "1";
  return {size_parameter("heads", "32", "heads of queries, over all ranks"),
          size_parameter("kv_heads", "0",
                         "heads of keys and values, over all ranks; 0: one for each of queries"),
          {"causal", "no", {"no", "yes"}, "queries meet keys up to their own only"},
          size_parameter("sequence", "8192", "queries and keys, over all ranks"),
          size_parameter("head", "128", "elements of a head"),
          size_parameter("tile_q", "128", "queries of a tile"),
          size_parameter("tile_kv", keys, "keys and values of a tile"),
          data_type_parameter(),
          transfer_parameter("push"),
          order_parameter(),
          std::move(waves)};
}

}  // namespace

std::vector<TemplateInfo> ulysses_templates() {
  return of_elements(
      {{"ulysses-attention/direct",
        "queries, keys and values go to the ranks of their heads, results back",
        ulysses_parameters("128"),
        [](const TemplateArguments& all) { return UlyssesMaker(all, false).make(); }},
       {"ulysses-attention/split-kv",
        "the same, with what a kernel needs whose programs have some keys each",
        ulysses_parameters("1024"),
        [](const TemplateArguments& all) { return UlyssesMaker(all, true).make(); }}});
}

}  // namespace hemiola::plan

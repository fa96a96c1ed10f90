// Attention behind an all-to-all and back (DeepSpeed-Ulysses, arXiv 2309.14509): ranks have parts
// of the sequence with all heads; queries, keys and values go to the ranks of their heads, which
// have whole sequences of few heads then, and results return to the ranks of their rows.
//
// What arrives of a rank are queries and keys: tiles wait along both, and a kernel whose programs
// have a part of the keys each (split-KV) can begin with the first pair of them.
#include "plan/build.h"
#include "plan/families.h"
#include "plan/pipelines.h"

namespace hemiola::plan {
namespace {

/// Queries, keys and values of the own rows, all heads; of all rows, the own heads.
constexpr std::int32_t kOwn = 0, kArrived = 3, kMade = 6, kResult = 7, kPeak = 8;

Plan start_ulysses(const TemplateArguments& arguments) {
  const DataType type = data_type_of(arguments);
  const std::int64_t all = positive(arguments, "heads"), depth = positive(arguments, "head");
  const std::int64_t heads = divided(arguments, "heads", all, arguments.ranks);
  const std::int64_t sequence = positive(arguments, "sequence");
  const std::int64_t rows = divided(arguments, "sequence", sequence, arguments.ranks);
  const std::vector<std::int64_t> own{all, rows, depth}, whole{heads, sequence, depth};
  Plan plan = start_plan(arguments, 1);
  plan.tensors = {{"x_q", Role::input, own, type},   {"x_k", Role::input, own, type},
                  {"x_v", Role::input, own, type},   {"q", Role::scratch, whole, type},
                  {"k", Role::scratch, whole, type}, {"v", Role::scratch, whole, type},
                  {"o", Role::scratch, whole, type}, {"y", Role::output, own, type}};
  return plan;
}

/// Some rows of one rank's part, of the heads of one rank.
Region heads_and_rows(std::int32_t tensor, const Affine& head, std::int64_t heads,
                      const Affine& row, std::int64_t rows, std::int64_t depth) {
  return {tensor, {{{head, heads}, {row, rows}, {constant(0), depth}}}};
}

Plan finish_ulysses(const TemplateArguments& arguments, Plan plan, bool splits_keys) {
  const std::int64_t ranks = plan.ranks, waves = waves_of(arguments);
  const std::int64_t heads = plan.tensors[kArrived].shape[0], depth = plan.tensors[kOwn].shape[2];
  const std::int64_t rows = plan.tensors[kOwn].shape[1];
  const std::int64_t sequence = plan.tensors[kArrived].shape[1];
  const std::int64_t wave_rows = divided(arguments, "sequence", rows, waves);
  const bool is_push = arguments.word("transfer") == "push";
  const Affine peer = around(ranks, is_clockwise(arguments) ? 1 : ranks - 1,
                             is_clockwise(arguments) ? 1 : ranks - 1);
  // Of the rank `owner` of rows, for the rank `taker` of heads.
  const auto left = [&](std::int32_t tensor, const Affine& taker, std::int64_t wave) {
    return heads_and_rows(tensor, scaled(taker, heads), heads, constant(wave * wave_rows),
                          wave_rows, depth);
  };
  const auto arrived = [&](std::int32_t tensor, const Affine& owner, std::int64_t wave) {
    return heads_and_rows(tensor, constant(0), heads, scaled(owner, rows, wave * wave_rows),
                          wave_rows, depth);
  };
  Stream there{"exchange", {}}, back{"return", {}};
  for (std::int64_t wave = 0; wave < waves; ++wave) {
    std::vector<Item> moves;
    for (std::int32_t i = 0; i < 3; ++i) {
      there.items.emplace_back(
          copy(left(kOwn + i, own_rank(), wave), arrived(kArrived + i, own_rank(), wave)));
      moves.emplace_back(
          is_push
              ? push(peer, left(kOwn + i, peer, wave), arrived(kArrived + i, own_rank(), wave))
              : pull(peer, left(kOwn + i, own_rank(), wave), arrived(kArrived + i, peer, wave)));
    }
    repeat(there, ranks - 1, std::move(moves));
  }
  for (std::int64_t wave = 0; wave < waves; ++wave) {
    const auto once_made = [&](Transfer move, const Affine& maker, const Region& region) {
      return after(std::move(move), {maker, 0, {}, region});
    };
    const Region own = arrived(kMade, own_rank(), wave);
    back.items.emplace_back(once_made(copy(own, left(kResult, own_rank(), wave)), own_rank(), own));
    const Region of_peer = arrived(kMade, peer, wave);
    repeat(back, ranks - 1,
           is_push ? once_made(push(peer, of_peer, left(kResult, own_rank(), wave)), own_rank(),
                               of_peer)
                   : once_made(pull(peer, own, left(kResult, peer, wave)), peer, own));
  }
  Code code;
  code.streams = {std::move(there), std::move(back)};
  Compute attention{.name = "attention", .kernel = "attention", .axes = {}, .operands = {}};
  attention.axes = {{"h", heads, 1, false},
                    {"q", sequence, positive(arguments, "tile_q"), false},
                    {"kv", sequence, positive(arguments, "tile_kv"), true}};
  attention.operands = {{kArrived, Use::read, {0, 1, -1}},
                        {kArrived + 1, Use::read, {0, 2, -1}},
                        {kArrived + 2, Use::read, {0, 2, -1}},
                        {kMade, Use::accumulate, {0, 1, -1}}};
  attention.flop_per_point = 4 * depth;
  if (splits_keys) {
    // What parts of a sum over keys are weighed with, and who has the row: each by its row.
    for (const char* name : {"peak", "weight", "turn"}) {
      attention.operands.push_back(
          {static_cast<std::int32_t>(plan.tensors.size()), Use::accumulate, {0, 1}});
      const DataType type = std::string_view(name) == "turn" ? DataType::int32 : DataType::float32;
      plan.tensors.push_back({name, Role::scratch, {heads, sequence}, type});
    }
  }
  code.computes = {std::move(attention)};
  code.resident.emplace();
  for (std::int32_t i = 0; i < 3; ++i) code.resident->push_back(all_of(plan, kOwn + i));
  for (std::int64_t owner = 0; owner < ranks; ++owner) {
    code.expected.push_back(
        {heads_and_rows(kResult, constant(owner * heads), heads, constant(0), rows, depth), false,
         heads_and_rows(kMade, constant(0), heads, scaled(own_rank(), rows), rows, depth),
         constant(owner)});
    for (std::int32_t i = 0; i < 3; ++i)
      code.expected.push_back(
          {heads_and_rows(kArrived + i, constant(0), heads, constant(owner * rows), rows, depth),
           false,
           heads_and_rows(kOwn + i, scaled(own_rank(), heads), heads, constant(0), rows, depth),
           constant(owner)});
  }
  plan.codes = {std::move(code)};
  plan.code_of.assign(static_cast<std::size_t>(plan.ranks), 0);
  return plan;
}

Plan make_ulysses_direct(const TemplateArguments& arguments) {
  return finish_ulysses(arguments, start_ulysses(arguments), false);
}
Plan make_ulysses_split_kv(const TemplateArguments& arguments) {
  return finish_ulysses(arguments, start_ulysses(arguments), true);
}

TemplateInfo ulysses_template(const char* name, const char* description, const char* keys,
                              Plan (*make)(const TemplateArguments&)) {
  ParameterInfo waves = waves_parameter();
  waves.default_value = "1";
  return {name,
          Collective::custom,
          description,
          {size_parameter("heads", "32", "heads, over all ranks"),
           size_parameter("sequence", "8192", "queries and keys, over all ranks"),
           size_parameter("head", "128", "elements of a head"),
           size_parameter("tile_q", "128", "queries of a tile"),
           size_parameter("tile_kv", keys, "keys and values of a tile"), data_type_parameter(),
           transfer_parameter("push"), order_parameter(), std::move(waves)},
          make,
          false};
}

}  // namespace

TemplateInfo ulysses_attention_direct() {
  return ulysses_template("ulysses-attention/direct",
                          "queries, keys and values go to the ranks of their heads, results back",
                          "128", make_ulysses_direct);
}

TemplateInfo ulysses_attention_split_kv() {
  return ulysses_template("ulysses-attention/split-kv",
                          "the same, with what a kernel needs whose programs have some keys each",
                          "1024", make_ulysses_split_kv);
}

}  // namespace hemiola::plan

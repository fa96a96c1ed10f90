// AG-GEMM as a sequence of launches: the all-gather goes in `degree` steps, of which each brings a
// chunk of every rank to all others at once, and a product of its own follows every step on one
// stream of computes. Chunks are rows (axis m: FiCCO's 1D), or columns, whose products add to each
// other (axis k: 2D). Launches wait in front of the kernel, as those of a library have to.
#include <algorithm>

#include "plan/build.h"
#include "plan/families.h"
#include "plan/pipelines.h"

namespace hemiola::plan {
namespace {

/// a[rank, m, k] is gathered along its first axis; c[rank, m, n] = a b[k, n].
const std::int32_t kLeft = 0, kRight = 1, kProduct = 2;

class SequenceMaker {
 public:
  SequenceMaker(const TemplateArguments& arguments, std::int64_t degree, bool by_rows)
      : arguments_(arguments),
        ranks_(arguments.ranks),
        degree_(degree),
        by_rows_(by_rows),
        pulls_(arguments.word("transfer") == "pull"),
        rows_(divided(arguments, "m", positive(arguments, "m"), ranks_)),
        columns_(divided(arguments, "n", positive(arguments, "n"), ranks_)),
        depth_(positive(arguments, "k")),
        step_rows_(by_rows ? divided(arguments, "m / ranks", rows_, degree) : rows_),
        step_depth_(by_rows ? depth_ : divided(arguments, "k", depth_, degree)) {}

  Plan make() const {
    const DataType type = data_type_of(arguments_);
    Plan plan = start_plan(arguments_, 1);
    plan.tensors = {{"a", Role::input, {ranks_, rows_, depth_}, type},
                    {"b", Role::input, {depth_, columns_}, type},
                    {"c", Role::output, {ranks_, rows_, columns_}, type}};
    Code code;
    for (std::int64_t distance = 1; distance < ranks_; ++distance)
      code.streams.push_back(gather_over(distance));
    for (std::int64_t step = 0; step < degree_; ++step) code.computes.push_back(product(step));
    code.resident = {slab(plan, kLeft, 0, own_rank(), 1), all_of(plan, kRight)};
    code.expected = {{all_of(plan, kProduct), false}};
    plan.codes = {std::move(code)};
    plan.code_of.assign(static_cast<std::size_t>(ranks_), 0);
    return plan;
  }

 private:
  /// What a rank's chunk is in the step that the loop counts.
  Region chunk(const Affine& owner) const {
    const Range rows{by_rows_ ? scaled(counting(), step_rows_) : Affine{}, step_rows_};
    const Range depth{by_rows_ ? Affine{} : scaled(counting(), step_depth_), step_depth_};
    return {kLeft, {{{owner, 1}, rows, depth}}};
  }

  /// All steps between ranks of a distance: those of other distances go on at the same time.
  Stream gather_over(std::int64_t distance) const {
    const Affine peer = around(ranks_, distance);
    Stream stream{(pulls_ ? "from rank + " : "to rank + ") + std::to_string(distance), {}};
    const Region moved = chunk(pulls_ ? peer : own_rank());
    repeat(stream, degree_, pulls_ ? pull(peer, moved, moved) : push(peer, moved, moved));
    return stream;
  }

  Compute product(std::int64_t step) const {
    const std::int64_t tile_m = positive(arguments_, "tile_m");
    const std::int64_t row = by_rows_ ? step * step_rows_ : 0;
    const std::int64_t depth = by_rows_ ? 0 : step * step_depth_;
    Compute gemm{
        .name = "gemm " + std::to_string(step), .kernel = "gemm", .axes = {}, .operands = {}};
    gemm.axes = {{"rank", ranks_, std::clamp<std::int64_t>(tile_m / step_rows_, 1, ranks_), false},
                 {"m", step_rows_, std::min(tile_m, step_rows_), false},
                 {"n", columns_, positive(arguments_, "tile_n"), false},
                 {"k", step_depth_, positive(arguments_, "tile_k"), true}};
    const bool adds = !by_rows_ && step > 0;
    gemm.operands = {
        {kLeft, Use::read, {0, 1, 3}, {{}, constant(row), constant(depth)}},
        {kRight, Use::read, {3, 2}, {constant(depth), {}}},
        {kProduct, adds ? Use::add : Use::accumulate, {0, 1, 2}, {{}, constant(row), {}}}};
    gemm.stream = "compute";
    gemm.waits = Waits::launch;
    for (std::int64_t distance = 1; distance < ranks_; ++distance)
      gemm.after.push_back({.rank = pulls_ ? own_rank() : around(ranks_, -distance),
                            .stream = static_cast<std::int32_t>(distance - 1),
                            .transfer = constant(step)});
    return gemm;
  }

  const TemplateArguments& arguments_;
  std::int64_t ranks_, degree_;
  bool by_rows_, pulls_;
  std::int64_t rows_, columns_, depth_;  // of a rank
  std::int64_t step_rows_, step_depth_;  // of a chunk
};

std::int64_t degree_of(const TemplateArguments& arguments) {
  constexpr std::int64_t kMost = 4096;
  const std::int64_t degree = arguments.number("degree");
  if (degree >= 1 && degree <= kMost) return degree;
  throw Failure(
      "parameter 'degree' of '" + arguments.name + "' cannot be " + std::to_string(degree), kOption,
      "it is a number from 1 to " + std::to_string(kMost));
}

Plan make_ag_gemm_sequence(const TemplateArguments& arguments) {
  return SequenceMaker(arguments, degree_of(arguments), arguments.word("axis") == "m").make();
}

Plan make_ag_gemm_serial(const TemplateArguments& arguments) {
  return SequenceMaker(arguments, 1, true).make();
}

TemplateInfo launches_template(const char* name, const char* description,
                               std::vector<ParameterInfo> more,
                               Plan (*make)(const TemplateArguments&)) {
  std::vector<ParameterInfo> all = gemm_parameters();
  all.insert(all.end(), more.begin(), more.end());
  return {name, Collective::custom, description, std::move(all), make, false};
}

}  // namespace

TemplateInfo ag_gemm_sequence() {
  return launches_template(
      "ag-gemm/sequence",
      "an all-gather in steps over all links, each followed by a launch of its product",
      {transfer_parameter("pull"),
       {"degree", "4", {}, "steps that the matrix of a rank is gathered in"},
       {"axis", "m", {"m", "k"}, "what steps divide: rows, or what is summed over (C += A B)"}},
      make_ag_gemm_sequence);
}

TemplateInfo ag_gemm_serial() {
  return launches_template("ag-gemm/serial", "a whole all-gather, then one launch of the product",
                           {transfer_parameter("pull")}, make_ag_gemm_serial);
}

}  // namespace hemiola::plan

// Communication, then products: an all-gather of A (`ag-gemm`), or tokens that go to the ranks of
// their experts (`dispatch-gemm`).
//
// Every rank gets a block of every other one. In step i the i-th chunk of each block goes over all
// links at once, a stream of transfers for each distance between ranks; products follow their
// chunks on a stream of computes. Of `shards` whole blocks go one after the other instead.
#include <algorithm>

#include "plan/build.h"
#include "plan/families.h"
#include "plan/sequences.h"

namespace hemiola::plan {
namespace {

enum class Gathers : std::uint8_t { same_for_all, one_for_each };

class GatherMaker {
 public:
  GatherMaker(const TemplateArguments& arguments, Gathers gathers, const SequenceShape& shape)
      : arguments_(arguments),
        shape_(shape),
        ranks_(arguments.ranks),
        is_exchange_(gathers == Gathers::one_for_each),
        rows_(is_exchange_
                  ? divided(arguments, "m / ranks",
                            divided(arguments, "m", positive(arguments, "m"), ranks_), ranks_)
                  : divided(arguments, "m", positive(arguments, "m"), ranks_)),
        columns_(is_exchange_ ? positive(arguments, "n")
                              : divided(arguments, "n", positive(arguments, "n"), ranks_)),
        depth_(positive(arguments, "k")),
        step_rows_(shape.by_rows ? divided(arguments, "rows of a block", rows_, shape.degree)
                                 : rows_),
        step_depth_(shape.by_rows ? depth_ : divided(arguments, "k", depth_, shape.degree)) {}

  Plan make() {
    start();
    Code code;
    if (shape_.one_by_one) {
      code.streams.push_back(transfers_one_by_one());
    } else {
      for (std::int64_t distance = 1; distance < ranks_; ++distance)
        code.streams.push_back(transfers_over(distance));
    }
    if (moves_own_block()) code.streams.push_back(own_chunks());
    if (shape_.hetero) code.computes.push_back(own_product());
    for (std::int64_t step = 0; step < shape_.degree; ++step) {
      if (shape_.fused) {
        code.computes.push_back(fused_product(step));
      } else {
        for (std::int64_t d = first_block(); d < ranks_; ++d)
          code.computes.push_back(product_of_block(step, d));
      }
    }
    if (shape_.copies) code.streams.push_back(results_to_their_rows());
    return finish(std::move(code));
  }

 private:
  /// a[rank, m, k] where products read it; x[rank, m, k] (of an exchange) where it comes from.
  void start() {
    const DataType type = data_type_of(arguments_);
    plan_ = start_plan(arguments_, 1);
    plan_.tensors = {
        {"a", is_exchange_ ? Role::scratch : Role::input, {ranks_, rows_, depth_}, type},
        {"b", Role::input, {depth_, columns_}, type},
        {"c", Role::output, {ranks_, rows_, columns_}, type}};
    if (is_exchange_) {
      source_ = 3;
      plan_.tensors.push_back({"x", Role::input, {ranks_, rows_, depth_}, type});
    }
    if (!shape_.copies) return;
    // By step and distance to the rank that a block belongs to: what a step needs lies together.
    staged_ = static_cast<std::int32_t>(plan_.tensors.size());
    const std::int64_t blocks = ranks_ - first_block();
    plan_.tensors.push_back(
        {"staged", Role::scratch, {shape_.degree, blocks * step_rows_, depth_}, type});
    results_ = staged_ + 1;
    plan_.tensors.push_back(
        {"results", Role::scratch, {shape_.degree, blocks * step_rows_, columns_}, type});
  }

  Plan finish(Code code) {
    code.resident = {is_exchange_ ? all_of(plan_, source_) : slab(plan_, kA, 0, own_rank(), 1),
                     all_of(plan_, kB)};
    code.expected = {{all_of(plan_, kC), false}};
    if (shape_.copies) {
      Expectation copied{{kC, {}}, false, Region{results_, {}}, own_rank()};
      for (std::int64_t step = 0; step < shape_.degree; ++step) {
        for (std::int64_t d = first_block(); d < ranks_; ++d) {
          copied.region.boxes.push_back(rows_of(step, d).boxes.front());
          copied.of->boxes.push_back(beside(results_, d, constant(step)).boxes.front());
        }
      }
      code.expected = {std::move(copied)};
      // What tiles find beside each other.
      for (std::int64_t d = first_block(); d < ranks_; ++d) {
        Expectation arrived{{staged_, {}}, false, Region{source_, {}}, owner_at(d)};
        for (std::int64_t step = 0; step < shape_.degree; ++step) {
          const Affine at = constant(step);
          arrived.region.boxes.push_back(beside(staged_, d, at).boxes.front());
          arrived.of->boxes.push_back(source_of(owner_at(d), own_rank(), at).boxes.front());
        }
        code.expected.push_back(std::move(arrived));
      }
      if (shape_.hetero) code.expected.push_back({slab(plan_, kC, 0, own_rank(), 1), false});
    }
    // Of an exchange, what rank r computes on is what every other rank has for it. Where own
    // products read it from x, and steps from copies, it is not looked for in a.
    if (is_exchange_ && !shape_.copies) {
      for (std::int64_t d = is_own_in_place() ? 1 : 0; d < ranks_; ++d) {
        const Affine owner = around(ranks_, d);
        code.expected.push_back(
            {slab(plan_, kA, 0, owner, 1), false, slab(plan_, source_, 0, own_rank(), 1), owner});
      }
    }
    plan_.codes = {std::move(code)};
    plan_.code_of.assign(static_cast<std::size_t>(ranks_), 0);
    return std::move(plan_);
  }

  /// Whether products of the own block read it where the rank has it.
  bool is_own_in_place() const { return shape_.hetero || !shape_.fused; }

  Transfer transfer(const Affine& peer, const Region& from, const Region& to) const {
    return shape_.pulls ? pull(peer, from, to) : push(peer, from, to);
  }

  /// Rows and columns of a block in the step that `at` says; of the whole block without steps.
  Box chunk(const Affine& block, const Affine& at) const {
    const bool rows = shape_.by_rows;
    return {{block, 1},
            {rows ? scaled(at, step_rows_) : Affine{}, step_rows_},
            {rows ? Affine{} : scaled(at, step_depth_), step_depth_}};
  }

  /// What `owner` has for `taker`.
  Region source_of(const Affine& owner, const Affine& taker, const Affine& at) const {
    return {source_, {chunk(is_exchange_ ? taker : owner, at)}};
  }
  Region landed(const Affine& owner, const Affine& at) const { return {kA, {chunk(owner, at)}}; }

  /// The place beside the other chunks of a step; block 0 is the own one, unless that is a product
  /// of its own.
  Region beside(std::int32_t tensor, std::int64_t distance, const Affine& at) const {
    const std::int64_t block = distance - first_block();
    Region region = slab(plan_, tensor, 0, at, 1);
    region.boxes.front()[1] = {constant(block * step_rows_), step_rows_};
    return region;
  }

  /// All steps between ranks of a distance: those of other distances go on at the same time.
  Stream transfers_over(std::int64_t distance) const {
    const Affine peer = around(ranks_, distance);
    Stream stream{(shape_.pulls ? "from rank + " : "to rank + ") + std::to_string(distance), {}};
    const Affine owner = shape_.pulls ? peer : own_rank();
    const Affine taker = shape_.pulls ? own_rank() : peer;
    repeat(stream, shape_.degree,
           transfer(
               peer, source_of(owner, taker, counting()),
               shape_.copies ? beside(staged_, distance, counting()) : landed(owner, counting())));
    return stream;
  }

  Stream transfers_one_by_one() const {
    const Affine peer = around(ranks_, 1, 1);
    const Affine owner = shape_.pulls ? peer : own_rank();
    const Affine taker = shape_.pulls ? own_rank() : peer;
    Stream stream{shape_.pulls ? "from the next ranks" : "to the next ranks", {}};
    repeat(stream, ranks_ - 1, transfer(peer, source_of(owner, taker, {}), landed(owner, {})));
    return stream;
  }

  /// Whether steps look for the own block where those of others land.
  bool moves_own_block() const { return !is_own_in_place() && (is_exchange_ || shape_.copies); }

  /// Of uniform steps, which treat the own block as all others.
  Stream own_chunks() const {
    Stream stream{"own block", {}};
    repeat(stream, shape_.degree,
           copy(source_of(own_rank(), own_rank(), counting()),
                shape_.copies ? beside(staged_, 0, counting()) : landed(own_rank(), counting())));
    return stream;
  }

  /// Where the results of a step and distance belong.
  Region rows_of(std::int64_t step, std::int64_t distance) const {
    Region rows = slab(plan_, kC, 0, owner_at(distance), 1);
    rows.boxes.front()[1] = {constant(step * step_rows_), step_rows_};
    return rows;
  }

  /// The distance from which on steps take blocks.
  std::int64_t first_block() const { return shape_.hetero ? 1 : 0; }

  /// In the order of steps, as the products are.
  Stream results_to_their_rows() const {
    Stream stream{"results", {}};
    for (std::int64_t step = 0; step < shape_.degree; ++step) {
      for (std::int64_t d = first_block(); d < ranks_; ++d) {
        Transfer move = copy(beside(results_, d, constant(step)), rows_of(step, d));
        if (d == first_block())
          move.after.push_back({.rank = own_rank(), .compute = constant(step + first_block())});
        stream.items.emplace_back(std::move(move));
      }
    }
    return stream;
  }

  /// Whose block stream `distance` brings.
  Affine owner_at(std::int64_t distance) const {
    return distance == 0 ? own_rank() : around(ranks_, shape_.pulls ? distance : -distance);
  }

  void wait_for_step(Compute& product, std::int64_t step, std::int64_t distance) const {
    const auto place = static_cast<std::int32_t>(distance - 1);
    product.after.push_back({.rank = shape_.pulls ? own_rank() : owner_at(distance),
                             .stream = shape_.one_by_one ? 0 : place,
                             .transfer = constant(shape_.one_by_one ? place : step)});
  }

  /// c[block, m, n] (+)= a[block, m, k] b[k, n], from `row` and `depth` on.
  void set_operands(Compute& product, std::int32_t left, const Affine& block, std::int64_t row,
                    std::int64_t depth, bool adds, bool wraps) const {
    product.operands = {
        {left, Use::read, {0, 1, 3}, {block, constant(row), constant(depth)}, wraps},
        {kB, Use::read, {3, 2}, {constant(depth), {}}},
        {kC, adds ? Use::add : Use::accumulate, {0, 1, 2}, {block, constant(row), {}}, wraps}};
  }

  Compute own_product() const {
    Compute product = launched_product(arguments_, "own", 1, rows_, columns_, depth_, true);
    set_operands(product, source_, own_rank(), 0, 0, false, false);
    return product;
  }

  Compute fused_product(std::int64_t step) const {
    const std::int64_t blocks = ranks_ - first_block();
    const std::string name = "step " + std::to_string(step);
    Compute product;
    if (shape_.copies) {
      product = launched_product(arguments_, name, 1, blocks * step_rows_, columns_, depth_, false);
      product.operands = {{staged_, Use::read, {0, 1, 3}, {constant(step), {}, {}}},
                          {kB, Use::read, {3, 2}},
                          {results_, Use::accumulate, {0, 1, 2}, {constant(step), {}, {}}}};
    } else {
      product =
          launched_product(arguments_, name, blocks, step_rows_, columns_, step_depth_, false);
      const Affine first = shape_.hetero ? around(ranks_, 1) : Affine{};
      set_operands(product, kA, first, row_of(step), depth_of(step), adds(step), shape_.hetero);
    }
    for (std::int64_t d = 1; d < ranks_; ++d) wait_for_step(product, step, d);
    if (moves_own_block())
      product.after.push_back({.rank = own_rank(),
                               .stream = static_cast<std::int32_t>(ranks_ - 1),
                               .transfer = constant(step)});
    return product;
  }

  Compute product_of_block(std::int64_t step, std::int64_t distance) const {
    Compute product = launched_product(
        arguments_, "step " + std::to_string(step) + " block +" + std::to_string(distance), 1,
        step_rows_, columns_, step_depth_, false);
    set_operands(product, distance > 0 ? kA : source_, owner_at(distance), row_of(step),
                 depth_of(step), adds(step), false);
    if (distance > 0) wait_for_step(product, step, distance);
    if (shape_.compute_streams > 1)
      product.stream = "compute " + std::to_string(distance % shape_.compute_streams);
    return product;
  }

  std::int64_t row_of(std::int64_t step) const { return shape_.by_rows ? step * step_rows_ : 0; }
  std::int64_t depth_of(std::int64_t step) const { return shape_.by_rows ? 0 : step * step_depth_; }
  bool adds(std::int64_t step) const { return !shape_.by_rows && step > 0; }

  static constexpr std::int32_t kA = 0, kB = 1, kC = 2;
  const TemplateArguments& arguments_;
  SequenceShape shape_;
  std::int64_t ranks_;
  bool is_exchange_;
  std::int64_t rows_, columns_, depth_;  // of a block
  std::int64_t step_rows_, step_depth_;  // of a chunk
  Plan plan_;
  std::int32_t source_ = kA, staged_ = -1, results_ = -1;
};

template <Gathers gathers, SequenceShape (*shape)(const TemplateArguments&)>
Plan make_gathered(const TemplateArguments& arguments) {
  return GatherMaker(arguments, gathers, shape(arguments)).make();
}

}  // namespace

TemplateInfo ag_gemm_sequence() {
  return sequence_template(
      "ag-gemm/sequence",
      "an all-gather in steps over all links, each followed by launches of its product",
      sequence_parameters("pull", "k"), make_gathered<Gathers::same_for_all, sequence_shape>);
}
TemplateInfo ag_gemm_serial() {
  return sequence_template("ag-gemm/serial", "a whole all-gather, then one launch of the product",
                           {transfer_parameter("pull")},
                           make_gathered<Gathers::same_for_all, serial_shape>);
}
TemplateInfo ag_gemm_shards() {
  return sequence_template(
      "ag-gemm/shards", "shards of one peer after the other, each followed by its product",
      shards_parameters("pull"), make_gathered<Gathers::same_for_all, shards_shape>);
}
TemplateInfo dispatch_gemm_sequence() {
  return sequence_template(
      "dispatch-gemm/sequence",
      "tokens go to the ranks of their experts in steps, each followed by launches of its product",
      sequence_parameters("pull", "k"), make_gathered<Gathers::one_for_each, sequence_shape>);
}
TemplateInfo dispatch_gemm_serial() {
  return sequence_template(
      "dispatch-gemm/serial", "all tokens go to the ranks of their experts, then one launch",
      {transfer_parameter("pull")}, make_gathered<Gathers::one_for_each, serial_shape>);
}
TemplateInfo dispatch_gemm_shards() {
  return sequence_template(
      "dispatch-gemm/shards", "tokens of one peer after the other, each followed by its product",
      shards_parameters("pull"), make_gathered<Gathers::one_for_each, shards_shape>);
}

}  // namespace hemiola::plan

// Products, then communication: sums of partial products that every rank gets its block of
// (`gemm-rs`) or all of (`gemm-ar`), and results of experts that go back to the ranks of their
// tokens (`gemm-combine`).
//
// The mirror image of sequences_gather.cc. Every rank makes a block for every one. What step i made
// of each block goes over all links at once, a stream of transfers for each distance between ranks,
// beside the product of the next step. Partial results land in a slot for each distance, because
// whoever only moves data cannot add, and one stream of the receiver adds up the slots of a step.
// Of `shards` whole blocks go one after the other instead.
#include "hemiola/parts/build_plan.h"
#include "plan/templates/families.h"
#include "plan/templates/sequences.h"

namespace hemiola::plan {
namespace {

enum class Results : std::uint8_t { own_sum, all_sums, returned };

class ScatterMaker : SequenceMaker {
 public:
  ScatterMaker(const TemplateArguments& arguments, Results results, const SequenceShape& shape)
      : SequenceMaker(arguments, shape,
                      results == Results::returned ? rows_for_experts(arguments)
                                                   : std::vector{rows_of_rank(arguments)},
                      positive(arguments, "n"), "n"),
        adds_up_(results != Results::returned),
        is_for_all_(results == Results::all_sums),
        columns_(positive(arguments, "n")),
        depth_(adds_up_ ? divided(arguments, "k", positive(arguments, "k"), ranks_)
                        : positive(arguments, "k")) {
    if (adds_up_ && shape.copies && shape.hetero)
      throw Failure("'" + arguments.name +
                        "' adds up what lies in the same place on all ranks, and blocks of all "
                        "ranks but the own one lie beside each other in another order on each",
                    kOption, "leave placement out, or choose steps=uniform");
  }

  Plan make() {
    start();
    return run([&](std::int64_t rank) { return code_of(rank); });
  }

 private:
  Code code_of(std::int64_t rank) {
    Code code;
    if (shape_.one_by_one)
      code.streams.push_back(shards(rank));
    else
      for (std::int64_t d = 1; d < ranks_; ++d) code.streams.push_back(transfers_over(rank, d));
    use_rows_of(rank);
    after_transfers_ = static_cast<std::int32_t>(code.streams.size());
    if (adds_up_) code.streams.push_back(sums());
    if (moves_own_block()) code.streams.push_back(own_results());
    for (std::int64_t d = 1; d < ranks_ && is_for_all_; ++d) code.streams.push_back(sums_over(d));
    if (shape_.copies) {
      staging_ = static_cast<std::int32_t>(code.streams.size());
      code.streams.push_back(rows_beside_each_other());
    }
    if (shape_.hetero && is_own_first()) code.computes.push_back(own_product());
    for (std::int64_t step = 0; step < shape_.degree; ++step) {
      if (shape_.fused) {
        code.computes.push_back(fused_product(step));
        continue;
      }
      // Others wait for their results.
      for (std::int64_t d = 1; d < ranks_; ++d) code.computes.push_back(product_of_block(step, d));
      if (!shape_.hetero) code.computes.push_back(product_of_block(step, 0));
    }
    if (shape_.hetero && !is_own_first()) code.computes.push_back(own_product());
    promise_all(code, rank);
    return code;
  }

  /// a[rank, m, k] and partial[rank, m, n] of the block that belongs to a rank; c as the rank gets
  /// it: all blocks, or the own one.
  void start() {
    const DataType type = data_type_of(arguments_);
    plan_ = start_plan(arguments_, 1);
    const std::int64_t most = most_rows();
    plan_.tensors = {{"a", Role::input, {ranks_, most, depth_}, type},
                     {"b", Role::input, {depth_, columns_}, type},
                     {"partial", Role::scratch, {ranks_, most, columns_}, type},
                     {"c", Role::output, {ranks_, most, columns_}, type}};
    if (adds_up_ && !is_for_all_) plan_.tensors[kC].shape = {rows_, columns_};
    if (shape_.copies)
      plan_.tensors[kPartial].shape = {shape_.degree, blocks() * most / shape_.degree, columns_};
    if (adds_up_) {
      slots_ = static_cast<std::int32_t>(plan_.tensors.size());
      plan_.tensors.push_back({"slots", Role::scratch, {ranks_ - 1, rows_, columns_}, type});
    }
    if (!shape_.copies) return;
    staged_ = static_cast<std::int32_t>(plan_.tensors.size());
    plan_.tensors.push_back(
        {"staged", Role::scratch, {shape_.degree, blocks() * most / shape_.degree, depth_}, type});
  }

  void promise_all(Code& code, std::int64_t rank) {
    code.resident = {all_of(plan_, kA), all_of(plan_, kB)};
    if (adds_up_) {
      code.expected.push_back({{kC, {}}, true, Region{kPartial, {}}});
      for (std::int64_t block = 0; block < (is_for_all_ ? ranks_ : 1); ++block)
        promise(code.expected.back(), is_for_all_ ? constant(block) : own_rank(), own_rank(), 0);
    } else {
      for (std::int64_t d = moves_own_block() ? 0 : 1; d < ranks_; ++d) {
        use_rows_of((rank + (shape_.pulls ? d : ranks_ - d)) % ranks_);
        code.expected.push_back({{kC, {}}, false, Region{kPartial, {}}, sender_at(d)});
        promise(code.expected.back(), own_rank(), sender_at(d), d);
      }
      use_rows_of(rank);
      if (!moves_own_block()) code.expected.push_back({rows_of_block(kC, own_rank()), false});
    }
    if (shape_.copies) {  // what tiles find beside each other
      Expectation copied{{staged_, {}}, false, Region{kA, {}}, own_rank()};
      for (std::int64_t step = 0; step < shape_.degree; ++step) {
        for (std::int64_t d = first_block(); d < ranks_; ++d) {
          const Transfer move = rows_of(constant(step), d);
          copied.region.boxes.push_back(move.destination.boxes.front());
          copied.of->boxes.push_back(move.source.boxes.front());
        }
      }
      code.expected.push_back(std::move(copied));
    }
  }

  /// The block for `taker`, step by step, where its maker has it at `distance`.
  void promise(Expectation& expected, const Affine& taker, const Affine& maker,
               std::int64_t distance) const {
    for (std::int64_t step = 0; step < shape_.degree; ++step) {
      const Affine at = constant(step);
      expected.region.boxes.push_back(result(adds_up_ ? taker : maker, at).boxes.front());
      expected.of->boxes.push_back(made(taker, distance, at).boxes.front());
    }
  }

  /// Where all ranks wait for the sum of a block, its own part of it must not come last.
  bool is_own_first() const { return is_for_all_; }
  /// Whether the own result, which is not added to anything, is made where others land.
  bool moves_own_block() const { return !adds_up_ && !shape_.hetero && shape_.fused; }

  /// What products make for `taker`. Sums need it in the same place on all ranks.
  Region made(const Affine& taker, std::int64_t distance, const Affine& at) const {
    if (!shape_.copies) return {kPartial, {chunk(taker, at)}};
    return beside(kPartial, at, place_beside(taker, distance));
  }
  Affine place_beside(const Affine& taker, std::int64_t distance) const {
    return adds_up_ ? scaled(taker, step_rows_) : constant((distance - first_block()) * step_rows_);
  }
  Region slot(const Affine& which, const Affine& at) const { return {slots_, {chunk(which, at)}}; }
  Region result(const Affine& block, const Affine& at) const {
    Box box = chunk(block, at);
    if (adds_up_ && !is_for_all_) box.erase(box.begin());
    return {kC, {std::move(box)}};
  }

  /// Number of the compute that makes block `distance` in a step.
  Affine compute_of(std::int64_t distance, const Affine& step) const {
    const std::int64_t each = shape_.fused ? 1 : blocks();
    if (shape_.hetero && distance == 0) return constant(is_own_first() ? 0 : shape_.degree * each);
    const std::int64_t place = shape_.fused ? 0 : distance > 0 ? distance - 1 : blocks() - 1;
    return scaled(step, each, place + (shape_.hetero && is_own_first() ? 1 : 0));
  }

  /// A chunk to where it belongs, or to the slot that `which` says, once `made_by` is done.
  Transfer transfer(const Affine& peer, const Region& from, const Affine& which, const Affine& at,
                    const Affine& made_by) const {
    const Affine maker = sender_to(peer);
    const Region to = adds_up_ ? slot(which, at) : result(maker, at);
    return plan::after(moved(peer, from, to), {.rank = maker, .compute = made_by});
  }

  /// Rows of what `rank` moves with the rank at a distance: those of the experts that made it.
  void use_rows_moved(std::int64_t rank, std::int64_t distance) {
    use_rows_of(shape_.pulls ? (rank + distance) % ranks_ : rank);
  }

  /// All steps between ranks of a distance: those of other distances go on at the same time.
  Stream transfers_over(std::int64_t rank, std::int64_t distance) {
    use_rows_moved(rank, distance);
    const Affine peer = around(ranks_, distance);
    Stream stream = stream_over(distance);
    repeat(stream, shape_.degree,
           transfer(peer, made(taker_from(peer), distance, counting()), constant(distance - 1),
                    counting(), compute_of(distance, counting())));
    return stream;
  }

  Stream shards(std::int64_t rank) {
    return transfers_one_by_one([&](std::int64_t distance) { use_rows_moved(rank, distance); },
                                [&](const Affine& peer, const Affine& number) {
                                  return transfer(peer, made(taker_from(peer), 0, {}), number, {},
                                                  number);
                                });
  }

  /// That the own block is there, or its part in a step.
  Transfer once_made(Transfer move, const Affine& step) const {
    return plan::after(std::move(move), {.rank = own_rank(), .compute = compute_of(0, step)});
  }

  /// Whether the own block is added to sums of all others, because it is made after them.
  bool adds_own_last() const { return shape_.hetero && !is_own_first(); }

  /// Sums of a step wait for all that they need before they begin, so that a lowering may add it
  /// up in one pass. Whole shards are added as they come: each beside the product of the next.
  Stream sums() const {
    Stream stream{"sums", {}};
    const Affine at = counting();
    const Region sum = result(own_rank(), at);
    const Region own = made(own_rank(), 0, at);
    std::vector<Item> step;
    for (std::int64_t d = adds_own_last() ? 1 : 0; d < ranks_; ++d) {
      const Region part = d == 0 ? own : slot(constant(d - 1), at);
      Transfer add = step.empty() ? copy(part, sum) : accumulating(copy(part, sum));
      if (shape_.one_by_one) {
        add.after = {arrived(d, at)};
      } else if (step.empty()) {
        for (std::int64_t other = 1; other < ranks_; ++other)
          add.after.push_back(arrived(other, at));
        if (d == 0) add = once_made(std::move(add), at);
      }
      step.emplace_back(std::move(add));
    }
    repeat(stream, shape_.degree, std::move(step));
    if (adds_own_last()) repeat(stream, shape_.degree, once_made(accumulating(copy(own, sum)), at));
    return stream;
  }

  /// Finished sums to all others, in steps as well.
  Stream sums_over(std::int64_t distance) const {
    const Affine peer = around(ranks_, distance);
    const Affine owner = sender_to(peer);
    Stream stream = stream_over(distance, "sums ");
    const Region sum = result(owner, counting());
    repeat(stream, shape_.degree,
           plan::after(moved(peer, sum, sum), owner, scaled(counting(), ranks_, ranks_ - 1),
                       after_transfers_));
    return stream;
  }

  /// Of uniform steps, which make the own block as all others.
  Stream own_results() const {
    Stream stream{"own block", {}};
    const Affine at = counting();
    repeat(stream, shape_.degree,
           once_made(copy(made(own_rank(), 0, at), result(own_rank(), at)), at));
    return stream;
  }

  Transfer rows_of(const Affine& step, std::int64_t distance) const {
    const Affine taker = taker_at(distance);
    const Region from{kA, {{{taker, 1}, {scaled(step, step_rows_), step_rows_}, {{}, depth_}}}};
    return copy(from, beside(staged_, step, place_beside(taker, distance)));
  }
  Stream rows_beside_each_other() const {
    Stream stream{"rows", {}};
    std::vector<Item> step;
    for (std::int64_t d = first_block(); d < ranks_; ++d) step.emplace_back(rows_of(counting(), d));
    repeat(stream, shape_.degree, std::move(step));
    return stream;
  }

  /// made[block, m, n] = a[block, m, k] b[k, n], from `row` and `column` on.
  void set_operands(Compute& product, std::int32_t to, const Affine& block, std::int64_t row,
                    std::int64_t column, bool wraps) const {
    product.operands = {
        {kA, Use::read, {0, 1, 3}, {block, constant(row), {}}, wraps},
        {kB, Use::read, {3, 2}, {{}, constant(column)}},
        {to, Use::accumulate, {0, 1, 2}, {block, constant(row), constant(column)}, wraps}};
  }
  /// What is not added to anything is made where it belongs.
  std::int32_t place_of_own() const { return adds_up_ ? kPartial : kC; }

  Compute own_product() const {
    Compute product = launched_product("own", 1, rows_, columns_, depth_, true);
    set_operands(product, place_of_own(), own_rank(), 0, 0, false);
    return product;
  }

  Compute fused_product(std::int64_t step) const {
    const std::string name = "step " + std::to_string(step);
    if (!shape_.copies) {
      Compute product = launched_product(name, blocks(), step_rows_, step_length_, depth_, false);
      set_operands(product, kPartial, shape_.hetero ? around(ranks_, 1) : Affine{}, row_of(step),
                   begin_of(step), shape_.hetero);
      return product;
    }
    Compute product = launched_product(name, 1, blocks() * step_rows_, columns_, depth_, false);
    product.operands = {{staged_, Use::read, {0, 1, 3}, {constant(step), {}, {}}},
                        {kB, Use::read, {3, 2}},
                        {kPartial, Use::accumulate, {0, 1, 2}, {constant(step), {}, {}}}};
    // The last of its copies.
    product.after.push_back(
        {.rank = own_rank(), .stream = staging_, .transfer = constant((step + 1) * blocks() - 1)});
    return product;
  }

  Compute product_of_block(std::int64_t step, std::int64_t distance) const {
    Compute product = launched_block(step, distance, step_length_, depth_);
    set_operands(product, distance > 0 ? kPartial : place_of_own(), taker_at(distance),
                 row_of(step), begin_of(step), false);
    return product;
  }

  static constexpr std::int32_t kA = 0, kB = 1, kPartial = 2, kC = 3;
  bool adds_up_, is_for_all_;
  std::int64_t columns_, depth_;  // of the product of a block
  std::int32_t slots_ = -1, staged_ = -1;
  std::int32_t after_transfers_ = -1, staging_ = -1;  // streams: sums or own results; rows
};

template <Results results, SequenceShape (*shape)(const TemplateArguments&)>
Plan make_scattered(const TemplateArguments& arguments) {
  return ScatterMaker(arguments, results, shape(arguments)).make();
}

}  // namespace

std::vector<TemplateInfo> sequence_scatter_templates() {
  constexpr Results kOwn = Results::own_sum, kAll = Results::all_sums, kBack = Results::returned;
  return of_products(
      {{"gemm-rs/sequence",
        "launches of a product in steps, each followed by its part of a reduce-scatter",
        sequence_parameters("push", "n"), make_scattered<kOwn, sequence_shape>},
       {"gemm-rs/serial",
        "one launch of the product, then a reduce-scatter",
        {transfer_parameter("push")},
        make_scattered<kOwn, serial_shape>},
       {"gemm-rs/shards", "products for one peer after the other, each added up there",
        shards_parameters("push"), make_scattered<kOwn, shards_shape>},
       {"gemm-ar/sequence",
        "launches of a product in steps, each followed by its part of an all-reduce",
        sequence_parameters("push", "n"), make_scattered<kAll, sequence_shape>},
       {"gemm-ar/serial",
        "one launch of the product, then an all-reduce",
        {transfer_parameter("push")},
        make_scattered<kAll, serial_shape>},
       {"gemm-combine/sequence",
        "launches of an expert's product in steps, whose results go back to the ranks of their "
        "tokens",
        with_load(sequence_parameters("push", "n")), make_scattered<kBack, sequence_shape>},
       {"gemm-combine/serial",
        "one launch of an expert's product, then all results go back to the ranks of their tokens",
        with_load({transfer_parameter("push")}), make_scattered<kBack, serial_shape>},
       {"gemm-combine/shards", "an expert's products for one peer after the other, each sent back",
        with_load(shards_parameters("push")), make_scattered<kBack, shards_shape>}});
}

}  // namespace hemiola::plan

// Communication, then products: an all-gather of A (`ag-gemm`), or tokens that go to the ranks of
// their experts (`dispatch-gemm`).
//
// Every rank gets a block of every other one. In step i the i-th chunk of each block goes over all
// links at once, a stream of transfers for each distance between ranks; products follow their
// chunks on a stream of computes. Of `shards` whole blocks go one after the other instead.
#include "hemiola/parts/build_plan.h"
#include "plan/templates/families.h"
#include "plan/templates/sequences.h"

namespace hemiola::plan {
namespace {

enum class Gathers : std::uint8_t { same_for_all, one_for_each };

class GatherMaker : SequenceMaker {
 public:
  GatherMaker(const TemplateArguments& arguments, Gathers gathers, const SequenceShape& shape)
      : SequenceMaker(arguments, shape,
                      gathers == Gathers::one_for_each ? rows_for_experts(arguments)
                                                       : std::vector{rows_of_rank(arguments)},
                      positive(arguments, "k"), "k"),
        is_exchange_(gathers == Gathers::one_for_each),
        columns_(is_exchange_ ? positive(arguments, "n")
                              : divided(arguments, "n", positive(arguments, "n"), ranks_)),
        depth_(positive(arguments, "k")) {}

  Plan make() {
    start();
    return run([&](std::int64_t rank) { return code_of(rank); });
  }

 private:
  /// a[rank, m, k] where products read it; x[rank, m, k] (of an exchange) where it comes from.
  void start() {
    const DataType type = data_type_of(arguments_);
    plan_ = start_plan(arguments_, 1);
    plan_.tensors = {
        {"a", is_exchange_ ? Role::scratch : Role::input, {ranks_, most_rows(), depth_}, type},
        {"b", Role::input, {depth_, columns_}, type},
        {"c", Role::output, {ranks_, most_rows(), columns_}, type}};
    if (is_exchange_) {
      source_ = 3;
      plan_.tensors.push_back({"x", Role::input, {ranks_, most_rows(), depth_}, type});
    }
    if (!shape_.copies) return;
    const std::int64_t most = most_rows() / shape_.degree;
    // By step and distance to the rank that a block belongs to: what a step needs lies together.
    staged_ = static_cast<std::int32_t>(plan_.tensors.size());
    plan_.tensors.push_back(
        {"staged", Role::scratch, {shape_.degree, blocks() * most, depth_}, type});
    results_ = staged_ + 1;
    plan_.tensors.push_back(
        {"results", Role::scratch, {shape_.degree, blocks() * most, columns_}, type});
  }

  Code code_of(std::int64_t rank) {
    Code code;
    if (shape_.one_by_one)
      code.streams.push_back(shards(rank));
    else
      for (std::int64_t distance = 1; distance < ranks_; ++distance)
        code.streams.push_back(transfers_over(rank, distance));
    use_rows_of(rank);
    if (moves_own_block()) code.streams.push_back(own_chunks());
    if (shape_.hetero) code.computes.push_back(own_product());
    for (std::int64_t step = 0; step < shape_.degree; ++step) {
      if (shape_.fused)
        code.computes.push_back(fused_product(step));
      else
        for (std::int64_t d = first_block(); d < ranks_; ++d)
          code.computes.push_back(product_of_block(step, d));
    }
    if (shape_.copies) code.streams.push_back(results_to_their_rows());
    promise(code);
    return code;
  }

  void promise(Code& code) const {
    code.resident = {is_exchange_ ? all_of(plan_, source_) : slab(plan_, kA, 0, own_rank(), 1),
                     all_of(plan_, kB)};
    code.expected = {{rows_of_blocks(kC), false}};
    if (shape_.copies) {
      Expectation copied{{kC, {}}, false, Region{results_, {}}, own_rank()};
      for (std::int64_t step = 0; step < shape_.degree; ++step) {
        for (std::int64_t d = first_block(); d < ranks_; ++d) {
          copied.region.boxes.push_back(rows_of(step, d).boxes.front());
          copied.of->boxes.push_back(beside_others(results_, d, constant(step)).boxes.front());
        }
      }
      code.expected = {std::move(copied)};
      // What tiles find beside each other.
      for (std::int64_t d = first_block(); d < ranks_; ++d) {
        Expectation arrived{{staged_, {}}, false, Region{source_, {}}, sender_at(d)};
        for (std::int64_t step = 0; step < shape_.degree; ++step) {
          const Affine at = constant(step);
          arrived.region.boxes.push_back(beside_others(staged_, d, at).boxes.front());
          arrived.of->boxes.push_back(source_of(sender_at(d), own_rank(), at).boxes.front());
        }
        code.expected.push_back(std::move(arrived));
      }
      if (shape_.hetero) code.expected.push_back({rows_of_block(kC, own_rank()), false});
    }
    // Of an exchange, what rank r computes on is what every other rank has for it. Where own
    // products read it from x, and steps from copies, it is not looked for in a.
    if (is_exchange_ && !shape_.copies) {
      for (std::int64_t d = is_own_in_place() ? 1 : 0; d < ranks_; ++d) {
        const Affine owner = around(ranks_, d);
        code.expected.push_back(
            {rows_of_block(kA, owner), false, rows_of_block(source_, own_rank()), owner});
      }
    }
  }

  /// Rows of what `rank` moves with the rank at a distance: those of the experts that it is for.
  void use_rows_moved(std::int64_t rank, std::int64_t distance) {
    use_rows_of(shape_.pulls ? rank : (rank + distance) % ranks_);
  }

  /// Whether products of the own block read it where the rank has it.
  bool is_own_in_place() const { return shape_.hetero || !shape_.fused; }

  /// What `owner` has for `taker`.
  Region source_of(const Affine& owner, const Affine& taker, const Affine& at) const {
    return {source_, {chunk(is_exchange_ ? taker : owner, at)}};
  }
  Region landed(const Affine& owner, const Affine& at) const { return {kA, {chunk(owner, at)}}; }

  /// The place beside the other chunks of a step; block 0 is the own one, unless that is a product
  /// of its own.
  Region beside_others(std::int32_t tensor, std::int64_t distance, const Affine& at) const {
    return beside(tensor, at, constant((distance - first_block()) * step_rows_));
  }

  /// All steps between ranks of a distance: those of other distances go on at the same time.
  Stream transfers_over(std::int64_t rank, std::int64_t distance) {
    use_rows_moved(rank, distance);
    const Affine peer = around(ranks_, distance), owner = sender_to(peer);
    Stream stream = stream_over(distance);
    repeat(stream, shape_.degree,
           moved(peer, source_of(owner, taker_from(peer), counting()),
                 shape_.copies ? beside_others(staged_, distance, counting())
                               : landed(owner, counting())));
    return stream;
  }

  Stream shards(std::int64_t rank) {
    return transfers_one_by_one([&](std::int64_t distance) { use_rows_moved(rank, distance); },
                                [&](const Affine& peer, const Affine&) {
                                  const Affine owner = sender_to(peer);
                                  return moved(peer, source_of(owner, taker_from(peer), {}),
                                               landed(owner, {}));
                                });
  }

  /// Whether steps look for the own block where those of others land.
  bool moves_own_block() const { return !is_own_in_place() && (is_exchange_ || shape_.copies); }

  /// Of uniform steps, which treat the own block as all others.
  Stream own_chunks() const {
    Stream stream{"own block", {}};
    repeat(stream, shape_.degree,
           copy(source_of(own_rank(), own_rank(), counting()),
                shape_.copies ? beside_others(staged_, 0, counting())
                              : landed(own_rank(), counting())));
    return stream;
  }

  /// Where the results of a step and distance belong.
  Region rows_of(std::int64_t step, std::int64_t distance) const {
    Region rows = slab(plan_, kC, 0, sender_at(distance), 1);
    rows.boxes.front()[1] = {constant(step * step_rows_), step_rows_};
    return rows;
  }

  /// In the order of steps, as the products are.
  Stream results_to_their_rows() const {
    Stream stream{"results", {}};
    for (std::int64_t step = 0; step < shape_.degree; ++step) {
      for (std::int64_t d = first_block(); d < ranks_; ++d) {
        Transfer move = copy(beside_others(results_, d, constant(step)), rows_of(step, d));
        if (d == first_block())
          move.after.push_back({.rank = own_rank(), .compute = constant(step + first_block())});
        stream.items.emplace_back(std::move(move));
      }
    }
    return stream;
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
    Compute product = launched_product("own", 1, rows_, columns_, depth_, true);
    set_operands(product, source_, own_rank(), 0, 0, false, false);
    return product;
  }

  Compute fused_product(std::int64_t step) const {
    const std::string name = "step " + std::to_string(step);
    Compute product;
    if (shape_.copies) {
      product = launched_product(name, 1, blocks() * step_rows_, columns_, depth_, false);
      product.operands = {{staged_, Use::read, {0, 1, 3}, {constant(step), {}, {}}},
                          {kB, Use::read, {3, 2}},
                          {results_, Use::accumulate, {0, 1, 2}, {constant(step), {}, {}}}};
    } else {
      product = launched_product(name, blocks(), step_rows_, columns_, step_length_, false);
      const Affine first = shape_.hetero ? around(ranks_, 1) : Affine{};
      set_operands(product, kA, first, row_of(step), begin_of(step), adds(step), shape_.hetero);
    }
    for (std::int64_t d = 1; d < ranks_; ++d) product.after.push_back(arrived(d, constant(step)));
    if (moves_own_block())
      product.after.push_back({.rank = own_rank(),
                               .stream = static_cast<std::int32_t>(ranks_ - 1),
                               .transfer = constant(step)});
    return product;
  }

  Compute product_of_block(std::int64_t step, std::int64_t distance) const {
    Compute product = launched_block(step, distance, columns_, step_length_);
    set_operands(product, distance > 0 ? kA : source_, sender_at(distance), row_of(step),
                 begin_of(step), adds(step), false);
    if (distance > 0) product.after.push_back(arrived(distance, constant(step)));
    return product;
  }

  bool adds(std::int64_t step) const { return !shape_.by_rows && step > 0; }

  static constexpr std::int32_t kA = 0, kB = 1, kC = 2;
  bool is_exchange_;
  std::int64_t columns_, depth_;  // of the product of a block
  std::int32_t source_ = kA, staged_ = -1, results_ = -1;
};

template <Gathers gathers, SequenceShape (*shape)(const TemplateArguments&)>
Plan make_gathered(const TemplateArguments& arguments) {
  return GatherMaker(arguments, gathers, shape(arguments)).make();
}

}  // namespace

std::vector<TemplateInfo> sequence_gather_templates() {
  constexpr Gathers kSame = Gathers::same_for_all, kEach = Gathers::one_for_each;
  return of_products(
      {{"ag-gemm/sequence",
        "an all-gather in steps over all links, each followed by launches of its product",
        sequence_parameters("pull", "k"), make_gathered<kSame, sequence_shape>},
       {"ag-gemm/serial",
        "a whole all-gather, then one launch of the product",
        {transfer_parameter("pull")},
        make_gathered<kSame, serial_shape>},
       {"ag-gemm/shards", "shards of one peer after the other, each followed by its product",
        shards_parameters("pull"), make_gathered<kSame, shards_shape>},
       {"dispatch-gemm/sequence",
        "tokens go to the ranks of their experts in steps, each followed by launches of its "
        "product",
        with_load(sequence_parameters("pull", "k")), make_gathered<kEach, sequence_shape>},
       {"dispatch-gemm/serial", "all tokens go to the ranks of their experts, then one launch",
        with_load({transfer_parameter("pull")}), make_gathered<kEach, serial_shape>},
       {"dispatch-gemm/shards", "tokens of one peer after the other, each followed by its product",
        with_load(shards_parameters("pull")), make_gathered<kEach, shards_shape>}});
}

}  // namespace hemiola::plan

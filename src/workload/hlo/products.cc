// Products of a module, and the collectives beside them.

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "workload/hlo/attributes.h"
#include "workload/hlo/follow.h"
#include "workload/hlo/groups.h"
#include "workload/hlo/lift.h"
#include "workload/hlo/opcodes.h"
#include "workload/hlo/work.h"

namespace hemiola::workload::hlo {
namespace {

/// A collective that a value comes from, or goes to. Which dimension of the value is divided into
/// pieces, one for each rank of a group: -1 where the pieces are mixed on the way.
struct Beside {
  const Instruction* collective = nullptr;
  std::int64_t dimension = -1;
  std::int64_t parts = 0;
};

/// Instructions that use each one of a computation.
using Users = std::vector<std::vector<std::uint32_t>>;

class ProductFinder {
 public:
  explicit ProductFinder(const Module& module)
      : module_(module), devices_(devices_of(module)), spots_(module) {}

  std::vector<ProductOfModule> find() {
    // Fusions are looked into where they are called.
    std::unordered_set<const Computation*> fused;
    for (const Computation& computation : module_.computations) {
      for (const Instruction& one : computation.instructions)
        if (one.opcode == "fusion") fused.insert(&module_.called(one, "calls"));
    }
    for (const Computation& computation : module_.computations) {
      if (fused.contains(&computation)) continue;
      for (const Instruction& one : computation.instructions) look_at({&computation, &one}, one);
    }
    return std::move(found_);
  }

 private:
  void look_at(const Spot& at, const Instruction& kernel) {
    constexpr std::int64_t kMostLooks = 20'000'000;
    if (++looks_ > kMostLooks)
      module_.fail(*at.instruction,
                   "fusions in fusions have more instructions than can be looked at");
    if (at.instruction->opcode == "fusion") {
      const Computation& called = module_.called(*at.instruction, "calls");
      const Spot* caller = spots_.keep(at);
      for (const Instruction& one : called.instructions) look_at({&called, &one, caller}, kernel);
      return;
    }
    if (!is_matrix_product(module_, *at.instruction)) return;
    const auto shape = product_of(module_, *at.computation, *at.instruction);
    if (!shape) return;
    ProductOfModule product{at.instruction, &kernel, *shape, {}, {}};
    if (shape->batch == 1) {
      feeding(at, product);
      following(at, product);
    }
    found_.push_back(std::move(product));
  }

  // --- What feeds it -----------------------------------------------------------------------------

  void feeding(const Spot& at, ProductOfModule& product) {
    const ProductDimensions numbers = product_dimensions(module_, *at.computation, *at.instruction);
    for (const bool is_left : {true, false}) {
      const Spot matrix = spots_.operand(at, is_left ? 0 : 1);
      const std::optional<Beside> source = source_of(matrix, 0);
      if (!source) continue;
      const std::vector<std::int64_t>& summed =
          is_left ? numbers.left_summed : numbers.right_summed;
      add_feeding(product, *source, matrix.instruction->shape, summed, is_left);
    }
  }

  void add_feeding(ProductOfModule& product, const Beside& source, const Shape& matrix,
                   const std::vector<std::int64_t>& summed, bool is_left) {
    const bool is_gather = phase_of(source.collective->opcode).opcode == "all-gather";
    const auto refuse = [&](const std::string& reason) {
      product.others.push_back({source.collective, reason});
    };
    if (source.dimension < 0)
      return refuse("the pieces of the ranks are mixed before they reach the product");
    const std::vector<std::int64_t> free = free_dimensions(matrix, summed, {});
    const bool is_free = is_outermost(matrix, free, source.dimension);
    const bool is_summed = is_outermost(matrix, summed, source.dimension);
    if (!is_free && !is_summed)
      return refuse(fmt::format("dimension {} of {} is divided, and not as its outermost part",
                                source.dimension, text_of(matrix)));
    if (is_gather && is_summed)
      return refuse(
          "it gathers along what is summed over: no template of AG-GEMM divides k among the ranks");
    const machine::GemmShape& shape = product.shape;
    const std::int64_t rows = is_left ? shape.m : shape.n, columns = is_left ? shape.n : shape.m;
    Lift lift{.collective = source.collective, .k = shape.k, .is_transposed = !is_left};
    if (is_gather) {
      lift.family = "ag-gemm";
      lift.m = rows;
      lift.n = columns * source.parts;
    } else {
      lift.family = is_summed ? "a2a-gemm" : "dispatch-gemm";
      lift.m = rows * source.parts;
      lift.n = columns;
    }
    add(product, std::move(lift));
  }

  /// Whether a dimension is the first of these that has more than one element.
  static bool is_outermost(const Shape& shape, const std::vector<std::int64_t>& dimensions,
                           std::int64_t wanted) {
    for (const std::int64_t d : dimensions) {
      if (d == wanted) return true;
      if (shape.dimensions[index(d)] > 1) return false;
    }
    return false;
  }

  /// The all-gather or all-to-all that a value comes from, with nothing computed between.
  std::optional<Beside> source_of(const Spot& at, int depth) {
    constexpr int kMostSteps = 100;
    if (depth > kMostSteps) return std::nullopt;
    const Instruction& one = *at.instruction;
    const auto [opcode, phase] = phase_of(one.opcode);
    if (opcode == "all-gather" && phase != Phase::done) return divided(one, one, "dimensions");
    if (opcode == "all-to-all" && phase != Phase::done) {
      if (one.operands.size() != 1) return std::nullopt;
      return divided(one, one, "dimensions");
    }
    if (phase == Phase::done && !one.operands.empty())
      return source_of(spots_.operand(at, 0), depth + 1);
    if (opcode == "async") {
      const Instruction& called = module_.called(one, "calls").root_instruction();
      if (called.opcode != "all-gather" && called.opcode != "all-to-all") return std::nullopt;
      return divided(called, called, "dimensions");
    }
    if (one.opcode == "parameter") {
      const std::optional<Spot> passed = spots_.argument(at);
      return passed ? source_of(*passed, depth + 1) : std::nullopt;
    }
    if (one.opcode == "fusion") return source_of(spots_.inside(at), depth + 1);
    if (one.opcode == "concatenate") return concatenated(at);
    if (one.opcode == "get-tuple-element" && one.operands.size() == 1) {
      const Spot tuple = spots_.operand(at, 0);
      const std::string_view from = phase_of(tuple.instruction->opcode).opcode;
      return from == "all-gather" ? source_of(tuple, depth + 1) : std::nullopt;
    }
    if (!carries_values(one)) return std::nullopt;
    const Spot operand = spots_.operand(at, 0);
    std::optional<Beside> source = source_of(operand, depth + 1);
    if (source && source->dimension >= 0)
      source->dimension = carried_dimension(module_, operand.instruction->shape, one,
                                            source->dimension, source->parts)
                              .value_or(-1);
    return source;
  }

  /// The elements of an all-to-all, one from each rank, behind each other.
  std::optional<Beside> concatenated(const Spot& at) {
    const Instruction& one = *at.instruction;
    const Instruction* exchange = nullptr;
    for (std::size_t i = 0; i < one.operands.size(); ++i) {
      const Spot piece = spots_.look_through(spots_.operand(at, i));
      if (piece.instruction->opcode != "get-tuple-element" ||
          integer_of(module_.attribute(*piece.instruction, "index")) !=
              static_cast<std::int64_t>(i))
        return std::nullopt;
      Spot from = spots_.operand(piece, 0);
      if (phase_of(from.instruction->opcode).phase == Phase::done) from = spots_.operand(from, 0);
      const Instruction* source = from.instruction;
      if (source->opcode == "async-start")
        source = &module_.called(*source, "calls").root_instruction();
      if (phase_of(source->opcode).opcode != "all-to-all" ||
          (exchange != nullptr && exchange != source))
        return std::nullopt;
      exchange = source;
    }
    if (exchange == nullptr || exchange->operands.size() != one.operands.size())
      return std::nullopt;
    return divided(*exchange, one, "dimensions");
  }

  /// `collective` divides the dimension that an attribute of `where` names.
  Beside divided(const Instruction& collective, const Instruction& where,
                 std::string_view attribute) {
    const std::vector<std::int64_t> dimensions = dimensions_of(module_, where, attribute);
    return {&collective, dimensions.size() == 1 ? dimensions.front() : -1,
            static_cast<std::int64_t>(groups_of(collective).front().size())};
  }

  // --- What it feeds -----------------------------------------------------------------------------

  void following(const Spot& at, ProductOfModule& product) {
    const ProductDimensions numbers = product_dimensions(module_, *at.computation, *at.instruction);
    const Shape& left = spots_.operand(at, 0).instruction->shape;
    const Shape& right = spots_.operand(at, 1).instruction->shape;
    const auto rows = free_dimensions(left, numbers.left_summed, numbers.left_batch);
    const auto columns = free_dimensions(right, numbers.right_summed, numbers.right_batch);
    // The result has the free dimensions of both, in this order.
    const auto first_of = [](const Shape& shape, const std::vector<std::int64_t>& free) {
      std::int64_t first = 0;
      while (first + 1 < static_cast<std::int64_t>(free.size()) &&
             shape.dimensions[index(free[index(first)])] == 1)
        ++first;
      return first;
    };
    const std::int64_t row = rows.empty() ? -1 : first_of(left, rows);
    const std::int64_t column =
        columns.empty() ? -1 : static_cast<std::int64_t>(rows.size()) + first_of(right, columns);
    follow(at, row, column, product);
  }

  void follow(Spot at, std::int64_t row, std::int64_t column, ProductOfModule& product) {
    constexpr int kMostSteps = 100;
    std::vector<const Instruction*> way;  // changes of shape, in their order
    const Shape* result = &at.instruction->shape;
    while (result->is_tuple() && !result->elements.empty()) result = &result->elements.front();
    for (int step = 0; step < kMostSteps; ++step) {
      const std::vector<std::uint32_t>& users = users_of(at);
      const bool is_root = at.instruction == &at.computation->root_instruction();
      if (is_root && users.empty() && at.caller != nullptr) {
        at = *at.caller;
        continue;
      }
      if (users.size() > 1) {
        if (const std::optional<Beside> exchange = exchanged(at, users))
          return add_divided(product, *exchange->collective, "gemm-combine", exchange->dimension,
                             *result, way, row, column);
      }
      if (users.size() != 1) {
        for (const std::uint32_t user : users) {
          const Instruction& one = at.computation->instructions[user];
          if (is_sum(one))
            product.others.push_back({&one,
                                      "the product is used by others, too, before it is "
                                      "summed"});
        }
        return;
      }
      const Instruction& user = at.computation->instructions[users.front()];
      const Spot next{at.computation, &user, at.caller};
      if (const Instruction* sum = sum_in(user); sum != nullptr)
        return add_following(product, *sum, user, *result, way, row, column);
      if (user.opcode == "fusion") {
        const std::optional<Spot> parameter = parameter_of(next, *at.instruction);
        if (!parameter) return;
        at = *parameter;
      } else if (user.opcode == "get-tuple-element" && module_.attribute(user, "index") == "0") {
        at = next;
      } else if (carries_values(user)) {
        way.push_back(&user);
        at = next;
      } else {
        return;
      }
    }
  }

  /// A fusion's parameter that is `passed` to it; nothing if it is passed twice.
  std::optional<Spot> parameter_of(const Spot& fusion, const Instruction& passed) {
    const Computation& called = module_.called(*fusion.instruction, "calls");
    std::int64_t place = -1;
    for (std::size_t i = 0; i < fusion.instruction->operands.size(); ++i)
      if (&fusion.computation->instructions[fusion.instruction->operands[i]] == &passed)
        place = place < 0 ? static_cast<std::int64_t>(i) : -2;
    if (place < 0) return std::nullopt;
    for (const Instruction& one : called.instructions)
      if (one.opcode == "parameter" && integer_of(one.literal) == place)
        return Spot{&called, &one, spots_.keep(fusion)};
    return std::nullopt;
  }

  /// The all-to-all that takes slices of a value, the i-th part of one dimension for rank i.
  std::optional<Beside> exchanged(const Spot& at, const std::vector<std::uint32_t>& users) {
    const Shape& whole = at.instruction->shape;
    std::optional<Beside> found;
    for (const std::uint32_t user : users) {
      const Instruction& one = at.computation->instructions[user];
      const Instruction& slice =
          one.opcode == "fusion" ? module_.called(one, "calls").root_instruction() : one;
      const std::vector<std::uint32_t>& takers = users_of({at.computation, &one, at.caller});
      if (slice.opcode != "slice" || one.operands.size() != 1 || takers.size() != 1)
        return std::nullopt;
      const Instruction& taker = at.computation->instructions[takers.front()];
      const Instruction& exchange =
          taker.opcode == "async-start" ? module_.called(taker, "calls").root_instruction() : taker;
      if (phase_of(exchange.opcode).opcode != "all-to-all" ||
          taker.operands.size() != users.size() || (found && found->collective != &exchange))
        return std::nullopt;
      const auto place = std::ranges::find(taker.operands, user) - taker.operands.begin();
      const std::optional<std::int64_t> cut = part_of(slice, whole, place, std::ssize(users));
      if (!cut || (found && found->dimension != *cut)) return std::nullopt;
      found = Beside{&exchange, *cut, std::ssize(users)};
    }
    return found;
  }

  /// The dimension of which a slice is the so-manieth of `parts` equal parts, whole along all
  /// others; nothing if it is another one.
  std::optional<std::int64_t> part_of(const Instruction& slice, const Shape& whole,
                                      std::int64_t place, std::int64_t parts) const {
    std::optional<std::int64_t> cut;
    for (std::size_t d = 0; d < whole.dimensions.size(); ++d) {
      if (d >= slice.shape.dimensions.size()) return std::nullopt;
      if (slice.shape.dimensions[d] == whole.dimensions[d]) continue;
      if (cut || slice.shape.dimensions[d] * parts != whole.dimensions[d]) return std::nullopt;
      cut = static_cast<std::int64_t>(d);
    }
    if (!cut) return std::nullopt;
    // {[768:896], [0:512]}
    const std::string_view text = module_.attribute(slice, "slice");
    std::size_t at = 0;
    for (std::int64_t d = 0; d <= *cut; ++d) at = text.find('[', at) + 1;
    const std::size_t end = text.find(']', at);
    if (at == 0 || end == text.npos) return std::nullopt;
    const std::int64_t each = slice.shape.dimensions[index(*cut)];
    const std::string expected =
        std::to_string(place * each) + ":" + std::to_string((place + 1) * each);
    return text.substr(at, end - at) == expected ? cut : std::nullopt;
  }

  static bool is_sum(const Instruction& one) {
    const auto [opcode, phase] = phase_of(one.opcode);
    return phase != Phase::done && (opcode == "all-reduce" || opcode == "reduce-scatter");
  }
  const Instruction* sum_in(const Instruction& one) const {
    if (is_sum(one)) return &one;
    if (one.opcode != "async-start") return nullptr;
    const Instruction& called = module_.called(one, "calls").root_instruction();
    return is_sum(called) ? &called : nullptr;
  }

  void add_following(ProductOfModule& product, const Instruction& sum, const Instruction& user,
                     const Shape& result, const std::vector<const Instruction*>& way,
                     std::int64_t row, std::int64_t column) {
    const machine::GemmShape& shape = product.shape;
    const auto parts = static_cast<std::int64_t>(groups_of(sum).front().size());
    Lift lift{
        .family = "gemm-ar", .collective = &sum, .m = shape.m, .n = shape.n, .k = shape.k * parts};
    const bool scatters = phase_of(sum.opcode).opcode == "reduce-scatter";
    const std::vector<std::int64_t> scattered =
        scatters ? dimensions_of(module_, sum, "dimensions") : std::vector<std::int64_t>{};
    if (scatters && scattered.size() != 1)
      return product.others.push_back({&sum, "it does not say what it scatters along"});
    if (user.operands.size() > 1)
      return product.others.push_back(
          {&sum, "it sums other values, too, and cannot be taken apart"});
    if (scatters)
      return add_divided(product, sum, "gemm-rs", scattered.front(), result, way, row, column);
    add(product, std::move(lift));
  }

  /// A collective that divides rows or columns of the product among the ranks.
  void add_divided(ProductOfModule& product, const Instruction& collective, std::string family,
                   std::int64_t divided, const Shape& result,
                   const std::vector<const Instruction*>& way, std::int64_t row,
                   std::int64_t column) {
    const machine::GemmShape& shape = product.shape;
    const auto parts = static_cast<std::int64_t>(groups_of(collective).front().size());
    const bool sums = family == "gemm-rs";
    const auto carried = [&](std::int64_t dimension) {
      const Shape* before = &result;
      for (const Instruction* one : way) {
        if (dimension < 0) break;
        dimension = carried_dimension(module_, *before, *one, dimension, parts).value_or(-1);
        before = &one->shape;
      }
      return dimension;
    };
    Lift lift{.family = std::move(family),
              .collective = &collective,
              .m = shape.m,
              .n = shape.n,
              .k = shape.k * (sums ? parts : 1)};
    lift.is_transposed = carried(row) != divided;
    if (lift.is_transposed && carried(column) != divided)
      return product.others.push_back(
          {&collective,
           fmt::format("it scatters dimension {} of {}, which is neither the rows nor the "
                       "columns of the product",
                       divided, text_of(way.empty() ? result : way.back()->shape))});
    if (lift.is_transposed) std::swap(lift.m, lift.n);
    if (!sums) lift.m *= parts;
    add(product, std::move(lift));
  }

  void add(ProductOfModule& product, Lift lift) {
    const Groups groups = groups_of(*lift.collective);
    lift.ranks = static_cast<int>(groups.front().size());
    lift.groups = static_cast<int>(groups.size());
    lift.type = product.shape.type;
    if (lift.ranks < 2) return product.others.push_back({lift.collective, "it is among one rank"});
    product.lifts.push_back(std::move(lift));
  }

  Groups groups_of(const Instruction& collective) const {
    return groups_of_ranks(module_, collective, devices_);
  }

  const std::vector<std::uint32_t>& users_of(const Spot& at) {
    Users& users = users_[at.computation];
    const auto& instructions = at.computation->instructions;
    if (users.empty()) {
      users.resize(instructions.size());
      for (std::uint32_t i = 0; i < instructions.size(); ++i) {
        for (const std::uint32_t operand : instructions[i].operands)
          if (users[operand].empty() || users[operand].back() != i) users[operand].push_back(i);
      }
    }
    return users[index(at.instruction - instructions.data())];
  }

  const Module& module_;
  Devices devices_;
  Spots spots_;
  std::vector<ProductOfModule> found_;
  std::int64_t looks_ = 0;
  std::unordered_map<const Computation*, Users> users_;
};

}  // namespace

std::vector<ProductOfModule> find_products(const Module& module) {
  return ProductFinder(module).find();
}

}  // namespace hemiola::workload::hlo

// What a kernel of a module does: products by their dimensions, everything else by bytes and flop.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "workload/hlo/module.h"
#include "workload/workload.h"

namespace hemiola::workload::hlo {

/// The nearest element type that kernels and collectives have: of 4 bits those of 8, of complex
/// numbers those of as many bytes.
DataType data_type_of(std::string_view type);

/// Which dimensions of its operands a product sums over, and which it goes along with both.
struct ProductDimensions {
  std::vector<std::int64_t> left_summed, right_summed, left_batch, right_batch;
};

/// An instruction that is one product: dot, and calls of cuBLAS. Operands 0 and 1 are its matrices.
bool is_matrix_product(const Module& module, const Instruction& instruction);
/// Failure: dimensions that the operands do not have, or that differ between them.
ProductDimensions product_dimensions(const Module& module, const Computation& computation,
                                     const Instruction& instruction);
/// Dimensions of a matrix that are neither summed over nor of a batch, in their order.
std::vector<std::int64_t> free_dimensions(const Shape& matrix,
                                          const std::vector<std::int64_t>& summed,
                                          const std::vector<std::int64_t>& batch);
/// The shape of a dot, a convolution, or a call of cuBLAS or cuDNN's convolutions; nothing for what
/// is none of these.
std::optional<machine::GemmShape> product_of(const Module& module, const Computation& computation,
                                             const Instruction& instruction);

/// Where a product stands.
struct ProductPlace {
  const Computation* computation = nullptr;
  const Instruction* instruction = nullptr;
};

/// Asks for the work of kernels, and keeps what computations do. Refers to the module.
class KernelWork {
 public:
  explicit KernelWork(const Module& module) : module_(module) {}

  /// Of one instruction that is one kernel. Fusions with one product in them are that product.
  Compute of(const Computation& computation, const Instruction& instruction);
  /// Flop of one instruction, with what it fuses; of what it calls, once.
  std::int64_t flop(const Computation& computation, const Instruction& instruction);
  /// The products in a fusion's computation, in their order; the first two.
  const std::vector<ProductPlace>& products_in(const Computation& computation);

  /// Bytes read: of operands of which only a slice is used, the slice. What is updated in place is
  /// not read.
  std::int64_t read(const Computation& computation, const Instruction& instruction) const;
  /// Bytes written: what is updated in place counts by the update.
  std::int64_t written(const Computation& computation, const Instruction& instruction) const;

 private:
  struct OfComputation {
    std::int64_t flop = 0;
    std::vector<ProductPlace> products;
  };
  const OfComputation& inside(const Computation& computation);

  const Module& module_;
  std::unordered_map<const Computation*, OfComputation> known_;
};

}  // namespace hemiola::workload::hlo

// What is to be overlapped: a product and the collective that feeds or follows it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/data_type.h"
#include "core/diagnostics.h"
#include "core/units.h"
#include "machine/devices/gemm_model.h"
#include "plan/templates/expert_load.h"
#include "study/laboratory/settings.h"

namespace hemiola::explore {

enum class OperatorKind : std::uint8_t {
  ag_gemm,   ///< all-gather of an operand, then the product
  gemm_rs,   ///< the product, then a reduce-scatter of its partial sums
  gemm_ar,   ///< the product, then an all-reduce of its partial sums
  a2a_gemm,  ///< tokens go to the ranks of their experts, then the product
  gemm_a2a   ///< the product of an expert, then its results go back
};
std::string_view name_of(OperatorKind kind);  ///< "ag-gemm"
/// Failure with a suggestion, placed at `where`.
OperatorKind operator_named(const std::string& name, const SourceLocation& where);

/// Sizes are global: C[m, n] = A[m, k] B[k, n] over all ranks together. Of experts, m counts the
/// tokens of all ranks, each as often as it is routed, and n x k is what every rank holds.
struct Operator {
  OperatorKind kind = OperatorKind::ag_gemm;
  int ranks = 0;
  std::int64_t m = 0, n = 0, k = 0;
  bool gathers_b = false;  ///< ag-gemm: B (weights, FSDP) is gathered, not A (activations)
  DataType type = DataType::bfloat16;
  /// Of experts: how tokens spread over those of each rank (plan/templates/expert_load.h).
  std::string load = plan::kEvenLoad;

  bool operator==(const Operator&) const = default;
};

/// Failure at `where` for sizes below 1, for those that the ranks do not divide, and for more than
/// 2^60 flop of one rank, which no operator has.
void check(const Operator& op, const SourceLocation& where);

/// Whether all ranks have as much to do.
bool is_even(const Operator& op);
/// Failure at `where`: the operator has no experts, whose load could be uneven.
void check_load(const Operator& op, const SourceLocation& where);
/// The even operator of which every rank has as much to do as the busiest one of this.
Operator as_busiest(const Operator& op);

/// Whether check() takes its sizes. Makes no text: rules ask it of every operator.
bool is_divided(const Operator& op);

/// The operator with these sizes on one GPU. Failure as check().
Operator from_local(Operator local, const SourceLocation& where);

/// What one GPU, the busiest, computes, as the library would: one product.
machine::GemmShape local_product(const Operator& op);
double flop_of(const machine::GemmShape& shape);
double local_flop(const Operator& op);

Collective collective_of(OperatorKind kind);
/// Of the collective, as nccl-tests counts it; of an uneven load that of the busiest rank's.
Bytes collective_size(const Operator& op);
bool communicates_first(OperatorKind kind);  ///< else the product comes first
/// Whether every rank has a part of what is summed over, so that their partial sums are added.
bool adds_up(OperatorKind kind);
/// Failure at `where`: the operator gathers no operand, of which B could be chosen.
void check_gathers_b(OperatorKind kind, const SourceLocation& where);

/// "A [8192, 8192]: 1024 rows on each GPU; gathered, ...": a line for each tensor.
std::vector<std::string> who_holds_what(const Operator& op);

/// m, n, k and dtype as the templates of the operator take them. With gathered B the templates
/// compute the transposed product, so that what is gathered is their left matrix.
study::Settings template_sizes(const Operator& op);
/// "ag-gemm", "dispatch-gemm": what the names of its templates begin with.
std::string_view template_family(OperatorKind kind);

/// "ag-gemm 8192 x 28672 x 8192 bfloat16 on 8 GPUs"
std::string text_of(const Operator& op);

}  // namespace hemiola::explore

// A product of a module and the collective that feeds it or that it feeds, as a plan: what overlaps
// the two is then a template of this project. docs/hlo.md is the manual.
#pragma once

#include <string>
#include <vector>

#include "hemiola/parts/gemm_shape.h"
#include "plan/template.h"
#include "workload/hlo/module.h"

namespace hemiola::workload::hlo {

/// One way in which a product and a collective are an operator that templates know.
struct Lift {
  std::string family;  ///< "ag-gemm", "gemm-rs", "gemm-ar", "a2a-gemm", "dispatch-gemm"
  const Instruction* collective = nullptr;
  int ranks = 0;   ///< of a group
  int groups = 1;  ///< that do the same beside each other
  /// As the templates count them: of all ranks of a group together.
  std::int64_t m = 0, n = 0, k = 0;
  DataType type = DataType::float32;
  /// The plan's left matrix is the product's right one: what is gathered or scattered along columns
  /// is so along rows of the transposed product.
  bool is_transposed = false;
};

/// A collective beside a product that is no such operator, and why.
struct NoLift {
  const Instruction* collective = nullptr;
  std::string reason;
};

/// A product of a module where it is called: a fusion's in a loop is one, however often it runs.
struct ProductOfModule {
  const Instruction* product = nullptr;
  const Instruction* kernel = nullptr;  ///< the fusion that it stands in, or itself
  machine::GemmShape shape;             ///< on one device
  std::vector<Lift> lifts;
  std::vector<NoLift> others;
};

/// All matrix products, in the order in which the text calls them.
std::vector<ProductOfModule> find_products(const Module& module);

struct LiftRequest {
  std::string product;  ///< name of a product, or of the fusion that it stands in
  /// "ag-gemm/ring"; empty: the family's "serial", which does what the module does, or its only
  /// one.
  std::string template_name;
  plan::Parameters parameters;  ///< but for m, n, k and dtype, which the module says
};

struct LiftedPlan {
  plan::Plan plan;
  std::string template_name;
  Lift lift;
};

/// The plan that the template makes at the product's size. Failure, with line and column: a product
/// that is not there (names those that are), or without a collective beside it, or with one that no
/// template has; two of them and nothing that decides; what plan::make() refuses.
LiftedPlan lift_product(const Module& module, const LiftRequest& request);

}  // namespace hemiola::workload::hlo

// Results of inner layers as those of include/hemiola, and the other way round.
#pragma once

#include <string>

#include "hemiola/check.h"
#include "hemiola/experiment.h"
#include "hemiola/simulate.h"
#include "sim/result/options.h"
#include "sim/result/result.h"
#include "verify/verify.h"

namespace hemiola {

Proof public_proof(const verify::Proof& proof, const std::string& program);
/// For print_proof().
verify::Proof inner_proof(const Proof& proof);
Result public_result(const sim::Result& result);
sim::Options inner_options(const Experiment& experiment);

}  // namespace hemiola

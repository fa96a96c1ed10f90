#include <algorithm>
#include <array>

#include "program/formats/msccl/document.h"

namespace hemiola::program::msccl {
namespace {

constexpr std::array<StepType, 9> kStepTypes{{
    {"s", OpKind::send, true, false, true, false},
    {"r", OpKind::recv, false, true, false, true},
    {"rcs", OpKind::recv_copy_send, true, true, false, true},
    {"rrs", OpKind::recv_reduce_send, true, true, true, false},
    {"rrc", OpKind::recv_reduce_copy, false, true, true, true},
    {"rrcs", OpKind::recv_reduce_copy_send, true, true, true, true},
    {"cpy", OpKind::copy, false, false, true, true},
    {"re", OpKind::reduce, false, false, true, true},
    {"nop", OpKind::sync, false, false, false, false},
}};

constexpr std::array<ProtocolName, 3> kProtocols{{
    {Protocol::simple, "Simple"},
    {Protocol::ll, "LL"},
    {Protocol::ll128, "LL128"},
}};

}  // namespace

bool is_reduction(OpKind kind) {
  constexpr std::array kReductions{OpKind::reduce, OpKind::recv_reduce_send,
                                   OpKind::recv_reduce_copy, OpKind::recv_reduce_copy_send};
  return std::ranges::find(kReductions, kind) != kReductions.end();
}

std::span<const StepType> step_types() {
  return kStepTypes;
}
const StepType& nop_type() {
  return kStepTypes.back();
}

std::span<const ProtocolName> protocol_names() {
  return kProtocols;
}

}  // namespace hemiola::program::msccl

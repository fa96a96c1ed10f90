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

const std::array<ProtocolShape, 3> kProtocols{{
    {Protocol::simple, "Simple", MiB(2), {.slots = 4, .step = MiB(1)}, 512},
    {Protocol::ll, "LL", KiB(32), {.slots = 8, .step = KiB(32)}, 512},
    // 120 elements of 8 B for each of 640 threads; 15 of 16 are data.
    {Protocol::ll128, "LL128", Bytes{576'000}, {.slots = 8, .step = Bytes{576'000}}, 640},
}};

}  // namespace

bool is_reduction(OpKind kind) {
  constexpr std::array kReductions{OpKind::reduce, OpKind::recv_reduce_send,
                                   OpKind::recv_reduce_copy, OpKind::recv_reduce_copy_send};
  return std::find(kReductions.begin(), kReductions.end(), kind) != kReductions.end();
}

std::span<const StepType> step_types() {
  return kStepTypes;
}
const StepType& nop_type() {
  return kStepTypes.back();
}

std::span<const ProtocolShape> protocol_shapes() {
  return kProtocols;
}

const ProtocolShape& shape_of(Protocol protocol) {
  return *std::find_if(kProtocols.begin(), kProtocols.end(),
                       [&](const ProtocolShape& shape) { return shape.protocol == protocol; });
}

}  // namespace hemiola::program::msccl

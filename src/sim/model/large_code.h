// Code of large kernels: which operations need it, in every engine (docs/model.md).
#pragma once

#include "program/bind/bound.h"

namespace hemiola::sim {

/// Whether an operation of a kernel waits for the kernel's large code: those that move data, or
/// wait for what they will move. Where a program has connections, only those through them: a rank's
/// own part of grouped sends is copied by a plain loop (NCCL's src/device/sendrecv.h).
inline bool needs_large_code(const program::Program& program, const program::Kernel& kernel,
                             const program::Op& op) {
  if (kernel.large_code == 0 || op.kind == program::OpKind::load) return false;
  if (op.kind == program::OpKind::wait) return program.inbound == 0;
  if (op.src.empty() && op.dst.empty()) return false;
  const bool connected = op.send_to.outbound >= 0 || op.recv_from.inbound >= 0;
  return program.inbound == 0 || connected;
}

}  // namespace hemiola::sim

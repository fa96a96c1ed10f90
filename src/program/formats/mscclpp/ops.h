// The operations of MSCCL++ execution plans: names, operands and channels.
//
// Source: microsoft/mscclpp, src/core/executor/execution_plan.cc (names, keys) and
// src/core/include/execution_kernel.hpp (which operand means what).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "program/program.h"

namespace hemiola::program {

/// What may stand at a position of src_buff or dst_buff.
enum class Role : std::uint8_t {
  local,         ///< {type, index, size}
  local_packet,  ///< the same, in packets: scratch only
  remote,        ///< {buffer_id, index, size}
  remote_packet,
  group,  ///< {switch_channel_id, index, size}
  group_packet
};

/// A list of roles: one per letter of `letters` (l p r R g G in the order of Role); a last letter
/// followed by '+' stands once or more, by '*' any number of times.
struct Pattern {
  std::string_view letters;
  /// The roles of `count` operands; empty if that many do not fit (and count > 0).
  std::vector<Role> roles(std::size_t count) const;
  bool accepts(std::size_t count) const;
};

struct MscclppOp {
  std::string_view name;
  OpKind kind;
  std::string_view
      channels;  ///< letters of the channel types it may name: m p s; empty: none needed
  Pattern src;
  Pattern dst;
};

const MscclppOp* find_mscclpp_op(std::string_view name);
const MscclppOp* find_mscclpp_op(OpKind kind);
std::vector<std::string> mscclpp_op_names();

bool is_packet(Role role);
/// Whether the operation pairs src[i] with dst[i].
bool is_paired(OpKind kind);

}  // namespace hemiola::program

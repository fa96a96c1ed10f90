#include "program/formats/mscclpp/ops.h"

#include <array>

#include "core/lists.h"

namespace hemiola::program {
namespace {

constexpr std::array kMscclppOps = std::to_array<MscclppOp>({
    {"nop", OpKind::sync, "", {""}, {""}},
    {"barrier", OpKind::barrier, "", {""}, {""}},
    {"sem_acquire", OpKind::sem_acquire, "", {""}, {""}},
    {"sem_release", OpKind::sem_release, "", {""}, {""}},
    {"signal", OpKind::signal, "mp", {""}, {""}},
    {"wait", OpKind::wait, "mp", {""}, {""}},
    {"rlxsignal", OpKind::relaxed_signal, "mp", {""}, {""}},
    {"rlxwait", OpKind::relaxed_wait, "mp", {""}, {""}},
    {"flush", OpKind::flush, "p", {""}, {""}},
    {"put", OpKind::put, "mp", {"l+"}, {"r+"}},
    {"pws", OpKind::put_signal, "p", {"l+"}, {"r+"}},
    {"pwsf", OpKind::put_signal_flush, "p", {"l+"}, {"r+"}},
    {"get", OpKind::get, "m", {"r+"}, {"l+"}},
    {"copy", OpKind::copy, "", {"l"}, {"l"}},
    {"re", OpKind::reduce, "", {"ll*"}, {"l"}},
    {"res", OpKind::reduce_send, "m", {"ll*"}, {"lr*"}},
    {"rre", OpKind::read_reduce, "m", {"lr*"}, {"l"}},
    {"rres", OpKind::read_reduce_send, "m", {"lr*"}, {"lr*"}},
    {"ppkt", OpKind::put_packets, "mp", {"l+"}, {"R+"}},
    {"rppkt", OpKind::read_put_packets, "mp", {"p"}, {"R+"}},
    {"cpkt", OpKind::copy_packets, "", {"l"}, {"p"}},
    {"upkt", OpKind::unpack_packets, "", {"p"}, {"l"}},
    {"repkt", OpKind::reduce_packets, "", {"lp*"}, {"l"}},
    {"respkt", OpKind::reduce_send_packets, "m", {"lp*"}, {"lR*"}},
    {"recpkt", OpKind::reduce_copy_packets, "", {"lp*"}, {"lp"}},
    {"recspkt", OpKind::reduce_copy_send_packets, "m", {"lp*"}, {"lpR*"}},
    {"glre", OpKind::group_load_reduce, "s", {"g"}, {"l"}},
    {"glres", OpKind::group_load_reduce_store, "s", {"g"}, {"g"}},
    {"gstore", OpKind::group_store, "s", {"l"}, {"g"}},
    {"gstorepkt", OpKind::group_store_packets, "s", {"l"}, {"G"}},
    {"pipeline", OpKind::loop, "", {""}, {""}},
});

}  // namespace

bool Pattern::accepts(std::size_t count) const {
  if (letters.empty()) return count == 0;
  const char last = letters.back();
  const std::size_t plain = letters.size();
  if (last == '*') return count + 2 >= plain;
  if (last == '+') return count + 1 >= plain;
  return count == plain;
}

std::vector<Role> Pattern::roles(std::size_t count) const {
  constexpr std::string_view kLetters = "lprRgG";
  std::vector<Role> out;
  if (!accepts(count)) return out;
  std::string_view plain = letters;
  while (!plain.empty() && (plain.back() == '*' || plain.back() == '+')) plain.remove_suffix(1);
  for (std::size_t i = 0; i < count; ++i) {
    const char letter = i < plain.size() ? plain[i] : plain.back();
    out.push_back(static_cast<Role>(kLetters.find(letter)));
  }
  return out;
}

const MscclppOp* find_mscclpp_op(std::string_view name) {
  for (const MscclppOp& op : kMscclppOps)
    if (op.name == name) return &op;
  return nullptr;
}

const MscclppOp* find_mscclpp_op(OpKind kind) {
  for (const MscclppOp& op : kMscclppOps)
    if (op.kind == kind) return &op;
  return nullptr;
}

std::vector<std::string> mscclpp_op_names() {
  return names_of(kMscclppOps);
}

bool is_packet(Role role) {
  return role == Role::local_packet || role == Role::remote_packet || role == Role::group_packet;
}

bool is_paired(OpKind kind) {
  return kind == OpKind::put || kind == OpKind::put_signal || kind == OpKind::put_signal_flush ||
         kind == OpKind::get || kind == OpKind::put_packets;
}

}  // namespace hemiola::program

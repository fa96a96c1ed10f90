#include <array>
#include <string_view>

#include "program/program.h"

namespace hemiola::program {
namespace {

constexpr std::array<std::string_view, 3> kProtocolNames{"Simple", "LL", "LL128"};

// In the order of OpKind.
constexpr std::array kOpNames = std::to_array<std::string_view>({
    "sync",
    "barrier",
    "sem_acquire",
    "sem_release",
    "dep_wait",
    "dep_signal",
    "compare_swap",
    "signal",
    "wait",
    "relaxed_signal",
    "relaxed_wait",
    "flush",
    "put",
    "put_signal",
    "put_signal_flush",
    "get",
    "swap",
    "load",
    "copy",
    "reduce",
    "reduce_send",
    "read_reduce",
    "read_reduce_send",
    "put_packets",
    "read_put_packets",
    "copy_packets",
    "unpack_packets",
    "reduce_packets",
    "reduce_send_packets",
    "reduce_copy_packets",
    "reduce_copy_send_packets",
    "clear",
    "group_load_reduce",
    "group_load_reduce_store",
    "group_store",
    "group_store_packets",
    "send",
    "recv",
    "recv_copy_send",
    "recv_reduce_send",
    "recv_reduce_copy",
    "recv_reduce_copy_send",
    "compute",
    "loop",
    "end_loop",
});
static_assert(kOpNames.size() == index(OpKind::end_loop) + 1);

}  // namespace

std::string_view name_of(Protocol protocol) {
  return kProtocolNames.at(index(protocol));
}
std::string_view name_of(OpKind kind) {
  return kOpNames.at(index(kind));
}

}  // namespace hemiola::program

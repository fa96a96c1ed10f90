#include "sim/model/arbitration.h"

#include <cstddef>

namespace hemiola::sim {
namespace {

constexpr PickFunction kFunctions[] = {
    nullptr,
#define HEMIOLA_ARBITRATION(name) pick_##name,
#include "machine/devices/arbitration_list.h"
#undef HEMIOLA_ARBITRATION
};

}  // namespace

Traffic pick_data_first(const WaitingQueue&, const WaitingQueue&, std::int64_t&) {
  return Traffic::data;
}

Traffic pick_control_first(const WaitingQueue&, const WaitingQueue&, std::int64_t&) {
  return Traffic::control;
}

/// Turns: control, data, control, ... The memory is 1 when it is data's.
Traffic pick_fair(const WaitingQueue&, const WaitingQueue&, std::int64_t& memory) {
  memory = 1 - memory;
  return memory == 1 ? Traffic::control : Traffic::data;
}

PickFunction pick_function(machine::Arbitration arbitration) {
  return kFunctions[static_cast<std::size_t>(arbitration)];
}

}  // namespace hemiola::sim

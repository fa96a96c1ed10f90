// What the general lowering refuses, before anything is lowered.
#include <fmt/format.h>

#include "plan/in_place.h"
#include "program/lower/general.h"
#include "program/lower/launches.h"

namespace hemiola::program::general {

void check_general(const plan::Plan& plan, const LowerOptions& options) {
  const SourceLocation& option = kOption;
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    throw Failure(fmt::format("plan '{}' {}", plan.name, what), option, hint);
  };
  if (options.piece.count != 0) refuse("does not move data in pieces", "leave piece out");
  // Two tensors of one memory would hide conflicts; a plan in place names only one of them, and
  // copies of a safe one, or swaps, have none.
  const bool safe = options.realization == Realization::copy_engine && !plan.of_elements() &&
                    (plan.in_place_safe || options.copies.command == CopyCommand::swap);
  if (options.in_place && !plan::is_in_place(plan) && !safe)
    refuse("cannot run in place", "leave in_place out");
  if (options.realization == Realization::multicast && plan.groups.empty())
    refuse("has no groups, so nothing can go through the switch", "choose realization=load-store");
  const bool computing = computes(plan);
  const bool packets = options.protocol != Protocol::simple;
  if (packets && (computing || plan.of_elements()))
    refuse("is not one of chunks alone, and cannot send packets", "choose protocol=simple");
  if (packets && options.realization == Realization::copy_engine)
    refuse("cannot send packets by copy engines", "choose protocol=simple");
  if (options.alignment > 0 && plan.of_elements())
    refuse("has sizes of its own", "leave alignment out");
  if (options.realization == Realization::co_located && plan::has_launches(plan))
    refuse(
        "launches computes one after the other, and has no kernel that its communication could "
        "share workgroups with all the time",
        "choose realization=load-store or copy-engine");
  if (options.realization == Realization::co_located && !computing)
    refuse("computes nothing that its communication could share workgroups with",
           "choose realization=load-store");
}

}  // namespace hemiola::program::general

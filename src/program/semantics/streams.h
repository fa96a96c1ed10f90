// Which bodies the streams of a rank run.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/index.h"
#include "program/program.h"

namespace hemiola::program {

/// Of an item: those of a kernel, a workgroup each, or that of a copy queue; none of what the host
/// does by itself. The kernel exists, and the kernels outlive the result as the item does.
inline std::span<const std::int32_t> bodies_of(const StreamItem& item,
                                               const std::vector<Kernel>& kernels) {
  switch (item.kind) {
    case StreamItem::Kind::kernel:
      return kernels.at(index(item.index)).bodies;
    case StreamItem::Kind::engine:
      return {&item.index, 1};
    case StreamItem::Kind::event_record:
    case StreamItem::Kind::event_wait:
    case StreamItem::Kind::host:
    case StreamItem::Kind::until:
    case StreamItem::Kind::launch_begin:
    case StreamItem::Kind::launch_end:
      break;
  }
  return {};
}

/// Calls visit(body) for all items, in their order.
template <class Visit>
void each_body(const RankCode& code, const std::vector<Kernel>& kernels, Visit&& visit) {
  for (const Stream& stream : code.streams)
    for (const StreamItem& item : stream)
      for (const std::int32_t body : bodies_of(item, kernels)) visit(body);
}

}  // namespace hemiola::program

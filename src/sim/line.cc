// The line engine: rounds.

#include "sim/line.h"

#include <algorithm>
#include <bit>

namespace hemiola::sim {
namespace {

std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

}  // namespace

std::string Line::refuses(const machine::Machine& machine, const program::Program& program,
                          const Options& options) {
  if (options.trace != nullptr) return "traces";
  if (!program.groups.empty()) return "multicast";
  for (const program::RankCode& code : program.codes) {
    for (const program::Stream& stream : code.streams) {
      for (const program::StreamItem& item : stream)
        if (item.kind == program::StreamItem::Kind::engine) return "queues of copy engines";
    }
  }
  for (const program::Body& body : program.bodies) {
    for (const program::Op& op : body.ops)
      if (op.channel == program::Channel::port) return "port channels";
  }
  for (const machine::Node& node : machine.nodes) {
    if (node.switch_model.queue > 0) return "finite queues";
  }
  for (const machine::LinkClass& c : machine.link_classes) {
    if (c.credits > 0) return "credits";
    if (c.arbitration != machine::Arbitration::fifo) return "arbitration";
  }
  for (int rank = 0; rank < program.ranks; ++rank) {
    if (machine.reach(0, rank) == machine::Reach::network) return "NICs";
    const machine::GpuModel& model = machine.model(rank);
    if (model.noc_arbitration != machine::Arbitration::fifo) return "arbitration";
    if (model.noc_kind == machine::NocKind::mesh) return "networks on chip that are meshes";
  }
  return {};
}

Line::Line(const machine::Machine& machine, const program::Program& program, const Options& options)
    : Cores(machine, program, options), stages_(index(program.ranks)) {
  // A GPU's own link has one stream, that of its port, unless links of others lead on to it.
  const bool forwards = std::any_of(machine.models.begin(), machine.models.end(),
                                    [](const machine::GpuModel& model) { return model.forwards; });
  for (const machine::Link& link : machine.links) {
    const bool own = fabric_.rank_of(link.from) >= 0 && !forwards;
    merge_.push_back(own ? -1 : static_cast<std::int32_t>(links_.size()));
    if (!own) links_.emplace_back();
  }
  choose_rounds();
}

// In round k a stage is at [k W + o, (k + 1) W + o): rounds last W, and stages have offsets o. From
// a stage u to a stage v it takes at least L, 1 fs of it for every server. If v comes behind u in
// the round, all that arrives in its window is there if o_v <= o_u + L; if v comes before u, W <= L
// + o_u - o_v.
void Line::choose_rounds() {
  std::int64_t most = INT64_MAX;  // of W
  std::int64_t least_io = INT64_MAX / 4, least_port = INT64_MAX / 4;
  for (int rank = 0; rank < program_.ranks; ++rank) {
    const machine::GpuModel& model = machine_.model(rank);
    least_io = std::min(least_io, model.noc_io_latency.fs);
    least_port = std::min(least_port, model.noc_latency.fs);
  }
  std::int64_t least_link = INT64_MAX / 4;
  for (const machine::Link& link : machine_.links)
    least_link = std::min(least_link, machine_.link_classes[index(link.link_class)].latency.fs);
  const std::int64_t links = least_port + least_io;  // offset of the stages of links
  for (int rank = 0; rank < program_.ranks; ++rank) {
    const machine::GpuModel& model = machine_.model(rank);
    const std::int64_t noc = model.noc_latency.fs, l2 = model.l2_latency.fs;
    const std::int64_t fill =
        model.msc_size.count > 0 ? model.msc_latency.fs : model.hbm_latency.fs;
    const std::int64_t slices = noc, memory = slices + l2, cu_in = slices + l2;
    const std::int64_t io_out = std::min(noc, slices + l2);
    // Back to the CUs: loads by cu_in, acknowledgements from slices and ports.
    most = std::min({most, cu_in + 1 + noc, slices + 1 + l2 + noc});
    // A fill meets the requests that wait for it.
    most = std::min(most, memory + 1 + fill - slices);
    // From other GPUs' ports and from links: to slices, CUs, cu_in.
    const std::int64_t arrive = links + 1 + least_link + 1 + least_io;
    most = std::min({most, arrive - slices, arrive + noc, arrive + noc - cu_in});
    Gpu& gpu = stages_[index(rank)];
    gpu.done.set(0, 0);
    gpu.slices.set(0, slices);
    gpu.memory.set(0, memory);
    gpu.cu_in.set(0, cu_in);
    gpu.io_out.set(0, io_out);
  }
  most = std::min(most, 1 + least_link);  // from link to link
  shift_ = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(most))) - 1;
  for (Gpu& gpu : stages_) {
    for (Calendar* stage : {&gpu.done, &gpu.slices, &gpu.memory, &gpu.cu_in, &gpu.io_out})
      stage->set(shift_, stage->begin_of(0));
  }
  for (Calendar& link : links_) link.set(shift_, links);
}

// Events of ranks. What this engine does not take never comes here (see refuses()).
int Line::rank_of(EventKind kind, std::int32_t a) const {
  switch (kind) {
    case kWave:
      return groups_[index(waves_[index(a)].workgroup)].rank;
    case kDispatch:
      return kernels_[index(a)].rank;
    case kRetry:
    case kComplete:
      return requests_[index(a)].source;
    default:
      return a;
  }
}

void Line::push(std::int64_t time, EventKind kind, std::int32_t a, std::int32_t b,
                std::uint32_t tag) {
  if (is_progress(kind, b)) ++active_;
  std::vector<CoreEvent>& events = stages_[index(rank_of(kind, a))].events;
  events.push_back({time, next_sequence_++, tag, kind, a, b});
  std::push_heap(events.begin(), events.end(), Later{});
}

void Line::leave(std::int32_t, std::int64_t) {
  throw Failure("internal error: an engine of the GPU sends in the line engine", {}, {},
                ExitCode::internal);
}

std::int64_t Line::next_round() const {
  std::int64_t next = INT64_MAX;
  for (const Gpu& gpu : stages_) {
    if (!gpu.events.empty()) next = std::min(next, gpu.events.front().time >> shift_);
    for (const Calendar* stage : {&gpu.done, &gpu.slices, &gpu.memory, &gpu.cu_in, &gpu.io_out})
      next = std::min(next, stage->next());
  }
  for (const Calendar& link : links_) next = std::min(next, link.next());
  return next;
}

void Line::do_round(std::int64_t round) {
  for (int rank = 0; rank < program_.ranks; ++rank) {
    run_cores(rank, round);
    run_slices(rank, round);
    run_memory(rank, round);
    run_cu_in(rank, round);
    run_io_out(rank, round);
  }
  for (std::size_t link = 0; link < links_.size(); ++link) run_link(link, round);
}

Result Line::run() {
  start();
  while (ranks_done_ < program_.ranks) {
    const std::int64_t round = next_round();
    if (round == INT64_MAX) report_deadlock();
    do_round(round);
  }
  // What nobody waits for is still on its way: it counts, but takes no time.
  for (std::int64_t round = next_round(); round != INT64_MAX; round = next_round()) do_round(round);
  return result();
}

}  // namespace hemiola::sim

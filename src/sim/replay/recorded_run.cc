#include "sim/replay/recorded_run.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/digest.h"
#include "core/lists.h"
#include "machine/devices/parameters.h"
#include "machine/fabric_parameters.h"
#include "program/walk/cursor.h"
#include "sim/support/index.h"

namespace hemiola::sim {
namespace {

using machine::Machine;
using program::Bound;
using program::Primitive;
using program::Span;

template <typename Target>
void add_parameters(Digest& digest, const Target& target) {
  for (const auto& parameter : machine::fabric_parameters<Target>())
    digest.add(parameter.name).add(parameter.get(target));
}

std::uint64_t digest_of(const Machine& machine) {
  Digest digest;
  for (const machine::Node& node : machine.nodes) {
    digest.add(static_cast<std::int64_t>(node.kind));
    add_parameters(digest, node.switch_model);
    if (node.kind == machine::NodeKind::nic) add_parameters(digest, node.nic_model);
  }
  for (const machine::LinkClass& link : machine.link_classes) add_parameters(digest, link);
  for (const machine::Link& link : machine.links)
    digest.add(link.from).add(link.to).add(link.link_class).add(link.lane);
  for (int rank = 0; rank < machine.ranks(); ++rank)
    digest.add(machine.gpus[index(rank)]).add(machine.gpu_models[index(rank)]);
  for (const machine::GpuModel& model : machine.models)
    for (const machine::Parameter& parameter : machine::gpu_parameters())
      digest.add(parameter.name).add(parameter.get(model));
  return digest.value();
}

void add(Digest& digest, const std::vector<Span>& spans) {
  digest.add(std::ssize(spans));
  for (const Span& span : spans)
    for (const std::int64_t part :
         {std::int64_t{span.rank}, std::int64_t{span.buffer}, span.offset,
          static_cast<std::int64_t>(span.access), std::int64_t{span.group}, span.flag, span.run,
          span.pitch, span.skip, std::int64_t{span.bypass_l1}})
      digest.add(part);
}

void add(Digest& digest, const Primitive& primitive) {
  for (const std::int64_t part : {static_cast<std::int64_t>(primitive.kind),
                                  static_cast<std::int64_t>(primitive.reduce),
                                  std::int64_t{primitive.release},
                                  std::int64_t{primitive.acquire},
                                  std::int64_t{primitive.system_scope},
                                  std::int64_t{primitive.consume},
                                  std::int64_t{primitive.swap},
                                  std::int64_t{primitive.remote},
                                  std::int64_t{primitive.exchanges},
                                  std::int64_t{primitive.batched},
                                  std::int64_t{primitive.posted},
                                  std::int64_t{primitive.movers},
                                  std::int64_t{primitive.op},
                                  std::int64_t{primitive.barrier_id},
                                  std::int64_t{primitive.workgroups},
                                  primitive.bytes,
                                  primitive.flop,
                                  primitive.product.m,
                                  primitive.product.n,
                                  primitive.product.k,
                                  primitive.duration.fs})
    digest.add(part);
  add(digest, primitive.src);
  add(digest, primitive.dst);
  for (const program::SemaphoreId& id : primitive.semaphores) digest.add(id.rank).add(id.index);
  for (const std::int64_t value : primitive.values) digest.add(value);
}

void add_body(Digest& digest, const Bound& program, int rank, std::int32_t body) {
  program::Cursor cursor(program, rank, body);
  for (Primitive primitive; cursor.next(primitive);) add(digest, primitive);
}

void add_kernel(Digest& digest, const Bound& program, int rank, const program::Kernel& kernel) {
  for (const std::int64_t part :
       {std::int64_t{kernel.grain}, std::int64_t{kernel.unroll}, std::int64_t{kernel.load_bytes},
        std::int64_t{kernel.store_bytes}, std::int64_t{kernel.stages},
        std::int64_t{kernel.posts_apart}, std::int64_t{kernel.large_code},
        std::int64_t{kernel.bare}, std::int64_t{kernel.fills_unit}, kernel.largest_tile})
    digest.add(part);
  for (std::size_t w = 0; w < kernel.bodies.size(); ++w) {
    digest.add(kernel.threads_in(w)).add(kernel.block_number(w));
    add_body(digest, program, rank, kernel.bodies[w]);
  }
}

/// What a rank does: not how the file or built-in says it.
void add_rank(Digest& digest, const Bound& program, int rank) {
  digest.add(rank);
  for (std::size_t b = 0; b < program.buffers().size(); ++b)
    digest.add(program.memory_bytes(static_cast<std::int32_t>(b), rank));
  const program::RankCode& code = program.code(rank);
  for (const program::Stream& stream : code.streams) {
    digest.add(std::ssize(stream));
    for (const program::StreamItem& item : stream) {
      digest.add(static_cast<std::int64_t>(item.kind)).add(item.duration.fs).add(item.prelaunched);
      if (item.kind == program::StreamItem::Kind::kernel)
        add_kernel(digest, program, rank, program.kernels()[index(item.index)]);
      else if (item.kind == program::StreamItem::Kind::engine)
        add_body(digest, program, rank, item.index);
      else
        digest.add(item.index);
    }
  }
}

std::uint64_t digest_of(const Bound& program, const std::vector<int>& ranks) {
  Digest digest;
  digest.add(program.ranks()).add(size_of(program.type())).add(std::ssize(program.semaphores()));
  digest.add(program.barriers()).add(program.program().library_call);
  for (const std::vector<int>& group : program.groups()) {
    digest.add(std::ssize(group));
    for (const int rank : group) digest.add(rank);
  }
  for (const int rank : ranks) add_rank(digest, program, rank);
  return digest.value();
}

std::uint64_t digest_of(const Options& options, const std::vector<int>& ranks) {
  Digest digest;
  digest.add(static_cast<std::int64_t>(options.launch)).add(options.warmup).add(options.iterations);
  digest.add(options.one_host);
  for (const int rank : ranks)
    digest.add(index(rank) < options.skew.size() ? options.skew[index(rank)].fs : 0);
  return digest.value();
}

std::string wait_of(const Machine& machine, int rank) {
  for (const machine::Parameter& parameter : machine::gpu_parameters())
    if (parameter.name == "sync.wait") return parameter.get(machine.model(rank));
  return {};
}

std::string list_of(const std::vector<int>& ranks) {
  std::string text = ranks.size() > 1 ? "ranks " : "rank ";
  for (std::size_t r = 0; r < ranks.size(); ++r)
    text += (r == 0 ? "" : ",") + std::to_string(ranks[r]);
  return text;
}

/// Why this is not the run that was recorded; "" if it is.
std::string difference(const RecordedRun& recorded, const RecordedRun& here) {
  if (recorded.rows != here.rows) return "rows are not those that were recorded";
  if (recorded.wait != here.wait)
    return "gpu.sync.wait is " + here.wait + ", and was " + recorded.wait + " when it was recorded";
  if (recorded.machine != here.machine)
    return "parameters or links of the machine are not those of the recorded run";
  if (recorded.program != here.program)
    return "the program is not the recorded one, which was " + recorded.words;
  if (recorded.host != here.host)
    return "launch, start or repetitions are not those of the recorded run";
  return {};
}

/// Rows that answer what watched ranks ask of others.
struct AnswerRows {
  bool any = false;
  bool say_how_long = true;  ///< each of them: as is noted of programs with multicast groups
};

AnswerRows answer_rows(const Profile& profile, const std::vector<int>& watched) {
  const auto is_watched = [&](int rank) {
    return std::ranges::find(watched, rank) != watched.end();
  };
  AnswerRows rows;
  for (const ProfileRow& row : profile.rows) {
    if (!row.is_answer() || !is_watched(row.destination) || is_watched(row.source)) continue;
    rows.any = true;
    rows.say_how_long = rows.say_how_long && row.took >= 0;
  }
  return rows;
}

void check_ranks(const Profile& profile, const std::vector<int>& watched) {
  std::vector<int> recorded = profile.recorded.ranks, here = watched;
  std::ranges::sort(recorded);
  std::ranges::sort(here);
  if (recorded.empty() || recorded == here) return;
  throw Failure("the profile was recorded at " + list_of(recorded) + ", not at " + list_of(here),
                {.file = profile.file},
                "replay " + list_of(recorded) + ", or record again with --record-rank " +
                    list_of(here).substr(list_of(here).find(' ') + 1));
}

}  // namespace

RecordedRun recorded_run(const Machine& machine, const Bound& program, const Options& options) {
  std::vector<int> ranks = options.watched;
  std::ranges::sort(ranks);
  return {.ranks = ranks,
          .words = program.name() + " of " + to_string(program.size()) + " on " + machine.name,
          .wait = wait_of(machine, ranks.front()),
          .machine = digest_of(machine),
          .program = digest_of(program, ranks),
          .host = digest_of(options, ranks)};
}

std::uint64_t digest_of_rows(const Profile& profile) {
  Digest digest;
  digest.add(profile.at_ports).add(std::ssize(profile.rows));
  for (const ProfileRow& row : profile.rows) {
    const auto name = [&](std::int32_t buffer) {
      return buffer < 0 ? std::string_view() : profile.buffers[index(buffer)].name;
    };
    for (const std::int64_t part :
         {row.time.fs, std::int64_t{row.source}, std::int64_t{row.destination},
          static_cast<std::int64_t>(row.kind), row.buffer < 0 ? 0 : row.offset, row.size, row.value,
          std::int64_t{row.stream}, row.order, row.request, std::int64_t{row.links},
          std::int64_t{row.path}, std::int64_t{row.after_row}, row.after_offset, row.after_value,
          row.message, row.packets, row.flag, row.took})
      digest.add(part);
    digest.add(name(row.buffer)).add(name(row.after_buffer));
  }
  return digest.value();
}

Options choose_answers(const Machine& machine, const Bound& program, Options options,
                       std::string& because) {
  const Profile& profile = *options.replay;
  if (profile.ranks != program.ranks())
    throw Failure("the profile is of " + std::to_string(profile.ranks) + " ranks, the program of " +
                      std::to_string(program.ranks()),
                  {.file = profile.file});
  check_ranks(profile, options.watched);
  const bool asked = options.answers == Answers::recorded;
  if (options.answers == Answers::relative) return options;
  const bool live = std::exchange(options.answers, Answers::live) == Answers::live;
  const AnswerRows answers = answer_rows(profile, options.watched);
  if (answers.any && answers.say_how_long && !options.at_ports && !profile.at_ports)
    options.answers = Answers::relative;
  if (live) return options;
  const std::string where = list_of(options.watched);
  if (!answers.any) {
    if (asked)
      throw Failure("no row answers what " + where + " asks of others", {.file = profile.file},
                    "answers are live without --answers recorded");
    return options;
  }
  if (options.at_ports && !profile.at_ports) {
    if (asked)
      throw Failure("recorded answers are of the ingress, and here rows begin at ports",
                    {.file = profile.file}, "--mode ingress, or a recording at ports");
    because = "rows that were recorded at the ingress begin at ports";
    return options;
  }
  if (!asked && profile.recorded.known()) {
    RecordedRun here = recorded_run(machine, program, options);
    here.rows = digest_of_rows(profile);
    because = difference(profile.recorded, here);
    if (!because.empty()) return options;
  }
  options.answers = Answers::recorded;
  return options;
}

}  // namespace hemiola::sim

#include "study/laboratory/identity.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/random.h"
#include "machine/network_routing.h"
#include "plan/plan_json.h"
#include "program/promise.h"

namespace hemiola::study {
namespace {

/// Two digests of the same, which mix it differently.
class Identifier {
 public:
  Identity value() const { return {a_, b_}; }

  template <typename T>
  requires(std::is_integral_v<T> || std::is_enum_v<T>) void add(T value) {
    word(static_cast<std::uint64_t>(value));
  }
  void add(std::string_view text) {
    word(text.size());
    while (!text.empty()) {
      std::uint64_t next = 0;
      const std::size_t bytes = std::min(text.size(), sizeof next);
      std::memcpy(&next, text.data(), bytes);
      word(next);
      text.remove_prefix(bytes);
    }
  }
  void add(const std::string& text) { add(std::string_view(text)); }
  void add(Bytes bytes) { add(bytes.count); }
  void add(Time time) { add(time.fs); }
  void add(Rate rate) { add(rate.bytes_per_second); }
  template <typename T>
  void add(const std::vector<T>& list) {
    word(list.size());
    for (const T& item : list) add(item);
  }
  template <typename A, typename B>
  void add(const std::pair<A, B>& pair) {
    all(pair.first, pair.second);
  }
  template <typename T>
  void add(const std::optional<T>& value) {
    add(value.has_value());
    if (value) add(*value);
  }
  template <typename... T>
  void all(const T&... values) {
    (add(values), ...);
  }

  // Every member is named, so that one which is added to a struct does not compile until it is
  // thought of here.
  void add(const Affine& affine);
  void add(const Diagnostics& diagnostics);
  void add(const program::Buffer& buffer);
  void add(const program::Operand& operand);
  void add(const program::SemaphoreRef& semaphore);
  void add(const program::ConnectionRef& connection);
  void add(const program::MatrixProduct& product);
  void add(const program::Op& op);
  void add(const program::Body& body);
  void add(const program::Kernel& kernel);
  void add(const program::StreamItem& item);
  void add(const program::RankCode& code);
  void add(const program::StreamOptions& stream);
  void add(const program::Semaphore& semaphore);
  void add(const program::Fifo& fifo);
  void add(const program::ChannelTable& channels);
  void add(const program::Computation& computation);
  void add(const program::Program& program);

 private:
  void word(std::uint64_t word) {
    a_ = splitmix64(a_ ^ word);
    b_ = splitmix64(b_ + std::rotl(word, 29) * kSplitMixStep);
  }

  std::uint64_t a_ = 0, b_ = 1;
};

void Identifier::add(const Affine& affine) {
  const auto& [constant, rank, loop, modulus, scale, offset] = affine;
  all(constant, rank, loop[0], loop[1], modulus, scale, offset);
}

void Identifier::add(const Diagnostics& diagnostics) {
  add(diagnostics.items().size());
  for (const auto& [severity, message, where, hint] : diagnostics.items()) {
    const auto& [file, line, column, pointer] = where;
    all(severity, message, file, line, column, pointer, hint);
  }
}

void Identifier::add(const program::Buffer& buffer) {
  const auto& [name, kind, chunks, bytes, packets, rotation, chunk_limit, alias, alias_chunk] =
      buffer;
  all(name, kind, chunks, bytes, packets, rotation, chunk_limit, alias, alias_chunk);
}

void Identifier::add(const program::Operand& operand) {
  const auto& [rank, buffer, chunk, chunks, run, pitch, access, group, column] = operand;
  all(rank, buffer, chunk, chunks, run, pitch, access, group);
  if (column >= 0) all(column);  // programs without tables keep their number
}

void Identifier::add(const program::SemaphoreRef& semaphore) {
  const auto& [rank, index] = semaphore;
  all(rank, index);
}

void Identifier::add(const program::ConnectionRef& connection) {
  const auto& [peer, inbound, outbound, channel] = connection;
  all(peer, inbound, outbound, channel);
}

void Identifier::add(const program::MatrixProduct& product) {
  const auto& [m, n, k] = product;
  all(m, n, k);
}

void Identifier::add(const program::Op& op) {
  const auto& [kind, channel, reduce, src, dst, semaphores, target, targets, bypass_l1, relaxed,
               batched, staged, send_to, recv_from, more_from, more_to, slice, slices, barrier_id,
               workgroups, count, unit, unit_chunks, pieces, places, flop, product, bytes, duration,
               values, made, where] = op;
  all(kind, channel, reduce, src, dst, semaphores, target, targets, bypass_l1, relaxed, batched,
      staged, send_to, recv_from, more_from, more_to, slice, slices, barrier_id, workgroups, count,
      unit, unit_chunks, pieces, flop, product, bytes, duration, values, made, where);
  if (!places.empty()) all(places);
}

void Identifier::add(const program::Body& body) {
  const auto& [ops] = body;
  add(ops);
}

void Identifier::add(const program::Kernel& kernel) {
  const auto& [name, threads, threads_of, grain, unroll, load_bytes, store_bytes, stages,
               posts_apart, large_code, bare, fills_unit, largest_tile, bodies, blocks] = kernel;
  all(name, threads, threads_of, grain, unroll, load_bytes, store_bytes, stages, posts_apart,
      large_code, bare, fills_unit, largest_tile, bodies, blocks);
}

void Identifier::add(const program::StreamItem& item) {
  const auto& [kind, index, duration, frame, prelaunched] = item;
  all(kind, index, duration, frame, prelaunched);
}

void Identifier::add(const program::RankCode& code) {
  const auto& [streams, options] = code;
  all(streams, options);
}

void Identifier::add(const program::StreamOptions& stream) {
  const auto& [priority, first_unit, units] = stream;
  all(priority, first_unit, units);
}

void Identifier::add(const program::Semaphore& semaphore) {
  const auto& [name, initial, local, shared] = semaphore;
  all(name, initial, local, shared);
}

void Identifier::add(const program::Fifo& fifo) {
  const auto& [slots, step, slices, call, pulls] = fifo;
  all(slots, step, slices, call, pulls);
}

void Identifier::add(const program::ChannelTable& channels) {
  const auto& [memory, port] = channels;
  all(memory, port);
}

void Identifier::add(const program::Computation& computation) {
  const auto& [kind, shape, left, right, first_rows, pitch] = computation;
  all(kind, shape, left, right, first_rows, pitch);
}

/// What finish() adds follows from the rest.
void Identifier::add(const program::Program& program) {
  const program::Program& p = program;
  all(p.name, p.source, p.format, p.collective, p.protocol, p.in_place, p.library_call, p.ranks,
      p.buffers, p.semaphores, p.inbound, p.outbound, p.fifo, p.executed_by.name,
      p.executed_by.threads_post, p.groups, p.channels, p.bodies, p.kernels, p.codes, p.code_of,
      p.barriers, p.chunks_per_size, p.root, p.alignment, p.min_size, p.max_size, p.fixed_size,
      p.fixed_type, p.warnings);
  add(p.plan != nullptr);
  if (p.plan != nullptr) add(plan::write_plan(*p.plan));
  if (p.promise != nullptr) add(p.promise->text);
  add(p.computation != nullptr);
  if (p.computation != nullptr) add(*p.computation);
}

/// Of the models in use, by number: those of other machines may be others.
void add_models(Identifier& identifier, const machine::Machine& machine) {
  for (const std::int32_t number : machine.gpu_models) {
    const machine::GpuModel& model = machine.models[index(number)];
    identifier.all(number, model.cu_count, model.cu_max_threads, model.cu_max_workgroups,
                   model.cu_registers, model.sync_thread_state,
                   model.sync_wait == machine::WaitPolicy::syncmon);
  }
}

/// What Machine::routes() asks, and so Machine::reach().
void add_routes(Identifier& identifier, const machine::Machine& machine) {
  const std::vector<bool> forwards = machine.forwarding_nodes();
  for (std::size_t node = 0; node < machine.nodes.size(); ++node)
    identifier.all(machine.nodes[node].kind, static_cast<bool>(forwards[node]));
  for (const machine::Link& link : machine.links) {
    const machine::LinkClass& link_class = machine.link_classes[index(link.link_class)];
    const bool own = link_class.route_latency.fs >= 0;
    identifier.all(link.from, link.to, link.lane,
                   own ? link_class.route_latency : link_class.latency);
  }
  identifier.add(machine.gpus);
  identifier.add(machine::network_routing(machine));
}

/// Of links, switches and NICs.
void add_figures(Identifier& identifier, const machine::Machine& machine) {
  for (const machine::Node& node : machine.nodes) {
    const auto& [latency, queue, multicast, reduce_rate, reduce_latency] = node.switch_model;
    identifier.all(latency, queue, multicast, reduce_rate, reduce_latency);
    const auto& [mtu, message_time, nic_latency, rate] = node.nic_model;
    identifier.all(mtu, message_time, nic_latency, rate);
  }
  for (const machine::LinkClass& kind : machine.link_classes)
    identifier.all(kind.name, kind.bandwidth, kind.latency, kind.max_payload, kind.header,
                   kind.control, kind.credits, kind.arbitration);
  for (const machine::Link& link : machine.links) identifier.add(link.link_class);
}

}  // namespace

Identity identity_of(const program::Program& program) {
  Identifier identifier;
  identifier.add(program);
  return identifier.value();
}

Identity proof_facts(const machine::Machine* machine) {
  Identifier identifier;
  if (machine == nullptr) return identifier.value();
  identifier.add(machine->ranks());
  add_models(identifier, *machine);
  const bool network = std::ranges::any_of(machine->nodes, [](const machine::Node& node) {
    return node.kind == machine::NodeKind::nic;
  });
  identifier.add(network);
  if (network) add_routes(identifier, *machine);
  return identifier.value();
}

Identity making_facts(const machine::Machine* machine) {
  Identifier identifier;
  if (machine == nullptr) return identifier.value();
  identifier.add(machine->name);  // messages name it
  add_routes(identifier, *machine);
  add_figures(identifier, *machine);
  for (const std::int32_t number : machine->gpu_models) {
    const machine::GpuModel& model = machine->models[index(number)];
    identifier.all(number, model.name, model.cu_count, model.noc_io_rate, model.noc_io_link,
                   model.forwards);
  }
  return identifier.value();
}

}  // namespace hemiola::study

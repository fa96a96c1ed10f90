#include "lift/recorder.h"

#include <algorithm>
#include <numeric>

#include "core/index.h"
#include "hemiola/parts/build_plan.h"
#include "plan/in_place.h"

namespace hemiola::lift {
namespace {

plan::Role role_of(program::BufferKind kind) {
  switch (kind) {
    case program::BufferKind::input:
      return plan::Role::input;
    case program::BufferKind::output:
      return plan::Role::output;
    default:
      return plan::Role::scratch;
  }
}

}  // namespace

void join(Knowledge& into, const Knowledge& other) {
  for (const auto& [stream, number] : other) {
    const auto [found, fresh] = into.emplace(stream, number);
    if (!fresh) found->second = std::max(found->second, number);
  }
}

Recorder::Recorder(const program::Bound& program)
    : program_(program),
      streams_(index(program.ranks())),
      passing_end_(index(program.ranks()), 0) {}

std::int32_t Recorder::add_stream(int rank, std::string name) {
  streams_[index(rank)].push_back({.name = std::move(name)});
  return static_cast<std::int32_t>(streams_[index(rank)].size()) - 1;
}

TransferRef Recorder::last(int rank, std::int32_t stream) const {
  return {rank, stream, std::ssize(streams_[index(rank)][index(stream)].records) - 1};
}

void Recorder::add_last(int rank, std::int32_t stream, Knowledge& known) const {
  const TransferRef ref = last(rank, stream);
  if (ref.number >= 0) join(known, ref);
}

Recorder::Place Recorder::place(const program::Span& span) const {
  const bool multicast = is_multicast(span.access);
  return {multicast ? -1 : span.rank, multicast ? span.group : -1, span.buffer,
          data_offset(span.offset, span.access)};
}

/// Memory of the stream's own for what a move has reduced and not yet stored.
Recorder::Place Recorder::passing(int rank, std::int32_t stream, std::int64_t bytes, bool once) {
  StreamRecord& record = streams_[index(rank)][index(stream)];
  if (record.passing < 0 || bytes > record.passing_bytes) {
    record.passing = passing_end_[index(rank)];
    record.passing_bytes = bytes;
    passing_end_[index(rank)] += bytes;
  }
  const auto buffers = static_cast<std::int32_t>(program_.buffers().size());
  return {rank, -1, once ? buffers : buffers + 1, record.passing};
}

void Recorder::add(int rank, std::int32_t stream, const Place& source, const Place& destination,
                   std::int64_t bytes, Knowledge& known, ReduceOp reduce) {
  add(rank, stream, source, destination, bytes, known, reduce, {});
}

void Recorder::add(int rank, std::int32_t stream, const Place& source, const Place& destination,
                   std::int64_t bytes, Knowledge& known, ReduceOp reduce, const Place& operand) {
  StreamRecord& record = streams_[index(rank)][index(stream)];
  Record transfer{plan::TransferKind::copy, source, destination, operand, bytes, reduce, {}};
  if (destination.group >= 0 || (source.group < 0 && destination.rank != rank))
    transfer.kind = plan::TransferKind::push;
  if (source.group >= 0 || (destination.group < 0 && source.rank != rank))
    transfer.kind = plan::TransferKind::pull;
  for (const auto& [other, number] : known) {
    if (other == std::pair{rank, stream}) continue;
    const auto before = record.joined.find(other);
    if (before != record.joined.end() && before->second >= number) continue;
    transfer.after.push_back({other.first, other.second, number});
  }
  join(record.joined, known);
  known.clear();
  record.records.push_back(std::move(transfer));
}

void Recorder::move(int rank, std::int32_t stream, const program::Primitive& primitive,
                    Knowledge& known) {
  const std::int64_t bytes = primitive.bytes;
  std::vector<Place> sources, destinations;
  for (const program::Span& span : primitive.src) sources.push_back(place(span));
  for (const program::Span& span : primitive.dst) destinations.push_back(place(span));
  if (bytes == 0 || sources.empty()) return;
  const auto is_own = [&](const Place& p) { return p.group < 0 && p.rank == rank; };
  if (destinations.empty()) {  // what is only read still has to be there
    add(rank, stream, sources.front(), passing(rank, stream, bytes, false), bytes, known);
    return;
  }
  const bool reads_far = std::ranges::none_of(sources, is_own);
  if (sources.size() == 1 && (is_own(sources.front()) || is_own(destinations.front()))) {
    const bool grouped = sources.front().group >= 0;
    add(rank, stream, sources.front(), destinations.front(), bytes, known,
        grouped ? primitive.reduce : ReduceOp::none);
    for (std::size_t d = 1; d < destinations.size(); ++d) {
      // Data that came from afar are passed on from where they are now.
      add(rank, stream, reads_far ? destinations.front() : sources.front(), destinations[d], bytes,
          known);
    }
    return;
  }
  // The first own destination holds the reduction, or memory of the stream does.
  const auto own = std::ranges::find_if(destinations, is_own);
  const bool passes = own == destinations.end();
  const bool once = passes && destinations.size() == 1 && destinations.front().group < 0 &&
                    sources.size() <= 2 && !(sources.size() == 2 && reads_far);
  const Place held = passes ? passing(rank, stream, bytes, once) : *own;
  // An operand that is already there, else an own one, else the first, which is brought.
  auto operand = std::ranges::find(sources, held);
  if (operand == sources.end()) operand = std::ranges::find_if(sources, is_own);
  if (operand == sources.end() || sources.size() == 1) {
    operand = sources.begin();
    add(rank, stream, *operand, held, bytes, known,
        operand->group >= 0 ? primitive.reduce : ReduceOp::none);
    *operand = held;
  }
  Place with = *operand;
  for (auto source = sources.begin(); source != sources.end(); ++source) {
    if (source == operand) continue;
    add(rank, stream, *source, held, bytes, known, primitive.reduce, with);
    with = held;
  }
  for (const Place& destination : destinations)
    if (!(destination == held)) add(rank, stream, held, destination, bytes, known);
}

/// The largest number of bytes that divides everything.
std::int64_t Recorder::unit() const {
  std::int64_t unit = program_.size().count;
  const auto divide = [&](const Place& place) { unit = std::gcd(unit, place.offset); };
  for (const auto& streams : streams_) {
    for (const StreamRecord& stream : streams) {
      for (const Record& record : stream.records) {
        unit = std::gcd(unit, record.bytes);
        for (const Place* place : {&record.source, &record.destination}) divide(*place);
        if (record.reduce != ReduceOp::none) divide(record.operand);
      }
    }
  }
  for (std::size_t b = 0; b < program_.buffers().size(); ++b) {
    const program::BufferKind kind = program_.buffers()[b].kind;
    if (kind != program::BufferKind::input && kind != program::BufferKind::output) continue;
    for (int rank = 0; rank < program_.ranks(); ++rank)
      unit = std::gcd(
          unit, program_.chunks_of(static_cast<std::int32_t>(b), rank) * program_.chunk_bytes());
  }
  if (unit < size_of(program_.type()))
    throw Failure("program '" + program_.name() + "' moves parts with no common unit but " +
                      std::to_string(unit) + " bytes, less than an element",
                  {.file = program_.source()}, "another --size may have one");
  return unit;
}

plan::Region Recorder::region(const Place& place, std::int64_t bytes, std::int64_t unit) const {
  return plan::chunks_of(place.tensor, constant(place.offset / unit), bytes / unit);
}

/// Buffers become tensors as long as their longest instance, or as what is used of them.
void Recorder::set_tensors(plan::Plan& plan, std::int64_t unit) const {
  std::vector<std::int64_t> used(program_.buffers().size() + 2, 0);
  for (const auto& streams : streams_) {
    for (const StreamRecord& stream : streams) {
      for (const Record& record : stream.records) {
        for (const Place* place : {&record.source, &record.destination, &record.operand})
          used[index(place->tensor)] =
              std::max(used[index(place->tensor)], place->offset + record.bytes);
      }
    }
  }
  for (std::size_t b = 0; b < program_.buffers().size(); ++b) {
    const program::Buffer& buffer = program_.buffers()[b];
    std::int64_t chunks = used[b] / unit;
    if (buffer.kind != program::BufferKind::fifo && buffer.kind != program::BufferKind::scratch) {
      for (int rank = 0; rank < program_.ranks(); ++rank)
        chunks = std::max(chunks, program_.chunks_of(static_cast<std::int32_t>(b), rank) *
                                      program_.chunk_bytes() / unit);
    }
    plan.tensors.emplace_back(buffer.name, role_of(buffer.kind), std::max<std::int64_t>(1, chunks));
  }
  const std::size_t passing = program_.buffers().size();
  plan.tensors.emplace_back("transit", plan::Role::transit,
                            std::max<std::int64_t>(1, used[passing] / unit));
  plan.tensors.emplace_back("staging", plan::Role::scratch,
                            std::max<std::int64_t>(1, used[passing + 1] / unit));
}

/// What the program promises; in place, in terms of the memory that is both input and output.
void Recorder::set_promise(plan::Plan& plan) const {
  plan.collective = program_.collective();
  plan.root = static_cast<int>(program_.program().root);
  if (program_.collective() == Collective::custom) return;
  const auto aliased = std::ranges::find_if(
      program_.buffers(), [](const program::Buffer& buffer) { return buffer.alias >= 0; });
  if (aliased == program_.buffers().end() || plan::set_in_place(plan, aliased->alias)) return;
  plan.collective = Collective::custom;  // of sizes that have no terms for it
}

plan::Plan Recorder::finish() {
  const std::int64_t unit = this->unit();
  plan::Plan plan;
  plan.name = program_.name();
  plan.ranks = program_.ranks();
  plan.chunks_per_size = program_.size().count / unit;
  plan.groups = program_.groups();
  set_tensors(plan, unit);
  for (int rank = 0; rank < program_.ranks(); ++rank) {
    plan.code_of.push_back(rank);
    plan::Code& code = plan.codes.emplace_back();
    for (StreamRecord& recorded : streams_[index(rank)]) {
      plan::Stream& stream = code.streams.emplace_back();
      stream.name = std::move(recorded.name);
      for (const Record& record : recorded.records) {
        plan::Transfer transfer{.kind = record.kind};
        const Place& far =
            record.kind == plan::TransferKind::pull ? record.source : record.destination;
        if (far.group >= 0)
          transfer.group = far.group;
        else if (record.kind != plan::TransferKind::copy)
          transfer.peer = constant(far.rank);
        transfer.source = region(record.source, record.bytes, unit);
        transfer.destination = region(record.destination, record.bytes, unit);
        transfer.reduce = record.reduce;
        if (record.reduce != ReduceOp::none && far.group < 0)
          transfer.operand = region(record.operand, record.bytes, unit);
        for (const TransferRef& ref : record.after)
          transfer.after.push_back({constant(ref.rank), ref.stream, constant(ref.number), {}});
        stream.items.emplace_back(std::move(transfer));
      }
    }
  }
  set_promise(plan);
  validate(plan);
  return plan;
}

}  // namespace hemiola::lift

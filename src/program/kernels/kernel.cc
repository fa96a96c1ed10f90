#include "program/kernels/kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/lists.h"
#include "core/part_call.h"
#include "hemiola/parts/registry.h"

namespace hemiola::program {

const std::string& KernelArguments::word(std::string_view parameter) const {
  for (const auto& [declared, value] : parameters)
    if (declared == parameter) return value;
  throw Failure(fmt::format("kernel '{}' asks for parameter '{}', which it does not declare", name,
                            parameter),
                {}, {}, ExitCode::internal);
}

std::int64_t KernelArguments::number(std::string_view parameter, std::int64_t least,
                                     std::int64_t most) const {
  return plan::number_of(fmt::format("parameter '{}' of '{}'", parameter, name), word(parameter),
                         least, most);
}

Bytes KernelArguments::bytes(std::string_view parameter) const {
  const auto value = parse_size(word(parameter));
  if (!value)
    throw Failure(fmt::format("parameter '{}' cannot be '{}'", parameter, word(parameter)), kOption,
                  "it is a size such as 16MiB");
  return *value;
}

const std::vector<KernelInfo>& kernels(const parts::Registry* parts) {
  return parts_or_built_in(parts).kernels();
}

const KernelInfo* find_kernel(std::string_view name, const parts::Registry* parts) {
  return parts::find(kernels(parts), name);
}

namespace {

/// What the role promises of a program. Failure with the kernel's name.
Program made_by(const KernelInfo& info, const KernelArguments& arguments) {
  const std::string who = fmt::format("kernel '{}'", info.name);
  Program program = call_part(who, kOption, [&] { return info.make(arguments); });
  expect_asked(who, "program", program, arguments.ranks, info.collective,
               info.collective == Collective::custom, kOption);
  return program;
}

}  // namespace

std::optional<Program> make_kernel(const std::string& name, const LoadOptions& options) {
  const KernelInfo* info = find_kernel(name, options.parts);
  if (info == nullptr) return std::nullopt;
  if (options.ranks < info->least_ranks)
    throw Failure(
        fmt::format("'{}' needs at least {} ranks, not {}", name, info->least_ranks, options.ranks),
        kOption);
  KernelArguments arguments{
      .name = name,
      .ranks = options.ranks,
      .machine = options.machine,
      .collective = options.collective,
      .parameters = plan::complete(name, info->parameters, options.parameters)};
  arguments.size = MiB(1);  // for what does not depend on it
  Program program = made_by(*info, arguments);
  if (!info->by_size) return program;
  program.follow_size([info = *info, arguments](const BindOptions& bind) {
    KernelArguments now = arguments;
    now.size = bind.size;
    now.type = bind.type;
    return made_by(info, now);
  });
  return program;
}

Program make_other(const std::string& name, KernelArguments arguments) {
  const KernelInfo& info = *find_kernel(name);
  std::erase_if(arguments.parameters, [&](const auto& given) {
    return std::ranges::none_of(info.parameters,
                                [&](const auto& known) { return known.name == given.first; });
  });
  arguments.parameters = plan::complete(name, info.parameters, arguments.parameters);
  arguments.name = name;
  return info.make(arguments);
}

std::vector<KernelInfo> of_collectives(std::vector<KernelInfo> rows) {
  for (KernelInfo& row : rows)
    row.collective = parse_collective(row.name.substr(0, row.name.find('/'))).value();
  return rows;
}

ProgramWriter::ProgramWriter(const KernelArguments& arguments, Collective collective) {
  program_.name = program_.source = arguments.name;
  program_.format = "kernel";
  program_.collective = collective;
  program_.ranks = arguments.ranks;
}

ProgramWriter::ProgramWriter(const KernelArguments& arguments, Collective collective,
                             std::int64_t input_chunks, std::int64_t output_chunks)
    : ProgramWriter(arguments, collective) {
  program_.buffers = {{.name = "input", .kind = BufferKind::input, .chunks = {input_chunks}},
                      {.name = "output", .kind = BufferKind::output, .chunks = {output_chunks}}};
}

std::int32_t ProgramWriter::add_buffer(Buffer buffer) {
  program_.buffers.push_back(std::move(buffer));
  return static_cast<std::int32_t>(program_.buffers.size()) - 1;
}

void ProgramWriter::share_memory() {
  program_.buffers[index(output())].alias = input();
  program_.in_place = true;
}

std::int32_t ProgramWriter::semaphore(const std::string& name, bool local) {
  program_.semaphores.push_back({.name = name, .local = local});
  return static_cast<std::int32_t>(program_.semaphores.size()) - 1;
}

std::int32_t ProgramWriter::begin_body() {
  program_.bodies.emplace_back();
  return static_cast<std::int32_t>(program_.bodies.size()) - 1;
}

void ProgramWriter::add(Op op) {
  op.where = fmt::format("/{}", program_.bodies.back().ops.size());
  program_.bodies.back().ops.push_back(std::move(op));
}

KernelWriter::KernelWriter(const KernelArguments& arguments, Collective collective,
                           std::int64_t chunks)
    : ProgramWriter(arguments, collective, chunks, chunks) {
  program_.chunks_per_size = chunks;
}

std::int32_t KernelWriter::semaphores(const std::string& name) {
  const auto first = static_cast<std::int32_t>(program_.semaphores.size());
  for (int distance = 1; distance < ranks(); ++distance)
    program_.semaphores.push_back({.name = fmt::format("{}, from {} before", name, distance)});
  return first;
}

void KernelWriter::begin(int workgroup, int workgroups, int threads) {
  workgroup_ = workgroup;
  workgroups_ = workgroups;
  ++blocks_;
  begin_part(threads);
}

void KernelWriter::begin_part(int threads) {
  kernel_.bodies.push_back(begin_body());
  kernel_.threads_of.push_back(threads);
  kernel_.blocks.push_back(blocks_ - 1);
}

void KernelWriter::load(std::int32_t buffer) {
  Op op{.kind = OpKind::load, .src = {{.buffer = buffer}}};
  op.slice = workgroup_;
  op.slices = workgroups_;
  op.bytes = {16};
  add(std::move(op));
}

void KernelWriter::barrier(std::int32_t first_semaphore, bool release) {
  tell(first_semaphore, release);
  hear(first_semaphore, release);
}

void KernelWriter::tell(std::int32_t first_semaphore, bool release) {
  Op signal{.kind = release ? OpKind::signal : OpKind::relaxed_signal, .channel = Channel::memory};
  for (int distance = 1; distance < ranks(); ++distance)
    signal.semaphores.push_back({neighbour(distance, ranks()), first_semaphore + distance - 1});
  add(std::move(signal));
}

void KernelWriter::hear(std::int32_t first_semaphore, bool acquire) {
  Op wait{.kind = acquire ? OpKind::wait : OpKind::relaxed_wait, .channel = Channel::memory};
  for (int distance = 1; distance < ranks(); ++distance)
    wait.semaphores.push_back({own_rank(), first_semaphore + distance - 1});
  add(std::move(wait));
}

void KernelWriter::grid_barrier() {
  program_.barriers = 1;
  add({.kind = OpKind::barrier, .workgroups = workgroups_});
}

Op KernelWriter::move(OpKind kind, std::vector<Operand> sources,
                      std::vector<Operand> destinations) const {
  Op op{.kind = kind, .channel = Channel::memory};
  op.src = std::move(sources);
  op.dst = std::move(destinations);
  op.slice = workgroup_;
  op.slices = workgroups_;
  op.unit = unit_;
  return op;
}

Program KernelWriter::finish(const std::string& name, int threads, int unroll) {
  kernel_.name = name;
  kernel_.threads = threads;
  kernel_.unroll = unroll;
  std::replace(kernel_.threads_of.begin(), kernel_.threads_of.end(), 0, threads);
  program_.kernels = {std::move(kernel_)};
  program_.codes = {{{{StreamItem{.kind = StreamItem::Kind::kernel, .index = 0}}}}};
  program_.code_of.assign(index(program_.ranks), 0);
  program_.finish();
  return std::move(program_);
}

}  // namespace hemiola::program

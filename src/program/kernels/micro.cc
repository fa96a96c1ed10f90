#include "program/kernels/micro.h"

#include <fmt/format.h>

#include "machine/machine.h"

namespace hemiola::program {

std::vector<KernelInfo> on_one_rank(std::vector<KernelInfo> rows) {
  for (KernelInfo& row : rows) row.least_ranks = 1;
  return rows;
}

MicroWriter::MicroWriter(const KernelArguments& arguments, std::int64_t output_chunks)
    : ProgramWriter(arguments, Collective::custom, 1, output_chunks) {
  program_.codes = {{}};
  program_.code_of.assign(index(arguments.ranks), 0);
}

std::int32_t MicroWriter::body(std::vector<Op> ops) {
  const std::int32_t number = begin_body();
  for (Op& op : ops) add(std::move(op));
  return number;
}

Stream MicroWriter::kernel(std::vector<std::int32_t> bodies, int threads, int unroll) {
  program_.kernels.push_back({.name = program_.name,
                              .threads = threads,
                              .unroll = unroll,
                              .bare = true,
                              .bodies = std::move(bodies)});
  return {{.kind = StreamItem::Kind::kernel,
           .index = static_cast<std::int32_t>(program_.kernels.size()) - 1}};
}

void MicroWriter::run_on(int rank, std::vector<Stream> streams) {
  program_.code_of.at(index(rank)) = static_cast<std::int32_t>(program_.codes.size());
  program_.codes.push_back({std::move(streams)});
}

Program MicroWriter::finish() {
  program_.finish();
  return std::move(program_);
}

std::vector<Op> repeated(std::int64_t count, std::vector<Op> ops) {
  ops.insert(ops.begin(), {.kind = OpKind::loop, .count = count});
  ops.push_back({.kind = OpKind::end_loop});
  return ops;
}

int blocks_of(const KernelArguments& arguments) {
  constexpr int kUsual = 132;
  const auto given = static_cast<int>(arguments.number("blocks", 0, 4096));
  if (given > 0) return given;
  return arguments.machine == nullptr ? kUsual
                                      : static_cast<int>(arguments.machine->model(0).cu_count);
}

void check_peer(const KernelArguments& arguments, std::string_view parameter) {
  if (arguments.ranks > 1) return;
  throw Failure(fmt::format("'{}' with {}={} needs at least 2 ranks", arguments.name, parameter,
                            arguments.word(parameter)),
                kOption);
}

}  // namespace hemiola::program

// Names that stand for several kernels: which one depends on the collective and the size.
#include <fmt/format.h>

#include "program/kernels/kernel.h"
#include "program/kernels/nccl.h"

namespace hemiola::program {
namespace {

/// Word "auto" leaves it to who loads the program; without one it is all-reduce.
Collective asked_for(const KernelArguments& arguments) {
  const std::string& word = arguments.word("collective");
  if (word != "auto") return *parse_collective(word);
  return arguments.collective == Collective::custom ? Collective::all_reduce : arguments.collective;
}

std::vector<plan::ParameterInfo> auto_parameters() {
  std::vector<std::string> collectives{"auto"};
  for (const Collective collective :
       {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
        Collective::all_to_all, Collective::broadcast, Collective::reduce})
    collectives.emplace_back(name_of(collective));
  return {{"collective", "auto", collectives, "auto: that of a measured row, else all-reduce"}};
}

Program nccl(const KernelArguments& arguments) {
  const std::string name = fmt::format("{}/nccl", name_of(asked_for(arguments)));
  if (find_kernel(name) == nullptr)
    throw Failure(fmt::format("'{}' has no {}", arguments.name, name_of(asked_for(arguments))),
                  kOption, "name a built-in program of that collective");
  return make_other(name, arguments);
}

// vLLM asks its own all-reduce first, which takes less than 8 MiB, a multiple of 16 B, on 2, 4, 6
// or 8 GPUs of one node; everything else is NCCL's
// (vllm/distributed/device_communicators/cuda_communicator.py and custom_all_reduce.py).
Program custom_all_reduce(const KernelArguments& arguments) {
  constexpr std::int64_t kMost = 8 << 20;
  const int n = arguments.ranks;
  const std::int64_t size = arguments.size.count;
  const bool own = (n == 2 || n == 4 || n == 6 || n == 8) && size < kMost && size % 16 == 0;
  if (own && asked_for(arguments) == Collective::all_reduce && nccl_nodes(arguments).count == 1)
    return make_other("all-reduce/vllm", arguments);
  return make_other("auto/nccl", arguments);
}

}  // namespace

std::vector<KernelInfo> auto_kernels() {
  return {
      {"auto/nccl", "what NCCL does for the collective asked for; alone, all-reduce",
       auto_parameters(), nccl},
      {"auto/custom-allreduce", "vLLM's all-reduce, one or two stages by size; NCCL from 8 MiB on",
       auto_parameters(), custom_all_reduce}};
}

}  // namespace hemiola::program

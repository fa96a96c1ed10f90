#include <algorithm>
#include <vector>

#include "machine/machine.h"
#include "program/bind/bound.h"
#include "study/evidence/evidence.h"

namespace hemiola::study {
namespace {

/// Whose kernels a built-in follows.
std::string library_of(const std::string& program, const std::string& device) {
  if (program.find("/nccl") != std::string::npos) return library_on(device);
  if (program.find("/vllm") != std::string::npos) return "vLLM";
  return program.find("/trtllm") != std::string::npos ? "TensorRT-LLM" : "";
}

}  // namespace

std::optional<Likeness> likeness_of(const program::Bound& bound, const std::string& launch,
                                    Bytes size) {
  const machine::Machine* machine = bound.machine();
  if (bound.linked() != nullptr || machine == nullptr || bound.ranks() < 1) return std::nullopt;
  std::vector<int> nodes;  // a rank of each
  for (int rank = 0; rank < bound.ranks(); ++rank) {
    if (machine->model(rank).name != machine->model(0).name) return std::nullopt;
    if (std::ranges::all_of(nodes, [&](int of) { return bound.crosses_network(of, rank); }))
      nodes.push_back(rank);
  }
  const std::string& device = machine->model(0).name;
  return Likeness{.device = device,
                  .kind = bound.collective() == Collective::custom ? "custom program"
                                                                   : program_kind(bound.name()),
                  .launch = launch,
                  .op = std::string(name_of(bound.collective())),
                  .library = library_of(bound.name(), device),
                  .ranks = bound.ranks(),
                  .nodes = static_cast<int>(nodes.size()),
                  .amount = static_cast<double>(size.count)};
}

Likeness iteration_likeness(const std::string& device, int ranks, double flop, bool has_experts) {
  return {.device = device,
          .kind = std::string(kIterationKind),
          .op = has_experts ? "mixture" : "dense",
          .ranks = ranks,
          .amount = flop / ranks};
}

}  // namespace hemiola::study

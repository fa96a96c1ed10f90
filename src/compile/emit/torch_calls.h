// The statements of every rank: calls of hemiola_rt, with what they need of it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "compile/emit/torch_statements.h"
#include "compile/fuse/fusion.h"
#include "compile/fuse/stores.h"
#include "plan/plan.h"

namespace hemiola::compile {

struct TorchCalls {
  std::vector<std::vector<Statement>> by_rank;
  /// With a kernel: the order of its tiles and who is told of them (Work in hemiola_rt).
  /// By grid.
  std::vector<std::vector<std::vector<Statement>>> work;
  std::set<std::int32_t> shared;  ///< tensors that peers reach
  std::int64_t copies = 0;        ///< the most streams of transfers of a rank
  std::int64_t launches = 0;      ///< the most streams of launches
  std::int64_t steps_of_copies = 0, steps_of_launches = 0;  ///< that signals tell; 0: none does
  bool uses_events = false;
};

/// "t.work", "t.work_2", ...: what an emitted file calls the tables of a grid.
std::string work_name(std::size_t grid);

/// With `carries` the programs of the kernel move the data (fuse/carry.h), and `by_rank` has none
/// of it. `names` are those of the tensors, all of which have a data type of PyTorch. Failure at
/// `file`: see torch_of().
TorchCalls calls_of(const plan::Plan& plan, const std::vector<std::string>& names,
                    const std::string& file, const Fusions* fusions = nullptr, bool carries = false,
                    const std::vector<TileStore>* stores = nullptr);

}  // namespace hemiola::compile

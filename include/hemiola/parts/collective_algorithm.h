// Collective algorithms: a function from a number of ranks and parameters to a plan, which says
// what moves between ranks and after what, in chunks (plan.h). How many workgroups move a chunk and
// with which protocol is the lowering's. Built-in algorithms and overlap schedules are of this
// role.
//
//     hemiola::plan::Plan make(const hemiola::plan::TemplateArguments& arguments) {
//       using namespace hemiola::plan;
//       Plan plan = start_plan(arguments, arguments.ranks);  // so many chunks are the size
//       plan.tensors = {{"input", Role::input, 1}, {"output", Role::output, arguments.ranks}};
//       Stream stream{"exchange", {copy(chunk_of(0), chunk_of(1, hemiola::own_rank()))}};
//       for (int distance = 1; distance < arguments.ranks; ++distance)
//         stream.items.push_back(push(around(arguments.ranks, distance), chunk_of(0),
//                                     chunk_of(1, hemiola::own_rank())));
//       run_everywhere(plan, stream);
//       return plan;
//     }
//     registry.add(hemiola::plan::TemplateInfo{.name = "all-gather/mine",
//         .description = "one rank after the other", .make = make,
//         .collective = hemiola::Collective::all_gather});
//
// Shapes: tensors are rows of chunks, equally large on all ranks; a collective's are those of
// nccl-tests (an all-gather has an input of 1 chunk and an output of `ranks`). Order: that of a
// stream; between ranks what transfers name in `after`. Checked of every plan: validate(), ranks,
// name and collective; that it computes what the collective promises is proven before it is run
// (`hemiola check`). Errors: throw hemiola::Failure, say for a number of ranks that it is not for.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hemiola/parts/parameter.h"
#include "hemiola/parts/plan.h"
#include "hemiola/types.h"
#include "hemiola/units.h"

namespace hemiola {
struct Monitor;
}
namespace hemiola::machine {
class Machine;
}
namespace hemiola::parts {
class Registry;
}

namespace hemiola::plan {

using ParameterInfo = parts::Parameter;
using Parameters = parts::Parameters;

/// For templates that choose among plans: the time at `size`, better known than by estimate().
/// Nothing where it is not.
using Judge = std::function<std::optional<Time>(const Plan&, Bytes size)>;

/// What a template is made for. Parameters are complete and valid: defaults are filled in.
struct TemplateArguments {
  std::string name;
  Collective collective = Collective::custom;
  int ranks = 0;
  Parameters parameters;
  const machine::Machine* machine = nullptr;  ///< with as many ranks; null: not known
  Judge judge{};                              ///< unset: estimate() chooses alone
  Monitor* monitor = nullptr;                 ///< of templates that take long; null: nobody watches
  const parts::Registry* parts = nullptr;     ///< of those that choose; null: the built-ins

  const std::string& word(std::string_view parameter) const;
  /// Failure: not from `least` to `most`.
  std::int64_t number(std::string_view parameter, std::int64_t least = 0,
                      std::int64_t most = INT64_MAX) const;
};

struct TemplateInfo {
  std::string name{};         ///< "all-reduce/ring"
  std::string description{};  ///< one line
  std::vector<ParameterInfo> parameters{};
  std::function<Plan(const TemplateArguments&)> make{};
  Collective collective = Collective::custom;
  bool in_chunks = true;       ///< false: of elements, with the sizes as parameters
  bool needs_machine = false;  ///< derives its plan from the machine's links
  std::string source{};        ///< where idea and numbers come from: paper, repository, measurement
  bool is_valid = false;  ///< of built-ins, whose tests show it: make() need not look at the plan

  const ParameterInfo* parameter(std::string_view name) const;  ///< null: it has none of that name
};

/// An empty plan with the names and ranks of the arguments, for a template to fill.
Plan start_plan(const TemplateArguments& arguments, std::int64_t chunks_per_size);

}  // namespace hemiola::plan

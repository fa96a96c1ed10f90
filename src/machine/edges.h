// Single links that are slower than others, or gone.
#pragma once

#include <string_view>

#include "machine/machine.h"

namespace hemiola::machine {

/// `--set edge.FROM:TO.NAME=VALUE`; `rest` is FROM:TO.NAME, `parameter` all of it. FROM and TO are
/// names of nodes ("leaf.0.switch.0") in which `*` stands for any text. All links between such
/// nodes are meant, in both directions. NAME is a parameter of links (docs/machines.md): links that
/// change get a class of their own, named after the one they had ("ib-ndr-2"). Or it is `failed`:
/// true takes the links away, and ways between GPUs are found without them.
///
/// Throws Failure: no such nodes or links, a bad value, GPUs that have no way to each other left
/// (of the last link that is taken away).
void set_edge(Machine& machine, std::string_view parameter, std::string_view rest,
              std::string_view value);

}  // namespace hemiola::machine

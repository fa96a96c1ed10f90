// How explorations are asked for. Private to the library.
#pragma once

#include "explore/search/explorer.h"
#include "hemiola/explore.h"

namespace hemiola {

/// All but what is explored. Failure: words that are none of the known ones.
explore::Request exploration_request(const Machine& machine, const ExploreOptions& options);

}  // namespace hemiola

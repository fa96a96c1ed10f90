// What an exploration keeps for its page. Private to the library.
#pragma once

#include "explore/exploration.h"
#include "hemiola/explore.h"

namespace hemiola {

struct Exploration::Implementation {
  explore::Exploration found;
};

}  // namespace hemiola

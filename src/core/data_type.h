// Element types, reductions and collectives: as users of the library see them.
#pragma once

#include "hemiola/types.h"

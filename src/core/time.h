// Simulated time: as users of the library see it.
#pragma once

#include "hemiola/units.h"

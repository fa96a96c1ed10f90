#include "workload/astra.h"
#include <gtest/gtest.h>

// Workloads (hemiola/parts/workload.h), and the vocabulary of their readers.
#pragma once

#include <map>
#include <string_view>

#include "core/data_type.h"
#include "core/diagnostics.h"
#include "core/index.h"
#include "core/time.h"
#include "hemiola/parts/workload.h"

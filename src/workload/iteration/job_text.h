// A workload as a job file (docs/jobs.md): every launch of every rank, linked and simulated in one
// go. For small ones: to look at one in detail, and to hold the scheduler against.
#pragma once

#include <string>

#include "workload/scheduler/schedule.h"
#include "workload/workload.h"

namespace hemiola::workload {

/// Launches in the order in which the schedule began them, which is that of each stream. Kernels
/// that are known by their time alone take it; the CPU is not in it, and messages keep the order of
/// those between the same ranks only. Failure for more launches than 10,000.
std::string job_text(const Workload& workload, Places& places, const ScheduleResult& order);

}  // namespace hemiola::workload

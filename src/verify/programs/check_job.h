// Proofs of jobs (program/jobs/job.h): every launch as a program alone, and then what several of
// them may do to each other.
#pragma once

#include "verify/verify.h"

namespace hemiola::verify {

/// Of what link() made; docs/verify.md, jobs.
Proof check_job(const program::Bound& job, const CheckOptions& options);

}  // namespace hemiola::verify

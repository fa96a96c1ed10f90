// Jobs as files (docs/jobs.md): launches of programs, products, other computes and copies.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "machine/machine.h"
#include "program/jobs/job.h"
#include "study/laboratory/experiment.h"

namespace hemiola::study {

/// Whether the text is that of a job: YAML (or JSON) with a key `launches`.
bool is_job(std::string_view text);

/// The job for a machine, whose links and GPU models the programs follow. Programs of the same
/// name, parameters, type and kind of ranks are loaded once, by the laboratory. Files that it names
/// stand beside it, or where they are found from the working directory. Failure: whatever is wrong,
/// with its line; Interrupted when the watch's monitor asks for it.
std::shared_ptr<const program::Job> read_job(const std::string& file,
                                             const machine::SharedMachine& machine,
                                             Laboratory& laboratory, const Watch& watch = {});
/// The same of a text; `file` is named in messages.
std::shared_ptr<const program::Job> parse_job(std::string_view text, const std::string& file,
                                              const machine::SharedMachine& machine,
                                              Laboratory& laboratory, const Watch& watch = {});

}  // namespace hemiola::study

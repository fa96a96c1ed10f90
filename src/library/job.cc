#include "hemiola/job.h"

#include "core/text.h"
#include "library/implementations.h"
#include "study/laboratory/job_file.h"

namespace hemiola {

Job Job::load(const std::string& file) {
  return from_text(read_file(file), file);
}

Job Job::from_text(const std::string& text, const std::string& file) {
  if (!study::is_job(text))
    throw Failure("this is no job", {.file = file}, "a job has a key 'launches' (docs/jobs.md)");
  return Job(std::make_shared<const Implementation>(Implementation{file, text}));
}

const std::string& Job::file() const {
  return self_->file;
}
const std::string& Job::text() const {
  return self_->text;
}

}  // namespace hemiola

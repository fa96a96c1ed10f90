// Jobs: several operations on one machine, at once or one after the other.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "hemiola/error.h"

namespace hemiola {

/// A directed acyclic graph of launches: programs with their size, type and operator, products and
/// other computes, copies; each on ranks and streams of its own. docs/jobs.md says what its file
/// has. A job is a Program: run() and check() take it. Immutable and cheap to copy.
class Job {
 public:
  /// Failure: no such file, or one that is no job. What is wrong in it is found by run() and
  /// check(), which have the machine, with its line.
  static Job load(const std::string& file);
  /// The same of text, YAML or JSON. `file` is how messages call it; files that the job names stand
  /// beside it.
  static Job from_text(const std::string& text, const std::string& file = "<job>");

  const std::string& file() const;
  const std::string& text() const;

  struct Implementation;  ///< the library's
  explicit Job(std::shared_ptr<const Implementation> self) : self_(std::move(self)) {}
  const Implementation& implementation() const { return *self_; }

 private:
  std::shared_ptr<const Implementation> self_;
};

}  // namespace hemiola

// Plans: what moves between ranks, and after what, in chunks; and what is computed meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hemiola/machine.h"
#include "hemiola/types.h"

namespace hemiola {

/// A parameter of a template. Values are text: a word out of `choices`, or, where there are none,
/// an integer >= 0.
struct TemplateParameter {
  std::string name;
  std::string default_value;
  std::vector<std::string> choices;
  std::string description;
};

struct PlanTemplate {
  std::string name;  ///< "all-reduce/ring"
  Collective collective = Collective::custom;
  std::string description;  ///< one line
  std::vector<TemplateParameter> parameters;
  bool needs_machine = false;  ///< derives its plan from the machine's links
};

/// Immutable, valid and cheap to copy. docs/plan_files.md says what plans consist of;
/// docs/plan.schema.json is their file form.
class Plan {
 public:
  /// A plan of a template. With a machine, which has as many ranks, rings, trees and synthesised
  /// schedules follow its links. Failure: an unknown template or parameter (with a suggestion), a
  /// bad value, fewer than two ranks, no machine where the template needs one.
  /// Interrupted soon after `stop` is set.
  static Plan make(const std::string& name, int ranks, const Settings& parameters = {},
                   const std::optional<Machine>& machine = {},
                   const std::atomic<bool>* stop = nullptr);
  static std::vector<PlanTemplate> templates();

  /// Failure: what is wrong first, with file, line, JSON pointer and a hint.
  static Plan load(const std::string& file);
  /// The same of text; `file` is how messages call it.
  static Plan from_json(const std::string& text, const std::string& file = "<text>");
  /// Canonical: the same plan always gives the same bytes, and reading them the same plan.
  std::string to_json() const;

  /// A plan of chunks put on a tensor: chunks are equal parts of `shape` along `axis`. Failure: an
  /// axis that does not divide, a plan of elements.
  Plan shaped(const std::vector<std::int64_t>& shape, DataType type, int axis = 0) const;

  const std::string& name() const;
  Collective collective() const;
  int ranks() const;
  bool of_elements() const;        ///< it has one size, its own, and its tensors have data types
  std::int64_t transfers() const;  ///< over all ranks, loops unrolled
  std::int64_t chunks_per_size() const;  ///< plans of chunks: how many are the size

  struct Implementation;  ///< the library's
  explicit Plan(std::shared_ptr<const Implementation> self) : self_(std::move(self)) {}
  const Implementation& implementation() const { return *self_; }

 private:
  std::shared_ptr<const Implementation> self_;
};

}  // namespace hemiola

// Which of several plans of one collective takes the least time on a machine: by their estimates,
// and, where somebody judges the best of these, by that. Private to the layer.
#pragma once

#include <optional>
#include <vector>

#include "plan/fabric.h"
#include "plan/template.h"

namespace hemiola::plan {

/// The plans of the other templates of the collective, for the machine of the arguments.
std::vector<Plan> plans_of_templates(const TemplateArguments& arguments, Fabric& fabric);

class Choice {
 public:
  /// Arguments: of a template with the parameters of `*/synth`. `count`: how many plans will be
  /// considered, for who watches.
  Choice(const TemplateArguments& arguments, Fabric& fabric, std::size_t count);

  /// One more, whose estimate is made now; nothing counts, but is no candidate. Failure: see
  /// estimate(). Interrupted when the arguments' monitor asks for it, as in best().
  void consider(std::optional<Plan> plan);

  /// The best of at least one; its name says what it was taken from, and whether it was judged.
  Plan best() &&;

 private:
  struct Candidate {
    Plan plan;
    Time estimate{0};
  };
  Time estimate_of(const Plan& plan) const;
  /// To be called where it can be left, after so much of the work.
  void worked(std::int64_t work) const;
  std::size_t best_by_estimate() const;
  std::optional<std::size_t> best_by_judge() const;

  const TemplateArguments& arguments_;
  Fabric& fabric_;
  Bytes size_;
  std::vector<Candidate> candidates_;
};

}  // namespace hemiola::plan

// Runs the suite.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "study/tables/suite.h"
#include "study/tables/validate.h"

namespace hemiola::study {

/// What was compared: an entry of the suite, or a table that the user names.
struct Judgement {
  std::string name;
  std::optional<Kind> kind;  ///< of the suite
  std::string table;
  std::string where;
  std::string machine;
  std::string program;
  sim::Options options;
  Validation validation;
  Summaries summaries;
  std::optional<Marks> marks;  ///< of the suite
};

class SuiteRunner {
 public:
  /// `common` says what is the same for all entries: repetitions, max_size, in_sample, check; `set`
  /// which parameters of all machines are not as they are shipped.
  SuiteRunner(Laboratory& laboratory, const Suite& suite, Configuration common, Settings set,
              std::function<void(const std::string&)> doing)
      : laboratory_(laboratory),
        suite_(suite),
        common_(std::move(common)),
        set_(std::move(set)),
        validator_(laboratory, std::move(doing)) {}

  /// In order of `names`. What is wrong with a table is found before anything is simulated. An
  /// entry that is launched on a stream gets the software constant of its calibrate entry, whose
  /// rows are simulated for that if need be. `on_entry` is told how many of how many are done.
  /// Interrupted, it returns what it has: the last entry in part, and no entry without a row.
  std::vector<Judgement> judge(const std::vector<std::string>& names,
                               const std::function<void(std::size_t, std::size_t)>& on_entry = {});

  /// Fitted to all rows of the entry's `calibrate`, also to those that are not simulated.
  TrivialModel trivial_model(const SuiteEntry& entry);

 private:
  Configuration configuration_of(const SuiteEntry& entry);
  Validation validate(const SuiteEntry& entry);
  void add_software_of(const SuiteEntry& entry, Validation& validation);

  Laboratory& laboratory_;
  const Suite& suite_;
  Configuration common_;
  Settings set_;
  Validator validator_;
};

/// Which of two is faster, size by size: whether the simulated order is the measured one. Rows meet
/// by size and ranks; of several rows of one side the median counts.
struct OrderResult {
  std::string name;
  int sizes = 0;    ///< simulated on both sides
  int decided = 0;  ///< of these, measured times differ by more than 10 %
  int right = 0;    ///< of these, simulated in the same order
  /// The size from which the second is faster than the first up to the largest common one, as
  /// measured and as simulated; nothing where there is none, or where it is so from the start.
  std::optional<Bytes> measured_crossover, simulated_crossover;
};
/// Comparisons of which an entry was not judged are left out.
std::vector<OrderResult> compare_orders(const Suite& suite,
                                        const std::vector<Judgement>& judgements);

}  // namespace hemiola::study

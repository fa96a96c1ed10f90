// Simulations of a tuner in one SQLite file, so that a tuner that was ended goes on where it was
// (docs/tune.md describes the tables).
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "explore/trials/plan_trial.h"
#include "study/laboratory/database_head.h"

namespace hemiola::tune {

/// Thread-safe. What was written is there whatever happens to the process later. Every member
/// throws Failure, with the file, where SQLite cannot go on.
class Database : public study::sqlite::Results {
 public:
  /// Opens the file and creates it where there is none. Failure for one that holds something else:
  /// one message says all that differs.
  Database(const std::string& file, const study::DatabaseHead& head);

  /// By key_of(): whether it is known of a plan, and then what.
  bool find(const std::string& key, Time& bound);
  bool find(const std::string& key, explore::Measured& fluid);
  bool find(const std::string& key, explore::Confirmed& sampled);
  void add(const std::string& key, Time bound);
  void add(const std::string& key, const explore::Measured& fluid);
  void add(const std::string& key, const explore::Confirmed& sampled);

  void add(const std::string& image);

 private:
  std::mutex mutex_;
};

}  // namespace hemiola::tune

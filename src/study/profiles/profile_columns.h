// What a row of a profile has, in files of both kinds.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "sim/result/profile.h"

namespace hemiola::study {

/// Numbers are texts where they are compared only.
struct ProfileColumn {
  std::string_view name, type;
  bool is_text;
  std::string (*write)(const sim::Profile& profile, const sim::ProfileRow& row);
  /// CSV has it where some row is a burst, or says it.
  enum class Where { always, bursts, said } where = Where::always;
};
constexpr std::size_t kProfileColumns = 20;
using ProfileColumns = std::array<ProfileColumn, kProfileColumns>;
const ProfileColumns& profile_columns();

}  // namespace hemiola::study

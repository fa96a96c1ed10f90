// What tells points of a sweep apart. Private to the layer.
#pragma once

#include <string>

#include "study/sweep/sweep_database.h"

namespace hemiola::report {

/// What a point is, beside size, type and reduction: columns of the table and of CSV, keys of JSON.
struct SweepKey {
  const char* name;
  std::string study::SweepRow::*member;
};
constexpr SweepKey kSweepKeys[] = {
    {"machine", &study::SweepRow::machine}, {"gpu", &study::SweepRow::gpu},
    {"set", &study::SweepRow::set},         {"ranks", &study::SweepRow::ranks},
    {"program", &study::SweepRow::program}, {"param", &study::SweepRow::parameters},
    {"engine", &study::SweepRow::engine},   {"launch", &study::SweepRow::launch},
    {"skew", &study::SweepRow::skew}};

}  // namespace hemiola::report

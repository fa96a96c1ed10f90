// Cells that tables, pages and objects of tuners share. Private to the layer.
#pragma once

#include <string>
#include <vector>

#include "tune/tuner.h"

namespace hemiola::report {

/// Positions among a bucket's candidates: the Pareto front and the fastest, each simulation once.
std::vector<std::size_t> shown_candidates(const tune::Bucket& bucket);

/// Time over that of the fastest by the same engine, less 1, in per cent; "-" where no engine has
/// timed both.
std::string slower(const tune::Bucket& bucket, const tune::Candidate& candidate);

/// Where it takes longer than the fastest, by the same engine: "issue 12.1, memory 3.0" in
/// microseconds, the largest two; "-" where nothing does.
/// Of what stands beside the candidates.
std::string slower(const tune::Bucket& bucket, Time time);
std::string loses(const tune::Bucket& bucket, const tune::Candidate& candidate);

/// By the engine that timed it last.
inline const sim::Attribution& attribution_of(const tune::Candidate& one) {
  return one.sampled ? one.sampled->attribution : one.fluid->attribution;
}

/// `hemiola run ...` that says the same time of a candidate.
std::string command_of(const tune::Tuning& tuning, const tune::Bucket& bucket,
                       const tune::Candidate& candidate);

/// What a table of measured times calls it: its text, with its sizes where there are several.
std::string bench_name(const tune::Tuning& tuning, const tune::Bucket& bucket,
                       const tune::Candidate& candidate);

}  // namespace hemiola::report

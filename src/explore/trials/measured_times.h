// Times that the user measured, which the models are made to meet (docs/explore.md, measured).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/data_type.h"
#include "core/units.h"
#include "machine/devices/gemm_model.h"
#include "study/laboratory/experiment.h"

namespace hemiola::explore {

struct MeasuredTimes {
  struct Product {
    int line = 0;
    machine::GemmShape shape;
    double time_us = 0;
  };
  struct MeasuredCollective {
    int line = 0;
    Collective collective = Collective::all_gather;
    Bytes size{};
    double time_us = 0;
  };
  std::string file;
  std::vector<Product> products;
  std::vector<MeasuredCollective> collectives;
  std::map<std::string, double> schedules_us;  ///< by Schedule::text(), "serial" among them
  /// What the caller's software takes around a schedule, beyond what is simulated: barriers and
  /// calls of a host, say. Not around serial.
  double software_us = 0;
};

/// CSV with a heading. `what` is product (with m, n, k of one GPU), a collective (with size_bytes
/// as nccl-tests counts them), schedule (with its text in `schedule`), or software; `time_us` its
/// time.
/// Columns that no row needs may be missing. Failure with the line: an unknown column or word, a
/// number that is none, a row that lacks what it needs, a table without a row.
MeasuredTimes read_measured_times(std::string_view text, const std::string& file, DataType type);

/// What is set of a machine so that products and collectives take what was measured.
struct FittedMachine {
  study::Settings settings;          ///< in the words of --set
  std::vector<std::string> remarks;  ///< what was changed by how much, and what is left
};
/// By fluid, in a few rounds: the clocks of products, the bandwidth of all links. Collectives are
/// the library's (auto/nccl). Failure as the laboratory.
FittedMachine fit_machine(study::Laboratory& laboratory, const study::MachineChoice& choice,
                          const MeasuredTimes& times, const sim::Options& options);

}  // namespace hemiola::explore

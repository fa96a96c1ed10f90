// What is said of a machine, as rows of cells: for the printed tables and for the page.
#pragma once

#include <string>
#include <vector>

#include "machine/machine.h"

namespace hemiola::report {

using Row = std::vector<std::string>;

/// "8 xpu, 8 nic, 12 switch"
std::string node_counts(const machine::Machine& machine);
/// Which ranks, name of the model, description.
std::vector<Row> gpu_rows(const machine::Machine& machine);
/// Class, links, bandwidth, goodput, latency, payload, header, credits, "assumed".
std::vector<Row> link_class_rows(const machine::Machine& machine);
/// How many, kind, device, parameters in words: switches and NICs, equal ones of a device together.
std::vector<Row> device_rows(const machine::Machine& machine);

/// Pairs with equal figures in one row: pairs, reach, hops, paths, GB/s, ns, "0 to 1". Of more than
/// 128 ranks the pairs of rank 0 stand for all: the number of pairs grows with the square.
struct PairClasses {
  bool of_rank_0 = false;
  std::vector<Row> rows;
};
PairClasses pair_classes(const machine::Machine& machine);

/// Name, value, source.
std::vector<Row> parameter_rows(const machine::GpuModel& model);

}  // namespace hemiola::report

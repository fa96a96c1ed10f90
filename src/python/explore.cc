#include "hemiola/explore.h"

#include <pybind11/stl.h>

#include "hemiola/error.h"
#include "hemiola/report.h"

#include "python/calls.h"
#include "python/explore.h"

namespace hemiola::python {
namespace {

namespace py = pybind11;
using namespace py::literals;  // NOLINT: this is how pybind11 names arguments

ExploreOptions explore_options(const py::dict& given) {
  ExploreOptions options;
  const Fields take(given);
  options.launch = launch_of(take.text("launch", name_of(options.launch)));
  take("warmup", options.warmup);
  take("iterations", options.iterations);
  take("degrees", options.degrees);
  take("realizations", options.realizations);
  take("places", options.places);
  take("transfers", options.transfers);
  take("copies", options.copies);
  take("fluid", options.fluid);
  take("top", options.top);
  take("exhaustive", options.exhaustive);
  take("losses", options.losses);
  take("threads", options.threads);
  return options;
}

py::object fs_or_none(const std::optional<Time>& time) {
  return time ? py::object(py::int_(time->fs)) : py::none();
}

py::dict operator_dict(const OverlapOperator& op, int ranks) {
  return py::dict("kind"_a = op.kind, "m"_a = op.m, "n"_a = op.n, "k"_a = op.k,
                  "gather"_a = op.gathers_b ? "b" : "a", "load"_a = op.load,
                  "dtype"_a = std::string(name_of(op.type)), "ranks"_a = ranks);
}

py::dict schedule_dict(const ExploredSchedule& schedule) {
  py::dict losses;
  for (const auto& [cause, time] : schedule.losses) losses[py::str(cause)] = time.fs;
  return py::dict(
      "text"_a = schedule.text, "family"_a = schedule.family, "degree"_a = schedule.degree,
      "program"_a = schedule.program, "parameters"_a = schedule.parameters,
      "time_fs"_a = schedule.time.fs, "fluid_fs"_a = schedule.fluid.fs,
      "confirmed_fs"_a = fs_or_none(schedule.confirmed), "speedup"_a = schedule.speedup,
      "bound_fs"_a = schedule.bound.fs, "estimate_fs"_a = schedule.estimate.fs,
      "buffers_bytes"_a = schedule.buffers.count,
      "extra_traffic_bytes"_a = schedule.extra_traffic.count,
      "dil_product"_a = schedule.dil_product, "dil_communication"_a = schedule.dil_communication,
      "cil_product"_a = schedule.cil_product, "cil_communication"_a = schedule.cil_communication,
      "losses"_a = losses);
}

py::dict exploration_dict(const Exploration& found) {
  py::list schedules;
  for (const ExploredSchedule& schedule : found.schedules)
    schedules.append(schedule_dict(schedule));
  const SerialTime& serial = found.serial;
  return py::dict("machine"_a = found.machine, "operator"_a = operator_dict(found.op, found.ranks),
                  "serial"_a = py::dict("program"_a = serial.program, "time_fs"_a = serial.time.fs,
                                        "collective_fs"_a = serial.collective.fs,
                                        "product_fs"_a = serial.product.fs,
                                        "confirmed_fs"_a = fs_or_none(serial.confirmed)),
                  "ideal_fs"_a = found.ideal.fs, "schedules"_a = schedules,
                  "space"_a = found.space);
}

py::dict explore_one(const Machine& machine, const std::string& kind,
                     const std::vector<std::int64_t>& sizes, bool local, bool gathers_b,
                     const std::string& load, const std::string& dtype, const py::dict& given) {
  if (sizes.size() != 3)
    throw Failure(std::to_string(sizes.size()) + " sizes are given, not M, N and K", {},
                  "for example (8192, 28672, 8192)");
  const OverlapOperator op{.kind = kind,
                           .m = sizes[0],
                           .n = sizes[1],
                           .k = sizes[2],
                           .gathers_b = gathers_b,
                           .type = type_of(dtype),
                           .local = local,
                           .load = load};
  const ExploreOptions options = explore_options(given);
  Exploration found = interruptible([&](const std::atomic<bool>* stop) {
    return explore_operator(machine, op, options, {.stop = stop});
  });
  py::dict made = exploration_dict(found);
  made["_core"] = std::move(found);
  return made;
}

py::list explore_many(const Machine& machine, const std::string& suite, const std::string& database,
                      const py::dict& given) {
  const ExploreOptions options = explore_options(given);
  const auto scenarios = interruptible([&](const std::atomic<bool>* stop) {
    return explore_suite(machine, suite, options, database, {.stop = stop});
  });
  py::list all;
  for (const ExploredScenario& one : scenarios)
    all.append(
        py::dict("name"_a = one.name, "model"_a = one.model, "set"_a = one.set,
                 "operator"_a = operator_dict(one.op, one.ranks),
                 "found"_a = one.found ? py::object(exploration_dict(*one.found)) : py::none(),
                 "error"_a = one.error));
  return all;
}

}  // namespace

void bind_explore(py::module_& module) {
  py::class_<Exploration>(module, "Exploration")
      .def("page",
           [](const Exploration& self, const std::string& command) { return page(self, command); });
  module.def("explore", &explore_one, "machine"_a, "kind"_a, "sizes"_a, "local"_a, "gathers_b"_a,
             "load"_a, "dtype"_a, "options"_a);
  module.def("explore_suite", &explore_many, "machine"_a, "suite"_a, "database"_a, "options"_a);
  module.def("exploration_suites", &exploration_suites);
}

}  // namespace hemiola::python

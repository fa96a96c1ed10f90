#include "python/workload.h"

#include <pybind11/stl.h>

#include <sstream>

#include "hemiola/error.h"
#include "hemiola/workload.h"

#include "python/calls.h"
#include "python/to_python.h"

namespace hemiola::python {
namespace {

namespace py = pybind11;
using namespace py::literals;  // NOLINT: this is how pybind11 names arguments

ModelIteration model_iteration(const std::string& model, const py::dict& given) {
  ModelIteration all{.model = model};
  const Fields take(given);
  take("phase", all.phase);
  take("tp", all.tp);
  take("pp", all.pp);
  take("dp", all.dp);
  take("cp", all.cp);
  take("ep", all.ep);
  take("zero", all.zero);
  take("sequence_parallel", all.sequence_parallel);
  take("shard", all.shard);
  take("micro_batch", all.micro_batch);
  take("global_batch", all.global_batch);
  take("sequence", all.sequence);
  take("context", all.context);
  take("recompute", all.recompute);
  take("pipeline", all.pipeline);
  take("chunks", all.chunks);
  take("attention", all.attention);
  take("context_parallel", all.context_parallel);
  take("fused_softmax", all.fused_softmax);
  take("uneven_stages", all.uneven_stages);
  take("bucket_bytes", all.bucket.count);
  take("overlap", all.overlap);
  take("prefetch", all.prefetch);
  take("optimizer_bytes", all.optimizer_bytes);
  take("host_time_fs", all.host_time.fs);
  const std::string dtype = take.text("dtype", "");
  if (!dtype.empty()) all.type = type_of(dtype);
  return all;
}

IterationOptions iteration_options(const py::dict& given) {
  IterationOptions all;
  const Fields take(given);
  take("engine", all.engine);
  take("detail", all.detail);
  take("collectives", all.collectives);
  take("compute", all.compute);
  take("calls", all.calls);
  take("scale_recorded", all.scale_recorded);
  take("scale_compute", all.scale_compute);
  take("without", all.without);
  take("contention", all.contention);
  const std::string launch = take.text("launch", "");
  if (!launch.empty()) all.launch = launch_of(launch);
  return all;
}

py::dict class_dict(const RankTime& one) {
  return py::dict("name"_a = one.name, "ranks"_a = one.ranks, "compute_fs"_a = one.compute.fs,
                  "exposed_fs"_a = one.exposed.fs, "copies_fs"_a = one.copies.fs,
                  "waiting_fs"_a = one.waiting.fs, "host_fs"_a = one.host.fs,
                  "idle_fs"_a = one.idle.fs, "hidden_fs"_a = one.hidden.fs,
                  "slowed_fs"_a = one.slowed.fs, "memory_bytes"_a = one.memory_bytes);
}

py::dict iteration_dict(const Iteration& self) {
  py::list classes, calls, path;
  for (const RankTime& one : self.classes) classes.append(class_dict(one));
  for (const IterationCall& one : self.calls)
    calls.append(py::dict("name"_a = one.name, "group"_a = one.group, "groups"_a = one.groups,
                          "calls"_a = one.calls, "size_bytes"_a = one.size.count,
                          "alone_fs"_a = one.alone.fs));
  for (const PathShare& one : self.path)
    path.append(py::dict("name"_a = one.name, "nodes"_a = one.nodes, "time_fs"_a = one.time.fs));
  return py::dict("machine"_a = self.machine, "workload"_a = self.workload, "ranks"_a = self.ranks,
                  "time_fs"_a = self.time.fs, "recorded_fs"_a = self.recorded.fs,
                  "tokens_per_s_per_gpu"_a = self.tokens_per_second_and_gpu,
                  "mfu"_a = self.model_flop_utilisation, "classes"_a = classes, "calls"_a = calls,
                  "path"_a = path, "simulations"_a = self.simulations,
                  "notices"_a = to_python(self.notices));
}

py::list search(const Machine& machine, const std::string& model, const py::dict& iteration,
                const py::dict& options, std::int64_t memory) {
  const ModelIteration asked = model_iteration(model, iteration);
  const IterationOptions timed = iteration_options(options);
  const auto rows = interruptible([&](const std::atomic<bool>* stop) {
    return search_parallelism(machine, asked, timed, memory, {.stop = stop});
  });
  py::list all;
  for (const ParallelismRow& row : rows)
    all.append(py::dict("tp"_a = row.tp, "pp"_a = row.pp, "dp"_a = row.dp, "cp"_a = row.cp,
                        "ep"_a = row.ep, "zero"_a = row.zero, "memory_bytes"_a = row.memory,
                        "refused"_a = row.refused, "time_fs"_a = row.time.fs,
                        "tokens_per_s_per_gpu"_a = row.tokens_per_second_and_gpu,
                        "mfu"_a = row.model_flop_utilisation));
  return all;
}

}  // namespace

void bind_workload(py::module_& module) {
  py::class_<Workload>(module, "Workload")
      .def_static("make",
                  [](const std::string& model, const py::dict& given) {
                    return Workload::make(model_iteration(model, given));
                  })
      .def_static(
          "read",
          [](const std::string& path, bool lenient, const std::string& sizes,
             const std::string& groups, int replicate) {
            return Workload::read(
                path,
                {.lenient = lenient, .sizes = sizes, .groups = groups, .replicate = replicate});
          })
      .def("write_chakra", &Workload::write_chakra)
      .def_property_readonly("name", &Workload::name)
      .def_property_readonly("ranks", &Workload::ranks)
      .def_property_readonly("nodes", &Workload::nodes)
      .def_property_readonly("notices",
                             [](const Workload& self) { return to_python(self.notices()); });
  py::class_<Iteration>(module, "Iteration")
      .def("to_dict", &iteration_dict)
      .def("table",
           [](const Iteration& self) {
             std::ostringstream out;
             print_iteration(out, self);
             return out.str();
           })
      .def("json", &iteration_json)
      .def("trace", [](const Iteration& self) { return py::bytes(iteration_trace(self)); })
      .def("page", &iteration_page)
      .def("job", &iteration_job);
  module.def("run_iteration",
             [](const Machine& machine, const Workload& workload, const py::dict& given) {
               const IterationOptions options = iteration_options(given);
               return interruptible([&](const std::atomic<bool>* stop) {
                 return run_iteration(machine, workload, options, {.stop = stop});
               });
             });
  module.def("search_parallelism", &search);
}

}  // namespace hemiola::python

// The extension module hemiola._core: include/hemiola for Python, one to one. What people use
// stands in python/hemiola; _core.pyi lists what is here.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <sstream>

#include "hemiola/command.h"
#include "hemiola/compile.h"
#include "hemiola/experiment.h"
#include "hemiola/job.h"
#include "hemiola/report.h"

#include "python/calls.h"
#include "python/explore.h"
#include "python/to_python.h"
#include "python/workload.h"

namespace hemiola::python {
namespace {

namespace py = pybind11;
using namespace py::literals;  // NOLINT: this is how pybind11 names arguments

ReduceOp op_of(const std::string& text) {
  return word(parse_reduce_op(text), text, "a reduction");
}

template <typename Print>
std::string printed(const Print& print) {
  std::ostringstream out;
  print(out);
  return out.str();
}

py::list names_of(const std::vector<Named>& all) {
  py::list names;
  for (const Named& one : all) names.append(py::make_tuple(one.name, one.description));
  return names;
}

void bind_machine(py::module_& module) {
  py::class_<Machine>(module, "Machine")
      .def_static(
          "load",
          [](const std::string& name, const std::string& gpu, const Settings& set,
             const std::vector<int>& ranks) {
            return Machine::load(name, {.gpu = gpu, .set = set, .ranks = ranks});
          },
          "name_or_file"_a, "gpu"_a = "", "settings"_a = Settings{}, "ranks"_a = std::vector<int>{})
      .def_static("built_ins", [] { return names_of(Machine::built_ins()); })
      .def_static("device_models", &Machine::device_models)
      .def("with_settings", &Machine::with, "settings"_a)
      .def("with_ranks", &Machine::with_ranks, "ranks"_a)
      .def_property_readonly("name", &Machine::name)
      .def_property_readonly("description", &Machine::description)
      .def_property_readonly("settings", &Machine::settings)
      .def_property_readonly("ranks", &Machine::ranks)
      .def_property_readonly("warnings",
                             [](const Machine& self) { return to_python(self.warnings()); })
      .def("parameters",
           [](const Machine& self) {
             py::list all;
             for (const MachineParameter& one : self.parameters())
               all.append(py::make_tuple(one.name, one.value, one.source));
             return all;
           })
      .def("to_infragraph", &Machine::to_infragraph)
      .def("page",
           [](const Machine& self, const std::string& command) { return page(self, command); })
      .def("show", [](const Machine& self) {
        return printed([&](std::ostream& out) { print_machine(out, self); });
      });
}

py::list templates() {
  py::list all;
  for (const PlanTemplate& one : Plan::templates()) {
    py::list parameters;
    for (const TemplateParameter& parameter : one.parameters)
      parameters.append(py::dict("name"_a = parameter.name, "default"_a = parameter.default_value,
                                 "choices"_a = parameter.choices,
                                 "description"_a = parameter.description));
    all.append(py::dict("name"_a = one.name, "collective"_a = std::string(name_of(one.collective)),
                        "description"_a = one.description, "parameters"_a = parameters,
                        "needs_machine"_a = one.needs_machine));
  }
  return all;
}

void bind_plan(py::module_& module) {
  py::class_<Plan>(module, "Plan")
      .def_static(
          "make",
          [](const std::string& name, int ranks, const Settings& parameters,
             const std::optional<Machine>& machine) {
            return interruptible([&](const std::atomic<bool>* stop) {
              return Plan::make(name, ranks, parameters, machine, stop);
            });
          },
          "name"_a, "ranks"_a, "parameters"_a = Settings{}, "machine"_a = py::none())
      .def_static("templates", templates)
      .def_static("load", &Plan::load, "file"_a)
      .def_static("from_json", &Plan::from_json, "text"_a, "file"_a = "<text>")
      .def("to_json", &Plan::to_json)
      .def(
          "shaped",
          [](const Plan& self, const std::vector<std::int64_t>& shape, const std::string& type,
             int axis) { return self.shaped(shape, type_of(type), axis); },
          "shape"_a, "dtype"_a, "axis"_a = 0)
      .def_property_readonly("name", &Plan::name)
      .def_property_readonly(
          "collective", [](const Plan& self) { return std::string(name_of(self.collective())); })
      .def_property_readonly("ranks", &Plan::ranks)
      .def_property_readonly("of_elements", &Plan::of_elements)
      .def_property_readonly("chunks_per_size", &Plan::chunks_per_size)
      .def_property_readonly("transfers", &Plan::transfers);
}

void bind_job(py::module_& module) {
  py::class_<Job>(module, "Job")
      .def_static("load", &Job::load, "file"_a)
      .def_static("from_text", &Job::from_text, "text"_a, "file"_a = "<job>")
      .def_property_readonly("file", &Job::file)
      .def_property_readonly("text", &Job::text);
}

void bind_program(py::module_& module) {
  py::class_<Program>(module, "Program")
      .def_static("load", &Program::load, "name_or_file"_a, "parameters"_a = Settings{})
      .def_static(
          "of_plan",
          [](const Plan& plan, const Settings& parameters) { return Program(plan, parameters); },
          "plan"_a, "parameters"_a = Settings{})
      .def_static(
          "of_job", [](const Job& job) { return Program(job); }, "job"_a)
      .def_static("built_ins", [] { return names_of(Program::built_ins()); })
      .def_property_readonly("name", &Program::name)
      .def_property_readonly("parameters", &Program::parameters);
}

Experiment experiment(const Machine& machine, const Program& program, std::int64_t size,
                      const py::kwargs& options) {
  Experiment all{.machine = machine, .program = program, .size = {size}};
  const Fields take(options);
  all.type = type_of(take.text("dtype", "float"));
  all.op = op_of(take.text("op", "sum"));
  const std::string engine = take.text("engine", "line");
  all.engine = word(parse_engine(engine), engine, "an engine: line, sampled, fluid or reference");
  all.launch = launch_of(take.text("launch", "stream"));
  std::vector<std::int64_t> skew_fs;
  take("skew_fs", skew_fs);
  for (const std::int64_t fs : skew_fs) all.skew.push_back({fs});
  take("round_size", all.round_size);
  take("check", all.check);
  take("warmup", all.warmup);
  take("iterations", all.iterations);
  take("one_host", all.one_host);
  take("fold", all.fold);
  take("threads", all.threads);
  return all;
}

void bind_outcome(py::module_& module) {
  py::class_<Outcome>(module, "Outcome")
      .def("to_dict", [](const Outcome& self) { return to_python(self); })
      .def("attribution_text",
           [](const Outcome& self) {
             return printed([&](std::ostream& out) { print_attribution(out, self); });
           })
      .def("trace", [](const Outcome& self, std::int64_t begin_fs, std::int64_t end_fs) {
        return py::bytes(interruptible([&](const std::atomic<bool>* stop) {
          return perfetto_trace(self, {begin_fs}, {end_fs}, {.stop = stop});
        }));
      });
  using Outcomes = std::vector<Outcome>;
  module.def("table", [](const Outcomes& all) {
    return printed([&](std::ostream& out) { print_table(out, all); });
  });
  module.def("to_json", [](const Outcomes& all, const std::string& command, bool volatile_fields) {
    return to_json(all, command, volatile_fields);
  });
  module.def("to_csv", [](const Outcomes& all) { return to_csv(all); });
  module.def("has_pages", &has_pages);
  module.def("command_line", [](std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const py::gil_scoped_release others;
    return hemiola::command(static_cast<int>(words.size()), arguments.data());
  });
  module.def("page", [](const Outcomes& all, const std::string& command) {
    return interruptible(
        [&](const std::atomic<bool>* stop) { return page(all, command, {.stop = stop}); });
  });
}

CheckOptions check_options(const std::optional<Machine>& machine, int ranks, std::int64_t size,
                           const std::string& dtype, const std::string& op, int calls,
                           const std::string& promise) {
  return {.machine = machine,
          .ranks = ranks,
          .size = {size},
          .type = type_of(dtype),
          .op = op_of(op),
          .calls = calls,
          .promise = promise};
}

/// Of one check, for its page.
struct Proofs {
  std::vector<Proof> all;
};

/// Outcomes, and for experiments that failed the exception.
py::list points_of(std::vector<Point> points) {
  py::list all;
  for (Point& point : points) {
    if (point.outcome) {
      all.append(*std::move(point.outcome));
      continue;
    }
    all.append(py::cpp_function([failure = point.failure] { std::rethrow_exception(failure); }));
  }
  return all;
}

void bind_laboratory(py::module_& module) {
  py::class_<Proofs>(module, "Proofs")
      .def("page",
           [](const Proofs& self, const std::string& command) { return page(self.all, command); });
  py::class_<Experiment>(module, "Experiment").def(py::init(&experiment));
  py::class_<Laboratory>(module, "Laboratory")
      .def(py::init())
      .def("run",
           [](Laboratory& self, const Experiment& one) {
             return interruptible(
                 [&](const std::atomic<bool>* stop) { return self.run(one, {.stop = stop}); });
           })
      .def("run_all",
           [](Laboratory& self, const std::vector<Experiment>& all, int threads) {
             return points_of(interruptible([&](const std::atomic<bool>* stop) {
               return self.run_all(all, threads, {.stop = stop});
             }));
           })
      .def(
          "check",
          [](Laboratory& self, const Program& program, const std::optional<Machine>& machine,
             int ranks, std::int64_t size, const std::string& dtype, const std::string& op,
             int calls, const std::string& promise) {
            CheckOptions options = check_options(machine, ranks, size, dtype, op, calls, promise);
            const auto proofs = interruptible([&](const std::atomic<bool>* stop) {
              options.stop = stop;
              return self.check(program, options);
            });
            py::list all;
            for (const Proof& proof : proofs)
              all.append(py::make_tuple(
                  to_python(proof), printed([&](std::ostream& out) { print_proof(out, proof); })));
            return py::make_tuple(all, Proofs{proofs});
          },
          "program"_a, "machine"_a, "ranks"_a, "size"_a, "dtype"_a, "op"_a, "calls"_a, "promise"_a);
}

void bind_compile(py::module_& module) {
  module.def(
      "compile_plan",
      [](const Plan& plan, const std::optional<KernelSource>& kernel,
         const CompileOptions& options) {
        const CompiledPlan made = interruptible(
            [&](const std::atomic<bool>*) { return compile_plan(plan, kernel, options); });
        return py::dict("text"_a = made.text, "plan_hash"_a = made.plan_hash,
                        "kernel"_a = made.kernel, "dropped"_a = made.dropped);
      },
      "plan"_a, "kernel"_a, "options"_a);
  py::class_<KernelSource>(module, "KernelSource")
      .def(py::init([](const std::string& file, const std::optional<std::string>& text,
                       const std::string& kernel, const std::vector<std::string>& helpers) {
             return KernelSource{file, text, kernel, helpers};
           }),
           "file"_a, "text"_a, "kernel"_a, "helpers"_a);
  py::class_<CompileOptions>(module, "CompileOptions")
      .def(py::init([](const std::map<std::string, std::string>& bind,
                       const std::map<std::string, std::string>& constants,
                       const std::string& configurations, const std::string& target, bool check,
                       bool allow_partial, const std::string& plan_name) {
             return CompileOptions{bind,  constants,     configurations, target,
                                   check, allow_partial, plan_name};
           }),
           "bind"_a, "constants"_a, "configurations"_a, "target"_a, "check"_a, "allow_partial"_a,
           "plan_name"_a);
}

std::optional<std::int64_t> bytes_of(const std::string& text) {
  const std::optional<Bytes> bytes = parse_bytes(text);
  return bytes ? std::optional(bytes->count) : std::nullopt;
}
std::optional<std::int64_t> femtoseconds_of(const std::string& text) {
  const std::optional<Time> time = parse_time(text);
  return time ? std::optional(time->fs) : std::nullopt;
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "What include/hemiola declares, for python/hemiola.";
  module.attr("__version__") = HEMIOLA_VERSION;
  translate_failures();
  bind_machine(module);
  bind_plan(module);
  bind_job(module);
  bind_program(module);
  bind_outcome(module);
  bind_laboratory(module);
  bind_explore(module);
  bind_workload(module);
  bind_compile(module);
  module.def("parse_bytes", bytes_of);
  module.def("parse_time", femtoseconds_of);
  module.def("bytes_text", [](std::int64_t count) { return to_string(Bytes{count}); });
  module.def("time_text", [](std::int64_t fs) { return to_string(Time{fs}); });
}

}  // namespace hemiola::python

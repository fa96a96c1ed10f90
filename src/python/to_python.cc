#include "python/to_python.h"

#include <pybind11/stl.h>

namespace hemiola::python {

namespace py = pybind11;
using namespace py::literals;  // NOLINT: this is how pybind11 names arguments

namespace {

const char* severity_name(Severity severity) {
  if (severity == Severity::error) return "error";
  return severity == Severity::warning ? "warning" : "note";
}

py::dict times_of(const Attribution& attribution) {
  py::dict all;
  for (const auto& [reason, time] : attribution) all[py::str(reason)] = time.fs;
  return all;
}

py::list links_of(const Result& result) {
  py::list all;
  for (const LinkUse& link : result.links)
    all.append(py::dict("source"_a = link.from, "destination"_a = link.to, "lane"_a = link.lane,
                        "link_class"_a = link.link_class, "payload_bytes"_a = link.payload_bytes,
                        "wire_bytes"_a = link.wire_bytes, "busy_fs"_a = link.busy.fs,
                        "max_queue"_a = link.max_queue));
  return all;
}

py::list launches_of(const Result& result) {
  py::list all;
  for (const LaunchResult& launch : result.launches) {
    py::list causes;
    for (const LaunchResult::Cause& cause : launch.slowed_by)
      causes.append(py::dict("launch"_a = cause.launch, "overlap_fs"_a = cause.overlap.fs,
                             "share_fs"_a = cause.share.fs));
    all.append(py::dict(
        "name"_a = launch.name, "program"_a = launch.program, "ranks"_a = launch.ranks,
        "size_bytes"_a = launch.size.count, "begin_fs"_a = launch.begin.fs,
        "end_fs"_a = launch.end.fs, "latest_rank"_a = launch.latest_rank,
        "attribution"_a = times_of(launch.attribution), "alone_fs"_a = launch.alone.fs,
        "alone_attribution"_a = times_of(launch.alone_attribution), "slowed_by"_a = causes));
  }
  return all;
}

void add_result(py::dict& all, const Result& result) {
  all["size_bytes"] = result.size.count;
  all["count"] = result.count;
  all["time_fs"] = result.time.fs;
  all["algbw_GBps"] = result.algbw_GBps;
  all["busbw_GBps"] = result.busbw_GBps;
  all["bandwidth_bound_fs"] = result.bandwidth_bound.fs;
  all["latency_bound_fs"] = result.latency_bound.fs;
  all["bottleneck"] = result.bottleneck;
  all["ideal_fs"] = result.ideal.fs;
  all["checked"] = result.checked;
  all["line_hops"] = result.line_hops;
  all["visited_hops"] = result.visited_hops;
  all["simulated_ranks"] = result.simulated_ranks;
  all["sampled_share"] = result.sampled.share;
  all["sampled_windows"] = result.sampled.windows;
  all["sampled_error"] = result.sampled.error;
  all["wall_s"] = result.wall_s;
  all["peak_rss_bytes"] = result.peak_rss_bytes;
  all["counters"] = result.counters;
  all["links"] = links_of(result);
  all["launches"] = launches_of(result);
  py::list attribution, ends;
  for (const Attribution& rank : result.attribution) attribution.append(times_of(rank));
  for (const Time& end : result.rank_end) ends.append(end.fs);
  all["attribution"] = attribution;
  all["rank_end_fs"] = ends;
}

/// Python's exception of a failure, made by `function` of _errors.py.
void raise(const Failure& failure, const py::object& proof) {
  const py::object error =
      py::module_::import("hemiola._errors")
          .attr("from_failure")(static_cast<int>(failure.code()),
                                to_python(failure.diagnostics().items()), proof);
  PyErr_SetObject(py::type::of(error).ptr(), error.ptr());
}

}  // namespace

py::list to_python(const std::vector<Diagnostic>& diagnostics) {
  py::list all;
  for (const Diagnostic& one : diagnostics)
    all.append(py::dict("severity"_a = severity_name(one.severity), "message"_a = one.message,
                        "file"_a = one.where.file, "line"_a = one.where.line,
                        "column"_a = one.where.column, "pointer"_a = one.where.pointer,
                        "hint"_a = one.hint));
  return all;
}

py::dict to_python(const Proof& proof) {
  py::list steps;
  for (const ProofStep& step : proof.counterexample)
    steps.append(py::dict("rank"_a = step.rank, "part"_a = step.part, "number"_a = step.number,
                          "operation"_a = step.operation, "where"_a = step.where,
                          "text"_a = step.text));
  py::list looked_at;
  for (const Bytes size : proof.looked_at) looked_at.append(size.count);
  const py::object none = py::none();
  return py::dict(
      "program"_a = proof.program, "of_plan"_a = proof.of_plan, "size_bytes"_a = proof.size.count,
      "verdict"_a = name_of(proof.verdict), "summary"_a = proof.summary, "proven"_a = proof.proven,
      "reasons"_a = proof.reasons, "counterexample"_a = steps,
      "warnings"_a = to_python(proof.warnings), "calls"_a = proof.calls,
      "min_bytes"_a = proof.sizes ? py::object(py::int_(proof.sizes->min.count)) : none,
      "max_bytes"_a =
          proof.sizes && proof.sizes->max ? py::object(py::int_(proof.sizes->max->count)) : none,
      "multiple_bytes"_a = proof.sizes && proof.sizes->multiple.count > 0
                               ? py::object(py::int_(proof.sizes->multiple.count))
                               : none,
      "looked_at_bytes"_a = looked_at, "executor"_a = proof.executor);
}

py::dict to_python(const Outcome& outcome) {
  const Experiment& asked = outcome.experiment;
  py::dict all("machine"_a = asked.machine.name(), "settings"_a = asked.machine.settings(),
               "program"_a = outcome.program, "parameters"_a = asked.program.parameters(),
               "collective"_a = std::string(name_of(outcome.collective)), "ranks"_a = outcome.ranks,
               "dtype"_a = std::string(name_of(asked.type)),
               "op"_a = std::string(name_of(asked.op)), "engine"_a = name_of(asked.engine),
               "launch"_a = name_of(asked.launch), "notices"_a = to_python(outcome.notices));
  add_result(all, outcome.result);
  all["proof"] = outcome.proof ? py::object(to_python(*outcome.proof)) : py::none();
  return all;
}

void translate_failures() {
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const WrongProgram& wrong) {
      raise(wrong, to_python(wrong.proof()));
    } catch (const Failure& failure) {
      raise(failure, py::none());
    } catch (const Interrupted& interrupted) {
      PyErr_SetString(PyExc_KeyboardInterrupt, interrupted.what());
    }
  });
}

}  // namespace hemiola::python

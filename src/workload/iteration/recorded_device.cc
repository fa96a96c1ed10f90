#include "workload/iteration/recorded_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/index.h"
#include "machine/devices/gemm_model.h"
#include "machine/devices/gpu_model.h"
#include "study/support/known_names.h"

namespace hemiola::workload {
namespace {

double memory_rate(const machine::GpuModel& model) {
  return static_cast<double>(model.hbm_rate.bytes_per_second) *
         static_cast<double>(model.hbm_efficiency_permille);
}

double matrix_flops(const machine::GpuModel& model, DataType type) {
  return static_cast<double>(machine::matrix_rate(model, type)) *
         static_cast<double>(model.cu_count) * static_cast<double>(model.cu_clock.hertz);
}

/// Time of a kernel on a model, in any unit; 0: the model does not say.
double model_time(const Compute& compute, const machine::GpuModel& model) {
  if (compute.kind == Compute::Kind::product) {
    try {
      return machine::gemm_time_us(model, compute.product);
    } catch (const Failure&) {
      return 0;  // a type that its matrix units do not have
    }
  }
  const double bytes = static_cast<double>(compute.read) + static_cast<double>(compute.written);
  const double peak = matrix_flops(model, compute.type);
  const double by_flop =
      compute.flop > 0 && peak > 0 ? static_cast<double>(compute.flop) / peak : 0;
  const double rate = memory_rate(model);
  return std::max(by_flop, rate > 0 ? bytes * 1000 / rate : 0);
}

class Scaler {
 public:
  Scaler(const Workload& workload, const machine::GpuModel& from, const machine::GpuModel& to,
         ScaleRecorded scale)
      : by_memory_(1) {
    if (memory_rate(from) > 0 && memory_rate(to) > 0)
      by_memory_ = memory_rate(from) / memory_rate(to);
    for (const Compute& compute : workload.computes) {
      const double here = model_time(compute, to), there = model_time(compute, from);
      const bool is_known = scale == ScaleRecorded::model && here > 0 && there > 0;
      factors_.push_back(is_known ? here / there : by_memory_);
    }
  }

  std::shared_ptr<const Workload> scale(const Workload& workload) const {
    auto scaled = std::make_shared<Workload>(workload);
    for (RankClass& one : scaled->classes) {
      auto trace = std::make_shared<Trace>(*one.trace);
      for (Node& node : trace->nodes) {
        if (node.kind != NodeKind::compute || node.recorded.fs == 0) continue;
        const double factor = node.work >= 0 ? factors_[index(node.work)] : by_memory_;
        constexpr double kMost = 9e18;
        node.recorded.fs = static_cast<std::int64_t>(
            std::llround(std::clamp(static_cast<double>(node.recorded.fs) * factor, 1.0, kMost)));
      }
      one.trace = std::move(trace);
    }
    return scaled;
  }
  double by_memory() const { return by_memory_; }

 private:
  double by_memory_;
  std::vector<double> factors_;  ///< by compute
};

[[noreturn]] void refuse(const Workload& workload, const std::string& problem,
                         const std::string& hint) {
  throw Failure(problem, {.file = workload.source}, hint);
}

}  // namespace

bool is_recorded_on(const Workload& workload, const machine::Machine& machine) {
  if (!workload.recorded_on) return false;
  const auto known = study::known_device(workload.recorded_on->name);
  // "h100-500w" is an h100, too.
  return known && machine.model(0).name.starts_with(known->model);
}

std::shared_ptr<const Workload> on_machine(std::shared_ptr<const Workload> workload,
                                           const machine::Machine& machine, ComputeSource source,
                                           ScaleRecorded scale, study::Notices& notices) {
  if (!workload->recorded_on) {
    if (scale != ScaleRecorded::automatic && scale != ScaleRecorded::none)
      refuse(*workload, "does not say on which GPU it was recorded: there is nothing to scale from",
             "leave --scale-recorded out, or scale by --scale-compute FACTOR");
    return workload;
  }
  const std::string& device = workload->recorded_on->name;
  const std::string& here = machine.model(0).name;
  const auto known = study::known_device(device);
  const auto note = [&](Severity severity, std::string text, std::string hint) {
    notices.push_back({severity, std::move(text), {.file = workload->source}, std::move(hint)});
  };
  if (is_recorded_on(*workload, machine)) {
    if (known->is_variant)
      note(Severity::warning,
           fmt::format("recorded on {}; the model '{}' is of another card of that name, with other "
                       "clocks and memory",
                       device, here),
           {});
    const std::int64_t memory = workload->recorded_on->memory;
    if (known->memory > 0 && memory > 0 && memory < known->memory * 3 / 4)
      note(
          Severity::note,
          fmt::format("recorded on {} with {:.0f} GB; the model '{}' is of the one with {:.0f} GB, "
                      "whose memory may be faster",
                      device, static_cast<double>(memory) * 1e-9, here,
                      static_cast<double>(known->memory) * 1e-9),
          {});
    return workload;
  }
  const std::string text =
      fmt::format("was recorded on {}, and {} has {}", device, machine.name, here);
  const bool uses_times = source != ComputeSource::model;
  if (!uses_times || scale == ScaleRecorded::none) {
    note(Severity::warning,
         text + (uses_times ? ": times of kernels are taken as they were recorded"
                            : ": calls that take the time that was recorded are not scaled"),
         {});
    return workload;
  }
  if (!known && scale != ScaleRecorded::automatic)
    refuse(*workload, fmt::format("{}; there is no device model of {} to scale from", text, device),
           "--scale-recorded none takes the times as they are, --scale-compute FACTOR scales them, "
           "--compute model leaves them out");
  if (source == ComputeSource::recorded && scale == ScaleRecorded::automatic)
    refuse(
        *workload, text + ": the times of its kernels are not those of this machine",
        known
            ? "--scale-recorded model or bytes scales them, none takes them as they are"
            : "--scale-recorded none takes them as they are; there is no model to scale them from");
  if (!known) {
    note(Severity::warning,
         text + ": kernels without a shape take the time that was recorded there",
         "there is no device model to scale from: --scale-compute FACTOR scales all kernels");
    return workload;
  }
  const Scaler scaler(*workload, machine::gpu_model(known->model), machine.model(0),
                      scale == ScaleRecorded::bytes ? ScaleRecorded::bytes : ScaleRecorded::model);
  note(Severity::warning,
       fmt::format(
           "{}: recorded times of kernels are scaled by {}, those without a shape by {:.2f}", text,
           scale == ScaleRecorded::bytes ? "the bandwidth of the memories"
                                         : "what the models say of both",
           scaler.by_memory()),
       "--scale-recorded none|bytes says otherwise");
  return scaler.scale(*workload);
}

}  // namespace hemiola::workload

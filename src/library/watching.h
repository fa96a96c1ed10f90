// Who watches, as the inner layers know it.
#pragma once

#include "core/monitor.h"
#include "hemiola/experiment.h"
#include "study/laboratory/experiment.h"

namespace hemiola {

/// `inner` is for calls of a laboratory, as long as this and `watch` are there.
struct Watching {
  explicit Watching(const Watch& watch) {
    monitor.stop = watch.stop;
    inner.monitor = &monitor;
    if (watch.on_step)
      inner.on_step = [&watch](const study::Step& step) { watch.on_step(step.text()); };
  }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

  Monitor monitor;
  study::Watch inner;
};

}  // namespace hemiola

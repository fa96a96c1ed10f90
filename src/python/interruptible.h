// Long work, called from Python: other Python threads go on meanwhile, and Ctrl-C ends it.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <future>

namespace hemiola::python {

/// Calls `work(stop)` in a thread of its own, without the interpreter's lock, and looks for signals
/// here now and then. A signal whose handler raises (Ctrl-C: KeyboardInterrupt) sets `stop` and is
/// raised once the work has ended. What the work throws is thrown here.
template <typename Work>
auto interruptible(const Work& work) {
  constexpr std::chrono::milliseconds kBetweenLooks{50};
  std::atomic<bool> stop{false};
  auto result = std::async(std::launch::async, [&] { return work(&stop); });
  while (true) {
    {
      const pybind11::gil_scoped_release others;
      if (result.wait_for(kBetweenLooks) == std::future_status::ready) break;
    }
    if (PyErr_CheckSignals() == 0) continue;
    pybind11::error_already_set raised;  // holds what the handler raised
    stop.store(true);
    {
      const pybind11::gil_scoped_release others;
      result.wait();
    }
    throw raised;
  }
  return result.get();
}

}  // namespace hemiola::python

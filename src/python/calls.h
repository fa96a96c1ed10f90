// What calls from Python need: long work beside which other Python threads go on and which Ctrl-C
// ends; arguments by name, and words of lists.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <string>

#include "hemiola/error.h"
#include "hemiola/simulate.h"
#include "hemiola/types.h"

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

/// Arguments of a dictionary, where they are there.
class Fields {
 public:
  explicit Fields(const pybind11::dict& given) : given_(given) {}

  template <class Value>
  void operator()(const char* name, Value& value) const {
    if (given_.contains(name)) value = given_[name].cast<Value>();
  }
  std::string text(const char* name, std::string otherwise) const {
    (*this)(name, otherwise);
    return otherwise;
  }

 private:
  const pybind11::dict& given_;
};

/// A word of a list, or BadInput.
template <typename Value>
Value word(const std::optional<Value>& value, const std::string& text, const char* what) {
  if (!value) throw Failure("'" + text + "' is not " + what);
  return *value;
}
inline DataType type_of(const std::string& text) {
  return word(parse_data_type(text), text, "an element type");
}
inline LaunchMode launch_of(const std::string& text) {
  return word(parse_launch_mode(text), text, "a way to launch: stream or graph");
}

}  // namespace hemiola::python

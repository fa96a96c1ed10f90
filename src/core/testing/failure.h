// For tests of bad input.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/diagnostics.h"

namespace hemiola::test {

/// What the Failure says that the action ends in; its exit code has to be that of bad input.
inline std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::bad_input);
    return failure.what();
  }
  return "no failure";
}

}  // namespace hemiola::test

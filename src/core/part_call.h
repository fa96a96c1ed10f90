// Calls of parts that are not built in: what they throw is told with their names.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "hemiola/error.h"

namespace hemiola {

/// What `call` returns. Failure "algorithm 'x' threw '...'" (`who` is "algorithm 'x'") for what is
/// no Failure; Interrupted and std::bad_alloc go through.
template <class Call>
auto call_part(const std::string& who, const SourceLocation& where, const Call& call) {
  try {
    return call();
  } catch (const Failure&) {
    throw;
  } catch (const Interrupted&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw Failure(who + " threw '" + error.what() + "'", where);
  }
}

}  // namespace hemiola

// Calls of parts that are not built in: what they throw is told with their names.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <new>
#include <string>

#include "hemiola/error.h"
#include "hemiola/types.h"

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

/// Failure "algorithm 'x' made a plan of all-gather on 4 ranks, and was asked for one of all-reduce
/// on 8" where `made`, a `what`, is of other ranks or, unless `any`, another collective.
template <class Made>
void expect_asked(const std::string& who, const char* what, const Made& made, int ranks,
                  Collective collective, bool any, const SourceLocation& where) {
  if (made.ranks == ranks && (any || made.collective == collective)) return;
  throw Failure(
      fmt::format("{} made a {} of {} on {} ranks, and was asked for one of {} on {}", who, what,
                  name_of(made.collective), made.ranks, name_of(collective), ranks),
      where);
}

}  // namespace hemiola

#include "program/executor_limits.h"

#include <fmt/format.h>

namespace hemiola::program {

void check_limit(const Limit& limit, const std::string& who, std::size_t needed,
                 const SourceLocation& where) {
  if (needed <= limit.most) return;
  throw Failure(fmt::format("{} needs {} {}; the executor has room for {} ({})", who, needed,
                            limit.what, limit.most, limit.name),
                where, std::string(limit.hint));
}

}  // namespace hemiola::program

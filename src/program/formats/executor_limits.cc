#include "program/formats/executor_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace hemiola::program {

void check_limit(const Limit& limit, const std::string& who, std::size_t needed,
                 const SourceLocation& where) {
  if (needed <= limit.most) return;
  throw Failure(fmt::format("{} needs {} {}; the executor has room for {} ({})", who, needed,
                            limit.what, limit.most, limit.name),
                where, std::string(limit.hint));
}

void check_mscclpp_block(const nlohmann::ordered_json& block, int rank, const std::string& file) {
  namespace limits = mscclpp_limits;
  using Json = nlohmann::ordered_json;
  const std::string gpu = fmt::format("rank {}", rank);
  const std::string who = fmt::format("thread block {} of {}", block["id"].get<int>(), gpu);
  const SourceLocation where{.file = file};
  std::size_t operations = 0;
  const auto note = [&](const Json& op) {
    ++operations;
    const std::string one = fmt::format("a {} of {}", op["name"].get<std::string>(), who);
    for (const char* list : {"src_buff", "dst_buff", "channel_ids"})
      if (op.contains(list)) check_limit(limits::kOperands, one, op[list].size(), where);
    if (op.contains("semaphore_ids"))
      check_limit(limits::kSemaphores, one, op["semaphore_ids"].size(), where);
    if (op.contains("barrier_id"))
      check_limit(limits::kBarriers, gpu, op["barrier_id"].get<std::size_t>() + 1, where);
  };
  for (const Json& op : block["ops"]) {
    note(op);
    if (op.contains("ops")) std::for_each(op["ops"].begin(), op["ops"].end(), note);
  }
  check_limit(limits::kOperations, who, operations, where);
  for (const Json& channels : block["channels"])
    check_limit(limits::kChannels, who, channels["channel_ids"].size(), where);
  for (const Json& buffers : block["remote_buffer_refs"])
    check_limit(limits::kRemotes, who, buffers["remote_buffer_ids"].size(), where);
}

}  // namespace hemiola::program

// What `run --network` gives: a table and JSON.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "core/data_type.h"
#include "study/network/messages.h"

namespace hemiola::report {

struct MessageRow {
  Bytes size{};
  Time time{};
  double algbw_GBps = 0, busbw_GBps = 0;
  std::int64_t messages = 0;  ///< between different ranks, with data
  /// From begin to end of these: nearest-rank percentiles.
  Time least{}, median{}, p99{}, most{};
  std::int64_t packets = 0;  ///< times the links that each crosses
  std::int64_t drops = 0;
};

struct MessageTable {
  std::string command, machine, program, network;
  int ranks = 0;
  std::vector<MessageRow> rows;
};

MessageRow message_row(const study::MessageGraph& graph, const study::MessageRun& run,
                       Collective collective, Bytes size, std::int64_t packets, std::int64_t drops);
void print_messages(std::ostream& out, const MessageTable& table);
std::string messages_json(const MessageTable& table);

}  // namespace hemiola::report

#include "report/messages.h"

#include "report/values/json_text.h"

namespace hemiola::report {

std::string messages_json(const MessageTable& table) {
  return json_file(
      "schema", "hemiola/1", "command", table.command, "machine", table.machine, "program",
      table.program, "network", table.network, "ranks", table.ranks, "results",
      json_lines(table.rows, "  ", [](const MessageRow& row) {
        return json_object(
            "size", row.size, "time_fs", row.time, "algbw_GBps", row.algbw_GBps, "busbw_GBps",
            row.busbw_GBps, "messages", row.messages, "flow_fs",
            json_object("min", row.least, "p50", row.median, "p99", row.p99, "max", row.most),
            "packets", row.packets, "drops", row.drops);
      }));
}

}  // namespace hemiola::report

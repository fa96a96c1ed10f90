#include "report/messages.h"

#include <fmt/format.h>

#include "report/values/numbers.h"

namespace hemiola::report {

std::string messages_json(const MessageTable& table) {
  std::string text = fmt::format(
      "{{\n  \"schema\": \"hemiola/1\",\n  \"command\": {},\n  \"machine\": {},\n  \"program\": "
      "{},\n  \"network\": {},\n  \"ranks\": {},\n  \"results\": [",
      json_string(table.command), json_string(table.machine), json_string(table.program),
      json_string(table.network), table.ranks);
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const MessageRow& row = table.rows[r];
    text += fmt::format(
        "{}\n    {{\"size\": {}, \"time_fs\": {}, \"algbw_GBps\": {}, \"busbw_GBps\": {}, "
        "\"messages\": {}, \"flow_fs\": {{\"min\": {}, \"p50\": {}, \"p99\": {}, \"max\": {}}}, "
        "\"packets\": {}, \"drops\": {}}}",
        r == 0 ? "" : ",", row.size.count, row.time.fs, json_number(row.algbw_GBps),
        json_number(row.busbw_GBps), row.messages, row.least.fs, row.median.fs, row.p99.fs,
        row.most.fs, row.packets, row.drops);
  }
  return text + "\n  ]\n}\n";
}

}  // namespace hemiola::report

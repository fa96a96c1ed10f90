#include "report/messages.h"

#include <algorithm>
#include <ostream>

#include "report/values/columns.h"
#include "report/values/numbers.h"

namespace hemiola::report {

MessageRow message_row(const study::MessageGraph& graph, const study::MessageRun& run,
                       Collective collective, Bytes size, std::int64_t packets,
                       std::int64_t drops) {
  MessageRow row{.size = size, .time = run.time, .packets = packets, .drops = drops};
  std::vector<Time> took;
  for (std::size_t m = 0; m < graph.messages.size(); ++m) {
    const study::Message& message = graph.messages[m];
    if (message.from != message.to && message.bytes > 0)
      took.push_back(run.messages[m].end - run.messages[m].begin);
  }
  std::ranges::sort(took);
  row.messages = static_cast<std::int64_t>(took.size());
  if (!took.empty()) {
    // Nearest rank: the smallest that is not below so many of a hundred.
    const auto percentile = [&](std::size_t p) { return took[(took.size() * p + 99) / 100 - 1]; };
    row.least = took.front();
    row.median = percentile(50);
    row.p99 = percentile(99);
    row.most = took.back();
  }
  if (run.time.fs > 0) {
    row.algbw_GBps = static_cast<double>(size.count) / static_cast<double>(run.time.fs) * 1e6;
    row.busbw_GBps = row.algbw_GBps * bus_factor(collective, graph.ranks);
  }
  return row;
}

void print_messages(std::ostream& out, const MessageTable& table) {
  out << "# " << table.command << "\n# " << table.program << " on " << table.machine << ", "
      << table.ranks << " ranks\n# network   " << table.network
      << "\n# Messages of the plan; nothing inside GPUs is simulated. flow: a message from its "
         "begin to its last byte.\n";
  Columns columns(std::vector<Align>(10, Align::right));
  columns.add_heading({"size (B)", "time (us)", "algbw (GB/s)", "busbw (GB/s)", "messages",
                       "flow min (us)", "p50", "p99", "max", "drops"});
  for (const MessageRow& row : table.rows) {
    columns.add({std::to_string(row.size.count), table_us(row.time), table_rate(row.algbw_GBps),
                 table_rate(row.busbw_GBps), std::to_string(row.messages), table_us(row.least),
                 table_us(row.median), table_us(row.p99), table_us(row.most),
                 std::to_string(row.drops)});
  }
  columns.print(out, "  ");
}

}  // namespace hemiola::report

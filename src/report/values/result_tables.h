// Tables that are printed and stand on a page too.
#pragma once

#include <string>
#include <vector>

#include "report/page.h"
#include "report/values/columns.h"

namespace hemiola::sim {
struct Result;
}
namespace hemiola::study {
struct Difference;
struct Judgement;
struct MicroResult;
struct OrderResult;
struct RankChange;
struct ResultChange;
struct RowResult;
struct Summary;
}  // namespace hemiola::study
namespace hemiola::workload {
struct IterationValidation;
}

namespace hemiola::report {

/// Where a heading has the unit of a column, "(us)" of "time (us)".
enum class Units { below, beside };
Columns printed(const page::Table& table, Units where = Units::below);

/// A row per pair of results, with the reasons that moved most on the latest rank.
page::Table difference_table(const study::Difference& difference);
/// "-3.000 us link, +1.200 us poll", three reasons at most.
std::string moved_text(const study::RankChange& change);
/// "rank 5", or "rank 3 of A, rank 5 of B"
std::string rank_text(const study::RankChange& change);
/// The one whose time moved most, as a share of its own; of equal ones the first that moved at all.
const study::ResultChange& moved_most(const std::vector<study::ResultChange>& results);

/// "1 MiB, gpu.l2.size=25MiB"
std::string result_name(const study::ResultChange& change);
/// Of its latest rank, which it has; links and counters that moved.
page::Table moved_reasons(const study::ResultChange& change);
page::Table moved_links(const study::ResultChange& change);
page::Table moved_counters(const study::ResultChange& change);

/// A row per regime that has rows.
page::Table regimes_table(const study::Judgement& judgement);
/// A row per row of the measured table.
page::Table validation_table(const study::Judgement& judgement);
/// A row per entry of the suite and regime, then all rows of a kind and way of launching together.
page::Table entries_table(const std::vector<study::Judgement>& judgements);
page::Table orders_table(const std::vector<study::OrderResult>& orders);
page::Table micro_table(const std::vector<study::MicroResult>& micro);
/// "12 of 23 rows: 8 not in the sample, 4 larger than 16 MiB"
std::string simulated_text(const std::vector<study::RowResult>& rows);
/// "marks met: 12 of 22; simulated 61 of 88 rows"
std::string marks_text(const std::vector<study::Judgement>& judgements);
/// Rows, bias, median, worst, geomean, the trivial model's median; errors in per cent.
std::vector<std::string> summary_cells(const study::Summary& summary);

struct ReplayCount {
  const char* heading;
  const char* column;  ///< of CSV
  const char* counter;
};
inline constexpr ReplayCount kReplayCounts[] = {{"flag reads", "flag_reads", "reads.flag.cu"},
                                                {"polls", "polls", "reads.poll.cu"},
                                                {"data reads", "data_reads", "reads.data.cu"},
                                                {"stores", "stores", "requests.stores"}};
/// A row per measured iteration; and the errors and the order of pairs, in sentences.
page::Table iterations_table(const workload::IterationValidation& found);
std::vector<std::string> iteration_summary(const workload::IterationValidation& found);

/// A row per result: settings that differ, time, reads of flags, stores, kind of answers.
page::Table replays_table(const std::vector<sim::Result>& results);
/// A row per peer and flag that the ranks waited for, the longest wait first.
page::Table peer_waits_table(const sim::Result& result);

}  // namespace hemiola::report

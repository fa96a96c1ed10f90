// Measured against simulated times, on paper.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "study/tables/micro.h"
#include "study/tables/suite_runner.h"

namespace hemiola::report {

namespace page {
struct Page;
}

/// A line per row of the table, then the summary by regime. Lines that are no row start with '#'.
void print_validation(std::ostream& out, const study::Judgement& judgement);
/// One page: a line per entry and regime, then all rows of a kind and way of launching together,
/// then comparisons of entries, then microbenchmarks.
void print_suite(std::ostream& out, const std::vector<study::Judgement>& judgements,
                 const std::vector<study::OrderResult>& orders,
                 const std::vector<study::MicroResult>& micro = {});

/// Summaries, then for each table measured and simulated times and errors over size, and its rows.
page::Page validation_page(const std::string& command,
                           const std::vector<study::Judgement>& judgements,
                           const std::vector<study::OrderResult>& orders = {},
                           const std::vector<study::MicroResult>& micro = {});

/// What the trivial model of a table divides by the bandwidth: "2(n-1)/n x size", by the
/// collectives of its rows.
std::string trivial_scale(const study::Validation& validation);

/// The frame of the design (schema "hemiola/1") with `entries`, one per judgement, `comparisons`,
/// `micro`, and `rows` and `summary` over all of them. `interrupted`: more was asked for than this.
/// The same input gives the same bytes.
std::string validation_json(const std::string& command,
                            const std::vector<study::Judgement>& judgements,
                            const std::vector<study::OrderResult>& orders = {},
                            const std::vector<study::MicroResult>& micro = {},
                            bool interrupted = false);
/// One line per row of a table.
std::string validation_csv(const std::vector<study::Judgement>& judgements);

}  // namespace hemiola::report

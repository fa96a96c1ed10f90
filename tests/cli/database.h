// SQLite files that the program wrote, for tests.
#pragma once

#include <string>
#include <vector>

namespace hemiola::test {

/// What the queries find, row by row, after the schema; "" if the file cannot be read.
std::string dump(const std::string& file, const std::vector<std::string>& queries);

/// Rows of a table; 0 where there is none yet.
int count_rows(const std::string& file, const std::string& table);

/// Waits until it has more rows, or for a minute; how many it has then.
int wait_for_more_rows(const std::string& file, const std::string& table, int before);

}  // namespace hemiola::test

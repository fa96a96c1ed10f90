#include "database.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <chrono>
#include <thread>

namespace hemiola::test {

std::string dump(const std::string& file, const std::vector<std::string>& queries) {
  std::string text;
  sqlite3* database = nullptr;
  const auto add = [](void* all, int count, char** values, char**) {
    for (int i = 0; i < count; ++i) {
      *static_cast<std::string*>(all) += values[i] == nullptr ? "NULL" : values[i];
      *static_cast<std::string*>(all) += '|';
    }
    *static_cast<std::string*>(all) += '\n';
    return 0;
  };
  if (sqlite3_open_v2(file.c_str(), &database, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK) {
    std::vector<std::string> all{"SELECT sql FROM sqlite_master ORDER BY name"};
    all.insert(all.end(), queries.begin(), queries.end());
    for (const std::string& sql : all) {
      if (sqlite3_exec(database, sql.c_str(), add, &text, nullptr) != SQLITE_OK) {
        text.clear();
        break;
      }
    }
  }
  sqlite3_close(database);
  return text;
}

int count_rows(const std::string& file, const std::string& table) {
  int count = 0;
  sqlite3* database = nullptr;
  const auto read = [](void* number, int, char** values, char**) {
    *static_cast<int*>(number) = std::stoi(values[0]);
    return 0;
  };
  if (sqlite3_open_v2(file.c_str(), &database, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK) {
    // A file that is being written is waited for: it is not one without rows.
    sqlite3_busy_timeout(database, 1000);
    sqlite3_exec(database, ("SELECT count(*) FROM " + table).c_str(), read, &count, nullptr);
  }
  sqlite3_close(database);
  return count;
}

int wait_for_more_rows(const std::string& file, const std::string& table, int before) {
  int now = before;
  for (int i = 0; i < 20'000 && now <= before; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    now = count_rows(file, table);
  }
  EXPECT_GT(now, before) << "the study does not come on";
  return now;
}

}  // namespace hemiola::test

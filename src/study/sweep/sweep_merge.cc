// Files of shards to one.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <map>

#include "study/sweep/sweep_database.h"

namespace hemiola::study {
namespace {

/// Removes a file that did not become complete.
class Unfinished {
 public:
  explicit Unfinished(std::string file) : file_(std::move(file)) {}
  ~Unfinished() {
    for (const char* part : {"", "-journal"}) std::remove((file_ + part).c_str());
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

 private:
  std::string file_;
};

void refuse_other(const SweepDatabase::Head& head, const SweepDatabase::Head& other,
                  const std::string& file, const std::string& first) {
  const auto refuse = [&](const std::string& what) {
    throw Failure(what, {.file = file}, "the others are as " + first);
  };
  if (head.sweep != other.sweep) refuse("holds another sweep");
  if (head.version != other.version) refuse("was written by Hemiola " + other.version);
  if (head.inputs != other.inputs || head.points != other.points)
    refuse("holds results for other contents of the files that the sweep names");
}

}  // namespace

std::int64_t merge_sweeps(const std::string& file, std::span<const std::string> shards) {
  namespace fs = std::filesystem;
  if (fs::exists(file))
    throw Failure("is there already", {.file = file}, "give another --output, or remove this file");
  const auto first_head = [&] { return SweepDatabase(shards.front()).head(); };
  SweepDatabase::Head head = first_head();
  head.shard = {};
  const std::string temporary = file + ".part";
  const Unfinished guard(temporary);
  std::map<std::int64_t, std::string> from;  ///< which file a point came from
  {
    for (const char* part : {"", "-journal"}) fs::remove(temporary + part);
    SweepDatabase all(temporary, head);
    for (const std::string& shard : shards) {
      const SweepDatabase database(shard);
      refuse_other(head, database.head(), shard, shards.front());
      std::vector<SweepRow> rows;
      database.read([&](const SweepRow& row) {
        const auto [other, fresh] = from.emplace(row.number, shard);
        if (!fresh)
          throw Failure(fmt::format("point {} is in {} too", row.number, other->second),
                        {.file = shard}, "give the file of each shard once");
        rows.push_back(row);
      });
      all.write(rows);
    }
  }
  fs::rename(temporary, file);
  return std::ssize(from);
}

}  // namespace hemiola::study

// Profiles as files: what CSV and JSON have in common is cells with names.
#include "study/profiles/profile_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>

#include "core/checked.h"
#include "core/json.h"
#include "core/lists.h"
#include "core/units.h"
#include "study/profiles/profile_columns.h"
#include "study/profiles/profile_recorded.h"
#include "study/tables/table_text.h"

namespace hemiola::study {
namespace {

using sim::Profile;
using sim::ProfileBuffer;
using sim::ProfileKind;
using sim::ProfileRow;

constexpr std::string_view kUnits[] = {"fs", "ps", "ns", "us", "ms", "s", "cycles"};
constexpr auto kLastKind = static_cast<int>(ProfileKind::burst);
constexpr int kMostRanks = 32'767;

std::vector<std::string> column_names() {
  return names_of(profile_columns());
}

/// A row as it stands: text by column; "" where it says nothing.
struct RowText {
  std::map<std::string, std::string, std::less<>> cells;
  SourceLocation where;
};

/// A file as it stands.
struct ProfileText {
  std::string file;
  std::string ranks, unit, clock, origin, at;
  RecordedTexts recorded;
  std::vector<std::pair<std::string, std::string>> buffers;  ///< name, size
  std::vector<RowText> rows;
};

class Reader {
 public:
  explicit Reader(const ProfileText& text) : text_(text) {}

  Profile read() {
    profile_.file = text_.file;
    read_head();
    for (const RowText& row : text_.rows) read_row(row);
    // Rows name each other: these can be looked up only now.
    for (std::size_t r = 0; r < text_.rows.size(); ++r) read_after(text_.rows[r], r);
    refuse_cycles();
    return sim::in_order(std::move(profile_));
  }

 private:
  [[noreturn]] void fail(const RowText& row, const std::string& message,
                         const std::string& hint = {}) const {
    throw Failure(message, row.where, hint);
  }
  [[noreturn]] void fail(const std::string& message, const std::string& hint = {}) const {
    throw Failure(message, {.file = text_.file}, hint);
  }
  static const std::string& cell(const RowText& row, std::string_view column) {
    static const std::string kNone;
    const auto found = row.cells.find(column);
    return found == row.cells.end() ? kNone : found->second;
  }
  std::int64_t integer(const RowText& row, std::string_view column, std::int64_t otherwise,
                       std::int64_t least, std::int64_t most = INT64_MAX) const {
    const std::string& text = cell(row, column);
    if (text.empty()) return otherwise;
    const auto value = whole_number_in(text);
    if (!value || *value < least || *value > most)
      fail(row, fmt::format("{} '{}' is no integer {}", column, text,
                            most == INT64_MAX ? fmt::format("of at least {}", least)
                                              : fmt::format("from {} to {}", least, most)));
    return *value;
  }
  const std::string& needed(const RowText& row, std::string_view column) const {
    const std::string& text = cell(row, column);
    if (text.empty()) fail(row, fmt::format("this row has no {}", column));
    return text;
  }

  void read_head() {
    const auto ranks = whole_number_in(text_.ranks);
    if (!ranks || *ranks < 2 || *ranks > kMostRanks)
      fail(fmt::format("a profile says for how many ranks it is, from 2 to {}, not '{}'",
                       kMostRanks, text_.ranks),
           "CSV: a line '# ranks 4'; JSON: \"ranks\": 4");
    profile_.ranks = static_cast<int>(*ranks);
    if (std::ranges::find(kUnits, text_.unit) == std::end(kUnits))
      fail(fmt::format("times have the unit '{}'", text_.unit),
           "one of fs, ps, ns, us, ms, s, or cycles of a clock");
    if (text_.unit == "cycles") {
      const auto clock = parse_frequency(text_.clock);
      if (!clock)
        fail(fmt::format("cycles of which clock? '{}' is no frequency", text_.clock),
             "CSV: a line '# clock 1.7 GHz'; JSON: \"clock\": \"1.7 GHz\"");
      hertz_ = clock->hertz;
    }
    if (!text_.origin.empty()) {
      const auto origin = time(text_.origin);
      if (!origin) fail(fmt::format("the origin '{}' is no time in {}", text_.origin, text_.unit));
      origin_ = origin->fs;
    }
    if (!text_.at.empty() && text_.at != "ingress" && text_.at != "port")
      fail(fmt::format("rows begin at '{}'", text_.at),
           "at 'ingress' of their destination, or at the 'port' of their source");
    profile_.at_ports = text_.at == "port";
    profile_.recorded = read_recorded(text_.recorded, profile_.ranks, text_.file);
    for (const auto& [name, size] : text_.buffers) {
      const auto bytes = parse_bytes(whole_number_in(size) ? size + " B" : size);
      if (!bytes || bytes->count < 1)
        fail(fmt::format("buffer '{}' has the size '{}'", name, size), "'4096' or '4 KiB'");
      if (buffer(name) >= 0) fail(fmt::format("there are two buffers '{}'", name));
      profile_.buffers.push_back({name, bytes->count});
    }
  }

  std::optional<Time> time(const std::string& text) const {
    if (text_.unit != "cycles") {
      const bool negative = text.starts_with('-');  // before the origin: the caller says so
      const auto size = parse_time(text.substr(negative ? 1 : 0) + " " + text_.unit);
      return negative && size ? Time{-size->fs} : size;
    }
    const auto cycles = whole_number_in(text);
    if (!cycles) return std::nullopt;
    const __int128 fs =
        (static_cast<__int128>(*cycles) * 1'000'000'000'000'000 + hertz_ / 2) / hertz_;
    if (fs > INT64_MAX / 2 || fs < INT64_MIN / 2) return std::nullopt;
    return Time{static_cast<std::int64_t>(fs)};
  }

  std::int32_t buffer(std::string_view name) const {
    for (std::size_t b = 0; b < profile_.buffers.size(); ++b)
      if (profile_.buffers[b].name == name) return static_cast<std::int32_t>(b);
    return -1;
  }
  std::int32_t known_buffer(const RowText& row, const std::string& name) const {
    const std::int32_t found = buffer(name);
    if (found >= 0) return found;
    const std::vector<std::string> names = names_of(profile_.buffers);
    fail(row, fmt::format("there is no buffer '{}'", name),
         suggest(name, names, "the head names " + joined(names)));
  }

  void read_row(const RowText& text) {
    ProfileRow row;
    row.source = static_cast<std::int32_t>(
        integer(text, "source", (needed(text, "source"), 0), 0, profile_.ranks - 1));
    row.destination = static_cast<std::int32_t>(
        integer(text, "destination", (needed(text, "destination"), 0), 0, profile_.ranks - 1));
    if (row.source == row.destination)
      fail(text, fmt::format("rank {} is source and destination", row.source),
           "a profile has what others do");
    row.kind = kind(text);
    const auto at = time(needed(text, "time"));
    if (!at)
      fail(text, fmt::format("time '{}' is no number of {}", cell(text, "time"), text_.unit));
    const bool waits = !cell(text, "after").empty();
    row.time = waits ? *at : Time{at->fs - origin_};
    if (row.time.fs < 0)
      fail(text, waits ? fmt::format("a delay of {} {}", cell(text, "time"), text_.unit)
                       : fmt::format("time {} {} is before the origin, {}", cell(text, "time"),
                                     text_.unit, text_.origin.empty() ? "0" : text_.origin));
    row.size = integer(text, "size", 8, 1);
    row.value = integer(text, "value", 0, INT64_MIN);
    row.stream = static_cast<std::int32_t>(integer(text, "stream", -1, -1, kMostRanks));
    row.order = integer(text, "order", 0, 0);
    row.request = integer(text, "request", -1, -1);
    row.took = integer(text, "took", -1, -1);
    constexpr std::int64_t kMostLinks = 255;
    row.links = static_cast<std::int32_t>(integer(text, "links", 0, 0, kMostLinks));
    row.path = static_cast<std::int32_t>(integer(text, "path", -1, -1, kMostRanks));
    row.tag = cell(text, "tag");
    if (row.is_answer()) {
      if (row.request < 0 && row.path < 0)  // of others, on links: by a path
        fail(text, "an answer says to the how-manieth request of its destination (from 0)",
             "column 'request'");
    } else if (row.kind != ProfileKind::burst || !cell(text, "buffer").empty()) {
      row.buffer = known_buffer(text, needed(text, "buffer"));
      row.offset = integer(text, "offset", 0, 0);
      const std::int64_t bytes = profile_.buffers[static_cast<std::size_t>(row.buffer)].bytes;
      if (row.offset > bytes - row.size)
        fail(text, fmt::format("{} B at offset {} lie outside buffer '{}' of {} B", row.size,
                               row.offset, cell(text, "buffer"), bytes));
    }
    read_message(text, row);
    const std::string& id = cell(text, "id");
    if (!id.empty() && !by_id_.emplace(id, profile_.rows.size()).second)
      fail(text, fmt::format("another row has the id '{}', too", id));
    profile_.rows.push_back(std::move(row));
    profile_.places.push_back(text.where.pointer.empty() ? fmt::format("line {}", text.where.line)
                                                         : text.where.pointer);
  }

  // A burst: which message it is of, and what stands behind that.
  void read_message(const RowText& text, ProfileRow& row) const {
    row.message = integer(text, "message", -1, 0);
    row.packets = integer(text, "packets", -1, 1);
    row.flag = integer(text, "flag", -1, 0);
    const bool burst = row.kind == ProfileKind::burst, last = row.packets >= 0 || row.flag >= 0;
    if (!burst && (row.message >= 0 || last))
      fail(text, fmt::format("a row of kind {} is of no message", sim::name_of(row.kind)));
    if (last && (row.message < 0 || row.packets < 0))
      fail(text, "a flag stands with the last burst of a message, which has 'message', 'packets'");
    if (burst && row.size > INT32_MAX) fail(text, fmt::format("a burst of {} B", row.size));
  }

  ProfileKind kind(const RowText& row) const {
    const std::string& word = cell(row, "kind");
    if (word.empty()) return ProfileKind::write;
    std::vector<std::string> names;
    for (int k = 0; k <= kLastKind; ++k) {
      names.emplace_back(sim::name_of(static_cast<ProfileKind>(k)));
      if (word == names.back()) return static_cast<ProfileKind>(k);
    }
    fail(row, fmt::format("'{}' is no kind of request", word),
         fmt::format("one of {}", fmt::join(names, ", ")));
  }

  // "ID" of a row, or "BUFFER+OFFSET>=VALUE" at the source.
  void read_after(const RowText& text, std::size_t r) {
    const std::string& after = cell(text, "after");
    if (after.empty()) return;
    ProfileRow& row = profile_.rows[r];
    const std::size_t compare = after.rfind(">="), plus = after.rfind('+', compare);
    if (compare == std::string::npos) {
      const auto found = by_id_.find(after);
      if (found == by_id_.end())
        fail(text, fmt::format("it comes after row '{}', which is not there", after),
             "ids stand in column 'id'; a signal is written BUFFER+OFFSET>=VALUE");
      row.after_row = static_cast<std::int32_t>(found->second);
      return;
    }
    const auto value = whole_number_in(after.substr(compare + 2));
    const auto offset = plus == std::string::npos
                            ? std::optional<std::int64_t>(0)
                            : whole_number_in(after.substr(plus + 1, compare - plus - 1));
    if (!value || !offset)
      fail(text, fmt::format("'{}' is no signal", after), "BUFFER+OFFSET>=VALUE: flags+64>=1");
    row.after_buffer = known_buffer(text, after.substr(0, std::min(plus, compare)));
    row.after_offset = *offset;
    row.after_value = *value;
    const std::int64_t bytes = profile_.buffers[static_cast<std::size_t>(row.after_buffer)].bytes;
    if (*offset < 0 || *offset >= bytes)
      fail(text, fmt::format("offset {} lies outside the buffer of {} B", *offset, bytes));
  }

  // A row waits for one other at most: chains are walked once.
  void refuse_cycles() const {
    std::vector<std::int32_t> seen_by(profile_.rows.size(), -1);
    for (std::size_t r = 0; r < profile_.rows.size(); ++r) {
      auto at = static_cast<std::int32_t>(r);
      while (at >= 0 && seen_by[static_cast<std::size_t>(at)] < 0) {
        seen_by[static_cast<std::size_t>(at)] = static_cast<std::int32_t>(r);
        at = profile_.rows[static_cast<std::size_t>(at)].after_row;
      }
      if (at >= 0 && seen_by[static_cast<std::size_t>(at)] == static_cast<std::int32_t>(r))
        fail(text_.rows[static_cast<std::size_t>(at)], "this row waits for itself, through others");
    }
  }

  const ProfileText& text_;
  Profile profile_;
  std::int64_t hertz_ = 1, origin_ = 0;
  std::map<std::string, std::size_t> by_id_;
};

// "NAME SIZE": names may have blanks ("fifo 0"), and so may sizes ("4 KiB").
std::pair<std::string, std::string> buffer_of(const std::string& text) {
  std::size_t blank = text.rfind(' ');
  if (blank != std::string::npos && text.find_first_of("0123456789", blank) != blank + 1)
    blank = text.find_last_not_of(' ', blank);
  if (blank != std::string::npos && text[blank] != ' ') blank = text.rfind(' ', blank);
  if (blank == std::string::npos) return {text, ""};
  return {std::string(trimmed(text.substr(0, blank))), std::string(trimmed(text.substr(blank)))};
}

// "# WORD REST" lines say what JSON has as keys; others are remarks.
void read_note(const std::string& note, ProfileText& profile, std::optional<std::size_t>& end) {
  const std::size_t blank = note.find(' ');
  const std::string word = note.substr(0, blank);
  const std::string rest(trimmed(blank == std::string::npos ? "" : note.substr(blank)));
  if (word == "ranks") profile.ranks = rest;
  if (word == "clock") profile.clock = rest;
  if (word == "origin") profile.origin = rest;
  if (word == "at") profile.at = rest;
  if (word == "recorded") {
    const std::size_t key = rest.find(' ');
    profile.recorded.emplace_back(rest.substr(0, key),
                                  trimmed(key == std::string::npos ? "" : rest.substr(key)));
  }
  if (word == "buffer") profile.buffers.push_back(buffer_of(rest));
  if (word == "end") {
    std::size_t rows = 0;
    std::from_chars(rest.data(), rest.data() + rest.size(), rows);
    end = rows;
  }
}

ProfileText read_csv_profile(std::string_view text, const std::string& file) {
  const TableText table = read_csv(text, file);
  ProfileText profile{.file = file};
  std::optional<std::size_t> end;
  for (const std::string& note : table.notes) read_note(note, profile, end);
  const SourceLocation heading{.file = file, .line = table.heading_line};
  std::vector<std::string> names;
  for (const std::string& word : table.columns) {
    const std::size_t colon = word.find(':');
    names.push_back(word.substr(0, colon));
    const std::string type = colon == std::string::npos ? "" : word.substr(colon + 1);
    const auto* const column =
        std::find_if(std::begin(profile_columns()), std::end(profile_columns()),
                     [&](const ProfileColumn& c) { return c.name == names.back(); });
    if (column == std::end(profile_columns())) {
      const std::string near = suggest(names.back(), column_names());
      throw Failure(
          fmt::format("a profile has no column '{}'", names.back()), heading,
          !near.empty() ? near : fmt::format("it has {}", fmt::join(column_names(), ", ")));
    }
    if (column->name == "time") {
      profile.unit = type;
    } else if (!type.empty() && type != column->type) {
      throw Failure(
          fmt::format("column '{}' is of type '{}', not '{}'", column->name, column->type, type),
          heading);
    }
  }
  for (const TableText::Row& row : table.rows) {
    RowText cells{.cells = {}, .where = {.file = file, .line = row.line}};
    for (std::size_t c = 0; c < names.size(); ++c)
      if (!row.cells[c].empty()) cells.cells.emplace(names[c], row.cells[c]);
    profile.rows.push_back(std::move(cells));
  }
  if (end && *end != profile.rows.size())
    throw Failure(fmt::format("there are {} rows, but its end says {}", profile.rows.size(), *end),
                  {.file = file}, "was it cut off?");
  return profile;
}

ProfileText read_json_profile(std::string_view text, const std::string& file) {
  const JsonText source(text, file);
  const JsonValue root = source.root();
  root.allow_keys(
      {"hemiola_profile", "ranks", "unit", "clock", "origin", "at", "recorded", "buffers", "rows"});
  root.integer("hemiola_profile", 1, 1);
  const auto as_text = [](const nlohmann::json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  ProfileText profile{.file = file};
  profile.ranks = std::to_string(root.integer("ranks", 2, kMostRanks));
  profile.unit = root.at("unit").text();
  if (root.has("clock")) profile.clock = root.at("clock").text();
  if (root.has("at")) profile.at = root.at("at").text();
  if (const auto recorded = root.find("recorded"))
    for (const std::string& key : recorded->keys())
      profile.recorded.emplace_back(key, recorded->at(key).text());
  if (const auto origin = root.find("origin")) profile.origin = as_text(origin->json());
  for (const JsonValue& buffer : root.items("buffers")) {
    buffer.allow_keys({"name", "bytes"});
    profile.buffers.emplace_back(buffer.at("name").text(),
                                 std::to_string(buffer.integer("bytes", 1, INT64_MAX)));
  }
  const std::vector<std::string> columns = column_names();
  for (const JsonValue& row : root.items("rows")) {
    row.allow_keys(columns);
    RowText cells{.cells = {}, .where = {.file = file, .pointer = row.pointer()}};
    for (const auto& [key, value] : row.json().items()) {
      if (value.is_structured() || value.is_boolean() || value.is_null())
        row.at(key).fail("this is neither a number nor a text");
      cells.cells.emplace(key, as_text(value));
    }
    profile.rows.push_back(std::move(cells));
  }
  return profile;
}

}  // namespace

sim::Profile read_profile(std::string_view text, const std::string& file) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const bool json = begin != std::string_view::npos && text[begin] == '{';
  const ProfileText profile = json ? read_json_profile(text, file) : read_csv_profile(text, file);
  return Reader(profile).read();
}

}  // namespace hemiola::study

// Profiles as files: the writers.
#include <fmt/format.h>

#include <algorithm>

#include "core/json.h"
#include "sim/result/profile.h"
#include "study/profiles/profile_columns.h"
#include "study/profiles/profile_file.h"
#include "study/profiles/profile_recorded.h"
#include "study/tables/table_text.h"

namespace hemiola::study {
namespace {

using sim::ProfileBuffer;
using sim::ProfileKind;
using sim::ProfileRow;

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r#") == std::string::npos && trimmed(text) == text) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

}  // namespace

std::string write_profile_csv(const sim::Profile& profile) {
  std::string out = fmt::format("# hemiola profile 1\n# ranks {}\n", profile.ranks);
  if (profile.at_ports) out += "# at port\n";
  for (const auto& [key, text] : recorded_texts(profile.recorded))
    out += fmt::format("# recorded {} {}\n", key, text);
  for (const ProfileBuffer& buffer : profile.buffers)
    out += fmt::format("# buffer {} {}\n", buffer.name, buffer.bytes);
  const auto any = [&](auto holds) { return std::ranges::any_of(profile.rows, holds); };
  const bool bursts = any([](const ProfileRow& row) { return row.kind == ProfileKind::burst; });
  const bool said = any([](const ProfileRow& row) { return row.took >= 0; });
  const auto is_wanted = [&](const ProfileColumn& column) {
    return column.where == ProfileColumn::Where::always ||
           (column.where == ProfileColumn::Where::bursts ? bursts : said);
  };
  for (const ProfileColumn& column : profile_columns()) {
    if (!is_wanted(column)) continue;
    const std::string_view type = column.name == "time" ? "fs" : column.type;
    out +=
        fmt::format("{}{}:{}", &column == profile_columns().begin() ? "" : ",", column.name, type);
  }
  out += '\n';
  for (const ProfileRow& row : profile.rows) {
    for (const ProfileColumn& column : profile_columns()) {
      if (!is_wanted(column)) continue;
      out += (&column == profile_columns().begin() ? "" : ",") + quoted(column.write(profile, row));
    }
    out += '\n';
  }
  return out + fmt::format("# end {} rows\n", profile.rows.size());
}

std::string write_profile_json(const sim::Profile& profile) {
  nlohmann::ordered_json json{{"hemiola_profile", 1}, {"ranks", profile.ranks}, {"unit", "fs"}};
  if (profile.at_ports) json["at"] = "port";
  for (const auto& [key, text] : recorded_texts(profile.recorded)) json["recorded"][key] = text;
  json["buffers"] = nlohmann::ordered_json::array();
  for (const ProfileBuffer& buffer : profile.buffers)
    json["buffers"].push_back({{"name", buffer.name}, {"bytes", buffer.bytes}});
  json["rows"] = nlohmann::ordered_json::array();
  for (const ProfileRow& row : profile.rows) {
    nlohmann::ordered_json cells = nlohmann::ordered_json::object();
    for (const ProfileColumn& column : profile_columns()) {
      const std::string cell = column.write(profile, row);
      if (cell.empty()) continue;
      cells[std::string(column.name)] =
          column.is_text ? nlohmann::ordered_json(cell) : nlohmann::ordered_json(std::stoll(cell));
    }
    json["rows"].push_back(std::move(cells));
  }
  return json.dump(1) + "\n";
}

}  // namespace hemiola::study

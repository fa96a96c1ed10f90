#include "study/profiles/profile_columns.h"

#include <fmt/format.h>

#include <cstdint>

namespace hemiola::study {
namespace {

using sim::Profile;
using sim::ProfileRow;

std::string unless(std::int64_t value, std::int64_t usual) {
  return value == usual ? std::string() : std::to_string(value);
}

std::string after_text(const Profile& profile, const ProfileRow& row) {
  if (row.after_row >= 0) return std::to_string(row.after_row);
  if (row.after_buffer < 0) return {};
  return fmt::format("{}+{}>={}", profile.buffers[static_cast<std::size_t>(row.after_buffer)].name,
                     row.after_offset, row.after_value);
}

constexpr ProfileColumns kColumns = {{
    {"id", "id", true,
     [](const Profile& p, const ProfileRow& r) { return std::to_string(&r - p.rows.data()); }},
    {"source", "rank", false,
     [](const Profile&, const ProfileRow& r) { return std::to_string(r.source); }},
    {"destination", "rank", false,
     [](const Profile&, const ProfileRow& r) { return std::to_string(r.destination); }},
    {"time", "", false,
     [](const Profile&, const ProfileRow& r) { return std::to_string(r.time.fs); }},
    {"kind", "kind", true,
     [](const Profile&, const ProfileRow& r) { return std::string(sim::name_of(r.kind)); }},
    {"buffer", "name", true,
     [](const Profile& p, const ProfileRow& r) {
       return r.buffer < 0 ? "" : p.buffers[static_cast<std::size_t>(r.buffer)].name;
     }},
    {"offset", "bytes", false,
     [](const Profile&, const ProfileRow& r) {
       return r.buffer < 0 ? "" : std::to_string(r.offset);
     }},
    {"size", "bytes", false,
     [](const Profile&, const ProfileRow& r) { return std::to_string(r.size); }},
    {"value", "int", false, [](const Profile&, const ProfileRow& r) { return unless(r.value, 0); }},
    {"stream", "port", false,
     [](const Profile&, const ProfileRow& r) { return unless(r.stream, -1); }},
    {"order", "int", false, [](const Profile&, const ProfileRow& r) { return unless(r.order, 0); }},
    {"request", "int", false,
     [](const Profile&, const ProfileRow& r) { return unless(r.request, -1); }},
    {"links", "int", false, [](const Profile&, const ProfileRow& r) { return unless(r.links, 0); }},
    {"path", "int", false, [](const Profile&, const ProfileRow& r) { return unless(r.path, -1); }},
    {"message", "int", false,
     [](const Profile&, const ProfileRow& r) { return unless(r.message, -1); },
     ProfileColumn::Where::bursts},
    {"packets", "int", false,
     [](const Profile&, const ProfileRow& r) { return unless(r.packets, -1); },
     ProfileColumn::Where::bursts},
    {"flag", "bytes", false, [](const Profile&, const ProfileRow& r) { return unless(r.flag, -1); },
     ProfileColumn::Where::bursts},
    {"took", "fs", false, [](const Profile&, const ProfileRow& r) { return unless(r.took, -1); },
     ProfileColumn::Where::said},
    {"after", "id", true, after_text},
    {"tag", "text", true, [](const Profile&, const ProfileRow& r) { return r.tag; }},
}};

}  // namespace

const ProfileColumns& profile_columns() {
  return kColumns;
}

}  // namespace hemiola::study

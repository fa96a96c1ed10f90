#include "workload/traces/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "core/diagnostics.h"
#include "core/expansion.h"

namespace hemiola::workload {
namespace {

struct FreeArchive {
  void operator()(archive* handle) const { archive_read_free(handle); }
};
using Archive = std::unique_ptr<archive, FreeArchive>;

[[noreturn]] void fail_to_unpack(const std::string& path, archive* handle) {
  const char* reason = handle == nullptr ? nullptr : archive_error_string(handle);
  throw Failure(
      fmt::format("is a damaged archive: {}", reason == nullptr ? "no reason known" : reason),
      {.file = path}, "pack the files again, or give them unpacked");
}

Archive open_archive(const std::string& path, std::string_view content, bool raw) {
  Archive handle(archive_read_new());
  if (!handle) throw Failure("cannot be unpacked: out of memory", {.file = path});
  archive_read_support_filter_gzip(handle.get());
  if (raw) {
    archive_read_support_format_raw(handle.get());
  } else {
    archive_read_support_format_tar(handle.get());
    archive_read_support_format_zip(handle.get());
  }
  if (archive_read_open_memory(handle.get(), content.data(), content.size()) != ARCHIVE_OK)
    fail_to_unpack(path, handle.get());
  return handle;
}

bool is_gzip_member(std::string_view content) {
  return content.size() >= 2 && content[0] == '\x1f' && content[1] == '\x8b';
}

/// What is neither text nor a trace is read no further than it takes to see that.
std::string read_member(const std::string& path, archive* handle, Expansion& expansion) {
  std::string content;
  std::string block(4 * kFormatStart, '\0');
  while (true) {
    const la_ssize_t count = archive_read_data(handle, block.data(), block.size());
    if (count == 0) return content;
    if (count < 0) fail_to_unpack(path, handle);
    expansion.add(static_cast<std::size_t>(count));
    const bool was_short = content.size() <= kFormatStart;
    content.append(block.data(), static_cast<std::size_t>(count));
    if (was_short && content.size() > kFormatStart && !is_gzip_member(content) &&
        !is_readable_start(std::string_view(content).substr(0, kFormatStart)))
      return content.substr(0, kFormatStart);
  }
}

}  // namespace

bool is_archive(std::string_view start) {
  constexpr std::size_t kMagicOfTar = 257;
  return start.starts_with("PK\x03\x04") ||
         (start.size() > kMagicOfTar + 5 && start.substr(kMagicOfTar, 5) == "ustar");
}

std::vector<TraceFile> files_of_archive(const std::string& path) {
  const std::string packed = read_file(path);
  const Archive handle = open_archive(path, packed, false);
  std::vector<TraceFile> files;
  std::error_code ignored;
  Expansion expansion(path, std::filesystem::file_size(path, ignored));
  archive_entry* entry = nullptr;
  while (true) {
    const int status = archive_read_next_header(handle.get(), &entry);
    if (status == ARCHIVE_EOF) break;
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) fail_to_unpack(path, handle.get());
    const char* name = archive_entry_pathname(entry);
    if (name == nullptr || archive_entry_filetype(entry) != AE_IFREG) continue;
    std::string own(name);
    const std::size_t slash = own.rfind('/');
    if (own[slash == std::string::npos ? 0 : slash + 1] == '.') continue;
    std::string content = read_member(path, handle.get(), expansion);
    if (is_gzip_member(content)) {
      const std::string whole = path + ":" + own;
      const Archive inner = open_archive(whole, content, true);
      if (archive_read_next_header(inner.get(), &entry) != ARCHIVE_OK)
        fail_to_unpack(whole, inner.get());
      content = read_member(whole, inner.get(), expansion);
    }
    files.push_back({path + ":" + own, std::make_shared<const std::string>(std::move(content))});
  }
  std::ranges::sort(files, {}, &TraceFile::name);
  return files;
}

}  // namespace hemiola::workload

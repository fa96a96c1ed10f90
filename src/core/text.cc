#include "core/text.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "core/expansion.h"

namespace hemiola {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFileSize = std::size_t{4} << 30;
constexpr std::size_t kBlock = std::size_t{1} << 18;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

std::string reason(int error) {
  return std::generic_category().message(error);
}

[[noreturn]] void fail(const std::string& path, std::string message, std::string hint = {}) {
  throw Failure(std::move(message), SourceLocation{.file = path}, std::move(hint));
}

std::string read_raw(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) fail(path, "no such file");
  if (fs::is_directory(status)) fail(path, "is a folder, not a file");
  if (fs::is_character_file(status) || fs::is_block_file(status))
    fail(path, "is a device, not a file");
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) fail(path, "cannot be read: " + reason(errno));
  std::string content;
  const std::uintmax_t size = fs::is_regular_file(status) ? fs::file_size(path, error) : 0;
  if (!error && size <= kMaxFileSize) content.reserve(static_cast<std::size_t>(size));
  std::vector<char> block(kBlock);
  while (true) {
    const std::size_t count = std::fread(block.data(), 1, block.size(), file.get());
    if (count == 0) break;
    if (content.size() + count > kMaxFileSize) fail(path, "is longer than 4 GiB");
    content.append(block.data(), count);
  }
  if (std::ferror(file.get())) fail(path, "cannot be read: " + reason(errno));
  return content;
}

struct EndInflate {
  void operator()(z_stream* stream) const { inflateEnd(stream); }
};

/// Expands one or more gzip members that follow each other; padding of zero bytes is allowed, as in
/// gzip itself.
std::string expand_gzip(const std::string& path, std::string_view packed) {
  const std::string hint = "pack the file again, or give the unpacked one";
  z_stream stream{};
  constexpr int kGzip = MAX_WBITS + 16;
  if (inflateInit2(&stream, kGzip) != Z_OK) fail(path, "cannot be expanded: out of memory");
  const std::unique_ptr<z_stream, EndInflate> guard(&stream);
  std::string content;
  Expansion expansion(path, packed.size());
  bool is_long = false;
  std::vector<char> block(kBlock);
  std::size_t consumed = 0;
  while (true) {
    const std::size_t given = std::min(packed.size() - consumed, kBlock);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + consumed));
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    consumed += given - stream.avail_in;
    const std::size_t produced = block.size() - stream.avail_out;
    expansion.add(produced);
    content.append(block.data(), produced);
    if (!is_long && content.size() > kBlock) {
      is_long = true;
      if (!is_readable_start(std::string_view(content).substr(0, kFormatStart)))
        fail(path, "is compressed, and what is in it is neither text, nor a trace, nor an archive");
    }
    if (status == Z_STREAM_END) {
      const std::string_view rest = packed.substr(consumed);
      if (std::all_of(rest.begin(), rest.end(), [](char c) { return c == '\0'; })) return content;
      if (inflateReset(&stream) != Z_OK) fail(path, "is a damaged gzip stream", hint);
      continue;
    }
    if (consumed == packed.size() && produced == 0 && status != Z_DATA_ERROR)
      fail(path, "is a gzip stream that ends early", hint);
    if (status != Z_OK && status != Z_BUF_ERROR) fail(path, "is a damaged gzip stream", hint);
  }
}

bool is_gzip(std::string_view content) {
  return content.size() >= 2 && content[0] == '\x1f' && content[1] == '\x8b';
}

void write_all(std::FILE* file, std::string_view content, const std::string& path) {
  const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  if (!written || std::fflush(file) != 0) fail(path, "cannot be written: " + reason(errno));
}

/// Removes the temporary file unless it was renamed.
class Temporary {
 public:
  explicit Temporary(std::string path) : path_(std::move(path)) {}
  ~Temporary() {
    if (!renamed_) ::unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  bool rename_to(const std::string& target) {
    renamed_ = std::rename(path_.c_str(), target.c_str()) == 0;
    return renamed_;
  }

 private:
  std::string path_;
  bool renamed_ = false;
};

}  // namespace

std::string read_file(const std::string& path) {
  std::string content = read_raw(path);
  if (is_gzip(content)) content = expand_gzip(path, content);
  if (content.empty()) fail(path, "is empty");
  return content;
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

void make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail(path, "cannot be made: " + error.message());
}

void write_file(const std::string& path, std::string_view content) {
  if (path == "-") {
    write_all(stdout, content, "standard output");
    return;
  }
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) fail(path, "is a folder, not a file");
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    // A pipe or a terminal: renaming would replace the device itself.
    const File file(std::fopen(path.c_str(), "wb"));
    if (!file) fail(path, "cannot be written: " + reason(errno));
    write_all(file.get(), content, path);
    return;
  }
  // Behind a symbolic link the file itself is replaced, not the link.
  std::string target = path;
  if (fs::is_symlink(fs::symlink_status(path, error))) {
    const fs::path real = fs::weakly_canonical(path, error);
    if (!error) target = real.string();
  }
  const std::string name = target + ".part-" + std::to_string(::getpid());
  const int descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) fail(path, "cannot be written: " + reason(errno));
  Temporary temporary(name);
  const File file(::fdopen(descriptor, "wb"));
  if (!file) {
    ::close(descriptor);
    fail(path, "cannot be written: out of memory");
  }
  write_all(file.get(), content, path);
  if (!temporary.rename_to(target)) fail(path, "cannot be written: " + reason(errno));
}

SourceLocation locate(std::string file, std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t start = newline == std::string_view::npos ? 0 : newline + 1;
  return {.file = std::move(file),
          .line = static_cast<int>(lines + 1),
          .column = static_cast<int>(before.size() - start + 1)};
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

}  // namespace hemiola

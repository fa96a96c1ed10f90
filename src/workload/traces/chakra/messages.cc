#include "workload/traces/chakra/messages.h"

#include <fmt/format.h>

#include <limits>

#include "core/diagnostics.h"
#include "workload/traces/groups.h"

namespace hemiola::workload {

ChakraMessages::ChakraMessages(const std::string& file, std::string_view content)
    : file_(file), rest_(content), size_(content.size()) {}

void ChakraMessages::fail(const std::string& problem) const {
  throw Failure(problem, {.file = file_});
}

std::string ChakraMessages::last() const {
  return has_read_node_ ? fmt::format("node {} '{}'", last_id_, shorten(last_name_))
                        : "its beginning";
}

std::string_view ChakraMessages::next() {
  std::uint64_t length = 0;
  std::size_t at = 0;
  for (int shift = 0; shift < 64; shift += 7, ++at) {
    if (at == rest_.size()) fail("the file is cut short: it ends after " + last());
    const auto byte = static_cast<unsigned char>(rest_[at]);
    length |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  ++at;
  if (at > rest_.size() || length > rest_.size() - at ||
      length > static_cast<std::uint64_t>(std::numeric_limits<int>::max()))
    fail("the file is cut short: it ends within what comes after " + last());
  const std::string_view message = rest_.substr(at, index(length));
  rest_.remove_prefix(at + message.size());
  return message;
}

void ChakraMessages::read(chakra::GlobalMetadata& metadata) {
  const std::string_view message = next();
  const bool is_read = metadata.ParseFromArray(message.data(), static_cast<int>(message.size()));
  // Numbers that metadata does not have are those of a node.
  if (!is_read || !metadata.GetReflection()->GetUnknownFields(metadata).empty())
    fail("is no Chakra trace: its first message is no GlobalMetadata");
}

bool ChakraMessages::read(chakra::Node& node) {
  if (rest_.empty()) return false;
  const std::size_t begin = size_ - rest_.size();
  const std::string_view message = next();
  if (!node.ParseFromArray(message.data(), static_cast<int>(message.size())))
    fail(fmt::format("what comes after {}, at byte {}, is no node", last(), begin));
  has_read_node_ = true;
  last_id_ = node.id();
  last_name_ = node.name();
  return true;
}

void append_length(std::string& text, std::size_t length) {
  while (length >= 0x80) {
    text += static_cast<char>(0x80 | (length & 0x7f));
    length >>= 7;
  }
  text += static_cast<char>(length);
}

}  // namespace hemiola::workload

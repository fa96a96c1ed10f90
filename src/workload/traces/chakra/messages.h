// The messages of a Chakra file, one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "chakra.pb.h"

namespace hemiola::workload {

class ChakraMessages {
 public:
  /// Both outlive it.
  ChakraMessages(const std::string& file, std::string_view content);

  /// The first message. Failure if it is none.
  void read(chakra::GlobalMetadata& metadata);
  /// The next node; false at the end of the file. Failure if the file is cut short or damaged.
  bool read(chakra::Node& node);

 private:
  std::string_view next();   ///< the bytes of the next message
  std::string last() const;  ///< what was read before
  [[noreturn]] void fail(const std::string& problem) const;

  const std::string& file_;
  std::string_view rest_;
  std::size_t size_;
  bool has_read_node_ = false;
  std::uint64_t last_id_ = 0;
  std::string last_name_;
};

/// A base-128 varint of a length, as it stands before each message.
void append_length(std::string& text, std::size_t length);

}  // namespace hemiola::workload

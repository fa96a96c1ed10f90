// The elements of an NCCL topology file: attributes that have to be there, and where they stand.
#pragma once

#include <cstdint>
#include <pugixml.hpp>
#include <string>
#include <string_view>

#include "core/diagnostics.h"

namespace hemiola::machine {

/// The text and the file's name outlive it. Everything throws Failure with the element's place.
class TopologyXml {
 public:
  TopologyXml(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  /// Parses the text; `what` has a root element of this name.
  pugi::xml_node root(const char* name, const char* what);

  SourceLocation where(const pugi::xml_node& node) const;
  /// Of an attribute that is there and not empty.
  std::string attribute(const pugi::xml_node& node, const char* name) const;
  /// From 1 to `most`.
  std::int64_t number(const pugi::xml_node& node, const char* name, std::int64_t most) const;

 private:
  std::string_view text_;
  const std::string& file_;
  pugi::xml_document document_;
};

}  // namespace hemiola::machine

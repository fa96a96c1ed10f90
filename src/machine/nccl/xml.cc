#include "machine/nccl/xml.h"

#include <algorithm>

#include "core/text.h"
#include "core/units.h"

namespace hemiola::machine {

pugi::xml_node TopologyXml::root(const char* name, const char* what) {
  const pugi::xml_parse_result result = document_.load_buffer(text_.data(), text_.size());
  if (!result) {
    throw Failure(
        std::string("this is no XML: ") + result.description(),
        locate(file_, text_, static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, result.offset))));
  }
  const pugi::xml_node root = document_.child(name);
  if (!root) {
    throw Failure("the root of " + std::string(what) + " is <" + name + ">",
                  SourceLocation{file_, 1, 1, {}});
  }
  return root;
}

SourceLocation TopologyXml::where(const pugi::xml_node& node) const {
  SourceLocation location = locate(
      file_, text_, static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, node.offset_debug())));
  for (pugi::xml_node at = node; at.type() == pugi::node_element; at = at.parent()) {
    int index = 0;
    for (pugi::xml_node other = at.previous_sibling(at.name()); other;
         other = other.previous_sibling(at.name()))
      ++index;
    const bool root = at.parent().type() != pugi::node_element;
    location.pointer = "/" + std::string(at.name()) +
                       (root ? "" : "[" + std::to_string(index) + "]") + location.pointer;
  }
  return location;
}

std::string TopologyXml::attribute(const pugi::xml_node& node, const char* name) const {
  const pugi::xml_attribute found = node.attribute(name);
  if (!found || !*found.value())
    throw Failure("<" + std::string(node.name()) + "> has no '" + name + "'", where(node));
  return found.value();
}

std::int64_t TopologyXml::number(const pugi::xml_node& node, const char* name,
                                 std::int64_t most) const {
  const std::string text = attribute(node, name);
  const auto value = parse_count(text);
  if (!value || *value < 1 || *value > most) {
    throw Failure("'" + text + "' is no value for '" + name + "' of <" + node.name() + ">",
                  where(node), "a whole number from 1 to " + std::to_string(most));
  }
  return *value;
}

}  // namespace hemiola::machine

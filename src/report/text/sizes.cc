// For which sizes a proof holds, in words.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>

#include "report/report.h"

namespace hemiola::report {

std::string sizes_text(const verify::SizeClass& sizes, const std::vector<Bytes>& beside) {
  const std::string which = sizes.multiple.count > 0 ? "multiple of " + to_string(sizes.multiple)
                                                     : std::string("legal size");
  std::string text;
  if (!sizes.why.empty()) {
    text = fmt::format("{} only: {}", to_string(sizes.min), sizes.why);
  } else if (sizes.open()) {
    text = fmt::format("every {} from {} on", which, to_string(sizes.min));
  } else if (sizes.min == sizes.max) {
    text = fmt::format("{} only: at the next legal ones the program does other operations",
                       to_string(sizes.min));
  } else {
    text = fmt::format("every {} from {} to {}", which, to_string(sizes.min), to_string(sizes.max));
  }
  std::vector<std::string> others;
  for (const Bytes size : beside) others.push_back(to_string(size));
  if (!others.empty()) text += fmt::format("; looked at, too: {}", fmt::join(others, ", "));
  return text;
}

void print_sizes(std::ostream& out, const verify::SizeClass& sizes,
                 const std::vector<Bytes>& beside, std::string_view prefix) {
  out << prefix << "sizes: " << sizes_text(sizes, beside) << '\n';
}

}  // namespace hemiola::report

// For which sizes a proof holds, in words.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>

#include "report/report.h"

namespace hemiola::report {

void print_sizes(std::ostream& out, const verify::SizeClass& sizes,
                 const std::vector<Bytes>& beside, std::string_view prefix) {
  const std::string which = sizes.multiple.count > 0 ? "multiple of " + to_string(sizes.multiple)
                                                     : std::string("legal size");
  out << prefix << "sizes: ";
  if (!sizes.why.empty()) {
    out << fmt::format("{} only: {}", to_string(sizes.min), sizes.why);
  } else if (sizes.open()) {
    out << fmt::format("every {} from {} on", which, to_string(sizes.min));
  } else if (sizes.min == sizes.max) {
    out << fmt::format("{} only: at the next legal ones the program does other operations",
                       to_string(sizes.min));
  } else {
    out << fmt::format("every {} from {} to {}", which, to_string(sizes.min), to_string(sizes.max));
  }
  std::vector<std::string> others;
  for (const Bytes size : beside) others.push_back(to_string(size));
  if (!others.empty()) out << fmt::format("; looked at, too: {}", fmt::join(others, ", "));
  out << '\n';
}

}  // namespace hemiola::report

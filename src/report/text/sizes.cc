// For which sizes a proof holds, in words.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>

#include "report/report.h"

namespace hemiola::report {

void print_sizes(std::ostream& out, const verify::SizeClass& sizes,
                 const std::vector<Bytes>& beside, std::string_view prefix) {
  out << prefix << "sizes: ";
  if (!sizes.why.empty()) {
    out << fmt::format("{} only: {}", to_string(sizes.min), sizes.why);
  } else if (sizes.open()) {
    out << fmt::format("every legal size from {} on", to_string(sizes.min));
  } else if (sizes.min == sizes.max) {
    out << fmt::format("{} only: at the next legal ones the program does other operations",
                       to_string(sizes.min));
  } else {
    out << fmt::format("every legal size from {} to {}", to_string(sizes.min),
                       to_string(sizes.max));
  }
  std::vector<std::string> others;
  for (const Bytes size : beside) others.push_back(to_string(size));
  if (!others.empty()) out << fmt::format("; looked at, too: {}", fmt::join(others, ", "));
  out << '\n';
}

}  // namespace hemiola::report

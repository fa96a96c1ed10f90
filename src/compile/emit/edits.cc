// Replacements of bytes of a text.
#include <algorithm>

#include "compile/emit/fused_kernel.h"

namespace hemiola::compile {

std::string Edits::applied(std::string_view text, std::uint32_t begin, std::uint32_t end) const {
  std::vector<const Edit*> order;
  for (const Edit& edit : all_)
    if (edit.begin >= begin && edit.end <= end) order.push_back(&edit);
  std::ranges::stable_sort(order, {}, &Edit::begin);
  std::string made;
  std::uint32_t at = begin;
  for (const Edit* edit : order) {
    made += text.substr(at, edit->begin - at);
    made += edit->text;
    at = edit->end;
  }
  return made += text.substr(at, end - at);
}

}  // namespace hemiola::compile

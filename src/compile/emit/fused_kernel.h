// The text of a kernel with a plan's waits and signals in it: edits of what the description found,
// and nothing else.
#pragma once

#include <string>

#include "compile/fuse/carry.h"
#include "compile/fuse/fusion.h"
#include "compile/python/modules.h"

namespace hemiola::compile {

struct FusedText {
  std::string imports;      ///< lines: what functions below need besides triton and tl
  std::string functions;    ///< constants, waits and signals, helpers as they were, the kernel
  std::string coordinates;  ///< the order of the kernel's tiles, for the host
  std::string kernel;       ///< its name
};

/// One text for all grids. A loop whose addresses go on from turn to turn keeps its order:
/// `fusions` are changed so. Failure,
/// with the place, for what cannot be edited: names that begin with hm_, helpers that ask
/// for the program's number, statements that share a line with the place of a wait.
/// `carried`: the data that its programs move between their tiles, of which there may be none;
/// empty: others move it.
FusedText fused_text(Library& library, const Function& kernel, Fusions& fusions,
                     const CarriedData& carried = {});

/// Replacements of bytes of a text; inserted text has begin == end.
class Edits {
 public:
  void replace(std::uint32_t begin, std::uint32_t end, std::string text) {
    all_.push_back({begin, end, std::move(text)});
  }
  void insert(std::uint32_t at, std::string text) { replace(at, at, std::move(text)); }
  /// The bytes [begin, end) of `text` with what was replaced in them. Edits do not overlap; of
  /// several at one place the first given stands first.
  std::string applied(std::string_view text, std::uint32_t begin, std::uint32_t end) const;

 private:
  struct Edit {
    std::uint32_t begin = 0, end = 0;
    std::string text;
  };
  std::vector<Edit> all_;
};

}  // namespace hemiola::compile

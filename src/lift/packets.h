// Packets in memory: which transfer wrote the bytes, with which flag.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace hemiola::lift {

/// A transfer of a plan: stream of a rank, and its number there.
struct TransferRef {
  int rank = 0;
  std::int32_t stream = 0;
  std::int64_t number = 0;
};

/// One buffer of one rank. Offsets count data bytes.
class Packets {
 public:
  void store(std::int64_t begin, std::int64_t end, std::int64_t flag, const TransferRef& by) {
    cut(begin);
    cut(end);
    pieces_.erase(pieces_.lower_bound(begin), pieces_.lower_bound(end));
    pieces_[begin] = {end, flag, by};
  }

  /// Who wrote [begin, end), if all of it carries `flag`.
  std::optional<std::vector<TransferRef>> load(std::int64_t begin, std::int64_t end,
                                               std::int64_t flag) const {
    std::vector<TransferRef> writers;
    auto piece = pieces_.upper_bound(begin);
    if (piece == pieces_.begin()) return std::nullopt;
    for (--piece; begin < end; ++piece) {
      if (piece == pieces_.end() || piece->first > begin || piece->second.end <= begin ||
          piece->second.flag != flag)
        return std::nullopt;
      writers.push_back(piece->second.by);
      begin = piece->second.end;
    }
    return writers;
  }

 private:
  struct Piece {
    std::int64_t end;
    std::int64_t flag;
    TransferRef by;
  };
  /// No piece goes across `at` any more.
  void cut(std::int64_t at) {
    auto piece = pieces_.upper_bound(at);
    if (piece == pieces_.begin()) return;
    --piece;
    if (piece->first >= at || piece->second.end <= at) return;
    pieces_[at] = piece->second;
    piece->second.end = at;
  }
  std::map<std::int64_t, Piece> pieces_;  ///< by begin; disjoint
};

}  // namespace hemiola::lift

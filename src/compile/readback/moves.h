// What the programs of a kernel move between their tiles, each its share (hm_carry), as the text
// says it. Private to readback/.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "compile/readback/body.h"
#include "compile/readback/kernel.h"

namespace hemiola::compile::readback {

/// Loads and stores of one program between the beginning of a movement and its count, paired up.
class Share {
 public:
  explicit Share(std::int64_t move) : move_(move) {}

  std::int64_t move() const { return move_; }
  void load(const KernelEvent& event) { loads_ = joined(loads_, event); }
  /// Target, then what was loaded since the last store.
  std::vector<Region> store(const KernelEvent& event);

 private:
  static std::vector<Region> joined(std::vector<Region> list, const KernelEvent& event) {
    list.insert(list.end(), event.regions.begin(), event.regions.end());
    return list;
  }
  std::int64_t move_;
  std::vector<Region> loads_;
};

/// That the shares of all programs together are the movements that the host asked for.
class ShareCheck {
 public:
  ShareCheck(const Walker& walker, const WorkObject& work);

  /// A program begins; it has to have a share in every movement, in their order.
  void begin() { next_ = 0; }
  void move(const KernelEvent& event);
  void store(const Share& share, const std::vector<Region>& regions, const KernelEvent& event);
  /// A program is over.
  void end(const Node& node) const;
  /// All are.
  void finish() const;

 private:
  const Walker& walker_;
  const WorkObject& work_;
  std::vector<Strip> strips_;                                          ///< by movement
  std::vector<std::set<std::pair<std::int64_t, std::int64_t>>> done_;  ///< target, elements
  std::int64_t next_ = 0;
};

/// Appends a share to a body: blocks at equal distances are rows of one operation.
class ShareWriter {
 public:
  void add(std::vector<Region> regions);
  /// What `write(strip, regions)` is called with, once for each operation.
  template <class Write>
  void finish(Write&& write) {
    for (const auto& [strip, regions] : made_) write(strip, regions);
    made_.clear();
  }
  bool empty() const { return made_.empty(); }

 private:
  std::vector<std::pair<Strip, std::vector<Region>>> made_;
};

}  // namespace hemiola::compile::readback

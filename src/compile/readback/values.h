// Whether tiles store what reference() of the file says (README.md). Private to readback/.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compile/readback/program.h"

namespace hemiola::compile::readback {

/// What reference() says of a tensor of a rank, of elements of tensors that the same rank has:
/// where it adds up over ranks one summand, where it takes a part all of it. What movements do is
/// not in it; the plan's proof follows them.
struct Formula {
  std::string name;  ///< of the output, or of the variable
  TermRef value;     ///< of the shape of what it is
  const Node* node = nullptr;
};
/// In the order of the text. What is not followed is left out, and `why` says what that was.
std::vector<Formula> formulas_of(Walker& walker, const RankRecord& record, std::string& why);

/// Follows the stores of the launches of a rank.
class ValueCheck {
 public:
  ValueCheck(Reading& reading, int rank);

  /// A launch, and one of its programs.
  void begin();
  void begin(std::int64_t program) { program_ = program; }
  void store(const KernelEvent& event);
  /// The launch is over. Failure (exit code 3): an element that no formula gives. What cannot be
  /// told is in Reading::unjudged.
  void end();
  /// All launches are over. Failure: elements of zeros to which nothing was added. Blocks that
  /// overlap in part count twice, and may hide some.
  void finish() const;

 private:
  struct Stored {
    double value = 0;
    std::int64_t program = 0, number = 0;  ///< which of the program's stores
    const Node* node = nullptr;
  };
  using Address = std::pair<std::int32_t, std::int64_t>;  ///< tensor, element

  static constexpr std::size_t kMostRegions = 1 << 16;  ///< of a tensor, in a launch

  /// As memory is behind `stores` stores of the program.
  std::optional<double> element(std::int32_t tensor, std::int64_t address,
                                std::int64_t stores) const;
  bool is_stored(std::int32_t tensor, std::int64_t address) const;
  Region seen_of(std::int32_t number) const;
  void compare(std::int32_t tensor);
  bool is_result(std::int32_t tensor) const;
  void unjudged(std::int32_t tensor, const std::string& why);
  const Tensor& tensor(std::int32_t number) const;

  Reading& reading_;
  const RankRecord& record_;
  std::string unread_;  ///< what of reference() is not followed
  std::vector<Formula> formulas_;
  std::set<std::int32_t> zeroed_, filled_;  ///< tensors that begin as zeros; that anybody fills
  std::set<std::int32_t> moved_;            ///< ... but tiles
  std::map<std::int32_t, std::set<SumKey>> added_;  ///< by zeroed tensor, of all launches
  std::int64_t program_ = 0;
  std::map<Address, std::vector<Stored>> stored_;     ///< in order
  std::map<std::int32_t, std::set<SumKey>> regions_;  ///< by tensor: where tiles have stored
  std::map<std::int32_t, std::string> unknown_;       ///< by tensor: why its values are not told
  Evaluator stores_, formula_;
};

}  // namespace hemiola::compile::readback

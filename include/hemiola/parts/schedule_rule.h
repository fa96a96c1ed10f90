// Schedule rules: which schedule overlaps a product with its collective best, from static sizes and
// constants of the machine, without a simulation (docs/explore.md, rules). `hemiola explore` asks
// every registered rule and says what following it costs over the best schedule found.
//
//     hemiola::explore::Pick pick(const hemiola::explore::Operator& op,
//                                 const hemiola::explore::RuleMachine& machine) {
//       using namespace hemiola::explore;
//       const Features f = features_of(op, machine);
//       if (f[static_cast<std::size_t>(Feature::ratio)] < 0.2) return {};  // serial
//       return {{.division = Division::rows, .fused = true}, 4};
//     }
//     registry.add(hemiola::explore::ScheduleRule{
//         .name = "mine", .description = "four steps of rows", .pick = pick});
//
// Checked: the family that is picked is one of families(), in at least one step.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace hemiola::explore {

struct Operator;
struct RuleMachine;

/// How an operator is divided, in the terms of FiCCO (arXiv 2512.10236).
enum class Division : std::uint8_t {
  serial,   ///< the library's collective and the library's product, one after the other
  shards,   ///< whole blocks of one peer after the other
  rows,     ///< 1D: steps of rows of every block, over all links at once
  columns,  ///< 2D: steps of columns of every block
  kernel    ///< one persistent kernel, tiles of which wait for what they read
};

/// What rules choose, and what `right` means where a family is asked for.
struct Family {
  Division division = Division::serial;
  bool hetero = false;  ///< the own block is a product of its own (rows, columns)
  bool fused = false;   ///< one product per step, not one per block (rows, columns)

  auto operator<=>(const Family&) const = default;
  std::string text() const;  ///< "1D hetero fused", "serial"
  /// Rows and columns: that in which blocks are cut.
  bool in_steps() const { return division == Division::rows || division == Division::columns; }
  /// The own block is a product of its own, which waits for no data.
  bool has_own() const { return hetero || division == Division::shards; }
};
constexpr std::size_t kFamilies = 11;
/// All of them, serial first.
const std::array<Family, kFamilies>& families();

/// What decides.
enum class Feature : std::uint8_t {
  ratio,       ///< communication over product, both alone
  op_to_byte,  ///< flop over the bytes of A, B and C, of one GPU
  traffic,     ///< these bytes, in MiB: MK + NK + MN
  m_over_k,    ///< rows over depth of the product of one GPU
  m,
  n,
  k,             ///< of that product
  waves,         ///< its tiles (the largest) over compute units
  block_waves,   ///< those of the product of one block
  chunk_share,   ///< fixed cost of a transfer over the time of a block's
  launch_share,  ///< cost of a launch over the time of the product
  one_link,      ///< one peer at a time over all at once: 1 on a switch, n - 1 on a mesh
  first,         ///< 1: communication comes first
  sums,          ///< 1: partial sums are added
  ranks,
  count
};
constexpr std::size_t kFeatures = static_cast<std::size_t>(Feature::count);
std::string_view name_of(Feature feature);  ///< "ratio", "op_to_byte", ...
using Features = std::array<double, kFeatures>;
Features features_of(const Operator& op, const RuleMachine& machine);

struct Pick {
  Family family;
  std::int64_t degree = 1;  ///< steps; 1 where the family has none

  bool operator==(const Pick&) const = default;
  std::string text() const;  ///< "1D hetero fused, 4 steps", as rules write it
};

/// By family, in the order of families(): what the closed form says that the fastest of it takes,
/// in femtoseconds, and with how many steps. Of a family that it knows nothing of infinity.
struct AnalyticTimes {
  std::array<double, kFamilies> time{};
  std::array<std::int64_t, kFamilies> degree{};
};
AnalyticTimes analytic_times(const Operator& op, const RuleMachine& machine);

struct ScheduleRule {
  std::string name{};         ///< as `explore` prints it: one word
  std::string description{};  ///< one line
  std::string source{};       ///< where idea and numbers come from
  /// Of an operator that the ranks divide. Depends on nothing but its arguments, takes no lock, and
  /// is called from several threads.
  std::function<Pick(const Operator&, const RuleMachine&)> pick{};
};

}  // namespace hemiola::explore

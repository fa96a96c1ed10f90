// The space of schedules: which templates, in how many steps, moved by what hardware.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "explore/operator.h"
#include "machine/machine.h"
#include "study/settings.h"

namespace hemiola::explore {

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
};
constexpr std::size_t kFamilies = 11;
/// All of them, serial first.
const std::array<Family, kFamilies>& families();

/// A tile of a product's kernel, in elements.
using Tile = machine::MatrixTile;

/// One point of the space.
struct Schedule {
  Family family;
  std::int64_t degree = 1;  ///< steps
  bool copies = false;      ///< products work on copies that lie beside each other
  bool pulls = false;       ///< receivers load; else senders store, or their engines copy
  std::string realization = "load-store";
  int workgroups = 0;        ///< that communicate, per rank; 0: copy engines
  std::int64_t streams = 1;  ///< of unfused products
  Tile tile{}, own_tile{};   ///< of the products, of that of the own block
  study::Settings more;      ///< what else its template takes: "split", "4"

  bool operator==(const Schedule&) const = default;
  /// "1D hetero fused, 8 steps, in place, push by copy engines, tiles 256x128"
  std::string text() const;
};

/// The program that a schedule is (not of serial).
std::string template_of(const Operator& op, const Schedule& schedule);
/// All its parameters, sizes and lowering included.
study::Settings parameters_of(const Operator& op, const Schedule& schedule,
                              const machine::Machine& machine);

/// What is tried; empty lists: all that the machine has.
struct SpaceLimits {
  std::vector<std::int64_t> degrees{2, 4, 8, 16};
  std::vector<std::string> realizations;  ///< load-store, copy-engine, ...
  std::vector<std::string> places;        ///< own, co-located
  std::vector<std::string> transfers;     ///< push, pull
};

/// Every schedule but serial, in a fixed order. Degrees that do not divide what they should are
/// left out. Failure at --realization for what the machine does not have, and where nothing is
/// left.
std::vector<Schedule> space_of(const Operator& op, const machine::Machine& machine,
                               const SpaceLimits& limits);

/// A product that a schedule launches, so often.
struct Launch {
  machine::GemmShape shape;  ///< rows of all blocks together, padded to whole tiles of each
  Tile tile{};
  std::int64_t count = 1;
  bool own = false;  ///< of the own block alone: needs no data of others
};

/// The products of a schedule on one rank, those of the own block first.
std::vector<Launch> launches_of(const Operator& op, const Schedule& schedule);

}  // namespace hemiola::explore

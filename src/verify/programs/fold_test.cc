// One rank for all that do the same: the verdict is that of all ranks interpreted, of right
// programs and of wrong ones. tools/study mutants tries many more.
#include "verify/programs/fold.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>

#include "core/testing/long_tests.h"
#include "program/built_in.h"
#include "verify/verify.h"

namespace hemiola::verify {
namespace {

using program::Op;
using program::Operand;
using program::OpKind;
using program::Program;

constexpr CheckOptions kEveryRank{.fold = false};

std::optional<program::Bound> bound_if_legal(const Program& program, std::int64_t least = 1) {
  try {
    return program::bind(program, nullptr,
                         {.size = program.next_legal_size({least}, DataType::float32)});
  } catch (const Failure&) {
    return std::nullopt;
  }
}

/// Every built-in that can be made without a machine, with small parameters.
std::vector<Program> built_ins(int ranks) {
  std::vector<Program> result;
  const std::vector<std::vector<std::pair<std::string, std::string>>> variants{
      {},
      {{"channels", "2"}},
      {{"workgroups", "2"}},
      {{"protocol", "ll"}, {"channels", "1"}},
      {{"protocol", "ll"}, {"workgroups", "1"}}};
  for (const std::string& name : program::built_in_names()) {
    if (!plan::find_template(name)->in_chunks) continue;
    for (const auto& parameters : variants) {
      try {
        const Program program = program::load(name, {.ranks = ranks, .parameters = parameters});
        // What bind() would make anew cannot be changed before.
        result.push_back(program.sized({.size = program.next_legal_size({1}, DataType::float32)}));
      } catch (const Failure&) {  // not for so many ranks, or without such a parameter
      }
    }
  }
  return result;
}

/// A program with one operation of one body changed; none if what was drawn changes nothing.
class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  /// On all ranks that run the body, or on one of them alone.
  std::optional<Program> mutate(const Program& good, bool one_rank) {
    Program program = good;
    const std::size_t rank = draw(static_cast<std::size_t>(program.ranks));
    std::size_t code = static_cast<std::size_t>(program.code_of[rank]);
    std::vector<std::int32_t*> bodies;
    if (one_rank) {
      program.codes.push_back(program.codes[code]);
      code = program.codes.size() - 1;
      program.code_of[rank] = static_cast<std::int32_t>(code);
    }
    for (program::Stream& stream : program.codes[code].streams) {
      for (program::StreamItem& item : stream) {
        if (item.kind != program::StreamItem::Kind::kernel) continue;
        if (one_rank) {
          const program::Kernel copy = program.kernels[static_cast<std::size_t>(item.index)];
          program.kernels.push_back(copy);
          item.index = static_cast<std::int32_t>(program.kernels.size() - 1);
        }
      }
    }
    for (program::Stream& stream : program.codes[code].streams) {
      for (program::StreamItem& item : stream) {
        if (item.kind == program::StreamItem::Kind::engine) bodies.push_back(&item.index);
        if (item.kind != program::StreamItem::Kind::kernel) continue;
        for (std::int32_t& body : program.kernels[static_cast<std::size_t>(item.index)].bodies)
          bodies.push_back(&body);
      }
    }
    if (bodies.empty()) return std::nullopt;
    std::int32_t& body = *bodies[draw(bodies.size())];
    if (one_rank) {
      program.bodies.push_back(program.bodies[static_cast<std::size_t>(body)]);
      body = static_cast<std::int32_t>(program.bodies.size() - 1);
    }
    if (!change(program, program.bodies[static_cast<std::size_t>(body)].ops)) return std::nullopt;
    return program;
  }

 private:
  std::size_t draw(std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
  }

  bool change(const Program& program, std::vector<Op>& ops) {
    if (ops.empty()) return false;
    const std::size_t at = draw(ops.size());
    Op& op = ops[at];
    const bool structure = op.kind == OpKind::loop || op.kind == OpKind::end_loop;
    switch (draw(9)) {
      case 0:
        if (structure) return false;
        ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(at));
        return true;
      case 1: {
        if (structure) return false;
        const Op again = op;
        ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(at), again);
        return true;
      }
      case 2:
        if (at + 1 == ops.size() || structure || ops[at + 1].kind == OpKind::end_loop ||
            ops[at + 1].kind == OpKind::loop || op == ops[at + 1])
          return false;
        std::swap(op, ops[at + 1]);
        return true;
      case 3:
        return change_operand(program, op);
      case 4:
        return change_kind(op);
      case 5:
        if (op.semaphores.empty()) return false;
        op.semaphores[draw(op.semaphores.size())].index =
            static_cast<std::int32_t>(draw(program.semaphores.size()));
        return true;
      case 6:
        if (op.semaphores.empty()) return false;
        ++op.semaphores[draw(op.semaphores.size())].rank.constant;
        return true;
      case 7:
        if (op.kind == OpKind::loop && op.unit.count == 0 && op.count > 1) {
          op.count += draw(2) == 0 ? 1 : -1;
          return true;
        }
        if (op.kind != OpKind::dep_wait) return false;
        ++op.target;
        return true;
      default:
        if (op.send_to.inbound >= 0) {
          ++op.send_to.peer.constant;
          return true;
        }
        if (op.recv_from.inbound < 0) return false;
        ++op.recv_from.peer.constant;
        return true;
    }
  }

  bool change_operand(const Program& program, Op& op) {
    std::vector<Operand>& side = draw(2) == 0 ? op.src : op.dst;
    if (side.empty()) return false;
    Operand& operand = side[draw(side.size())];
    switch (draw(3)) {
      case 0:
        operand.chunk.constant += draw(2) == 0 ? 1 : -1;
        return true;
      case 1:
        ++operand.rank.constant;
        return true;
      default:
        operand.buffer = static_cast<std::int32_t>(draw(program.buffers.size()));
        return true;
    }
  }

  static bool change_kind(Op& op) {
    constexpr std::array<std::pair<OpKind, OpKind>, 4> kOther{
        {{OpKind::signal, OpKind::relaxed_signal},
         {OpKind::wait, OpKind::relaxed_wait},
         {OpKind::relaxed_signal, OpKind::signal},
         {OpKind::relaxed_wait, OpKind::wait}}};
    for (const auto& [from, to] : kOther) {
      if (op.kind != from) continue;
      op.kind = to;
      return true;
    }
    return false;
  }

  std::mt19937 random_;
};

bool is_bad(Verdict verdict) {
  return verdict == Verdict::wrong || verdict == Verdict::deadlock;
}

TEST(Fold, built_ins_have_the_verdict_that_all_ranks_have) {
  std::int64_t folded = 0;
  for (const int ranks : {2, 4, 6, 8}) {
    if (ranks == 8 && !long_tests()) break;
    for (const Program& program : built_ins(ranks)) {
      const auto at_size = bound_if_legal(program, 4096);
      if (!at_size) continue;
      if (Fold::of(*at_size).images() > 1) ++folded;
      const Proof all = check(*at_size, kEveryRank);
      const Proof one = check(*at_size);
      EXPECT_EQ(one.verdict, all.verdict) << program.name << " on " << ranks << ": " << one.summary;
      EXPECT_EQ(one.proven, all.proven) << program.name << " on " << ranks;
      EXPECT_EQ(one.reasons.size(), all.reasons.size()) << program.name << " on " << ranks;
      EXPECT_EQ(one.warnings.items().size(), all.warnings.items().size())
          << program.name << " on " << ranks;
    }
  }
  EXPECT_GT(folded, some_or_all(30, 50));
}

/// Bad verdicts of both sides agree up to which of several mistakes is met first.
void try_fold_mutants(bool one_rank) {
  const char* asked = std::getenv("HEMIOLA_MUTANTS");
  const char* seed = std::getenv("HEMIOLA_MUTANTS_SEED");
  const std::int64_t count = asked != nullptr ? std::atoll(asked) : some_or_all(150, 400);
  std::vector<Program> good;
  for (const int ranks : {2, 4, 6})
    for (Program& program : built_ins(ranks)) good.push_back(std::move(program));
  Mutator mutator(seed != nullptr ? static_cast<unsigned>(std::atoi(seed)) : 1);
  std::int64_t tried = 0, folded = 0, bad = 0, differ = 0;
  for (std::size_t next = 0; tried < count; next = (next + 1) % good.size()) {
    const auto mutant = mutator.mutate(good[next], one_rank);
    const auto at_size = mutant ? bound_if_legal(*mutant) : std::nullopt;
    if (!at_size) continue;
    ++tried;
    const bool folds = Fold::of(*at_size).images() > 1;
    EXPECT_FALSE(one_rank && folds) << good[next].name;
    if (folds) ++folded;
    const Proof all = check(*at_size, kEveryRank);
    const Proof one = check(*at_size);
    if (is_bad(all.verdict)) ++bad;
    if (is_bad(all.verdict) && is_bad(one.verdict)) {
      if (all.verdict != one.verdict) ++differ;
      continue;
    }
    EXPECT_EQ(one.verdict, all.verdict)
        << good[next].name << " on " << at_size->ranks() << ", mutant " << tried
        << "\n  folded: " << one.summary << "\n  every rank: " << all.summary;
  }
  std::cout << tried << " mutants, " << folded << " of them fold, " << bad << " are wrong, "
            << differ << " of those wrong in one order and stuck in another\n";
  EXPECT_GT(bad, tried / 10);
  EXPECT_TRUE(one_rank || folded > tried / 4);
}

TEST(Fold, mutants_of_all_ranks_have_the_verdict_that_all_ranks_have) {
  try_fold_mutants(false);
}

TEST(Fold, mutants_of_one_rank_do_not_fold) {
  try_fold_mutants(true);
}

TEST(Fold, a_ring_of_a_thousand_ranks_is_one_rank) {
  const auto ring = bound_if_legal(program::load("all-reduce/ring", {.ranks = 1024}), 1 << 20);
  ASSERT_TRUE(ring);
  EXPECT_EQ(Fold::of(*ring).period(), 1);
  EXPECT_EQ(check(*ring).verdict, Verdict::proven);
}

}  // namespace
}  // namespace hemiola::verify

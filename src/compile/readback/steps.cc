// Which steps of a signal its waits are for, once all that tell it are known.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compile/readback/body.h"
#include "core/index.h"

namespace hemiola::compile::readback {
namespace {

using program::Op;

class StepResolver {
 public:
  StepResolver(Reading& reading, program::Program& program, std::vector<PendingWait>& waits,
               ToldSteps& told)
      : reading_(reading), program_(program), waits_(waits), told_(told) {}

  void resolve() {
    sort_steps();
    for (const auto& [key, sends] : reading_.sends) {
      for (std::size_t i = 1; i < sends.size(); ++i) {
        const bool is_same = sends[i].rank == sends[0].rank && sends[i].stream == sends[0].stream &&
                             sends[i].launch == sends[0].launch;
        if (is_same && sends[i].step >= sends[i - 1].step) continue;
        reading_.walker.wrong(
            *sends[i].node,
            fmt::format(
                "signal {} of rank {} is told {}", slots()[index(key.second)], key.first,
                is_same ? fmt::format("of step {} after step {}: it goes back", sends[i].step,
                                      sends[i - 1].step)
                        : fmt::format("by two streams in no order, the other one at line {}",
                                      reading_.walker.module().source.line(sends[0].node->begin))));
      }
    }
    divide();
    for (const PendingWait& wait : waits_) {
      const auto found = reading_.sends.find({wait.rank, wait.slot});
      const std::vector<Send> none;
      const std::vector<Send>& sends = found == reading_.sends.end() ? none : found->second;
      const auto first =
          std::ranges::find_if(sends, [&](const Send& send) { return send.step >= wait.step; });
      // A step that nobody tells of is waited for for ever.
      const std::int64_t target = wait.step < 0 ? 0 : first - sends.begin() + 1;
      Op& op = program_.bodies[index(wait.body)].ops[wait.op];
      op.targets = {{target, std::max<std::int64_t>(std::ssize(sends), 1)}};
      if (const auto own = of_steps_.find({wait.slot, first - sends.begin()});
          own != of_steps_.end() && target > 0 && first != sends.end()) {
        op.semaphores[0].index = own->second;
        op.targets = {{1, 1}};
      }
      const bool is_local =
          std::ranges::all_of(sends, [&](const Send& send) { return send.rank == wait.rank; });
      op.channel = is_local ? program::Channel::none : program::Channel::any;
    }
  }

 private:
  /// A movement's last share may be of any program, and these are written one after the other.
  void sort_steps() {
    for (auto& [key, sends] : reading_.sends) {
      auto& told = told_[key];
      if (sends.front().part < kFirstShares || told.size() != sends.size()) continue;
      std::vector<std::size_t> order(sends.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::ranges::stable_sort(
          order, [&](std::size_t a, std::size_t b) { return sends[a].part < sends[b].part; });
      std::vector<Send> sorted_sends;
      std::vector<Told> sorted_told;
      for (const std::size_t i : order) {
        sorted_sends.push_back(sends[i]);
        sorted_told.push_back(told[i]);
      }
      sends = std::move(sorted_sends);
      told = std::move(sorted_told);
    }
  }

  /// Kernels stand between the steps of a stream on which workgroups move data. Each step gets a
  /// semaphore of its own then, since those of one are taken to be told in any order.
  void divide() {
    for (const auto& [key, told] : told_) {
      const auto is_elsewhere = [&](const Told& one) { return one.body != told.front().body; };
      if (std::ranges::none_of(told, is_elsewhere)) continue;
      for (std::size_t i = 0; i < told.size(); ++i) {
        const auto [at, is_new] =
            of_steps_.try_emplace({key.second, static_cast<std::int64_t>(i)},
                                  static_cast<std::int32_t>(program_.semaphores.size()));
        if (is_new)
          program_.semaphores.push_back(
              {.name = fmt::format("{}, step {}", slots()[index(key.second)], i)});
        program_.bodies[index(told[i].body)].ops[told[i].op].semaphores[0].index = at->second;
      }
    }
  }

  const std::vector<std::string>& slots() const { return reading_.records.front().slots; }

  Reading& reading_;
  program::Program& program_;
  std::vector<PendingWait>& waits_;
  ToldSteps& told_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int32_t> of_steps_;  ///< by slot and step
};

}  // namespace

void resolve_steps(Reading& reading, program::Program& program, std::vector<PendingWait>& waits,
                   ToldSteps& told) {
  StepResolver(reading, program, waits, told).resolve();
}

}  // namespace hemiola::compile::readback

#include "compile/readback/readback.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compile/readback/moves.h"
#include "compile/readback/program.h"
#include "compile/readback/values.h"
#include "core/index.h"

namespace hemiola::compile {
namespace readback {
namespace {

/// Follows the kernels once, for what has to be known before they are written down.
class Surveyor {
 public:
  Surveyor(Reading& reading, std::int64_t processors)
      : reading_(reading), processors_(processors) {}

  void survey() {
    for (const Tensor& tensor : reading_.records.front().tensors) {
      std::int64_t bytes = size_of(tensor.type);
      for (const std::int64_t extent : tensor.shape) bytes *= extent;
      reading_.unit = std::gcd(reading_.unit, bytes);
    }
    for (int rank = 0; rank < reading_.ranks; ++rank) {
      auto& launches = reading_.launches.emplace_back();
      ValueCheck values(reading_, rank);
      for (const auto& stream : reading_.records[index(rank)].streams) {
        for (const HostOp& op : stream) {
          for (const Region& region : op.regions) {
            note(region, *op.node);
            // Parts of members begin at multiples of a row.
            if (op.kind == HostOp::Kind::collective && !region.axes.empty() && !op.group.empty()) {
              Region part = region;
              part.axes.front().first /= std::ssize(op.group);
              part.offset += part.axes.front().first * part.axes.front().second;
              note(part, *op.node);
            }
          }
          if (op.kind != HostOp::Kind::launch) continue;
          launches.push_back({.op = &op,
                              .tiles = {},
                              .counts = {},
                              .counted = {},
                              .products = {},
                              .sums = {},
                              .added = {}});
          values.begin();
          survey(rank, launches.back(), values);
          values.end();
        }
      }
      values.finish();
    }
  }

 private:
  void survey(int rank, LaunchFacts& facts, ValueCheck& values) {
    const RankRecord& record = reading_.records[index(rank)];
    KernelRun run(reading_.walker, record, *facts.op, rank, reading_.ranks,
                  processors_beside(record, processors_));
    std::vector<int> taken(index(run.work().tiles), 0);
    ShareCheck shares(reading_.walker, run.work());
    for (std::int64_t program = 0; program < run.programs(); ++program) {
      std::int64_t turn = -1, tile = -1, place = -1;
      std::set<std::int64_t> turns;
      std::set<SumKey> held;
      std::optional<Share> share;
      shares.begin();
      values.begin(program);
      run.run(
          program,
          [&](KernelEvent& event) {
            using Kind = KernelEvent::Kind;
            if (event.kind == Kind::tile) {
              ++turn;
              place = event.number;
              tile = run.work().rows[index(event.number * 4)];
              facts.tiles[tile];
              reading_.walker.remember(*event.node, kWordsOfTile);
              if (taken[index(event.number)]++ > 0)
                wrong(event,
                      fmt::format("place {} of the table of tiles is taken twice", event.number));
            } else if (tile < 0 && event.kind != Kind::barrier) {
              wrong(event, "memory is touched before a tile is taken from hm_rows");
            }
            if (event.kind == Kind::tile) turns.clear();
            if (event.kind == Kind::turn && !turns.insert(event.number).second)
              wrong(event, fmt::format("a tile takes piece {} of its loop twice", event.number));
            if (event.kind == Kind::tile) return;
            if (event.kind == Kind::move) {
              shares.move(event);
              share.emplace(event.number);
              return;
            }
            if (share && (event.kind == Kind::load || event.kind == Kind::store)) {
              for (const Region& region : event.regions) note(region, *event.node);
              if (event.kind == Kind::load)
                share->load(event);
              else
                shares.store(*share, share->store(event), event);
              return;
            }
            if (share &&
                (event.kind != Kind::count || event.number != kFirstShares + share->move()) &&
                event.kind != Kind::wait && event.kind != Kind::barrier)
              wrong(event, "a movement does not end with a count of its own");
            if (event.kind == Kind::count) {
              facts.counts[event.number].emplace_back(turn, program);
              if (!share) facts.counted[event.number].push_back(tile);
              share.reset();
            } else if (event.kind == Kind::product) {
              facts.products.insert(event.node);
            } else if (event.kind == Kind::take || event.kind == Kind::give) {
              take_turn(rank, facts, turn, program, event, held);
            } else if (!event.regions.empty()) {
              if (event.kind == Kind::add)
                facts.sums[key_of(event.regions.front())].emplace_back(turn, program);
              for (const Region& region : event.regions)
                check_store(run.work(), place, region, event);
              touch(record, facts, tile, event);
              values.store(event);
            }
          },
          [](std::int64_t, std::int64_t) { return std::int64_t{-1}; });
      shares.end(*facts.op->node);
      if (!held.empty())
        wrong({.node = facts.op->node}, "a program ends with a turn that it does not give on");
    }
    shares.finish();
    for (auto& [part, counts] : facts.counts) std::ranges::sort(counts);
    for (auto& [key, sums] : facts.sums) std::ranges::sort(sums);
    const auto missing = std::ranges::find(taken, 0);
    if (missing != taken.end())
      wrong({.node = facts.op->node},
            fmt::format("place {} of the table of tiles is never taken", missing - taken.begin()));
  }

  /// Whose turn it is follows the order of the table, as sums by atomics do.
  void take_turn(int rank, LaunchFacts& facts, std::int64_t turn, std::int64_t program,
                 const KernelEvent& event, std::set<SumKey>& held) {
    const Region& region = event.regions.front();
    const SumKey key = key_of(region);
    if (event.kind == KernelEvent::Kind::give) {
      if (held.erase(key) == 0) wrong(event, "a turn is given on that was not taken");
      return;
    }
    const auto& streams = reading_.records[index(rank)].streams;
    const bool is_free = std::ranges::any_of(streams, [&](const auto& stream) {
      return std::ranges::any_of(stream, [&](const HostOp& op) {
        return op.kind == HostOp::Kind::zero && op.regions[0].tensor == region.tensor;
      });
    });
    if (!is_free) wrong(event, "a turn is waited for that nothing has made free");
    if (!held.insert(key).second) wrong(event, "a turn is waited for by who has it");
    facts.sums[key].emplace_back(turn, program);
  }

  [[noreturn]] void wrong(const KernelEvent& event, const std::string& what) const {
    reading_.walker.wrong(*event.node, what);
  }

  /// What moves or computes does so in multiples of the unit.
  void note(const Region& region, const Node& node) {
    const std::int64_t size = size_of(reading_.records.front().tensors[index(region.tensor)].type);
    const std::vector<Strip> strips = strips_of({&region});
    if (strips.empty())
      reading_.walker.refuse(node, "a view or a block that lies in too many pieces");
    reading_.walker.step(node, std::ssize(strips));
    for (const Strip& strip : strips) {
      const std::int64_t pitch = strip.rows > 1 ? strip.pitches[0] : 0;
      for (const std::int64_t one : {strip.offsets[0], strip.run, pitch})
        reading_.unit = std::gcd(reading_.unit, one * size);
    }
  }

  /// What goes to a peer lies in the part that goes there, and all of that does.
  void check_store(const WorkObject& work, std::int64_t place, const Region& region,
                   const KernelEvent& event) {
    const std::int64_t row = work.store_rows[index(place)];
    const bool is_output = std::ranges::any_of(work.stores, [&](const WorkObject::Store& one) {
      return one.source.tensor == region.tensor && region.rank == one.source.rank;
    });
    if (region.store < 0 && (row < 0 || !is_output)) return;
    if (event.kind != KernelEvent::Kind::store || region.store != row)
      wrong(event, "a tile is not stored where its wave says");
    const Tensor& tensor = reading_.records.front().tensors[index(region.tensor)];
    const WorkObject::Store& store = work.stores[index(row)];
    const plan::Rect rect = rect_of(tensor, region), whole = rect_of(tensor, store.source);
    if (plan::intersection(rect, whole) != rect)
      wrong(event, "a tile is stored beyond the part that goes to the peer");
    note(store.there(region), *event.node);
  }

  void touch(const RankRecord& record, LaunchFacts& facts, std::int64_t tile,
             const KernelEvent& event) {
    TileFacts& of = facts.tiles.at(tile);
    auto& touched = event.kind == KernelEvent::Kind::load ? of.reads : of.writes;
    for (const Region& region : event.regions) {
      note(region, *event.node);
      if (event.kind == KernelEvent::Kind::add) facts.added.insert(region.tensor);
      const plan::Rect rect = rect_of(record.tensors[index(region.tensor)], region);
      const auto [at, is_new] = touched.try_emplace(region.tensor, rect);
      if (is_new) reading_.walker.remember(*event.node, kWordsOfRect);
      for (std::size_t i = 0; !is_new && i < rect.begin.size(); ++i) {
        at->second.begin[i] = std::min(at->second.begin[i], rect.begin[i]);
        at->second.end[i] = std::max(at->second.end[i], rect.end[i]);
      }
    }
  }

  // About.
  static constexpr std::int64_t kWordsOfTile = 32, kWordsOfRect = 24;

  Reading& reading_;
  std::int64_t processors_;
};

/// All ranks allocate the same, in the same order.
void require_alike(const Reading& reading) {
  const RankRecord& first = reading.records.front();
  for (const RankRecord& record : reading.records) {
    if (record.tensors != first.tensors || record.steps != first.steps ||
        record.barriers != first.barriers)
      reading.walker.refuse(
          reading.walker.module().source.root(),
          "ranks that allocate different tensors or signals, or meet differently often");
  }
}

}  // namespace

plan::Rect rect_of(const Tensor& tensor, const Region& region, bool* is_exact) {
  const std::size_t axes = tensor.shape.size();
  std::vector<std::int64_t> strides(axes, 1);
  for (std::size_t i = axes; i-- > 1;) strides[i - 1] = strides[i] * tensor.shape[i];
  plan::Rect rect{std::vector<std::int64_t>(axes), std::vector<std::int64_t>(axes)};
  std::int64_t rest = region.offset;
  for (std::size_t i = 0; i < axes; ++i) {
    rect.begin[i] = rest / strides[i];
    rest %= strides[i];
    rect.end[i] = rect.begin[i] + 1;
  }
  bool exact = true;
  for (auto [count, stride] : region.axes) {
    // From the fastest axis on: what goes beyond one is rows of the next.
    for (std::size_t i = axes; i-- > 0 && count > 1;) {
      const bool is_of_axis =
          stride > 0 && stride % strides[i] == 0 && (i == 0 || stride < strides[i - 1]);
      if (!is_of_axis) continue;
      const std::int64_t step = stride / strides[i];
      std::int64_t here = count;
      if (rect.begin[i] + (count - 1) * step >= tensor.shape[i]) {
        const bool wraps_evenly =
            step == 1 && rect.begin[i] == 0 && rect.end[i] == 1 && count % tensor.shape[i] == 0;
        exact = exact && wraps_evenly;
        here = (tensor.shape[i] - rect.begin[i] + step - 1) / step;
        count = (count + here - 1) / std::max<std::int64_t>(here, 1);
        stride = i > 0 ? strides[i - 1] : stride;
      } else {
        count = 1;
      }
      exact = exact && (step == 1 || here == 1);
      rect.end[i] = std::max(rect.end[i], rect.begin[i] + (here - 1) * step + 1);
    }
    exact = exact && count <= 1;
    if (count > 1 || stride < 0) {  // it lies in no rectangle that is known: all of it
      rect.begin.assign(axes, 0);
      rect.end = tensor.shape;
      exact = false;
      break;
    }
  }
  if (is_exact != nullptr) *is_exact = exact;
  return rect;
}

}  // namespace readback

bool is_fused_text(std::string_view text) {
  return text.find("\nKERNEL = hemiola_rt.Kernel(") != std::string_view::npos &&
         text.find("\ndef setup(rt") != std::string_view::npos &&
         text.find("\ndef run(rt, t") != std::string_view::npos;
}

FusedReading read_fused(const std::string& file, std::string text,
                        const FusedReadOptions& options) {
  using namespace readback;
  Library library;
  const Module& module = library.add(file, std::move(text));
  Walker walker(library, module, {.steps = options.most_steps, .words = options.most_words});
  const Node& root = module.source.root();
  Reading reading{.walker = walker, .file = file, .records = {}, .launches = {}};
  const auto constant = module.constants.find("RANKS");
  if (constant == module.constants.end())
    walker.refuse(root, "a file that does not say how many RANKS it is for");
  const std::int64_t ranks =
      walker.whole(walker.constant("RANKS", root), *constant->second, "RANKS");
  if (ranks < 1 || ranks > kMostRanks)
    walker.refuse(*constant->second, fmt::format("a file for {} ranks", ranks));
  reading.ranks = static_cast<int>(ranks);
  for (int rank = 0; rank < reading.ranks; ++rank)
    reading.records.push_back(record_rank(walker, rank, reading.ranks));
  require_alike(reading);
  reading.judges_values = options.values;
  Surveyor(reading, options.processors > 0 ? options.processors : INT64_MAX).survey();
  FusedReading made;
  made.program = write_program(reading, options, options.traces ? &made.traces : nullptr);
  prove_progress(reading);
  auto plan = plan_of(reading);
  plan->unjudged.assign(reading.unjudged.begin(), reading.unjudged.end());
  made.program.plan = std::move(plan);
  made.signals = reading.records.front().slots;
  made.steps = reading.records.front().steps;
  for (const auto& launches : reading.launches)
    for (const LaunchFacts& facts : launches) {
      made.tiles += std::ssize(facts.tiles);
      made.is_persistent |= !facts.op->work->kernel->tile.empty();
    }
  return made;
}

}  // namespace hemiola::compile

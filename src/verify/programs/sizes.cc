#include "verify/programs/sizes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/units.h"
#include "program/semantics/streams.h"
#include "program/walk/cursor.h"
#include "verify/programs/fold.h"

namespace hemiola::verify {
namespace {

using program::Bound;
using program::Op;
using program::OpKind;
using program::Program;

/// Sizes beyond are not asked about: no buffer can be as large.
constexpr std::int64_t kLargest = kMostMemory;
/// Programs up to this many primitives are walked at both ends of a class.
constexpr std::int64_t kMostWalked = 1'000'000;

bool uses_fifo(const Op& op) {
  return op.send_to.outbound >= 0 || op.recv_from.inbound >= 0;
}

/// What of a program's operations depends on the size other than in proportion, as numbers: equal
/// at two sizes, they are equal at all between. See docs/verify.md, sizes.
class Shape {
 public:
  explicit Shape(const Bound& bound) : bound_(bound) {}

  std::vector<std::int64_t> at(std::int64_t chunk) {
    std::vector<std::int64_t> numbers;
    for (const program::Body& body : bound_.bodies()) {
      std::vector<const Op*> loops;
      for (const Op& op : body.ops) {
        if (op.kind == OpKind::loop) loops.push_back(&op);
        if (op.kind == OpKind::loop && op.unit.count > 0)
          numbers.push_back(pieces(op.unit_chunks * chunk, op.unit.count));
        if (op.kind == OpKind::end_loop && !loops.empty()) loops.pop_back();
        add(op, loops, chunk, numbers);
      }
    }
    return numbers;
  }

  /// Why what was looked at is not in proportion, nor a constant number of bytes off it.
  std::string uneven() const {
    if (uneven_.empty() && sliced_ && constants_)
      return "slices of workgroups are cut at rounded places beside pieces of a fixed size";
    return uneven_;
  }
  bool constants() const { return constants_; }
  /// > 0: what chunks have to be a multiple of to be in proportion.
  std::int64_t grain() const { return grain_; }

 private:
  static std::int64_t pieces(std::int64_t bytes, std::int64_t unit) {
    return (bytes + unit - 1) / unit;
  }

  void add(const Op& op, const std::vector<const Op*>& loops, std::int64_t chunk,
           std::vector<std::int64_t>& numbers) {
    std::int64_t chunks = 0;
    for (const auto* operands : {&op.src, &op.dst})
      for (const program::Operand& operand : *operands) chunks = std::max(chunks, operand.chunks);
    const auto piece = std::find_if(loops.rbegin(), loops.rend(),
                                    [](const Op* loop) { return loop->unit.count > 0; });
    const bool in_pieces = piece != loops.rend();
    if (op.slices > 1) {
      const std::int64_t unit =
          op.unit.count > 0 ? op.unit.count : bound_.program().alignment.count;
      if (in_pieces || chunks > 1 || op.unit.count > 0)
        uneven_ = "slices of workgroups are cut at rounded places of regions of several chunks";
      sliced_ = true;
      const std::int64_t units = pieces(chunk, unit);
      numbers.push_back(units >= op.slices ? -1 : units);
    }
    constants_ = constants_ || in_pieces;
    if (!uses_fifo(op)) return;
    const std::int64_t unit = in_pieces ? (*piece)->unit.count : 0;
    if (in_pieces && chunk > unit) {
      const std::int64_t last = chunk - (pieces(chunk, unit) - 1) * unit;
      add_slices(unit, numbers);
      add_slices(last, numbers);
      return;
    }
    const std::int64_t bytes = chunks * chunk, call = bound_.program().fifo.call_bytes(chunk);
    if (call == 0 || call >= bytes) return add_slices(bytes, numbers);
    numbers.push_back(call / chunk);
    add_slices(call, numbers);
    add_slices(bytes % call, numbers);
  }

  void add_slices(std::int64_t bytes, std::vector<std::int64_t>& numbers) {
    if (bytes <= 0) return numbers.push_back(0);
    const std::int64_t slice = bound_.program().fifo.slice_bytes(bytes, size_of(bound_.type()));
    const std::int64_t count = pieces(bytes, slice);
    numbers.push_back(count);
    if (count == 1) return;
    const program::Fifo& fifo = bound_.program().fifo;
    const std::int64_t step = fifo.step.count;
    const bool in_proportion = fifo.slices > 1 && slice != step && slice != step / 32;
    constants_ = constants_ || !in_proportion;
    if (!in_proportion) return numbers.push_back(slice);
    numbers.push_back(-1);
    // Equal parts where nothing has to be rounded.
    grain_ = 16 * size_of(bound_.type()) * fifo.slices;
    if (fifo.call.count == 0 || bound_.chunk_bytes() % grain_ != 0)
      uneven_ = "slices in FIFOs have rounded sizes";
  }

  const Bound& bound_;
  std::string uneven_;
  bool sliced_ = false;
  bool constants_ = false;
  std::int64_t grain_ = 0;
};

/// Ends of the byte ranges that a program touches at two sizes, memory by memory, in the order of
/// its walk.
class Ends {
 public:
  Ends(const Bound& small, const Bound& large) : small_(Fold::of(small)), large_(Fold::of(large)) {
    if (small_.period() == large_.period()) return;
    small_ = Fold(small);
    large_ = Fold(large);
  }

  /// False if the primitives are not the same but for their bytes.
  bool walk(const Bound& small, const Bound& large) {
    std::int64_t walked = 0;
    for (int rank = 0; rank < small_.period(); ++rank) {  // which stands for all that do the same
      for (std::int32_t body = 0; body < std::ssize(small.bodies()); ++body) {
        if (!runs(small, rank, body)) continue;
        program::Cursor a(small, rank, body), b(large, rank, body);
        program::Primitive x, y;
        while (true) {
          const bool more = a.next(x);
          if (more != b.next(y)) return false;
          if (!more) break;
          if (++walked > kMostWalked || !add(x, y)) return false;
        }
      }
    }
    return true;
  }

  /// Whether the ends are in the same order at both sizes.
  bool same_order() {
    for (auto& [memory, ends] : ends_) {
      std::ranges::sort(ends);
      for (std::size_t i = 1; i < ends.size(); ++i) {
        const auto& [small, large] = ends[i];
        const auto& [small_before, large_before] = ends[i - 1];
        if ((small == small_before) != (large == large_before) || large < large_before)
          return false;
      }
    }
    return true;
  }

 private:
  static bool runs(const Bound& program, int rank, std::int32_t body) {
    bool found = false;
    each_body(program.code(rank), program.kernels(),
              [&](std::int32_t other) { found = found || other == body; });
    return found;
  }

  bool add(const program::Primitive& x, const program::Primitive& y) {
    const bool same = x.kind == y.kind && x.op == y.op && x.semaphores == y.semaphores &&
                      x.values == y.values && x.src.size() == y.src.size() &&
                      x.dst.size() == y.dst.size();
    if (!same) return false;
    for (std::size_t i = 0; i < x.src.size(); ++i) add(x.src[i], x.bytes, y.src[i], y.bytes);
    for (std::size_t i = 0; i < x.dst.size(); ++i) add(x.dst[i], x.bytes, y.dst[i], y.bytes);
    return true;
  }

  void add(const program::Span& x, std::int64_t x_bytes, const program::Span& y,
           std::int64_t y_bytes) {
    const Region small = place(small_, x, x_bytes), large = place(large_, y, y_bytes);
    auto& ends = ends_[{small.rank, x.group, x.buffer, is_packet(x.access)}];
    ends.emplace_back(small.begin, large.begin);
    ends.emplace_back(small.end, large.end);
    if (ends.size() < kTidy) return;
    std::ranges::sort(ends);
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  }

  static Region place(const Fold& fold, const program::Span& span, std::int64_t bytes) {
    const std::int64_t begin =
        is_packet(span.access) ? data_offset(span.offset, span.access) : span.offset;
    Region region{span.rank, span.buffer, span.access, begin, begin + bytes};
    if (span.rank >= 0) fold.place(region);
    return region;
  }

  static constexpr std::size_t kTidy = 1 << 16;
  Fold small_, large_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t, bool>,
           std::vector<std::pair<std::int64_t, std::int64_t>>>
      ends_;
};

class Search {
 public:
  Search(const Program& program, const Bound& bound) : program_(program), bound_(bound) {
    step_ = program.next_legal_size({1}, bound.type()).count;
  }

  SizeClass run(const Proof& proof) {
    if (std::string why = fixed(proof); !why.empty()) return only(std::move(why));
    Shape shape(bound_);
    const std::vector<std::int64_t> here = shape.at(bound_.chunk_bytes());
    if (!shape.uneven().empty()) return only(shape.uneven());
    const Bytes multiple{shape.grain() * bound_.program().chunks_per_size};
    if (multiple.count > 0) step_ = std::lcm(step_, multiple.count);
    const std::int64_t now = bound_.size().count / step_;
    const auto same = [&](std::int64_t steps) {
      return shape.at(steps * step_ / bound_.program().chunks_per_size) == here;
    };
    // The furthest multiple that is alike on each side: what differs once differs beyond.
    std::int64_t low = furthest(now, 1, same);
    std::int64_t high = furthest(now, std::max(now, kLargest / step_), same);
    if (shape.constants()) {
      low = nearest_in_order(now, low);
      high = nearest_in_order(now, high);
    }
    const bool open = high == std::max(now, kLargest / step_);
    return {{low * step_},
            open ? Bytes{INT64_MAX} : Bytes{high * step_},
            "",
            multiple.count > 0 ? Bytes{step_} : Bytes{}};
  }

 private:
  SizeClass only(std::string why) const {
    return {bound_.size(), bound_.size(), std::move(why), {}};
  }

  /// Why another size is another program, or cannot be compared.
  std::string fixed(const Proof& proof) const {
    if (program_.follows_size()) return "its kernels are chosen by the size";
    if (program_.fixed_size.count > 0) return "the program has one size";
    if (program_.computation != nullptr) return "it computes what it sends";
    if (proof.by_place)
      return "accesses of one workgroup are ordered only by which of its threads does them there";
    for (const program::Buffer& buffer : bound_.buffers()) {
      if (buffer.chunk_limit.count > 0) return "pieces of chunks take turns in scratch memory";
      if (buffer.kind != program::BufferKind::fifo && buffer.bytes.count > 0)
        return "buffer '" + buffer.name + "' has a size of its own";
    }
    for (const program::Body& body : bound_.bodies()) {
      for (const Op& op : body.ops) {
        for (const auto* operands : {&op.src, &op.dst}) {
          for (const program::Operand& operand : *operands)
            if (operand.run > 0) return "rows of matrices are not compared over sizes";
        }
      }
    }
    return "";
  }

  template <class Same>
  static std::int64_t furthest(std::int64_t from, std::int64_t to, Same same) {
    if (same(to)) return to;
    while (std::abs(to - from) > 1) {
      const std::int64_t middle = from + (to - from) / 2;
      (same(middle) ? from : to) = middle;
    }
    return from;
  }

  /// Where pieces of a fixed number of bytes lie among chunks depends on the size: the way to `to`
  /// is halved until the order of all byte ranges is that of the present size.
  std::int64_t nearest_in_order(std::int64_t now, std::int64_t to) const {
    for (; to != now; to = now + (to - now) / 2) {
      program::Frame frame = bound_.frame();
      frame.size = Bytes{to * step_};
      frame.chunk_bytes = to * step_ / bound_.program().chunks_per_size;
      const Bound other(std::move(frame), bound_.shared_machine(), {});
      const bool larger = to > now;
      const Bound& small = larger ? bound_ : other;
      const Bound& large = larger ? other : bound_;
      Ends ends(small, large);
      if (ends.walk(small, large) && ends.same_order()) return to;
    }
    return now;
  }

  const Program& program_;
  const Bound& bound_;
  std::int64_t step_ = 1;  ///< legal sizes are its multiples
};

}  // namespace

SizeClass size_class(const Program& program, const Bound& bound, const Proof& proof) {
  return Search(program, bound).run(proof);
}

std::vector<Bytes> sizes_beside(const Program& program, const Bound& bound,
                                const SizeClass& sizes) {
  std::vector<Bytes> result;
  if (program.fixed_size.count > 0) return result;
  const std::int64_t step = program.next_legal_size({1}, bound.type()).count;
  const auto add = [&](std::int64_t size) {
    if (size < step || size > kLargest || sizes.contains({size})) return;
    if (std::ranges::find(result, Bytes{size}) == result.end()) result.push_back({size});
  };
  add(step);
  add(sizes.min.count - step);
  if (!sizes.open()) add(sizes.max.count + step);
  return result;
}

}  // namespace hemiola::verify

#include "verify/programs/reach.h"

#include <algorithm>
#include <utility>

namespace hemiola::verify {

class ReachTable::Builder {
 public:
  explicit Builder(std::int32_t images) { made_.images = images; }

  /// Images up to `end` (exclusive) have value, value + slope, ...
  void add(std::int32_t end, std::int32_t value, std::int32_t slope) {
    while (next_ < end) {
      Run* last = made_.runs.empty() ? nullptr : &made_.runs.back();
      if (last != nullptr && next_ - last->begin == 1) last->slope = value - last->value;
      const bool on_line =
          last != nullptr && last->value + (next_ - last->begin) * last->slope == value;
      if (!on_line) {
        const std::int32_t length = end - next_;
        made_.runs.push_back({next_, value, length > 1 ? slope : 0});
        next_ = end;
        return;
      }
      if (last->slope == slope || end - next_ == 1) {
        next_ = end;
        return;
      }
      ++next_;
      value += slope;
    }
  }

  /// A constant has no need of a place in the table.
  bool is_constant() const { return made_.runs.size() == 1 && made_.runs[0].slope == 0; }
  std::int32_t constant() const { return made_.runs[0].value; }
  Function take() { return std::move(made_); }

 private:
  Function made_;
  std::int32_t next_ = 0;
};

ReachTable::ReachTable() : interned_(64, Hash{this}, Equal{this}) {}

std::size_t ReachTable::Hash::operator()(Reach reach) const {
  const Function& function = table->function(reach);
  std::uint64_t hash = static_cast<std::uint64_t>(function.images);
  const auto mix = [&](std::int32_t part) {
    hash = (hash ^ static_cast<std::uint32_t>(part)) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  };
  for (const Run& run : function.runs) {
    mix(run.begin);
    mix(run.value);
    mix(run.slope);
  }
  return static_cast<std::size_t>(hash);
}

bool ReachTable::Equal::operator()(Reach a, Reach b) const {
  return table->function(a) == table->function(b);
}

Reach ReachTable::intern(Function function) {
  Reach reach = 0;
  if (free_.empty()) {
    functions_.push_back(std::move(function));
    reach = -static_cast<Reach>(functions_.size());
  } else {
    reach = free_.back();
    free_.pop_back();
    functions_[number(reach)] = std::move(function);
  }
  const auto [at, added] = interned_.insert(reach);
  if (added) {
    ++live_;
  } else {
    functions_[number(reach)] = {};
    free_.push_back(reach);
  }
  return *at;
}

std::int32_t ReachTable::at(Reach reach, std::int32_t image) const {
  if (reach >= 0) return reach;
  const std::vector<Run>& runs = function(reach).runs;
  const auto after = std::upper_bound(runs.begin(), runs.end(), image,
                                      [](std::int32_t i, const Run& run) { return i < run.begin; });
  const Run& run = *std::prev(after);
  return run.value + (image - run.begin) * run.slope;
}

std::int32_t ReachTable::maximum(Reach reach) const {
  if (reach >= 0) return reach;
  const Function& known = function(reach);
  std::int32_t result = 0;
  for (std::size_t i = 0; i < known.runs.size(); ++i) {
    const Run& run = known.runs[i];
    const std::int32_t end = i + 1 < known.runs.size() ? known.runs[i + 1].begin : known.images;
    result = std::max({result, run.value, run.value + (end - 1 - run.begin) * run.slope});
  }
  return result;
}

ReachTable::Answer& ReachTable::answer(std::array<Answer, 4096>& answers, Reach a, Reach b) {
  const auto key = (static_cast<std::uint32_t>(a) * 0x9e3779b1U) ^ static_cast<std::uint32_t>(b);
  return answers[(key ^ key >> 15) % answers.size()];
}

Reach ReachTable::highest(Reach a, Reach b) {
  if (a == b) return a;
  if (a >= 0 && b >= 0) return std::max(a, b);
  if (a > b) std::swap(a, b);
  if (b == 0) return a;  // nothing is known
  Answer& last = answer(maxima_, a, b);
  if (!last.known || last.a != a || last.b != b) last = {a, b, compute_highest(a, b), true};
  return last.result;
}

Reach ReachTable::compute_highest(Reach a, Reach b) {
  const std::int32_t images = function(a).images;
  const std::vector<Run> whole{{0, b, 0}};  // where b is a constant
  const std::vector<Run>& left = function(a).runs;
  const std::vector<Run>& right = b < 0 ? function(b).runs : whole;
  Builder builder(images);
  const auto end_of = [&](const std::vector<Run>& runs, std::size_t i) {
    return i + 1 < runs.size() ? runs[i + 1].begin : images;
  };
  std::size_t i = 0;
  std::size_t j = 0;
  for (std::int32_t begin = 0; begin < images;) {
    const std::int32_t end = std::min(end_of(left, i), end_of(right, j));
    Run one{begin, left[i].value + (begin - left[i].begin) * left[i].slope, left[i].slope};
    Run two{begin, right[j].value + (begin - right[j].begin) * right[j].slope, right[j].slope};
    if (two.value > one.value || (two.value == one.value && two.slope > one.slope))
      std::swap(one, two);
    // One is not below two at the beginning; from `cross` on it is.
    std::int32_t cross = end;
    if (two.slope > one.slope)
      cross = std::min(end, begin + (one.value - two.value) / (two.slope - one.slope) + 1);
    builder.add(cross, one.value, one.slope);
    if (cross < end) builder.add(end, two.value + (cross - begin) * two.slope, two.slope);
    if (end_of(left, i) == end) ++i;
    if (end_of(right, j) == end) ++j;
    begin = end;
  }
  return builder.is_constant() ? builder.constant() : intern(builder.take());
}

Reach ReachTable::raised(Reach reach, std::int32_t image, std::int32_t images,
                         std::int32_t segments) {
  if (images == 1) return std::max(reach, segments);
  if (at(reach, image) >= segments) return reach;
  Builder builder(images);
  builder.add(image, 0, 0);
  builder.add(image + 1, segments, 0);
  builder.add(images, 0, 0);
  return highest(reach, intern(builder.take()));
}

Reach ReachTable::turned(Reach reach, std::int32_t turn) {
  if (reach >= 0 || turn == 0) return reach;
  Answer& last = answer(turns_, reach, turn);
  if (!last.known || last.a != reach || last.b != turn)
    last = {reach, turn, compute_turned(function(reach), turn), true};
  return last.result;
}

Reach ReachTable::compute_turned(const Function& known, std::int32_t turn) {
  const std::int32_t images = known.images;
  const std::int32_t start = images - turn;  // the image that becomes the first
  Builder builder(images);
  const auto add = [&](std::int32_t from, std::int32_t to, std::int32_t by) {
    for (std::size_t i = 0; i < known.runs.size(); ++i) {
      const Run& run = known.runs[i];
      const std::int32_t end = i + 1 < known.runs.size() ? known.runs[i + 1].begin : images;
      const std::int32_t first = std::max(run.begin, from);
      const std::int32_t last = std::min(end, to);
      if (first < last)
        builder.add(last + by, run.value + (first - run.begin) * run.slope, run.slope);
    }
  };
  add(start, images, turn - images);
  add(0, start, turn);
  return builder.is_constant() ? builder.constant() : intern(builder.take());
}

void ReachTable::sweep() {
  maxima_.fill({});
  turns_.fill({});
  live_ = 0;
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    if (functions_[i].runs.empty()) continue;
    const auto reach = -static_cast<Reach>(i) - 1;
    if (std::exchange(functions_[i].marked, false)) {
      ++live_;
      continue;
    }
    interned_.erase(reach);
    functions_[i] = {};
    free_.push_back(reach);
  }
  limit_ = std::max<std::size_t>(1 << 14, 2 * live_);
}

}  // namespace hemiola::verify

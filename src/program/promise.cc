#include "program/promise.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/affine.h"
#include "core/text.h"
#include "plan/plan_json.h"

namespace hemiola::program {
namespace {

constexpr std::int64_t kMostPromised = std::int64_t{1} << 40;  ///< a chunk's number
constexpr std::int64_t kMostRegions = std::int64_t{1} << 22;   ///< of all ranks

class PromiseReader {
 public:
  explicit PromiseReader(int ranks) : ranks_(ranks) { promise_.of.resize(rank_index(ranks)); }

  Promise read(const JsonValue& root) {
    root.allow_keys({"hemiola_promise", "codes"});
    root.integer("hemiola_promise", 1, 1);
    std::vector<bool> has_code(rank_index(ranks_));
    for (const JsonValue& code : root.at("codes").items()) {
      code.allow_keys({"ranks", "output"});
      for (const int rank : plan::ranks_of(code.at("ranks"), ranks_)) {
        if (has_code[rank_index(rank)])
          code.at("ranks").fail(fmt::format("rank {} has a promise already", rank));
        has_code[rank_index(rank)] = true;
        for (const JsonValue& region : code.at("output").items()) read_region(region, rank);
        check_overlap(code.at("output"), rank);
      }
    }
    if (count_ == 0) root.at("codes").fail("nothing is promised");
    return std::move(promise_);
  }

 private:
  static std::size_t rank_index(int rank) { return index(rank); }

  static std::int64_t number(const JsonValue& value, const Indices& at, std::int64_t most,
                             std::string_view what) {
    std::int64_t number = 0;
    if (value.is_text()) {
      try {
        number = parse_affine(value.text())(at);
      } catch (const Failure& failure) {
        const Diagnostic& first = failure.diagnostics().items().front();
        value.fail(first.message, "for example (rank + i) % 8; i counts the loop");
      }
    } else {
      number = value.integer(0, kMostPromised);
    }
    if (number < 0 || number > most)
      value.fail(fmt::format("for rank {} this is {} {}, of 0 to {}", at.rank, what, number, most));
    return number;
  }

  void read_region(const JsonValue& value, int rank) {
    value.allow_keys({"loop", "begin", "chunks", "copy", "reduce"});
    const std::int64_t rounds = value.has("loop") ? value.integer("loop", 1, kMostRegions) : 1;
    if (value.has("copy") == value.has("reduce"))
      value.fail("a region is either a copy or a reduction",
                 R"("copy": {"rank": 0, "begin": 0} or "reduce": {"ranks": "all", "begin": 0})");
    count_ += rounds;
    if (count_ > kMostRegions)
      value.fail(fmt::format("more than {} regions of all ranks are promised", kMostRegions));
    Indices at{.rank = rank};
    for (at.loop[0] = 0; at.loop[0] < rounds; ++at.loop[0]) {
      PromisedRegion region;
      region.begin = number(value.at("begin"), at, kMostPromised, "chunk");
      if (value.has("chunks")) region.chunks = value.integer("chunks", 1, kMostPromised);
      const JsonValue from = value.at(value.has("copy") ? "copy" : "reduce");
      region.source = number(from.at("begin"), at, kMostPromised, "chunk");
      if (value.has("copy")) {
        from.allow_keys({"rank", "begin"});
        region.from = {
            {static_cast<std::int32_t>(number(from.at("rank"), at, ranks_ - 1, "rank")), 1}};
      } else {
        from.allow_keys({"ranks", "begin"});
        for (const int source : plan::ranks_of(from.at("ranks"), ranks_))
          if (!region.from.empty() && region.from.back().first + region.from.back().ranks == source)
            ++region.from.back().ranks;
          else
            region.from.push_back({source, 1});
      }
      promise_.of[rank_index(rank)].push_back(std::move(region));
    }
  }

  void check_overlap(const JsonValue& value, int rank) {
    std::vector<PromisedRegion>& regions = promise_.of[rank_index(rank)];
    std::ranges::sort(regions, {}, &PromisedRegion::begin);
    for (std::size_t i = 1; i < regions.size(); ++i) {
      if (regions[i - 1].begin + regions[i - 1].chunks > regions[i].begin)
        value.fail(fmt::format("two regions promise chunk {} of the output of rank {}",
                               regions[i].begin, rank));
    }
  }

  int ranks_;
  std::int64_t count_ = 0;
  Promise promise_;
};

}  // namespace

Promise read_promise(const JsonValue& value, int ranks) {
  return PromiseReader(ranks).read(value);
}

Promise read_promise(std::string_view json, const std::string& file, int ranks) {
  const JsonText source(json, file);
  Promise promise = read_promise(source.root(), ranks);
  promise.text = json;
  return promise;
}

void promise(Program& program, const std::string& file) {
  if (program.collective != Collective::custom || program.follows_size())
    throw Failure(fmt::format("'{}' is for programs whose result is not known; {} is {}", file,
                              program.name, name_of(program.collective)),
                  {.file = "--promise"}, "leave it out");
  program.promise =
      std::make_shared<const Promise>(read_promise(read_file(file), file, program.ranks));
}

}  // namespace hemiola::program

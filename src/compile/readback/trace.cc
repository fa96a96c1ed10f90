// Traces of Triton's interpreter beside what the text of a fused file says.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compile/readback/readback.h"
#include "core/index.h"
#include "core/json.h"

namespace hemiola::compile {
namespace {

using Traced = TraceEvent::Kind;

// What a call adds to signals is their product, at most.
constexpr std::int64_t kMostTraced = std::int64_t{1} << 40;
constexpr std::int64_t kMostCalls = std::int64_t{1} << 20;

/// What belongs to one tile, as text that compares: a wait or a signal, and its line.
struct TileRecord {
  std::string at;
  std::vector<std::pair<std::string, int>> does;
  int line = 0;
};
/// By tile of a rank in a call. A tile that is taken twice has two records.
using TileRecords = std::multimap<std::int64_t, TileRecord>;

std::string place_of(const std::vector<std::pair<std::string, std::int64_t>>& at) {
  std::vector<std::pair<std::string, std::int64_t>> sorted = at;
  std::ranges::sort(sorted);
  std::string made;
  for (const auto& [axis, tile] : sorted)
    made += fmt::format("{}{} {}", made.empty() ? "" : ", ", axis, tile);
  return made;
}

class TraceReader {
 public:
  TraceReader(const std::string& file, const std::string& text) : file_(file), text_(text) {}

  /// By rank and call, the events of each program.
  std::map<std::pair<int, std::int64_t>, std::map<std::int64_t, std::vector<TraceEvent>>> events;
  std::map<int, std::int64_t> first_signals;

  void read() {
    std::size_t begin = 0;
    for (int line = 1; begin < text_.size(); ++line) {
      const std::size_t end = std::min(text_.find('\n', begin), text_.size());
      const std::string_view one = std::string_view(text_).substr(begin, end - begin);
      begin = end + 1;
      if (one.find_first_not_of(" \t\r") == one.npos) continue;
      try {
        read(one);
      } catch (const Failure& failure) {
        Diagnostic found = failure.diagnostics().items().front();
        found.where.line = line;
        throw Failure(found.message, found.where, "'python -m hemiola_rt FILE --trace' writes it");
      }
    }
    if (events.empty())
      throw Failure("the trace has no events", {.file = file_},
                    "'python -m hemiola_rt FILE --trace' writes them");
  }

 private:
  void read(std::string_view line) {
    const JsonText source(line, file_);
    const JsonValue event = source.root();
    event.allow_keys(
        {"rank", "call", "program", "tile", "at", "wait", "signal", "to", "value", "first_signal"});
    const auto number = [&](const char* key) { return event.integer(key, 0, kMostTraced); };
    const int rank = static_cast<int>(event.integer("rank", 0, 1 << 20));
    if (event.has("first_signal")) {
      first_signals[rank] = number("first_signal");
      return;
    }
    TraceEvent made;
    if (event.has("tile")) {
      made.number = number("tile");
      const JsonValue at = event.at("at");
      for (const std::string& axis : at.keys())
        made.at.emplace_back(axis, at.integer(axis, 0, kMostTraced));
    } else {
      made.kind = event.has("wait") ? Traced::wait : Traced::signal;
      made.number = number(event.has("wait") ? "wait" : "signal");
      made.value = number("value");
      if (made.kind == Traced::signal)
        made.rank = static_cast<int>(event.integer("to", 0, 1 << 20));
    }
    events[{rank, event.integer("call", 0, kMostCalls)}][number("program")].push_back(
        std::move(made));
  }

  const std::string& file_;
  const std::string& text_;
};

class TraceComparer {
 public:
  TraceComparer(const FusedReading& reading, const TraceReader& trace)
      : reading_(reading), trace_(trace) {}

  TraceComparison compare() {
    std::set<std::int64_t> calls;
    std::set<int> ranks;
    for (const auto& [key, programs] : trace_.events) {
      const auto [rank, call] = key;
      ranks.insert(rank);
      calls.insert(call);
      if (rank >= reading_.program.ranks) {
        differ(fmt::format("the trace has rank {}, and the text is for {}", rank,
                           reading_.program.ranks),
               0);
        continue;
      }
      std::vector<std::vector<TraceEvent>> own;
      for (const auto& [program, events] : programs) own.push_back(events);
      const auto first = trace_.first_signals.find(rank);
      const std::int64_t offset = first == trace_.first_signals.end() ? 0 : first->second;
      const TileRecords seen = records(own, offset, call, true);
      const TileRecords said = records(reading_.traces[index(rank)], 0, 0, false);
      compare(fmt::format("rank {}, call {}", rank, call), seen, said);
    }
    for (int rank = 0; rank < reading_.program.ranks; ++rank)
      if (!ranks.contains(rank)) differ(fmt::format("the trace has nothing of rank {}", rank), 0);
    made_.ranks = static_cast<int>(ranks.size());
    made_.calls = std::ssize(calls);
    return std::move(made_);
  }

 private:
  void differ(std::string what, int line) {
    if (!made_.difference.empty()) return;
    made_.difference = std::move(what);
    made_.line = line;
  }

  std::string words(const TraceEvent& event, std::int64_t slot, std::int64_t value) const {
    const bool is_known = slot >= 0 && slot < std::ssize(reading_.signals);
    const std::string name =
        is_known ? reading_.signals[index(slot)] : fmt::format("signal {}", slot);
    if (event.kind == Traced::wait) return fmt::format("waits for {} to reach {}", name, value);
    return fmt::format("tells rank {} that {} is {}", event.rank, name, value);
  }

  TileRecords records(const std::vector<std::vector<TraceEvent>>& programs, std::int64_t offset,
                      std::int64_t call, bool is_counted) {
    TileRecords made;
    for (std::size_t program = 0; program < programs.size(); ++program) {
      auto tile = made.end();
      int turn = 0;
      for (const TraceEvent& event : programs[program]) {
        if (event.kind == Traced::tile) {
          made_.tiles += is_counted ? 1 : 0;
          tile = made.emplace(event.number,
                              TileRecord{.at = fmt::format("{}, turn {} of program {}",
                                                           place_of(event.at), turn++, program),
                                         .does = {},
                                         .line = event.line});
          continue;
        }
        if (is_counted) ++(event.kind == Traced::wait ? made_.waits : made_.signals);
        if (tile == made.end())
          tile = made.emplace(-1, TileRecord{.at = "before any tile", .does = {}});
        const std::int64_t slot = event.number - offset;
        const bool is_known = slot >= 0 && slot < std::ssize(reading_.steps);
        const std::int64_t steps = is_known ? reading_.steps[index(slot)] : 0;
        tile->second.does.emplace_back(words(event, slot, event.value - call * steps), event.line);
      }
    }
    return made;
  }

  void compare(const std::string& where, const TileRecords& seen, const TileRecords& said) {
    std::set<std::int64_t> tiles;
    for (const TileRecords* one : {&seen, &said})
      for (const auto& [tile, record] : *one) tiles.insert(tile);
    for (const std::int64_t tile : tiles) {
      const std::string name = fmt::format("{}: tile {}", where, tile);
      const auto [a, a_end] = seen.equal_range(tile);
      const auto [b, b_end] = said.equal_range(tile);
      if (std::distance(a, a_end) != std::distance(b, b_end)) {
        differ(fmt::format("{} is taken {} times; the text takes it {} times", name,
                           std::distance(a, a_end), std::distance(b, b_end)),
               b == b_end ? 0 : b->second.line);
        return;
      }
      if (a == a_end) continue;
      const TileRecord &did = a->second, &says = b->second;
      if (did.at != says.at)
        differ(fmt::format("{} is at {}; the text has it at {}", name, did.at, says.at), says.line);
      for (std::size_t i = 0; i < std::max(did.does.size(), says.does.size()); ++i) {
        const std::string left = i < did.does.size() ? did.does[i].first : "does nothing more";
        const std::string right = i < says.does.size() ? says.does[i].first : "does nothing more";
        if (left == right) continue;
        differ(fmt::format("{} ({}) {}; in the text it {}", name, did.at, left, right),
               i < says.does.size() ? says.does[i].second : says.line);
      }
    }
  }

  const FusedReading& reading_;
  const TraceReader& trace_;
  TraceComparison made_;
};

}  // namespace

TraceComparison compare_trace(const std::string& file, const std::string& text,
                              const std::string& trace_file, const std::string& trace) {
  TraceReader reader(trace_file, trace);
  reader.read();
  // A persistent kernel has as many programs as there were.
  std::int64_t programs = 1;
  for (const auto& [key, own] : reader.events)
    programs = std::max(programs, own.rbegin()->first + 1);
  const FusedReading reading = read_fused(file, text, {.processors = programs, .traces = true});
  return TraceComparer(reading, reader).compare();
}

}  // namespace hemiola::compile

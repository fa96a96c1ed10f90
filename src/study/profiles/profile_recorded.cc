#include "study/profiles/profile_recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/diagnostics.h"
#include "core/lists.h"

namespace hemiola::study {
namespace {

struct Number {
  const char* key;
  std::uint64_t sim::RecordedRun::*value;
};
constexpr Number kNumbers[] = {{"machine", &sim::RecordedRun::machine},
                               {"program", &sim::RecordedRun::program},
                               {"host", &sim::RecordedRun::host},
                               {"rows", &sim::RecordedRun::rows}};

}  // namespace

RecordedTexts recorded_texts(const sim::RecordedRun& run) {
  if (!run.known()) return {};
  RecordedTexts texts{{"ranks", fmt::format("{}", fmt::join(run.ranks, ","))},
                      {"run", run.words},
                      {"wait", run.wait}};
  for (const Number& number : kNumbers)
    texts.emplace_back(number.key, fmt::format("{:016x}", run.*number.value));
  return texts;
}

sim::RecordedRun read_recorded(const RecordedTexts& texts, int ranks, const std::string& file) {
  const SourceLocation where{.file = file};
  sim::RecordedRun run;
  for (const auto& [key, text] : texts) {
    if (key == "run") {
      run.words = text;
    } else if (key == "wait") {
      run.wait = text;
    } else if (key == "ranks") {
      for (const std::string& word : split(text, ','))
        run.ranks.push_back(static_cast<int>(read_count(word, 0, ranks - 1, where)));
      std::ranges::sort(run.ranks);
    } else {
      const auto* const number = std::ranges::find(kNumbers, key, &Number::key);
      if (number == std::end(kNumbers))
        throw Failure(fmt::format("a recorded run has no '{}'", key), where,
                      "it has ranks, run, wait, machine, program, host, rows");
      const auto [stop, problem] =
          std::from_chars(text.data(), text.data() + text.size(), run.*number->value, 16);
      if (problem != std::errc() || stop != text.data() + text.size() || text.size() != 16)
        throw Failure(fmt::format("'{}' of the recorded run is '{}'", key, text), where,
                      "16 hexadecimal digits, as 'run --record' writes them");
    }
  }
  if (!texts.empty() && !run.known())
    throw Failure("the head does not say at which ranks the run was recorded", where,
                  "CSV: a line '# recorded ranks 0'; JSON: \"ranks\": \"0\" in \"recorded\"");
  return run;
}

}  // namespace hemiola::study

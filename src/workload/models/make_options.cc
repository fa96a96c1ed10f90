#include "workload/models/make_options.h"

namespace hemiola::workload {
namespace {

template <class Parse>
auto word_of(const std::string& option, const std::string& word, const Parse& parse,
             const char* words) {
  const auto value = parse(word);
  if (!value) throw Failure("'" + word + "' is not one of its values", {.file = option}, words);
  return *value;
}

}  // namespace

void apply(const MakeWords& words, const std::string& prefix, MakeRequest& request) {
  request.phase = word_of(prefix + "phase", words.phase, parse_phase, "train, prefill or decode");
  request.recompute =
      word_of(prefix + "recompute", words.recompute, parse_recompute, "none, selective or full");
  request.schedule = word_of(prefix + "pipeline", words.pipeline, parse_schedule,
                             "gpipe, 1f1b, interleaved or zero-bubble");
  request.attention =
      word_of(prefix + "attention", words.attention, parse_attention, "flash or unfused");
  request.context_parallel =
      word_of(prefix.empty() ? "context_parallel" : prefix + "context-parallel",
              words.context_parallel, parse_context_parallel, "gather or ring");
}

}  // namespace hemiola::workload

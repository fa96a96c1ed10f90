#include "compile/rules/names.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

namespace hemiola::compile::rules {
namespace {

using Words = std::set<std::string>;

/// "peer_flags", "peerFlags" and "PEER_FLAGS" have the words peer and flags.
Words words_of(const std::string& name) {
  Words words;
  std::string word;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    const bool ends = i == name.size() || name[i] == '_' ||
                      (i > 0 && std::isupper(name[i]) != 0 && std::islower(name[i - 1]) != 0);
    if (ends && !word.empty()) words.insert(std::exchange(word, {}));
    if (i < name.size() && name[i] != '_')
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return words;
}

/// What a number is whose name has one of these words.
struct ByName {
  std::vector<const char*> words;
  const char* expression;
};

bool has_any(const Words& words, const std::vector<const char*>& of) {
  return std::any_of(of.begin(), of.end(), [&](const char* one) { return words.contains(one); });
}

}  // namespace

std::string number_by_name(const std::string& name, bool is_constexpr) {
  static const std::vector<ByName> kNames{
      {{"world", "nranks", "npes", "ws", "worldsize", "ngpus", "ranks", "peers", "pes", "gpus",
        "devices"},
       "world"},
      {{"stride", "pitch"}, "stride"},
      {{"prev", "previous", "left", "src", "from", "upstream", "source", "sender", "below"},
       "(rank + world - 1) % world"},
      {{"root", "producer", "leader", "owner"}, "0"},
      {{"consumer"}, "1"},
      {{"dst", "dest", "destination", "receiver"}, "(rank + 1) % world"}};
  static const std::vector<ByName> kOthers{
      {{"rank", "me", "mype", "pe", "myrank", "myself"}, "rank"},
      {{"epoch", "call", "iter", "iteration", "generation", "gen", "seq", "sequence", "round",
        "version", "phase", "tick", "layer", "ticket", "stamp", "launch", "era"},
       "call + 1"},
      {{"sms", "programs", "blocks", "grid", "ctas", "workers", "nprog", "nprograms", "tiles",
        "workgroups", "nblocks", "ntiles", "wgs", "nwg"},
       "programs"},
      {{"chunks", "pieces", "steps", "stages", "nchunks", "slots", "group"}, "2"},
      {{"xcds", "warps"}, "1"}};
  const Words words = words_of(name);
  const auto found_in = [&](const std::vector<ByName>& table) -> std::string {
    for (const ByName& one : table)
      if (has_any(words, one.words)) return one.expression;
    return "";
  };
  if (has_any(words, {"per", "elem", "elems", "bytes", "offset"})) return "";
  const bool is_rank = has_any(words, {"rank", "pe", "tp", "gpu"});
  if (is_rank && has_any(words, {"num", "n", "nr", "total", "size", "count", "number", "max"}))
    return "world";
  if (words.contains("sms")) return "programs";  // PRODUCER_SMS
  std::string text = found_in(kNames);
  const bool is_target = words.contains("target");
  if (text.empty() && (is_target ? is_rank : names_a_peer(name))) text = "(rank + 1) % world";
  if (text.empty()) text = found_in(kOthers);
  if (!text.empty()) return text;
  if (!is_constexpr && words == Words{"step"}) return "call + 1";
  if (is_constexpr && !words.contains("num") &&
      has_any(words, {"block", "bm", "bn", "bk", "tile", "width"}))
    return "4";
  return words == Words{"k"} ? "8" : "";
}

bool is_of_ring(const std::string& name) {
  return has_any(words_of(name), {"next", "prev", "previous", "left", "right", "upstream",
                                  "downstream", "neighbor", "neighbour"});
}

bool names_a_peer(const std::string& name) {
  return has_any(words_of(name), {"peer", "remote", "far", "next", "right", "neighbor", "neighbour",
                                  "other", "others", "partner", "buddy", "their", "theirs",
                                  "downstream", "prev", "previous", "left", "upstream"});
}

Words core_of(const std::string& name) {
  static const Words kWhose{
      "peer",    "peers",      "remote",   "far",    "near",   "next",     "right",    "left",
      "prev",    "ptr",        "ptrs",     "table",  "tables", "all",      "addr",     "addrs",
      "address", "addresses",  "base",     "bases",  "list",   "tuple",    "rank",     "ranks",
      "their",   "theirs",     "other",    "others", "of",     "symm",     "dev",      "my",
      "own",     "local",      "mine",     "at",     "p",      "to",       "neighbor", "neighbour",
      "dst",     "downstream", "upstream", "world",  "tab",    "previous", "target",   "pointers",
      "pointer", "out",        "in"};
  Words core;
  for (std::string word : words_of(name)) {
    if (kWhose.contains(word)) continue;
    const bool is_plural = word.size() > 2 && word.back() == 's';
    if (is_plural) word.pop_back();
    for (const char* end : {"xe", "she", "che", "se"})
      if (is_plural && word.ends_with(end)) {
        word.pop_back();
        break;
      }
    core.insert(std::move(word));
  }
  return core;
}

}  // namespace hemiola::compile::rules

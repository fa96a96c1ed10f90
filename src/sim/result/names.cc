#include "core/names.h"
#include "program/bind/bound.h"
#include "sim/result/options.h"
#include "sim/result/profile.h"
#include "sim/result/result.h"

namespace hemiola::sim {
namespace {

constexpr std::array<std::string_view, 4> kEngineNames{"reference", "line", "fluid", "sampled"};
constexpr std::array<std::string_view, 7> kProfileNames{
    "write", "add", "packet", "read", "response", "acknowledgement", "burst"};
constexpr std::array<std::string_view, kReasons> kReasonNames{
    "noc",  "l2",     "msc",      "hbm",     "io",      "link",    "switch", "issue",
    "nic",  "launch", "dispatch", "compute", "barrier", "l1",      "dma",    "proxy",
    "poll", "fence",  "software", "peer",    "skew",    "finished"};
constexpr std::array<std::string_view, 8> kItemNames{"kernel",        "event record", "event wait",
                                                     "host function", "copies",       "until",
                                                     "launch begins", "launch ends"};

}  // namespace

std::string_view name_of(Engine engine) {
  return name_in(kEngineNames, engine);
}

std::string_view name_of(ProfileKind kind) {
  return name_in(kProfileNames, kind);
}

std::string_view name_of(Launch launch) {
  return launch == Launch::graph ? "graph" : "stream";
}

std::string_view name_of(Reason reason) {
  return name_in(kReasonNames, reason);
}

std::string_view name_of(program::StreamItem::Kind kind) {
  return name_in(kItemNames, kind);
}

}  // namespace hemiola::sim

#include "compile/skeleton/survey.h"

namespace hemiola::compile::skeleton {
namespace {

using Kind = Access::Kind;

/// Whether a loop of it may be a wait. Who adds in each turn takes work, and waits for nothing.
bool is_look(const Event& event) {
  if (event.kind == Kind::load)
    return (!event.is_bulk && !event.is_block) || event.where.size() <= 8;
  const bool adds = event.op == "add" || event.op == "sub";
  if (event.kind == Kind::atomic && adds && event.value.is_number()) return event.is_zero();
  return event.kind != Kind::store && event.kind != Kind::ranks &&
         event.kind != Kind::proxy_fence && event.kind != Kind::bulk_wait;
}

}  // namespace

Element Recorder::access(Process&, const Access& access) {
  const bool goes_on = !taken.empty() && access.is_block && taken.back().step == access.step &&
                       taken.back().kind == access.kind;
  if (!goes_on) taken.push_back({access, {}});
  std::vector<Element>& where = taken.back().where;
  if (where.empty() || !(where.back() == access.place)) where.push_back(access.place);
  if (access.kind != Kind::load || access.place.kind != Element::Kind::address) return {};
  Element seen = access.place;
  seen.kind = Element::Kind::loaded;
  return seen;
}

bool Recorder::try_wait(Process& who, const Access& access, std::string_view) {
  this->access(who, access);
  taken.back().kind = Kind::poll;
  return true;
}

bool Recorder::barrier_of(Process& who, bool of_ranks, bool releases, bool acquires, int step) {
  const char* sem = releases   ? (acquires ? "acq_rel" : "release")
                    : acquires ? "acquire"
                               : "relaxed";
  mark(who, Kind::ranks, step, "sys");
  taken.back().op = of_ranks ? "ranks" : "programs";
  taken.back().sem = sem;
  taken.back().scope = "sys";
  return true;
}

void Recorder::mark(Process&, Kind kind, int step, std::string_view scope) {
  if (kind == Kind::not_followed)
    not_followed.insert(step);
  else
    taken.push_back({{.kind = kind,
                      .sem = "",
                      .scope = kind == Kind::fence ? std::string(scope) : "",
                      .step = step},
                     {}});
}

/// A loop that does nothing but look is a wait.
void Recorder::loop_ended(Process&, std::size_t first_event, int) {
  bool has_atomic = false;
  for (std::size_t i = first_event; i < taken.size(); ++i) {
    const Event& event = taken[i];
    if (!is_look(event)) return;
    has_atomic = has_atomic || event.kind == Kind::atomic || event.kind == Kind::poll;
  }
  for (std::size_t i = first_event; i < taken.size(); ++i) {
    if (taken[i].kind == Kind::atomic) taken[i].kind = Kind::poll;
    if (taken[i].kind == Kind::load && !has_atomic) taken[i].kind = Kind::plain_poll;
  }
}

}  // namespace hemiola::compile::skeleton

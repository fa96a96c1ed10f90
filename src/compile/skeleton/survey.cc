#include "compile/skeleton/survey.h"

#include <algorithm>

namespace hemiola::compile::skeleton {
namespace {

using EK = Element::Kind;

Event::Kind kind_of(Access::Kind kind) {
  return kind == Access::Kind::load    ? Event::Kind::load
         : kind == Access::Kind::store ? Event::Kind::store
                                       : Event::Kind::atomic;
}

/// Whether a loop of it may be a wait. Who adds in each turn takes work, and waits for nothing.
bool is_look(const Event& event) {
  using Kind = Event::Kind;
  if (event.kind == Kind::load)
    return (!event.is_bulk && !event.is_block) || event.where.size() <= 8;
  const bool adds = event.op == "add" || event.op == "sub";
  if (event.kind == Kind::atomic && adds && event.value.is_number()) return event.value.number == 0;
  return event.kind != Kind::store && event.kind != Kind::ranks &&
         event.kind != Kind::proxy_fence && event.kind != Kind::bulk_wait;
}

}  // namespace

Element Recorder::access(Process&, const Access& access) {
  const bool goes_on = !taken.empty() && access.is_block && taken.back().step == access.step &&
                       taken.back().kind == kind_of(access.kind);
  if (!goes_on)
    taken.push_back({.kind = kind_of(access.kind),
                     .op = std::string(access.op),
                     .where = {},
                     .value = access.value,
                     .compare = access.compare,
                     .sem = access.sem,
                     .scope = access.scope,
                     .is_block = access.is_block,
                     .is_bulk = access.is_bulk,
                     .may_be_data = access.may_be_data,
                     .step = access.step});
  std::vector<Element>& where = taken.back().where;
  if (where.empty() || !(where.back() == access.where)) where.push_back(access.where);
  if (access.kind != Access::Kind::load || access.where.kind != EK::address) return {};
  Element seen = access.where;
  seen.kind = EK::loaded;
  return seen;
}

bool Recorder::try_wait(Process& who, const Access& access, std::string_view) {
  this->access(who, access);
  taken.back().kind = Event::Kind::poll;
  return true;
}

bool Recorder::barrier_of(Process&, bool of_ranks, bool releases, bool acquires, int step) {
  taken.push_back({.kind = Event::Kind::ranks,
                   .op = of_ranks ? "ranks" : "programs",
                   .where = {},
                   .sem = releases   ? acquires ? "acq_rel" : "release"
                          : acquires ? "acquire"
                                     : "relaxed",
                   .scope = "sys",
                   .step = step});
  return true;
}

void Recorder::mark(Process&, Mark mark, int step) {
  if (mark == Mark::not_followed) {
    not_followed.insert(step);
    return;
  }
  const Event::Kind kind = mark == Mark::barrier       ? Event::Kind::barrier
                           : mark == Mark::fence       ? Event::Kind::fence
                           : mark == Mark::proxy_fence ? Event::Kind::proxy_fence
                                                       : Event::Kind::bulk_wait;
  taken.push_back({.kind = kind, .op = "", .where = {}, .sem = "", .scope = "", .step = step});
}

/// A loop that does nothing but look is a wait.
void Recorder::loop_ended(Process&, std::size_t first_event, int) {
  using Kind = Event::Kind;
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

#include "verify/programs/interpreter.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace hemiola::verify {

using program::OpKind;
using program::Primitive;
using program::PrimitiveKind;
using program::SemaphoreId;

namespace {

/// Operations after which the monitor is asked: a few milliseconds.
constexpr std::int64_t kUntilAsked = 1024;

bool is_wait(OpKind kind) {
  return kind == OpKind::wait || kind == OpKind::relaxed_wait || kind == OpKind::sem_acquire ||
         kind == OpKind::dep_wait || kind == OpKind::compare_swap;
}

}  // namespace

Interpreter::Interpreter(const program::Bound& program, Fold& fold, ValueTable& values,
                         Memory& memory)
    : program_(program), fold_(fold), values_(values), memory_(memory) {
  create_workgroups();
  create_semaphores();
  number_in_clocks();
  find_stores();
}

void Interpreter::find_stores() {
  stored_into_.assign(program_.buffers().size(), false);
  const auto note = [&](const std::vector<program::Operand>& operands) {
    for (const program::Operand& operand : operands) {
      std::int32_t buffer = operand.buffer;
      if (buffer < 0 || buffer >= std::ssize(stored_into_)) continue;  // a fault, when it comes
      while (program_.buffers()[index(buffer)].alias >= 0)
        buffer = program_.buffers()[index(buffer)].alias;
      stored_into_[index(buffer)] = true;
    }
  };
  for (const program::Body& body : program_.bodies()) {
    for (const program::Op& op : body.ops) {
      note(op.dst);
      if (op.kind == OpKind::clear) note(op.src);
    }
  }
}

/// The second workgroup that waits for a semaphore may come long after the first one has gone on.
void Interpreter::create_semaphores() {
  const std::size_t each = program_.semaphores().size();
  std::vector<std::int32_t> waiters(each * index(fold_.period()), 0);
  for (const Workgroup& workgroup : workgroups_) {
    std::vector<std::size_t> awaited;
    for (const program::Op& op : program_.bodies()[index(workgroup.body)].ops) {
      if (!is_wait(op.kind)) continue;
      for (const program::SemaphoreRef& ref : op.semaphores)
        awaited.push_back(index(workgroup.rank) * each + index(ref.index));
    }
    std::ranges::sort(awaited);
    awaited.erase(std::unique(awaited.begin(), awaited.end()), awaited.end());
    for (const std::size_t semaphore : awaited)
      if (semaphore < waiters.size()) ++waiters[semaphore];
  }
  for (std::size_t i = 0; i < waiters.size(); ++i)
    semaphores_.emplace_back(program_.semaphores()[i % each].initial, waiters[i] <= 1);
}

Interpreter::End Interpreter::run(const Monitor* monitor) {
  monitor_ = monitor;
  start_repetition();
  while (!ready_.empty()) {
    const Actor actor = ready_.front();
    ready_.pop_front();
    advance_workgroup(actor);
    if (unfoldable_) return End::unfoldable;
    if (fault_ || memory_.race()) return End::wrong;
  }
  return all_streams_done() ? End::finished : End::stuck;
}

/// What a workgroup does next. The operands of a tile are loaded at once: nothing happens between
/// its steps that anybody could notice.
bool Interpreter::next(Workgroup& self) {
  if (self.next_load == self.loads.size()) {
    if (self.copies) return self.cursor.next(self.current);
    if (!self.cursor.next(self.current, self.tile)) return false;
    if (self.tile.steps == 0) return true;
    self.loads = self.tile.loads();
    self.next_load = 0;
  }
  const auto& [span, bytes] = self.loads[self.next_load++];
  self.current.kind = PrimitiveKind::move;
  self.current.posted = true;
  self.current.bytes = bytes;
  self.current.src = {span};
  return true;
}

/// Runs a workgroup until it blocks or ends.
void Interpreter::advance_workgroup(Actor actor) {
  Workgroup& self = workgroups_[index(actor)];
  while (!fault_ && !memory_.race() && !unfoldable_) {
    memory_.forget();
    if (!self.has_current) {
      self.has_current = next(self);
      self.signalled.clear();
      if (self.has_current && ++operations_ % kUntilAsked == 0 && monitor_ != nullptr)
        monitor_->leave_if_stopping();
    }
    if (!(self.has_current ? execute(actor) : settle(actor))) {
      self.state = Workgroup::State::blocked;
      return;
    }
    if (!self.has_current) return end(actor);
    self.has_current = false;
  }
}

/// One primitive; false if it has to wait, in which case something will wake the workgroup.
bool Interpreter::execute(Actor actor) {
  Workgroup& self = workgroups_[index(actor)];
  if (self.current.kind != PrimitiveKind::move) self.in_batch = false;  // it ends a submission
  if (self.current.kind == PrimitiveKind::wait) return execute_wait(self, actor);
  if (self.current.kind == PrimitiveKind::signal) return execute_signal(self, actor);
  if (self.current.thread >= 0) {  // a post of one thread
    settle(actor);
    return !waits(self, self.current.thread) && execute_post(self, actor);
  }
  if (!settle(actor)) return false;
  switch (self.current.kind) {
    case PrimitiveKind::move:
      return execute_move(self, actor);
    case PrimitiveKind::post:
      return execute_post(self, actor);
    case PrimitiveKind::sync:
      pass_barrier(self);
      return true;
    case PrimitiveKind::barrier:
      return execute_barrier(self, actor);
    case PrimitiveKind::fence:
      fence(self);
      return true;
    case PrimitiveKind::flush:
      for (const auto& [queue, snapshot] : self.posted) {
        Workgroup::Lesson& lesson = self.lessons.emplace_back();
        snapshot.join_into(lesson.acquired.now);
      }
      self.posted.clear();
      return true;
    default:
      return true;
  }
}

/// The waits of all threads have ended; else the workgroup is registered with what it waits for.
bool Interpreter::settle(Actor actor) {
  Workgroup& self = workgroups_[index(actor)];
  auto open = self.open_waits.begin();
  while (open != self.open_waits.end()) {
    SemaphoreState& semaphore = semaphores_[number_of(open->semaphore)];
    // Waits of one thread end in order.
    const bool first = std::none_of(self.open_waits.begin(), open, [&](const auto& earlier) {
      return earlier.thread == open->thread;
    });
    if (!first || !semaphore.reached(open->wait)) {
      ++open;
      continue;
    }
    Acquired acquired = semaphore.take(open->wait);
    if (const std::int32_t image = fold_.back(open->wait.image); image != 0) {
      Acquired turned;
      turned.now.join(acquired.now, image);
      turned.after_fence.join(acquired.after_fence, image);
      turned.whole = acquired.whole.turned(image);
      acquired = std::move(turned);
    }
    self.lessons.push_back({open->thread, std::move(acquired)});
    self.join_lessons();
    self.open_waits.erase(open);
    open = self.open_waits.begin();
  }
  for (const Workgroup::OpenWait& wait : self.open_waits)
    semaphores_[number_of(wait.semaphore)].blocked.push_back(actor);
  return self.open_waits.empty();
}

/// Threads that do not wait run on: only an operation of theirs finds out whether the wait has
/// ended.
bool Interpreter::execute_wait(Workgroup& self, Actor actor) {
  const Primitive& wait = self.current;
  for (std::size_t i = 0; i < wait.semaphores.size(); ++i) {
    if (!valid(wait.semaphores[i])) {
      fail(actor, wait.op, "waits for a semaphore that does not exist");
      return true;
    }
    Workgroup::OpenWait& open = self.open_waits.emplace_back();
    open.thread = static_cast<std::int32_t>(i);
    open.semaphore = wait.semaphores[i];
    open.op = wait.op;
    const std::int32_t image = fold_.back(fold_.seat(wait.semaphores[i].rank).image);
    open.wait = {.actor = self.in_clocks,
                 .image = image,
                 .rank = fold_.rank(self.rank, image),
                 .segment = self.segment,
                 .value = wait.values[i],
                 .acquire = wait.acquire,
                 .system_scope = wait.system_scope,
                 .consume = wait.consume};
  }
  settle(actor);
  return true;
}

/// Threads of a warp come together behind an operation, whichever of them it is for: compilers put
/// a point of convergence there. So one that is through waits for those beside it. That orders
/// nothing in memory.
bool Interpreter::waits(const Workgroup& self, std::int32_t thread) {
  constexpr std::int32_t kWarp = 32;
  return std::ranges::any_of(
      self.open_waits, [&](const auto& open) { return open.thread / kWarp == thread / kWarp; });
}

bool Interpreter::execute_signal(Workgroup& self, Actor actor) {
  settle(actor);
  const Primitive& primitive = self.current;
  self.signalled.resize(primitive.semaphores.size(), false);
  bool all = true;
  for (std::size_t i = 0; i < primitive.semaphores.size(); ++i) {
    if (self.signalled[i]) continue;
    if (!valid(primitive.semaphores[i])) {
      fail(actor, primitive.op, "signals a semaphore that does not exist");
      return true;
    }
    const auto thread = static_cast<std::int32_t>(i);
    if (waits(self, thread)) {
      all = false;
      continue;
    }
    self.signalled[i] = true;
    Signal effect;
    effect.actor = self.in_clocks;
    effect.workgroup = actor;
    effect.op = primitive.op;
    effect.rank = self.rank;
    effect.system_scope = primitive.system_scope;
    effect.must_be_awaited = must_be_awaited(self, primitive.op);
    effect.swap = primitive.swap;
    effect.performed = snapshot(self, thread);
    effect.releases = primitive.release;
    effect.released = primitive.release ? effect.performed : self.fenced;
    signal(primitive.semaphores[i], primitive.values[i], std::move(effect));
  }
  return all;
}

void Interpreter::signal(SemaphoreId id, std::int64_t value, Signal effect) {
  SemaphoreState& semaphore = semaphores_[number_of(id)];
  if (const std::int32_t image = fold_.back(fold_.seat(id.rank).image); image != 0) {
    effect.image = image;
    effect.rank = fold_.rank(effect.rank, image);
    effect.performed = effect.performed.turned(image);
    effect.released = effect.released.turned(image);
  }
  semaphore.add(std::move(effect), value);
  wake(semaphore.blocked);
}

bool Interpreter::must_be_awaited(const Workgroup& self, std::int32_t op) const {
  const auto& ops = program_.bodies()[index(self.body)].ops;
  if (op < 0 || index(op) >= ops.size()) return false;
  switch (ops[index(op)].kind) {
    case OpKind::signal:
    case OpKind::relaxed_signal:
    case OpKind::put_signal:
    case OpKind::put_signal_flush:
    case OpKind::sem_release:
      return true;
    default:  // credits and progress semaphores count on over repetitions
      return false;
  }
}

void Workgroup::join_lessons() {
  constexpr std::size_t kMany = 64;
  if (lessons.size() < kMany || !std::has_single_bit(lessons.size())) return;
  std::map<std::int32_t, Acquired> by_thread;
  for (Lesson& lesson : lessons) {
    const auto [known, is_new] = by_thread.try_emplace(lesson.thread);
    if (is_new) {
      known->second = std::move(lesson.acquired);
    } else {
      lesson.acquired.join_into(known->second.now);
      known->second.after_fence.join(lesson.acquired.after_fence);
    }
  }
  lessons.clear();
  for (auto& [thread, acquired] : by_thread) lessons.push_back({thread, std::move(acquired)});
}

/// What a flag that this thread sets now stands for.
Snapshot Interpreter::snapshot(Workgroup& self, std::int32_t thread) const {
  // Whoever joins the clock then has no need to learn the own segments one by one.
  if (self.with_own_of != self.segment) {
    self.with_own = self.clock;
    self.with_own.learn(self.in_clocks, 0, fold_.images(), self.segment);
    self.with_own_of = self.segment;
  }
  Snapshot result{self.with_own, self.in_clocks, self.segment, 0, fold_.images()};
  for (const Workgroup::Lesson& lesson : self.lessons)
    if (lesson.thread == thread) lesson.acquired.join_into(result.clock);
  return result;
}

/// All threads know what any of them learned, and a new segment begins.
void Interpreter::pass_barrier(Workgroup& self) {
  Clock learned;  // lessons have much in common: first with each other
  for (const Workgroup::Lesson& lesson : self.lessons) {
    lesson.acquired.join_into(learned);
    self.after_fence.join(lesson.acquired.after_fence);
  }
  self.clock.join(learned);
  self.lessons.clear();
  ++self.segment;
}

void Interpreter::fence(Workgroup& self) {
  for (Workgroup::Lesson& lesson : self.lessons)
    lesson.acquired.now.join(lesson.acquired.after_fence);
  self.fenced = snapshot(self, -1);
}

bool Interpreter::execute_barrier(Workgroup& self, Actor actor) {
  Barrier& barrier = ranks_[index(self.rank)].barriers[self.current.barrier_id];
  if (!self.at_barrier) {
    self.at_barrier = true;
    barrier.arrived.push_back(actor);
  }
  if (static_cast<std::int32_t>(barrier.arrived.size()) < self.current.workgroups) return false;
  Clock joined;
  for (Actor arrived : barrier.arrived) {
    Workgroup& other = workgroups_[index(arrived)];
    pass_barrier(other);
    joined.join(other.clock);
  }
  for (Actor arrived : barrier.arrived) {
    const Workgroup& other = workgroups_[index(arrived)];
    joined.learn(other.in_clocks, 0, fold_.images(), other.segment);
  }
  for (Actor arrived : barrier.arrived) {
    Workgroup& other = workgroups_[index(arrived)];
    other.clock = joined;
    other.at_barrier = false;
    if (arrived == actor) continue;
    other.has_current = false;
    wake(arrived);
  }
  barrier.arrived.clear();
  return true;
}

void Interpreter::wake(Actor actor) {
  Workgroup& workgroup = workgroups_[index(actor)];
  if (workgroup.state != Workgroup::State::blocked) return;
  workgroup.state = Workgroup::State::ready;
  ready_.push_back(actor);
}

void Interpreter::wake(std::vector<std::int32_t>& blocked) {
  for (Actor actor : blocked) wake(actor);
  blocked.clear();
}

bool Interpreter::valid(SemaphoreId id) const {
  return id.rank >= 0 && id.rank < program_.ranks() && id.index >= 0 &&
         index(id.index) < program_.semaphores().size();
}

const Interpreter::Barrier& Interpreter::barrier(int rank, std::int32_t id) const {
  return ranks_[index(rank)].barriers.at(id);
}

void Interpreter::fail(Actor workgroup, std::int32_t op, std::string text) {
  if (!fault_) fault_ = Fault{workgroup, op, std::move(text)};
}

}  // namespace hemiola::verify

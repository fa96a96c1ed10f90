#include "compile/readback/kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "compile/readback/blocks.h"
#include "compile/readback/memory.h"
#include "core/index.h"

namespace hemiola::compile::readback {
namespace {

using Event = KernelEvent::Kind;

/// The call that is followed is a later one, so that a text that forgets to count calls shows.
constexpr std::int64_t kCall = 1;
/// What a look at a turn looks at, in the place of a signal's number.
constexpr std::int32_t kTurn = -2;

class Language : public Surroundings {
 public:
  Language(Walker& walker, const RankRecord& record, const WorkObject& work, int rank, int ranks,
           std::int64_t program, std::int64_t programs, const KernelRun::Visit& visit,
           const KernelRun::Ticket& ticket)
      : walker_(walker),
        record_(record),
        work_(work),
        rank_(rank),
        ranks_(ranks),
        program_(program),
        programs_(programs),
        visit_(visit),
        ticket_(ticket) {
    memories_.push_back({Memory::Kind::rows, 0, rank, &work.rows});
    memories_.push_back({Memory::Kind::turns, 0, rank, &work.turn_rows});
    memories_.push_back({Memory::Kind::table, 0, rank, &work.needs});
    memories_.push_back({Memory::Kind::table, 0, rank, &work.part_rows});
    memories_.push_back({Memory::Kind::table, 0, rank, &work.tells});
    memories_.push_back({Memory::Kind::counters, 0, rank, nullptr});
    memories_.push_back({Memory::Kind::addresses, 0, rank, nullptr});
    memories_.push_back({Memory::Kind::moves, 0, rank, &work.move_rows});
    memories_.push_back({Memory::Kind::table, 0, rank, &work.before});
    memories_.push_back({Memory::Kind::table, 0, rank, &work.told});
    memories_.push_back({Memory::Kind::shares, 0, rank, nullptr});
    memories_.push_back({Memory::Kind::stores, 0, rank, &work.store_rows});
    first_signals_ = std::ssize(memories_);
    for (int r = 0; r < ranks; ++r) memories_.push_back({Memory::Kind::signals, 0, r, nullptr});
  }

  /// By name, what the launch hands to the kernel beside its tensors.
  std::vector<std::pair<std::string, Value>> tables() {
    std::vector<std::pair<std::string, Value>> made;
    static constexpr const char* kNames[] = {"hm_rows",   "hm_turns",    "hm_needs",  "hm_parts",
                                             "hm_tells",  "hm_counters", "hm_peers",  "hm_moves",
                                             "hm_before", "hm_told",     "hm_shares", "hm_stores"};
    std::int32_t memory = 0;
    for (const char* name : kNames) made.emplace_back(name, pointer(memory++));
    made.emplace_back("hm_signals", pointer(static_cast<std::int32_t>(first_signals_) + rank_));
    made.emplace_back("hm_all", number(std::ssize(work_.moves)));
    made.emplace_back("hm_call", number(kCall));
    return made;
  }

  /// The operand whose tiles may go to peers.
  void set_output(const Region& region) { output_ = region; }

  Value tensor(const Region& region) {
    memories_.push_back({Memory::Kind::tensor, region.tensor, region.rank, nullptr, region.store});
    Value made = pointer(static_cast<std::int32_t>(std::ssize(memories_)) - 1);
    made.base = region.offset;
    return made;
  }

  std::optional<Value> call(std::string_view name, const Arguments& given) override;
  std::optional<Value> method(const Value& of, std::string_view name,
                              const Arguments& given) override;
  std::optional<Value> attribute(const Value& of, std::string_view name) override;
  bool assign(const Value&, std::string_view, const Value&) override { return false; }
  std::optional<Value> subscript(const Value&, const std::vector<Index>&, const Node&) override {
    return std::nullopt;
  }
  bool wait(std::string_view op, const Value& left, const Value& right, const Node& node) override;

 private:
  static Value pointer(std::int32_t memory) { return {.type = Type::pointer, .memory = memory}; }

  void tell(KernelEvent event, const Node& node) {
    event.node = &walker_.place(node);
    if (event.value != nullptr) event.number = stores_++;
    walker_.step(node, std::ssize(event.regions));
    visit_(event);
  }
  [[noreturn]] void wrong(const Node& node, const std::string& what) const {
    walker_.wrong(walker_.place(node), what);
  }
  const Memory& memory(const Value& value, const Node& node) const {
    if (value.type != Type::pointer)
      walker_.refuse(node, "an address that the numbers of the text do not say");
    return memories_[index(value.memory)];
  }

  Value load(const Arguments& given);
  Value look(std::int64_t slot, const Node& node) const;
  Value entry(const Memory& table, const Value& pointer, const Node& node);
  Value atomic(std::string_view name, const Arguments& given);
  Value turn(std::string_view name, const Value& at, const Arguments& given);
  void store(Event kind, const Arguments& given);
  Value dot(const Arguments& given);
  Value descriptor(const Arguments& given, bool is_pointer);
  Value access(const Value& block, const Value& offsets, const Value* checked, const Value* other,
               const Value* stored, const Node& node);
  Value access(const Value& pointer, const Value* stored, const Arguments& given);
  std::vector<Region> regions(const Value& pointer, const Value* mask, const Node& node);
  void check(Region& region, const Node& node) const;
  /// Of the own tensors; what peers have is not said here.
  TermRef loaded(const Memory& from, std::int64_t base, const std::vector<Along>& axes,
                 const Value* mask, const Value* other, const Node& node) const {
    if (from.rank != rank_) return opaque_term("elements of a peer are loaded");
    return load_term({.base = base, .memory = from.tensor, .when = stores_, .node = &node}, axes,
                     mask, other);
  }

  Walker& walker_;
  const RankRecord& record_;
  const WorkObject& work_;
  int rank_, ranks_;
  std::int64_t program_, programs_;
  const KernelRun::Visit& visit_;
  const KernelRun::Ticket& ticket_;
  std::vector<Memory> memories_;
  Region output_;
  std::int64_t first_signals_ = 0, stores_ = 0;
  std::map<std::int64_t, std::int64_t> counted_;     ///< by part, of this program
  std::map<std::int64_t, std::int64_t> last_count_;  ///< by part: what it has found there
  std::vector<Region> wanted_;                       ///< the turn that was asked for last
};

bool Language::wait(std::string_view op, const Value& left, const Value& right, const Node& node) {
  const bool is_left = left.type == Type::look;
  const Value &look = is_left ? left : right, &limit = is_left ? right : left;
  const bool is_less = op == (is_left ? "<" : ">"), is_most = op == (is_left ? "<=" : ">=");
  if (look.memory == kTurn && limit.is_number()) {
    if (op != "!=" || look.base != 0 || limit.base != 0) return false;
    tell({.kind = Event::take, .regions = wanted_}, node);
    return true;
  }
  if (look.memory == kTurn || !limit.is_number() || (!is_less && !is_most)) return false;
  const std::int64_t value = limit.base - look.base + (is_most ? 1 : 0);
  const std::int64_t steps = record_.steps[index(look.memory)];
  tell({.kind = Event::wait, .number = look.memory, .step = value - kCall * steps - 1}, node);
  return true;
}

std::optional<Value> Language::attribute(const Value& of, std::string_view name) {
  if (name == "dtype") return readback::name("dtype");
  if (name == "T" && of.type == Type::data && of.axes.size() == 2) return transposed(of, {1, 0});
  if (name == "shape") {
    std::vector<Value> made;
    for (const Along& along : of.axes) made.push_back(number(along.count));
    return list(std::move(made));
  }
  return std::nullopt;
}

std::optional<Value> Language::method(const Value& of, std::string_view name,
                                      const Arguments& given) {
  if (of.type == Type::descriptor && (name == "load" || name == "store")) {
    const Value zero = number(0);
    return access(of, need(walker_, given, "offsets", 0), nullptr, &zero,
                  name == "store" ? &need(walker_, given, "value", 1) : nullptr, *given.node);
  }
  if (name == "to" || name == "cast")
    return as_type(of, given.find("dtype", 0), record_.tensors, *given.node);
  Arguments all = given;
  all.positional.insert(all.positional.begin(), of);
  return call("tl." + std::string(name), all);
}

std::optional<Value> Language::call(std::string_view name, const Arguments& given) {
  if (name == "hemiola_rt.has_bulk_stores") return number(1);
  if (name.starts_with("triton.")) name.remove_prefix(7);
  if (name.starts_with("tl.")) name.remove_prefix(3);
  if (name == "program_id" || name == "num_programs") {
    const std::int64_t axis =
        walker_.whole(need(walker_, given, "axis", 0), *given.node, "an axis");
    if (axis != 0) return number(name == "program_id" ? 0 : 1);
    return number(name == "program_id" ? program_ : programs_);
  }
  if (name == "load") return load(given);
  if (name == "store") {
    store(Event::store, given);
    return Value{};
  }
  if (name.starts_with("atomic_")) return atomic(name, given);
  if (name == "dot") return dot(given);
  if (name == "debug_barrier") {
    tell({.kind = Event::barrier}, *given.node);
    return Value{};
  }
  if (name == "make_tensor_descriptor" || name == "make_block_ptr")
    return descriptor(given, name == "make_block_ptr");
  if (name == "advance" && need(walker_, given, "base", 0).type == Type::descriptor)
    return advanced(walker_, need(walker_, given, "base", 0), need(walker_, given, "offsets", 1),
                    *given.node);
  if (name == "cast")
    return as_type(need(walker_, given, "input", 0), given.find("dtype", 1), record_.tensors,
                   *given.node);
  return block_function(walker_, name, given);
}

Value Language::entry(const Memory& table, const Value& pointer, const Node& node) {
  if (!pointer.axes.empty()) walker_.refuse(node, "a block of a table");
  if (table.kind == Memory::Kind::addresses) {
    if (pointer.base < 0 || pointer.base >= ranks_)
      wrong(node, fmt::format("there is no rank {}", pointer.base));
    return Language::pointer(static_cast<std::int32_t>(first_signals_ + pointer.base));
  }
  const std::vector<std::int64_t>& numbers = *table.numbers;
  if (pointer.base < 0 || pointer.base >= std::ssize(numbers))
    wrong(node, fmt::format("element {} of a table that has {}", pointer.base, numbers.size()));
  if (table.kind == Memory::Kind::rows && pointer.base % 4 == 0)
    tell({.kind = Event::tile, .number = pointer.base / 4}, node);
  if (table.kind == Memory::Kind::stores) {
    Region made = output_;
    made.store = static_cast<std::int32_t>(numbers[index(pointer.base)]);
    return tensor(made);
  }
  if (table.kind == Memory::Kind::moves) {
    const std::int64_t column = pointer.base % WorkObject::kMoveColumns;
    const auto& move = work_.moves[index(pointer.base / WorkObject::kMoveColumns)];
    if (column == 7)
      tell({.kind = Event::move, .number = pointer.base / WorkObject::kMoveColumns}, node);
    if (column == 7) return tensor(move.op.regions[0]);
    if (column == 9) return tensor(move.op.regions[1]);
    if (column == 11) return tensor(move.op.regions.back());
  }
  if (table.kind == Memory::Kind::turns && pointer.base % 4 == 0)
    tell({.kind = Event::turn, .number = pointer.base / 4}, node);
  return number(numbers[index(pointer.base)]);
}

Value Language::look(std::int64_t slot, const Node& node) const {
  if (slot < 0 || slot >= std::ssize(record_.steps))
    wrong(node,
          fmt::format("a tile waits for signal {}, and there are {}", slot, record_.steps.size()));
  return {.type = Type::look, .memory = static_cast<std::int32_t>(slot)};
}

Value Language::load(const Arguments& given) {
  const Value& from = need(walker_, given, "pointer", 0);
  if (from.type == Type::descriptor) return access(from, nullptr, given);
  const Memory& what = memory(from, *given.node);
  if (what.kind == Memory::Kind::signals && from.axes.empty()) return look(from.base, *given.node);
  if (what.counts()) walker_.refuse(*given.node, "a plain look at a count");
  if (what.kind != Memory::Kind::tensor) return entry(what, from, *given.node);
  KernelEvent event{.kind = Event::load,
                    .regions = regions(from, given.find("mask", 1), *given.node)};
  if (!event.regions.empty()) tell(std::move(event), *given.node);
  const Value *mask = given.find("mask", 1), *other = given.find("other", 2);
  Value made = unknown(from.axes);
  made.term = loaded(what, from.base, from.axes, mask, other, *given.node);
  return made;
}

void Language::store(Event kind, const Arguments& given) {
  const Value& to = need(walker_, given, "pointer", 0);
  if (to.type == Type::descriptor && kind == Event::store) {
    access(to, &need(walker_, given, "value", 1), given);
    return;
  }
  const Memory& what = memory(to, *given.node);
  if (what.counts()) {
    const Value& value = need(walker_, given, "value", 1);
    if (kind != Event::store || !to.axes.empty() || !value.is_number() || value.base != 0)
      walker_.refuse(*given.node, "a count that is set to something else than 0");
    const std::int64_t part = what.part(to.base);
    return tell({.kind = Event::reset, .number = part, .step = last_count_[part]}, *given.node);
  }
  if (what.kind != Memory::Kind::tensor)
    walker_.refuse(*given.node, "a plain store into a table or a signal");
  const Value* mask = given.find("mask", 2);
  KernelEvent event{.kind = kind, .regions = regions(to, mask, *given.node)};
  if (event.regions.empty()) return;
  event.value = term_of(need(walker_, given, kind == Event::add ? "val" : "value", 1));
  event.samples = samples_of(to.base, to.axes, mask);
  tell(std::move(event), *given.node);
}

/// `while tl.atomic_cas(turn, 0, 1) != 0: pass` takes a turn, `tl.atomic_xchg(turn, 0)` gives it
/// on.
Value Language::turn(std::string_view name, const Value& at, const Arguments& given) {
  const bool takes = name == "atomic_cas";
  const Value &from = need(walker_, given, takes ? "cmp" : "val", 1),
              &to = takes ? need(walker_, given, "val", 2) : from;
  if (!from.is_number() || from.base != 0 || !to.is_number() || takes == (to.base == 0))
    walker_.refuse(*given.node, "a turn that is not 0 where it is free");
  std::vector<Region> one = regions(at, nullptr, *given.node);
  if (takes) {
    wanted_ = std::move(one);
    return {.type = Type::look, .memory = kTurn};
  }
  tell({.kind = Event::give, .regions = std::move(one)}, *given.node);
  return unknown();
}

Value Language::atomic(std::string_view name, const Arguments& given) {
  const Value& at = need(walker_, given, "pointer", 0);
  const Memory& what = memory(at, *given.node);
  if (what.kind == Memory::Kind::tensor && at.axes.empty() &&
      (name == "atomic_cas" || name == "atomic_xchg"))
    return turn(name, at, given);
  const Value& value = need(walker_, given, "val", 1);
  if (what.kind == Memory::Kind::tensor && name == "atomic_add") {
    store(Event::add, given);
    return unknown(at.axes);
  }
  if (!at.axes.empty()) walker_.refuse(*given.node, "an atomic of a block of signals");
  if (what.kind == Memory::Kind::signals && name == "atomic_add" && value.is_number() &&
      value.base == 0 && what.rank == rank_)
    return look(at.base, *given.node);
  if (what.counts() && name == "atomic_add" && value.is_number() && value.base == 1) {
    KernelEvent event{.kind = Event::count, .number = what.part(at.base)};
    event.step = ticket_(event.number, counted_[event.number]++);
    const std::int64_t before = last_count_[event.number] = event.step;
    tell(std::move(event), *given.node);
    return number(before);
  }
  if (what.kind == Memory::Kind::signals && name == "atomic_xchg" && value.is_number()) {
    if (at.base < 0 || at.base >= std::ssize(record_.steps))
      wrong(*given.node,
            fmt::format("signal {} is told, and there are {}", at.base, record_.steps.size()));
    const std::int64_t steps = record_.steps[index(at.base)];
    tell({.kind = Event::signal,
          .number = at.base,
          .step = value.base - kCall * steps - 1,
          .to = what.rank},
         *given.node);
    return unknown();
  }
  walker_.refuse(*given.node, fmt::format("a 'tl.{}' of this kind", name));
}

Value Language::dot(const Arguments& given) {
  const Value &left = need(walker_, given, "input", 0), &right = need(walker_, given, "other", 1);
  if (left.axes.size() != 2 || right.axes.size() != 2 || left.axes[1].count != right.axes[0].count)
    walker_.refuse(*given.node, "a product of blocks whose sizes the text does not say");
  KernelEvent event{.kind = Event::product};
  event.m = left.axes[0].count;
  event.n = right.axes[1].count;
  event.k = left.axes[1].count;
  tell(std::move(event), *given.node);
  const Value* added = given.find("acc", 2);
  const bool adds = added != nullptr && added->type != Type::none;
  Value made = unknown({left.axes[0], right.axes[1]});
  made.term =
      product_term(adds ? term_of(*added) : nullptr, term_of(left), term_of(right), given.node);
  return made;
}

Value Language::descriptor(const Arguments& given, bool is_pointer) {
  Compound made;
  made.items = {need(walker_, given, "base", 0), need(walker_, given, "shape", 1),
                need(walker_, given, "strides", 2),
                need(walker_, given, "block_shape", is_pointer ? 4 : 3)};
  if (is_pointer) made.items.push_back(need(walker_, given, "offsets", 3));
  return {.type = Type::descriptor, .more = std::make_shared<const Compound>(std::move(made))};
}

/// `stored`: null: it is loaded.
Value Language::access(const Value& block, const Value& offsets, const Value* checked,
                       const Value* other, const Value* stored, const Node& node) {
  const BlockTouch touch = touched_by(walker_, block.more->items, offsets, checked, node);
  const Memory& what = memory(block.more->items[0], node);
  if (!touch.is_empty) {
    KernelEvent event{.kind = stored != nullptr ? Event::store : Event::load};
    event.regions = {
        {.tensor = what.tensor, .rank = what.rank, .offset = touch.first, .axes = touch.inner}};
    check(event.regions[0], node);
    if (stored != nullptr) {
      event.value = term_of(*stored);
      event.samples = samples_of(touch.base, touch.touched, &touch.inside);
    }
    tell(std::move(event), node);
  }
  Value made = unknown(shape_of(walker_, block.more->items[3], node));
  made.term = touch.is_empty && other != nullptr
                  ? term_of(*other)
                  : loaded(what, touch.base, touch.touched, &touch.inside, other, node);
  return made;
}

/// `tl.load` and `tl.store` of a block pointer: only axes that are named are cut at their ends, and
/// what is loaded beyond is 0 only where that is asked for.
Value Language::access(const Value& pointer, const Value* stored, const Arguments& given) {
  const Value none = list({}), zero = number(0);
  const Value *checked = given.find("boundary_check", 3),
              *padding = stored != nullptr ? nullptr : given.find("padding_option", 4);
  return access(pointer, pointer.more->items[4], checked != nullptr ? checked : &none,
                padding != nullptr && padding->text == "zero" ? &zero : nullptr, stored,
                *given.node);
}

/// Elements are touched in any order, so that distances need not be below 0.
void Language::check(Region& region, const Node& node) const {
  std::int64_t first = region.offset, last = region.offset, all = 1;
  for (const auto& [count, stride] : region.axes) {
    std::int64_t& end = stride < 0 ? first : last;
    end = plus(end, times(count - 1, stride));
  }
  const Tensor& tensor = record_.tensors[index(region.tensor)];
  for (const std::int64_t extent : tensor.shape) all *= extent;
  if (first < 0 || last >= all)
    wrong(node, fmt::format("elements {} to {} of tensor '{}', which has {}", first, last,
                            tensor.name, all));
  region.offset = first;
  for (auto& [count, stride] : region.axes) stride = std::abs(stride);
}

std::vector<Region> Language::regions(const Value& pointer, const Value* mask, const Node& node) {
  const Memory& what = memory(pointer, node);
  if (mask != nullptr && mask->type == Type::none) mask = nullptr;
  const bool is_block = mask != nullptr && mask->type == Type::mask;
  if (mask != nullptr && !is_block && !mask->is_number())
    walker_.refuse(node, "a mask that depends on data, or on two axes at once");
  if (mask != nullptr && mask->base == 0) return {};
  std::vector<Region> made{{.tensor = what.tensor, .rank = what.rank, .offset = pointer.base}};
  const std::size_t masked = is_block ? mask->axes.size() : 0;
  for (std::size_t i = 0; i < pointer.axes.size(); ++i) {
    const Along& along = pointer.axes[i];
    const std::size_t behind = pointer.axes.size() - i;
    const Along* holds = behind <= masked ? &mask->axes[masked - behind] : nullptr;
    if (holds != nullptr && holds->count != along.count && holds->count > 1)
      walker_.refuse(node, "a mask of another shape than what it is for");
    if (holds != nullptr && holds->values.empty()) holds = nullptr;
    if (!along.varies() && holds == nullptr) continue;  // the same elements again
    if (holds != nullptr || !along.values.empty()) walker_.step(node, along.count / 8);
    std::vector<Region> longer;
    for (const Region& before : made) {
      for (const auto& [first, count, stride] : runs_of(along, holds)) {
        Region one = before;
        one.offset += first;
        if (count > 1) one.axes.emplace_back(count, stride);
        longer.push_back(std::move(one));
      }
    }
    made = std::move(longer);
    if (made.size() > 4096) walker_.refuse(node, "a block that lies in too many pieces");
  }
  for (Region& region : made) {
    region.store = what.store;
    check(region, node);
  }
  return made;
}

}  // namespace

KernelRun::KernelRun(Walker& walker, const RankRecord& record, const HostOp& launch, int rank,
                     int ranks, std::int64_t processors)
    : walker_(walker), record_(record), launch_(launch), rank_(rank), ranks_(ranks) {
  programs_ = is_persistent() ? std::min(work().tiles, processors) : work().tiles;
}

void KernelRun::run(std::int64_t program, const Visit& visit, const Ticket& ticket) {
  const KernelObject& kernel = *work().kernel;
  Language language(walker_, record_, work(), rank_, ranks_, program, programs_, visit, ticket);
  walker_.surround(language);
  Arguments given{.positional = {}, .named = language.tables(), .node = launch_.node};
  for (const auto& [name, value] : launch_.tensors) {
    const auto view = object_of<View>(value);
    if (!view)
      walker_.refuse(*launch_.node,
                     fmt::format("'{}' is a tensor that the file does not have", name),
                     "what a caller gives beside the plan's tensors is not read back");
    given.named.emplace_back(
        name, described(walker_, launch_, *view, name, language.tensor(view->region)));
    if (name == kernel.stores) language.set_output(view->region);
  }
  given.named.insert(given.named.end(), work().values.begin(), work().values.end());
  for (std::size_t axis = 0; axis < work().grid.size(); ++axis)
    given.named.emplace_back(fmt::format("hm_grid_{}", axis), number(work().grid[axis]));
  given.named.emplace_back("hm_pieces", number(std::ssize(work().turn_rows) / 4));
  if (!kernel.workers.empty()) given.named.emplace_back(kernel.workers, number(programs_));
  walker_.run(*kernel.function, given);
}

}  // namespace hemiola::compile::readback

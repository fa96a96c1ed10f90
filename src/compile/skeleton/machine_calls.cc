// Calls of the language: arithmetic, and what touches memory.
#include <algorithm>

#include "compile/skeleton/machine.h"

namespace hemiola::compile::skeleton {
namespace {

using EK = Element::Kind;

const Value kNothing{.kind = Value::Kind::none};

bool is_off(const Value* mask, std::size_t lane) {
  if (mask == nullptr || mask->kind != Value::Kind::elements) return false;
  const Elements& all = mask->elements;
  const Element& one = all.size() == 1 ? all[0] : lane < all.size() ? all[lane] : Element{};
  return one.is_number() && one.number == 0;
}

const Element& lane_of(const Value& value, std::size_t lane) {
  static const Element none;
  if (value.kind != Value::Kind::elements) return none;
  return value.elements.size() == 1     ? value.elements[0]
         : lane < value.elements.size() ? value.elements[lane]
                                        : none;
}

std::vector<int> shape_in(const Value& value) {
  std::vector<int> shape;
  const auto add = [&](const Value& one) {
    shape.push_back(one.is_number() && one.number() > 0 && one.number() < (1 << 14)
                        ? static_cast<int>(one.number())
                        : 1);
  };
  if (value.kind == Value::Kind::tuple)
    for (const Value& one : value.items) add(one);
  else if (value.is_number())
    add(value);
  return shape;
}

/// Lanes that go through a condition of threads; null: all.
const Value* active_lanes(const Process& who, const Value& where) {
  const Value* lanes = who.masks.empty() ? nullptr : &who.masks.back().second;
  return lanes != nullptr && lanes->elements.size() == where.elements.size() ? lanes : nullptr;
}

/// What is told and awaited is a number.
void note_numbers(Arrays& arrays, const Value& value) {
  if (value.kind != Value::Kind::elements) return;
  for (const Element& one : value.elements)
    if (one.kind == EK::open) arrays[one.array].is_number = true;
}

}  // namespace

const Value* Machine::Arguments::find(std::size_t position, std::string_view name) const {
  for (std::size_t i = 0; i < call.keywords.size(); ++i)
    if (call.keywords[i] == name) return values + call.positional + i;
  return position < static_cast<std::size_t>(call.positional) ? values + position : nullptr;
}

std::string Machine::Arguments::text(std::size_t position, std::string_view name,
                                     std::string otherwise) const {
  const Value* found = find(position, name);
  if (found == nullptr || found->kind == Value::Kind::none) return otherwise;
  return found->kind == Value::Kind::text ? found->text : "?";
}

bool Machine::perform(Process& who, const Arguments& given, Value& result, Next& after) {
  switch (given.call.builtin) {
    case Builtin::load:
    case Builtin::descriptor_load:
      result = load(who, given);
      return true;
    case Builtin::store:
    case Builtin::descriptor_store:
      after = Next::yield;
      store(who, given);
      return true;
    case Builtin::atomic:
    case Builtin::atomic_poll:
      after = Next::yield;
      return atomic(who, given, result);
    case Builtin::word:
      after = Next::yield;
      return word(who, given, result);
    case Builtin::assembly:
      after = Next::yield;
      return assembly(who, given, result);
    case Builtin::barrier:
      shared_.mark(who, Mark::barrier, who.pc - 1);
      result = kNothing;
      return true;
    case Builtin::program_id:
    case Builtin::num_programs:
      result = program(who, given, given.call.builtin == Builtin::num_programs);
      return true;
    default:
      return plain(who, given, result);
  }
}

Value Machine::program(const Process& who, const Arguments& given, bool counts) const {
  const Value* axis = given.find(0, "axis");
  const std::size_t at =
      axis != nullptr && axis->is_number() && axis->number() > 0 && axis->number() < 3
          ? static_cast<std::size_t>(axis->number())
          : 0;
  if (counts) return Value::of(launch.programs[at]);
  std::int64_t rest = who.program;
  for (std::size_t i = 0; i < at; ++i) rest /= launch.programs[i];
  return Value::of(rest % launch.programs[at]);
}

bool Machine::plain(const Process&, const Arguments& given, Value& result) {
  const Builtin builtin = given.call.builtin;
  const Value* a = given.find(0, builtin == Builtin::where ? "condition" : "input");
  if (given.call.positional > 0) a = given.values;
  switch (builtin) {
    case Builtin::arange:
      result = arange(given);
      break;
    case Builtin::full:
    case Builtin::zeros:
      result = filled(given);
      break;
    case Builtin::cdiv:
    case Builtin::fold:
      result = folded(given);
      break;
    case Builtin::range:
      result = range(given);
      break;
    case Builtin::pointer_type:
      result = Value::of_text("pointer");
      break;
    case Builtin::descriptor:
    case Builtin::block_pointer:
      result = descriptor(given, builtin == Builtin::block_pointer);
      break;
    default:
      if (a != nullptr) result = of_first(given, *a);
  }
  return true;
}

/// What is made of the first argument.
Value Machine::of_first(const Arguments& given, const Value& a) {
  switch (given.call.builtin) {
    case Builtin::first:
      return a;
    case Builtin::transpose:
      return transposed(a);
    case Builtin::reduce:
      return reduced(given.call.name, a, given.find(1, "axis") != nullptr);
    case Builtin::where:
      return chosen(given, a);
    case Builtin::cast:
      return cast(given, a);
    case Builtin::advance: {
      const Value* by = given.find(1, "offsets");
      if (by == nullptr || a.kind != Value::Kind::descriptor) return {};
      Value result = a;
      for (std::size_t i = 0; i < result.items[3].items.size() && i < by->items.size(); ++i)
        result.items[3].items[i] = binary(arrays_, "+", result.items[3].items[i], by->items[i]);
      return result;
    }
    default:
      return {};
  }
}

Value Machine::arange(const Arguments& given) const {
  const Value *begin = given.find(0, "start"), *end = given.find(1, "end");
  if (begin == nullptr || end == nullptr || !begin->is_number() || !end->is_number()) return {};
  const std::int64_t count = end->number() - begin->number();
  if (count < 1 || count > (1 << 14)) return {};
  Value result{.shape = {static_cast<int>(count)}, .elements = {}};
  for (std::int64_t i = 0; i < count; ++i)
    result.elements.push_back(number_element(begin->number() + i));
  return result;
}

Value Machine::filled(const Arguments& given) const {
  const Value *shape = given.find(0, "shape"), *fill = given.find(1, "value");
  const bool zero = given.call.builtin == Builtin::zeros;
  const Value one = zero ? Value::of(0) : fill == nullptr ? Value{} : *fill;
  return shape == nullptr || !one.is_number() ? one : broadcast(one, shape_in(*shape));
}

/// min, max and cdiv.
Value Machine::folded(const Arguments& given) {
  const std::size_t count =
      static_cast<std::size_t>(given.call.positional) + given.call.keywords.size();
  if (count == 0) return {};
  if (given.call.builtin == Builtin::cdiv) {
    const Value *x = given.find(0, "x"), *y = given.find(1, "div");
    if (x == nullptr || y == nullptr) return {};
    const Value up = binary(arrays_, "-", binary(arrays_, "+", *x, *y), Value::of(1));
    return binary(arrays_, "//", up, *y);
  }
  const std::string_view op = given.call.name.starts_with("min") ? "min" : "max";
  Value result = given.values[0];
  for (std::size_t i = 1; i < count; ++i) result = binary(arrays_, op, result, given.values[i]);
  return result;
}

Value Machine::range(const Arguments& given) {
  std::vector<Value> parts(given.values, given.values + given.call.positional);
  for (const Value& one : parts)
    if (one.kind == Value::Kind::elements && one.elements[0].kind == EK::open)
      arrays_[one.elements[0].array].is_number = true;
  if (parts.size() == 1) parts.insert(parts.begin(), Value::of(0));
  if (parts.size() == 2) parts.push_back(Value::of(1));
  Value result = Value::of_items(std::move(parts));
  result.text = "range";
  return result;
}

/// tl.where: shapes by the usual rules, each element from one of the two.
Value Machine::chosen(const Arguments& given, const Value& condition) {
  const Value *x = given.find(1, "x"), *y = given.find(2, "y");
  if (x == nullptr || y == nullptr) return {};
  if (condition.is_number()) return condition.number() != 0 ? *x : *y;
  Value result = binary(arrays_, "+", binary(arrays_, "+", condition, *x), *y);
  const Value c = broadcast(condition, result.shape), p = broadcast(*x, result.shape),
              q = broadcast(*y, result.shape);
  for (std::size_t i = 0; i < result.elements.size(); ++i) {
    const Element& one = lane_of(c, i);
    result.elements[i] = !one.is_number()  ? Element{}
                         : one.number != 0 ? lane_of(p, i)
                                           : lane_of(q, i);
  }
  return result;
}

Value Machine::cast(const Arguments& given, const Value& a) {
  Value result = a;
  const Value* type = given.find(1, "dtype");
  const bool to_pointer =
      type != nullptr && type->kind == Value::Kind::text && type->text == "pointer";
  if (!to_pointer || result.kind != Value::Kind::elements) return result;
  for (Element& one : result.elements) {
    if (one.kind == EK::loaded) {
      arrays_[one.array].is_table = true;
      one = arrays_.target(one);
    }
    if (one.kind == EK::open) arrays_[one.array].is_pointer = true;
  }
  return result;
}

Value Machine::descriptor(const Arguments& given, bool is_block_pointer) {
  Value made{.kind = Value::Kind::descriptor};
  const auto part = [&](std::size_t at, std::string_view name) {
    const Value* found = given.find(at, name);
    return found == nullptr ? Value::of_items({}) : *found;
  };
  made.items = {part(0, "base"), part(2, "strides"),
                is_block_pointer ? part(4, "block_shape") : part(3, "block_shape"),
                is_block_pointer ? part(3, "offsets") : Value::of_items({})};
  made.text = is_block_pointer ? "" : "bulk";
  return made;
}

Value Machine::block_of(const Value& descriptor, const Value& offsets) {
  const std::vector<Value>&strides = descriptor.items[1].items, &block = descriptor.items[2].items;
  Value where = descriptor.items[0];
  for (std::size_t axis = 0; axis < block.size(); ++axis) {
    const std::int64_t extent = block[axis].is_number() ? block[axis].number() : 1;
    Value lanes{.shape = std::vector<int>(block.size(), 1), .elements = {}};
    lanes.shape[axis] = static_cast<int>(std::clamp<std::int64_t>(extent, 1, 256));
    for (int i = 0; i < lanes.shape[axis]; ++i) lanes.elements.push_back(number_element(i));
    const Value offset = axis < offsets.items.size() ? offsets.items[axis] : Value::of(0);
    const Value stride = axis < strides.size() ? strides[axis] : Value::of(1);
    where = binary(arrays_, "+", where,
                   binary(arrays_, "*", binary(arrays_, "+", offset, lanes), stride));
  }
  return where;
}

Element Machine::addressed(const Process& who, const Element& element) {
  Element one = element;
  if (one.kind == EK::loaded) one = arrays_.target(one);
  if (one.kind == EK::open) {
    arrays_[one.array].is_pointer = true;
    one.kind = EK::address;
    one.rank = who.rank;
  }
  if (one.kind != EK::address) return {};
  if (const int table = arrays_[one.array].table; table >= 0) arrays_[table].is_table = true;
  return one;
}

Value Machine::touch(Process& who, const Value& where, Access access, const Value* value,
                     const Value* compare, const Value* mask) {
  Value result = where;
  if (where.kind != Value::Kind::elements) return {};
  access.step = who.pc - 1;
  access.is_block = where.elements.size() > 1;
  const Value* lanes = active_lanes(who, where);
  if (value != nullptr && access.kind == Access::Kind::atomic) note_numbers(arrays_, *value);
  who.steps += static_cast<std::int64_t>(where.elements.size());
  for (std::size_t i = 0; i < where.elements.size(); ++i) {
    result.elements[i] = Element{};
    access.where = addressed(who, where.elements[i]);
    if (is_off(mask, i) || is_off(lanes, i)) {
      shared_.skip(who, access);
      continue;
    }
    if (value != nullptr) access.value = lane_of(*value, i);
    if (compare != nullptr) access.compare = lane_of(*compare, i);
    result.elements[i] = shared_.access(who, access);
  }
  return result;
}

Value Machine::load(Process& who, const Arguments& given) {
  const Value* pointer = given.find(0, "pointer");
  if (pointer == nullptr) return {};
  const Value* mask = given.find(1, "mask");
  Access access{.kind = Access::Kind::load, .sem = "", .scope = ""};
  if (pointer->kind == Value::Kind::descriptor) {
    const Value* offsets = given.call.builtin == Builtin::descriptor_load ? given.find(1, "offsets")
                                                                          : &pointer->items[3];
    access.is_bulk = pointer->text == "bulk";
    return touch(who, block_of(*pointer, offsets == nullptr ? Value{} : *offsets), access, nullptr,
                 nullptr, nullptr);
  }
  if (given.call.builtin == Builtin::descriptor_load) {  // made by the host
    access.is_bulk = true;
    mask = nullptr;
  }
  return touch(who, *pointer, access, nullptr, nullptr, mask);
}

void Machine::store(Process& who, const Arguments& given) {
  const Value* pointer = given.find(0, "pointer");
  if (pointer == nullptr) return;
  Access access{.kind = Access::Kind::store, .sem = "", .scope = ""};
  const bool by_method = given.call.builtin == Builtin::descriptor_store;
  const Value* value = given.find(by_method ? 2 : 1, "value");
  if (pointer->kind == Value::Kind::descriptor) {
    const Value* offsets = by_method ? given.find(1, "offsets") : &pointer->items[3];
    access.is_bulk = pointer->text == "bulk";
    touch(who, block_of(*pointer, offsets == nullptr ? Value{} : *offsets), access, value, nullptr,
          nullptr);
    return;
  }
  access.is_bulk = by_method;
  touch(who, *pointer, access, value, nullptr, by_method ? nullptr : given.find(2, "mask"));
}

bool Machine::atomic(Process& who, const Arguments& given, Value& result) {
  const Value* pointer = given.find(0, "pointer");
  if (pointer == nullptr) return true;
  const std::string_view name = given.call.name;
  const bool compares = name == "atomic_cas", polls = given.call.builtin == Builtin::atomic_poll;
  const std::size_t order = compares || !polls ? 3 : 2;
  Access access{.kind = Access::Kind::atomic,
                .op = polls ? "load" : name.substr(name.find('_') + 1),
                .sem = given.text(order, "sem", polls ? "acquire" : "acq_rel"),
                .scope = given.text(order + 1, "scope", "gpu")};
  const Value* value = given.find(compares ? 2 : 1, "val");
  if (polls) {
    result = Value{};
    return wait(who, *pointer, access, value == nullptr ? Value{} : *value, "eq");
  }
  result = touch(who, *pointer, access, value, compares ? given.find(1, "cmp") : nullptr,
                 compares ? nullptr : given.find(2, "mask"));
  return true;
}

/// Of several words each is waited for; which are done is kept while the program waits.
bool Machine::wait(Process& who, const Value& where, Access access, const Value& value,
                   const std::string& comparison) {
  if (where.kind != Value::Kind::elements) return true;
  note_numbers(arrays_, value);
  access.repeats = true;
  access.step = who.pc - 1;
  access.is_block = where.elements.size() > 1;
  if (who.lanes_done.size() != where.elements.size())
    who.lanes_done.assign(where.elements.size(), false);
  bool all = true;
  who.watched.clear();
  const Value* lanes = active_lanes(who, where);
  for (std::size_t i = 0; i < where.elements.size(); ++i) {
    if (who.lanes_done[i] || is_off(lanes, i)) continue;
    access.where = addressed(who, where.elements[i]);
    access.compare = lane_of(value, i);
    who.lanes_done[i] = shared_.try_wait(who, access, comparison);
    all = all && who.lanes_done[i];
  }
  if (all) who.lanes_done.clear();
  return all;
}

}  // namespace hemiola::compile::skeleton
